"""One shard computed: a pure function from its key to the bytes of its file.

This is what a worker runs, here or on a cluster. Everything it needs is in the key, and only the
key determines the result: one stream of transitions per run, every learner a lane on it, every
solver fitted to its first rows, errors measured against the problem's truth.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg  # noqa: F401 - its BLAS must be loaded before the threads are limited

from o2td import exact, metrics
from o2td.arrays import Floats
from o2td.errors import InputError, O2TDError, import_extra
from o2td.experiments.files import Labels, encode, records_of
from o2td.experiments.planning import canonical, labelled
from o2td.learners import PowerDecay, sweep
from o2td.problem import Problem
from o2td.registry import DOMAINS, FEATURES, LEARNERS, SOLVERS
from o2td.simulated import SimulatedProblem
from o2td.transitions import Transitions


class KeyedError(InputError):
    """A mistake in a spec whose message already names its key."""


class Recorded(NamedTuple):
    """What one cell gave in one run: `values` (metrics, records), the step of divergence or -1."""

    steps: Sequence[int]
    values: Floats
    diverged: int


class Setup(NamedTuple):
    """A problem, how errors are measured on it, and the noise of its true values by metric.

    `noise` holds the metrics whose true values come from roll-outs; empty if the truth is exact.
    """

    problem: Any
    measures: dict[str, Any]
    noise: dict[str, float]


class Run(NamedTuple):
    """One run: its number, what every cell gave, and the noise of the true values."""

    number: int
    cells: list[Recorded]
    noise: dict[str, float]


def execute(key_text: str) -> bytes:
    """Compute the shard of this key and return its file's bytes."""
    key = json.loads(key_text)
    with one_thread():
        runs = [_one_run(key, run) for run in range(*key["runs"])]
    return encode(key_text, _columns(key, runs))


def build_problem(key: dict[str, Any], run: int) -> Any:
    """The problem of a run, from the registry, with the truth for measuring its errors."""
    with one_thread():
        return _setup(*_setup_key(key, run)).problem


def one_thread() -> Any:
    """One BLAS thread: cores are divided between processes, and sums keep their order."""
    return import_extra("threadpoolctl", extra="experiments").threadpool_limits(1)


def make_algorithm(cell: dict[str, Any], problem: Any = None) -> Any:
    """The learner or solver of a cell; a learner begins at the problem's `initial_theta`."""
    options = {name: _value(value) for name, value in cell["parameters"].items()}
    if cell["kind"] == "solver":
        return SOLVERS[cell["name"]](**options)
    first = getattr(problem, "initial_theta", None)
    if first is not None:
        options.setdefault("initial_theta", first)
    return LEARNERS[cell["name"]](**options)


def try_out(key: dict[str, Any], problem: Any) -> None:
    """Give every algorithm a few rows, so that an error names one that cannot read them."""
    given = {"scheme": key["scheme"], "double": key["double"]}
    rows = problem.sample(min(8, key["steps"]), seed=(key["seed"], key["runs"][0]), **given)
    for cell in key["cells"]:
        try:
            algorithm = make_algorithm(cell, problem)
            if cell["kind"] == "learner":
                algorithm.partial_fit(rows)
            else:
                algorithm.update(rows)
        except O2TDError as error:
            raise InputError(
                f"algorithms: {cell['label']} cannot learn from {key['domain']['name']}: {error}"
            ) from None


def _one_run(key: dict[str, Any], run: int) -> Run:
    problem, measures, noise = _setup(*_setup_key(key, run))
    batch = problem.sample(
        key["steps"], seed=(key["seed"], run), scheme=key["scheme"], double=key["double"]
    )
    recorded: dict[int, Recorded] = {}
    for starts in ("kept", "ignored"):
        lanes = [
            k
            for k, cell in enumerate(key["cells"])
            if cell["kind"] == "learner" and cell["starts"] == starts
        ]
        stream = batch if starts == "kept" else _without_starts(batch)
        recorded.update(_learn(key, lanes, problem, stream, measures))
    for k, cell in enumerate(key["cells"]):
        if cell["kind"] == "solver":
            recorded[k] = _solve(cell, key["sizes"], batch, measures)
    return Run(run, [recorded[k] for k in range(len(key["cells"]))], noise)


