"""Every number that the site shows, measured on small problems and cached under build/docs.

`numbers()` returns plain data (JSON). No number is typed in: a page that quotes one names it, and a
name that does not exist stops the build.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / "docs"
SOURCES = ("chain", "domains", "emphasis", "exact", "kernels", "learners", "metrics", "model")
SOURCES += ("problem", "sampling", "solvers", "transitions")
TRACES = (0.0, 0.9)
GARNETS = 200  # the same problems as in the studies of the paper
STEPS = 4000
RUNS = 8
STEP_SIZES = tuple(2.0**-k for k in range(1, 15, 2))
LAMBDAS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0)
ROWS = (100, 300, 1000, 3000, 10_000)


def numbers() -> dict[str, Any]:
    """All measured numbers, from the cache where the code that made them has not changed."""
    cached = CACHE / f"numbers-{_digest()}.json"
    if not cached.exists():
        found = {part.__name__.strip("_"): part() for part in PARTS}
        cached.parent.mkdir(parents=True, exist_ok=True)
        partial = cached.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(_plain(found)), encoding="utf-8")
        partial.replace(cached)
    read: dict[str, Any] = json.loads(cached.read_text(encoding="utf-8"))
    return read


def _digest() -> str:
    """A digest of the code that the numbers depend on, and of what other packages have registered."""
    from o2td.registry import LEARNERS, SOLVERS

    digest = hashlib.sha256(repr((LEARNERS.names(), SOLVERS.names())).encode())
    files = [Path(__file__), Path(__file__).with_name("paper.py")]
    for name in SOURCES:
        home = ROOT / "src" / "o2td" / name
        files += sorted(home.rglob("*.py")) if home.is_dir() else [home.with_suffix(".py")]
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _plain(value: Any) -> Any:
    """JSON without infinities or arrays."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf"
    return value


def family(method: str) -> str:
    """The registered name in a label such as `TD(trace=0.9)`."""
    return method.partition("(")[0]


def reference_problems() -> dict[str, Any]:
    """Small problems with exact answers, on which every method's page shows where the method lands."""
    from o2td import domains
    from o2td.paper.studies.geometry import three_states

    return {
        "three states": three_states(),
        "collision": domains.collision(seed=0),
        "Boyan chain": domains.boyan_chain(),
        "random walk": domains.random_walk(form="dependent"),
        "Baird's star": domains.baird(),
    }


def _landings() -> dict[str, Any]:
    """`exact.analyze` on every reference problem."""
    from o2td import exact

    found: dict[str, Any] = {}
    for name, problem in reference_problems().items():
        best = exact.rmse(problem, exact.best_approximation(problem))
        rows = {row.method: vars(row) for row in exact.analyze(problem, TRACES)}
        about = {"states": problem.n_states, "features": problem.d, "best": best}
        found[name] = {"about": about, "methods": rows}
    return found


def _geometry() -> dict[str, Any]:
    """The three-state problem: V, the plane of the features, and where the methods land."""
    import numpy as np

    from o2td import exact
    from o2td.paper.studies.geometry import geometry, three_states

    problem = three_states()
    points: dict[str, list[float]] = {}
    for record in geometry(0, 1, 0):
        if record.quantity == "coordinate":
            points.setdefault(record.method, []).append(record.value)
    weight = problem.visits
    V = np.array(points["V"])
    error = {
        name: float(np.sqrt(weight @ (np.array(point) - V) ** 2))
        for name, point in points.items()
        if not name.startswith("feature")
    }
    best = error["v* (best)"]
    ratio = {name: value / best for name, value in error.items()}
    P = problem.discounted_matrix(problem.target)
    return {
        "points": points,
        "visits": weight,
        "rmse": error,
        "ratio": ratio,
        "P": P,
        "reward": problem.expected_reward(problem.target),
        "theta": {
            "best": exact.best_approximation(problem),
            "TD": exact.oblique_fixed_point(problem, weight[:, None] * problem.features),
        },
        "amplification": {
            "TD": exact.amplification(problem, weight[:, None] * problem.features),
            "best": exact.amplification(problem, exact.optimal_direction(problem)),
        },
    }


def _limits(problem: Any) -> Iterator[tuple[str, Any]]:
    """Label and suboptimality of every learner and solver that has a limit."""
    from o2td import exact
    from o2td.errors import O2TDError
    from o2td.exact.analysis import variants
    from o2td.registry import LEARNERS, SOLVERS

    model = exact.model(problem)
    for name, build in variants(LEARNERS, TRACES):
        learner = build()
        if not getattr(learner, "discounted", True):
            continue
        try:
            yield name, exact.fixed_point(problem, learner).suboptimality
        except O2TDError:
            continue
    for name, build in variants(SOLVERS, TRACES):
        solver = build()
        if not getattr(solver, "discounted", True):
            continue
        try:
            yield name, exact.suboptimality(problem, solver.limit(model))
        except O2TDError:
            continue


def _nearness() -> dict[str, Any]:
    """RMSE of each limit over that of the best approximation, on off-policy garnets."""
    import numpy as np

    from o2td import domains

    ratios: dict[str, list[float]] = {}
    for k in range(GARNETS):
        for name, ratio in _limits(domains.garnet(seed=(13, k))):
            ratios.setdefault(name, []).append(ratio)
    found = {}
    for name, values in ratios.items():
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
        spread = {"low": low, "median": middle, "high": high, "worst": max(values)}
        found[name] = {**spread, "all": values, "n": len(values)}
    return found


