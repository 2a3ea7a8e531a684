"""Everything public, called with bad and odd values: a part of what `make fuzz` does for ten minutes."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td.errors import InputError

ROOT = Path(__file__).parents[2]


def fuzzed(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.fuzz_calls", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.slow
def test_no_odd_value_ends_in_a_raw_error() -> None:
    done = fuzzed("--seconds", "60", "--seed", "11")
    assert done.returncode == 0, done.stdout
    assert "0 ended in another error than one of o2td's" in done.stdout


def test_a_raw_error_is_found_and_shown_as_a_call(tmp_path: Path) -> None:
    """The fuzzer itself, on a function that lets one through."""
    import random

    from benchmarks import fuzz_calls
    from benchmarks.fuzz_targets import Target, signature

    def careless(n: int) -> str:
        return f"{n + 1}"

    found = signature(careless)
    assert found is not None
    target = Target("careless", "careless", "careless", lambda: careless, found)
    calls = [fuzz_calls.drawn(target, random.Random(k)) for k in range(60)]  # noqa: S311
    failures = [(call.text(), fuzz_calls.failure(call)) for call in calls]
    raw = [(text, one) for text, one in failures if one is not None]
    assert raw
    assert all(text.startswith("careless(n=") for text, _ in raw)
    assert any("TypeError" in one["error"] for _, one in raw)


def test_it_finds_what_is_public() -> None:
    from benchmarks.fuzz_targets import targets

    texts = {one.text for one in targets()}
    for name in ("o2td.TD", "o2td.Transitions", "o2td.exact.analyze", "o2td.evaluation.evaluate"):
        assert name in texts
    assert "learned('TDRC').learn_one" in texts
    assert "solved('LSTD').merge" in texts
    assert len(texts) > 500


def test_absurd_sizes_are_refused_before_memory_is_asked_for(tmp_path: Path) -> None:
    import benchmarks.fuzz_recipes as recipes
    from o2td import evaluation

    with pytest.raises(InputError, match=r"lanes: 2147483648; .* at most 100,000"):
        evaluation.evaluate(recipes.frame(), discount=0.9, lanes=2**31)


def _regressed_with(**settings: Any) -> Any:
    from o2td.sklearn import ValueRegressor

    return ValueRegressor(**settings).fit(np.ones((3, 1)), np.ones(3))


def _regressed(**given: Any) -> Any:
    from o2td.sklearn import ValueRegressor

    return ValueRegressor().fit(np.ones((3, 1)), np.ones(3), **given)


def _rows() -> o2td.Transitions:
    return o2td.domains.random_walk().sample(9)


def _evaluated(**given: Any) -> Any:
    import benchmarks.fuzz_recipes as recipes
    from o2td import evaluation

    return evaluation.evaluate(recipes.frame(), discount=0.9, **given)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: o2td.DiagonalSOTD(nonnegative=csr_array((2, 3))), "nonnegative"),
        (lambda: o2td.VarianceTD(form=np.array([0.1, 0.2])), "form must be one of"),
        (lambda: o2td.TD(trace=object), "trace must be"),
        (lambda: o2td.sources.Columns.make("\0"), "columns must be the path"),
        (lambda: _regressed(start=[[True], [True, False]]), "start"),
        (lambda: _regressed(discount=csr_array((2, 3))), "discount"),
        (lambda: _evaluated(methods="lstd", progress=[None]), "progress must be a function"),
        (lambda: _evaluated(methods=csr_array([[np.nan, np.inf]])), "methods: "),
        (lambda: _evaluated(methods=np.array(1.0)), "methods: .* is not a list of names"),
        (lambda: _evaluated(segments=np.ma.masked_array([1.0, 2.0], [0, 1])), "segments must be"),
        (lambda: o2td.exact.analyze(o2td.domains.random_walk(), progress=object), "progress"),
        (lambda: o2td.TD(trace=np.array([1, 2], dtype="m8[s]")), "trace must be a number"),
        (lambda: o2td.domains.random_walk().sample(np.timedelta64(3)), "n must be a whole number"),
        (lambda: _evaluated(lanes=np.timedelta64(30)), "lanes: "),
        (lambda: _evaluated(target=range(2**60)), "target: .* is not an array of numbers"),
        (
            lambda: o2td.domains.random_walk().sample(3, seed=np.array([1, 2], "m8[s]")),
            "seed must be",
        ),
        (lambda: o2td.domains.random_walk().sample(3, seed=np.timedelta64(3)), "seed must be"),
        (lambda: _regressed_with(passes=np.timedelta64(3)), "passes"),
        (lambda: o2td.LSTD().save("\ud800"), "path must be the path"),
        (lambda: o2td.LSTD.load("\ud800"), "path must be the path"),
        (lambda: o2td.features.Fourier(2).fit(10**400), "X: not a table of numbers"),
        (lambda: o2td.ARCTD(step_size=10**400), "step_size"),
        (lambda: o2td.ARCTD(average=10**400), "average must be"),
        (
            lambda: o2td.GTD2MP(trace=int).partial_fit(o2td.domains.random_walk().sample(9)),
            "trace, a function of states: it raised TypeError for array",
        ),
        (lambda: o2td.checks.fingerprint(random.SystemRandom()), "SystemRandom has no state"),
        (lambda: o2td.TD(trace=lambda: 1), "trace must be a number in .* or a function"),
        (lambda: o2td.LSTD().merge(10**5000), "cannot merge <int>"),
        (lambda: o2td.checks.check_learner(int), "learners: check a class, an instance or a name"),
        (lambda: _evaluated(influence=np.zeros((6, 0))), "influence must be True or False"),
        (lambda: _evaluated(sort=np.zeros((6, 0))), "sort must be True or False"),
        (lambda: _evaluated(densities=[]), "densities must be True or False"),
        (lambda: o2td.sources.open_logs(range(2**40)), "logs must be a list of at most .* paths"),
        (
            lambda: o2td.sweep([o2td.TD()], [_rows(), _rows()], metrics=range(2**40)),
            "metrics must be a list of at most",
        ),
        (lambda: o2td.solvers.Solution(NotImplemented, "ok", 1, 1.0, 0.0, ""), "theta has dtype"),
        (
            lambda: o2td.learners.GradientLearner().partial_fit(_rows()),
            "states no method: override",
        ),
        (lambda: o2td.domains.garnet(actions=10**500), "states, actions and branching: a table of"),
        (
            lambda: o2td.exact.analyze(o2td.domains.random_walk(), progress=int),
            "progress: it raised ValueError for",
        ),
        (lambda: _evaluated(features=np), "features: .* is not a table of numbers"),
        (lambda: _evaluated().episodes_for(5e-324), "reach: 4.94066e-324 is too small"),
        (lambda: o2td.errors.import_extra("../x", "logs"), "must be the name of a module"),
        (lambda: o2td.sources.minari("é" * 500, discount=0.9), "no such dataset on this machine"),
    ],
)
def test_what_ten_minutes_of_odd_values_once_found(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()


@pytest.mark.parametrize(
    "write",
    [
        lambda path: o2td.LSTD().fit(_rows()).save(path),
        lambda path: o2td.interactive.write(path, [o2td.domains.baird()]),
        lambda path: _evaluated(methods="lstd", lanes=0).report(path),
        lambda path: o2td.sources.write_logs([], path.with_suffix(".parquet")),
    ],
    ids=["model", "page", "answer", "log"],
)
def test_no_file_is_written_into_a_folder_that_is_not_there(
    write: Callable[[Path], Any], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"none: there is no such folder; create it first"):
        write(tmp_path / "none" / "file.html")
    assert not (tmp_path / "none").exists()


def _simulated(method: str = "sample", **own: Any) -> Any:
    given: dict[str, Any] = {
        "reset": lambda rng: np.array([rng.random()]),
        "step": lambda x, action, rng: (0.5 * x, 1.0, False),
        "behavior": lambda x: np.array([0.5, 0.5]),
        "target": lambda x: np.array([0.0, 1.0]),
        "features": lambda X: np.hstack([X, np.ones_like(X)]),
    }
    problem = o2td.Problem.simulated(**(given | own), discount=0.5)
    return problem.sample(3) if method == "sample" else problem.rollout_value([[0.5]])


class _Broken:
    """Fails whatever it is asked to do."""

    def __call__(self, *given: Any) -> Any:
        raise KeyError("not here")

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("parts", ()):
            return self
        raise AttributeError(name)

    def __init__(self, *parts: str) -> None:
        self.parts = parts


@pytest.mark.parametrize(
    ("call", "name"),
    [
        *((lambda part=part: _simulated(**{part: _Broken()}), part)
          for part in ("reset", "step", "behavior", "target", "features", "rollout")),
        *((lambda part=part: _simulated("value", **{part: _Broken()}), part)
          for part in ("step", "target", "returns")),
        (lambda: _simulated(features=_Broken("transform")), "features"),
        (lambda: _evaluated(target=_Broken()), "target"),
        (lambda: _evaluated(target=_Broken("predict_proba")), "target"),
        (lambda: _evaluated(behavior=_Broken()), "behavior"),
        (lambda: _evaluated(features=_Broken()), "features"),
        (lambda: _evaluated(features=_Broken("transform")), "features"),
        (lambda: _evaluated(features=_Broken("fit", "transform")), "features"),
        (lambda: _evaluated(segments=_Broken()), "segments"),
        (lambda: _evaluated(value_model=_Broken()), "value_model"),
        (lambda: _evaluated(value_model=_Broken("predict")), "value_model"),
        (lambda: o2td.TD(trace=_Broken()).partial_fit(o2td.domains.random_walk().sample(9)),
         "trace, a function of states"),
        (lambda: o2td.domains.from_gymnasium("FrozenLake-v1", behavior=_Broken()), "behavior"),
        (lambda: o2td.domains.from_gymnasium("MountainCar-v0", target=_Broken()).sample(5),
         "target"),
    ],
)  # fmt: skip
def test_an_error_of_a_function_of_the_caller_is_named_as_that(
    call: Callable[[], Any], name: str
) -> None:
    with pytest.raises(
        InputError, match=rf"^{name}: it raised KeyError for .*not here.*fix it$"
    ) as e:
        call()
    assert isinstance(e.value.__cause__, KeyError)


def test_an_error_that_is_named_already_comes_through_as_it_is() -> None:
    def refuse(rng: Any) -> Any:
        raise InputError("reset: the arm is not homed")

    with pytest.raises(InputError, match=r"^reset: the arm is not homed$"):
        _simulated(reset=refuse)