def _learn(
    key: dict[str, Any], lanes: list[int], problem: Any, batch: Transitions, measures: Any
) -> dict[int, Recorded]:
    """Run all learners on one stream, recording at fixed intervals."""
    if not lanes:
        return {}
    learners = [make_algorithm(key["cells"][k], problem) for k in lanes]
    result = sweep(learners, batch, metrics=measures, every=key["every"])
    wanted = np.asarray(records_of(key["steps"], key["every"]))
    at = np.searchsorted(result.steps, wanted)
    return {
        k: Recorded(
            wanted.tolist(),
            np.stack([result.values[name][lane][at] for name in measures]),
            int(result.diverged[lane]),
        )
        for lane, k in enumerate(lanes)
    }


def _solve(
    cell: dict[str, Any], sizes: list[int], batch: Transitions, measures: dict[str, Any]
) -> Recorded:
    """A solver on the first n rows of the stream, for each n; no solution counts as infinite."""
    values = np.full((len(measures), len(sizes)), np.inf)
    diverged, first = -1, 0
    solver = make_algorithm(cell)
    for j, n in enumerate(sizes):
        theta = np.asarray(solver.update(batch[first:n]).theta)
        first = n
        if np.isfinite(theta).all():
            values[:, j] = [metric.value(theta) for metric in measures.values()]
        elif diverged < 0:
            diverged = n
    values[~np.isfinite(values)] = np.inf
    return Recorded(sizes, values, diverged)


def _columns(key: dict[str, Any], runs: list[Run]) -> dict[str, Any]:
    """Long form: one row per run, cell, metric and recorded step, in that order.

    `truth_error` exists only if some true values come from roll-outs: exact ones have no error.
    """
    arrow = import_extra("pyarrow", extra="experiments")
    cells, names = key["cells"], key["metrics"]
    parts = [(run.number, k, recorded) for run in runs for k, recorded in enumerate(run.cells)]
    counts = [recorded.values.size for _, _, recorded in parts]

    def repeated(numbers: list[int], dtype: Any) -> npt.NDArray[Any]:
        return np.repeat(np.asarray(numbers, dtype=dtype), counts)

    cell = repeated([k for _, k, _ in parts], np.int32)
    constant = np.zeros(len(cell), dtype=np.int32)
    labels = list(dict.fromkeys(entry["label"] for entry in cells))
    texts = [canonical(entry["parameters"]) for entry in cells]
    settings = list(dict.fromkeys(texts))
    diverged = repeated([recorded.diverged for _, _, recorded in parts], np.int64)
    columns = {
        "experiment": Labels(constant, [key["experiment"]]),
        "domain": Labels(constant, [labelled(key["domain"])]),
        "scheme": Labels(constant, [key["scheme"]]),
        "algorithm": _labels(cell, [entry["label"] for entry in cells], labels),
        "parameters": _labels(cell, texts, settings),
        "run": repeated([run for run, _, _ in parts], np.int32),
        "metric": Labels(
            np.concatenate(
                [np.repeat(np.arange(len(names)), len(r.steps)) for _, _, r in parts]
            ).astype(np.int32),
            names,
        ),
        "step": np.concatenate([np.tile(r.steps, len(names)) for _, _, r in parts]),
        "value": np.concatenate([r.values.ravel() for _, _, r in parts]),
        "diverged": arrow.array(diverged, mask=diverged < 0),
    }
    if any(run.noise for run in runs):
        noise = np.concatenate(
            [
                np.repeat([run.noise.get(name, np.nan) for name in names], len(recorded.steps))
                for run in runs
                for recorded in run.cells
            ]
        )
        columns["truth_error"] = arrow.array(noise, mask=np.isnan(noise))
    return columns


def _labels(cell: npt.NDArray[np.int32], texts: list[str], words: list[str]) -> Labels:
    place = np.asarray([words.index(text) for text in texts], dtype=np.int32)
    return Labels(place[cell], words)


# -- problem and truth, built once in a worker and used for all its runs ---------------------------


def _setup_key(key: dict[str, Any], run: int) -> tuple[str, str, str]:
    domain = dict(key["domain"])
    if domain["seed"] == "run":
        domain["seed"] = [key["seed"], run]
    wanted = {"metrics": key["metrics"], "truth": key["truth"]}
    return canonical(domain), canonical(key["features"]), canonical(wanted)