def _stability() -> dict[str, Any]:
    """The number of random problems on which each learner's mean dynamics are unstable."""
    from o2td import domains, exact
    from o2td.emphasis import READINGS, Omega
    from o2td.errors import O2TDError
    from o2td.exact.analysis import variants
    from o2td.learners import GTD2
    from o2td.registry import LEARNERS

    learners: dict[str, Callable[[], Any]] = dict(variants(LEARNERS, TRACES))
    for reading in READINGS:
        learners[f"GTD2(emphasis=omega {reading})"] = lambda r=reading: GTD2(emphasis=Omega(r))
    found: dict[str, Any] = {}
    for on_policy in (True, False):
        for k in range(GARNETS):
            problem = domains.garnet(
                states=30, features=5, discount=0.99, peak=4, seed=(14, k), on_policy=on_policy
            )
            for name, build in learners.items():
                row = found.setdefault(name, {"on": 0, "off": 0, "n": GARNETS})
                try:
                    stable = exact.fixed_point(problem, build()).stable
                except O2TDError:
                    continue
                row["on" if on_policy else "off"] += int(not stable)
    return found


def _by_lambda() -> dict[str, Any]:
    """Distance from the best against lambda: the limits, and LSTD(lambda) from few and many rows."""
    import numpy as np

    from o2td import ETD, LSTD, O2TD, TD, domains, exact

    makers: dict[str, Callable[[float], Any]] = {
        "TD": lambda trace: TD(0.1, trace=trace),
        "ETD": lambda trace: ETD(0.1, trace=trace),
        "O2TD (state)": lambda trace: O2TD(0.1, omega="state", trace=trace),
        "O2TD (sample)": lambda trace: O2TD(0.1, omega="sample", trace=trace),
    }
    problems = [domains.garnet(seed=(13, k)) for k in range(20)]
    limits = {
        name: [
            np.median([exact.fixed_point(p, make(trace)).suboptimality for p in problems])
            for trace in LAMBDAS
        ]
        for name, make in makers.items()
    }

    def sampled(problems: list[Any], n: int) -> Any:
        ratios = [
            exact.suboptimality(p, LSTD(trace).fit(p.sample(n, seed=(23, k))).theta)
            for trace in LAMBDAS
            for k, p in enumerate(problems)
        ]
        return np.median(np.reshape(ratios, (len(LAMBDAS), -1)), axis=1)

    mild = sampled([domains.garnet(seed=(13, k), on_policy=True) for k in range(20)], 10_000)
    return {
        "traces": LAMBDAS,
        "limits": limits,
        "LSTD": {str(n): sampled(problems, n) for n in (300, 1000, 10_000)},
        "on_policy": {"LSTD": mild, "best": LAMBDAS[int(np.argmin(mild))]},
        "problems": len(problems),
    }


def _curves() -> dict[str, Any]:
    """Learners on the collision problem: RMSE against steps, at the best step size of a grid.

    The step size is chosen on seeds other than those shown, by the mean RMSE over the run.
    """
    import numpy as np

    from o2td import domains, metrics, sweep
    from o2td.exact.analysis import variants
    from o2td.registry import LEARNERS

    problem = domains.collision(seed=0)
    metric = {"rmse": metrics.rmse(problem)}
    builds = dict(variants(LEARNERS, TRACES))
    lanes = [build(step_size=a) for build in builds.values() for a in STEP_SIZES]
    every = STEPS // 50
    runs = []
    for run in range(2 * RUNS):
        batch = problem.sample(STEPS, seed=(21, run))
        runs.append(sweep(lanes, batch, metrics=metric, every=every).values["rmse"])
    shape = (2, RUNS, len(builds), len(STEP_SIZES), STEPS // every)
    chosen, shown = np.array(runs).reshape(shape)
    found: dict[str, Any] = {}
    for k, name in enumerate(builds):
        area = chosen[:, k].mean(axis=(0, 2))
        best = int(np.argmin(area))
        curve = shown[:, k, best]
        low, high = np.quantile(curve, [0.1, 0.9], axis=0)
        found[name] = {
            "step_size": STEP_SIZES[best],
            "steps": np.arange(1, STEPS // every + 1) * every,
            "mean": curve.mean(axis=0),
            "low": low,
            "high": high,
            "sensitivity": shown[:, k].mean(axis=(0, 2)),
        }
    return {"methods": found, "step_sizes": STEP_SIZES, "runs": RUNS, "steps": STEPS}


def _batch() -> dict[str, Any]:
    """Solvers on the collision problem: RMSE against the number of rows."""
    import numpy as np

    from o2td import domains, exact
    from o2td.errors import O2TDError
    from o2td.exact.analysis import variants
    from o2td.registry import SOLVERS

    problem = domains.collision(seed=0)
    errors: dict[str, list[list[float]]] = {}
    for run in range(RUNS):
        batch = problem.sample(ROWS[-1], seed=(22, run))
        for name, build in variants(SOLVERS, TRACES):
            try:
                row = [exact.rmse(problem, build().fit(batch[:n]).theta) for n in ROWS]
            except O2TDError:
                continue
            errors.setdefault(name, []).append(row)
    return {
        "rows": ROWS,
        "runs": RUNS,
        "methods": {name: np.median(values, axis=0) for name, values in errors.items()},
    }


def _counts() -> dict[str, int]:
    """The number of methods of each kind in the library itself."""
    from o2td import _HOMES, learners
    from o2td.registry import SOLVERS

    solvers = [name for name in SOLVERS.names() if _HOMES.get(name) == "o2td.solvers"]
    return {"learners": len(learners.MEMBERS), "solvers": len(solvers)}


def _paper() -> dict[str, Any]:
    """The places where the paper disagrees with itself, each measured."""
    from docs._tools.paper import findings

    return findings()


PARTS: tuple[Callable[[], Any], ...] = (
    *(_counts, _geometry, _landings, _nearness, _stability, _by_lambda, _curves, _batch, _paper),
)