@lru_cache(maxsize=1)
def _setup(domain_text: str, features_text: str, wanted_text: str) -> Setup:
    domain, features, wanted = (
        json.loads(text) for text in (domain_text, features_text, wanted_text)
    )
    options = dict(domain["parameters"])
    if domain["seed"] is not None:
        seed = domain["seed"]
        options["seed"] = tuple(seed) if isinstance(seed, list) else seed
    problem = DOMAINS[domain["name"]](**options)
    if features is not None:
        if not isinstance(problem, SimulatedProblem):
            raise KeyedError(f"features: the domain {domain['name']} has its own; leave them out")
        try:
            chosen = _features(features, problem, wanted["truth"])
        except (TypeError, ValueError, MemoryError, OverflowError) as error:
            raise KeyedError(f"features.parameters: {told(error)}") from None
        problem = DOMAINS[domain["name"]](**options, features=chosen)
    return _measured(problem, wanted["metrics"], wanted["truth"])


def _features(features: dict[str, Any], problem: SimulatedProblem, truth: dict[str, Any]) -> Any:
    """Features scaled by the domain's bounds, or by observations from a seed that no run uses."""
    maker, options = FEATURES[features["name"]], dict(features["parameters"])
    if problem.bounds is not None and "bounds" in inspect.signature(maker).parameters:
        options.setdefault("bounds", problem.bounds)
    chosen = maker(**options)
    seen = problem.observations(max(1000, truth["states"]), seed=(truth["seed"], 2))
    return chosen.fit(seen)


def _measured(problem: Any, names: list[str], truth: dict[str, Any]) -> Setup:
    if not isinstance(problem, SimulatedProblem):
        return Setup(problem, {name: _EXACT[name](problem) for name in names}, {})
    found = {name: _simulated(name, problem, truth) for name in names}
    noise = {name: size for name, (_, size) in found.items() if size is not None}
    return Setup(problem, {name: metric for name, (metric, _) in found.items()}, noise)


_EXACT: dict[str, Callable[[Problem], Any]] = {
    "rmse": metrics.RMSE,
    "rmspbe": metrics.RMSPBE,
    "rmsbe": metrics.RMSBE,
    "rmspbe_dann": lambda problem: metrics.RMSPBE(problem, "dann"),
    "rmsbe_dann": lambda problem: metrics.RMSBE(problem, "dann"),
    "theta_norm": lambda problem: _distance(problem),
    "theta_max": lambda problem: LargestDifference(exact.best_approximation(problem)),
}


def _simulated(
    name: str, problem: SimulatedProblem, truth: dict[str, Any]
) -> tuple[metrics.Quadratic, float | None]:
    """A metric from an independent sample, and the noise of its true values if it has such."""
    if name == "rmse":
        seen = problem.observations(truth["states"], seed=(truth["seed"], 0), every=10)
        value = problem.rollout_value(seen, runs=truth["rollouts"], seed=(truth["seed"], 1))
        return metrics.held_out(problem.phi(seen), value.mean), value.noise
    if name == "rmspbe":
        rows = problem.sample(truth["rows"], seed=(truth["seed"], 3))
        return metrics.held_out_rmspbe(rows), None
    raise KeyedError(f"metrics: {name} is not known where the problem is simulated; use rmse")


def _distance(problem: Problem) -> metrics.Quadratic:
    """`|theta - theta*|_2`, theta* the best approximation."""
    best = exact.best_approximation(problem)
    return metrics.Quadratic("theta_norm", np.eye(len(best)), best, 0.0)


class LargestDifference:
    """`max_j |theta_j - theta*_j|`, which is not quadratic and so not recorded within a sweep."""

    def __init__(self, best: Floats) -> None:
        self.best = best

    def value(self, theta: Floats) -> float:
        """The distance of one theta."""
        return float(np.abs(theta - self.best).max())


def told(error: BaseException) -> str:
    """What an error says; one of memory may say nothing."""
    return str(error) or "it does not fit in memory"


def _value(value: Any) -> Any:
    return PowerDecay(*value["power"]) if isinstance(value, dict) else value


_COLUMNS = (
    *("reward", "discount", "rho", "target_prob", "behavior_prob", "interest"),
    *("discount_2", "rho_2"),
)


def _without_starts(batch: Transitions) -> Transitions:
    """The same rows as one unbroken trajectory, so that traces run on across them."""
    own = ("table", "state", "next_state", "next_state_2")
    names = own if batch.layout == "table" else ("phi", "next_phi", "next_phi_2")
    columns = {name: getattr(batch, name) for name in (*names, *_COLUMNS)}
    return Transitions.from_table(**columns) if names is own else Transitions(**columns)
