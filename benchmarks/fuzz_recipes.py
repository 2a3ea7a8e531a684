"""Recipes for `fuzz_calls.py`: objects of the package, each as the call that makes it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import o2td
from o2td import Problem, Transitions, domains, evaluation, experiments, features, sources
from o2td.errors import O2TDError

N, D, S, A = 6, 3, 4, 2
_RNG = np.random.default_rng(0)
PHI, NEXT, REWARD = _RNG.normal(size=(N, D)), _RNG.normal(size=(N, D)), _RNG.normal(size=N)
PLACES = np.array([0, 1, 2, 3, 1, 0])


class Made:
    """A recipe's object, with the call that makes it."""

    def __init__(self, text: str, value: Any) -> None:
        self.text, self.value = text, value


def recipe(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def made(*given: Any) -> Any:
        return function(*given)

    made.written = lambda *given: Made(  # type: ignore[attr-defined]
        f"{function.__name__}({', '.join(map(repr, given))})", function(*given)
    )
    return made


@recipe
def batch() -> Transitions:
    return Transitions(
        PHI, REWARD, NEXT, 0.9, start=[1, 0, 0, 1, 0, 0], state=PLACES, next_state=PLACES[::-1],
        target_prob=np.full(N, 0.5), behavior_prob=np.full(N, 0.5), next_phi_2=PHI,
    )  # fmt: skip


@recipe
def sparse_batch() -> Transitions:
    return Transitions(csr_array(PHI), REWARD, csr_array(NEXT), 0.9, start=[1, 0, 0, 1, 0, 0])


@recipe
def table_batch() -> Transitions:
    return problem().sample(8, double=True)


@recipe
def problem() -> Problem:
    return domains.garnet(states=S, actions=A, features=D, branching=2)


@recipe
def walk() -> Problem:
    return domains.random_walk()


@recipe
def car() -> Any:
    return domains.mountain_car(order=1, horizon=20)


@recipe
def learner(name: str = "TD") -> Any:
    kind = o2td.registry.LEARNERS[name]
    return kind(**{"step_size": 0.01} if "step_size" in kind.parameters() else {})


@recipe
def learned(name: str = "TD") -> Any:
    return learner(name).partial_fit(batch())


@recipe
def solver(name: str = "LSTD") -> Any:
    return o2td.registry.SOLVERS[name]()


@recipe
def solved(name: str = "LSTD") -> Any:
    one = solver(name)
    rows = batch()
    if name == "Averager":
        shares = np.abs(rows.phi) / np.abs(rows.phi).sum(axis=1, keepdims=True)
        rows = Transitions(shares, rows.reward, shares[::-1], 0.9)
    return one.fit(rows)


_NEEDED = {"bins": 3, "order": 2, "degree": 2, "tilings": 2, "groups": [0, 1, 1]}


@recipe
def feature_map(name: str) -> Any:
    kind = o2td.registry.FEATURES[name]
    taken = inspect.signature(kind).parameters
    return kind(**{key: value for key, value in _NEEDED.items() if key in taken})


@recipe
def fitted_map(name: str) -> Any:
    one = feature_map(name)
    states = isinstance(one, (features.Tabular, features.Aggregation))
    return one.fit(np.array([0, 1, 1]) if states else PHI)


def _columns() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    episode = np.repeat(np.arange(20), 5)
    step = np.tile(np.arange(5), 20)
    return {
        "episode": episode, "step": step, "state": rng.integers(0, 4, 100),
        "action": rng.integers(0, 2, 100), "reward": rng.normal(size=100),
        "terminated": step == 4, "truncated": np.zeros(100, dtype=bool),
        "behavior_prob": np.full(100, 0.5), "target_prob": rng.choice([0.4, 0.6], 100),
    }  # fmt: skip


@recipe
def frame() -> Any:
    import polars as pl

    return pl.DataFrame(_columns())


@functools.cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="o2td-fuzz-"))


@functools.cache
def _file() -> str:
    path = _folder() / "logs.parquet"
    if not path.exists():
        frame().write_parquet(path)
    return str(path)


@recipe
def log_file() -> str:
    return _file()


@recipe
def log_source() -> Any:
    return sources.open_logs(log_file(), discount=0.9)


@recipe
def log_rows() -> Any:
    return next(iter(log_source().chunks()))


@recipe
def answer() -> Any:
    return _answer()


@functools.cache
def _answer() -> Any:
    return evaluation.evaluate(log_file(), discount=0.9, features="tabular", lanes=20)


@recipe
def comparison() -> Any:
    return _comparison()


@functools.cache
def _comparison() -> Any:
    policies = {"A": "target_prob", "B": "target_prob"}
    return evaluation.compare(log_file(), 0.9, policies, features="tabular", lanes=20)


@recipe
def value_model() -> Any:
    return answer().model


@recipe
def model_file() -> str:
    path = _folder() / "model.npz"
    if not path.exists():
        learned().save(path)
    return str(path)


@recipe
def evaluation_file() -> str:
    path = _folder() / "values.npz"
    if not path.exists():
        value_model().save(path)
    return str(path)


SPEC = """
name = "walk"
steps = 20
runs = 2
metrics = ["rmse"]
domain.name = "random_walk"
algorithms = [{ name = "TD", parameters = { step_size = 0.1 } }]
"""


@recipe
def spec() -> Any:
    return experiments.load_spec(SPEC)


@recipe
def store_folder() -> str:
    path = _folder() / "store"
    if not path.exists():
        experiments.run(spec(), path, workers=1)
    return str(path)


@recipe
def store() -> Any:
    return experiments.Store(store_folder())


@recipe
def result_table() -> Any:
    return experiments.results(store_folder())


@recipe
def quadratic() -> Any:
    return o2td.metrics.rmse(problem())


@recipe
def environment() -> Any:
    import gymnasium

    return gymnasium.make("FrozenLake-v1")


@recipe
def regressor() -> Any:
    from o2td.sklearn import ValueRegressor

    return ValueRegressor(discount=0.9)


@recipe
def fitted_regressor() -> Any:
    return regressor().fit(PHI, REWARD, next_X=NEXT)


@recipe
def lane() -> Any:
    return o2td.Lane(learner())


@recipe
def behavior_model() -> Any:
    return sources.fit_behavior_model(log_source(), folds=2)


@recipe
def behavior_keys() -> Any:
    return behavior_model().keys[:2]


@recipe
def finite_model() -> Any:
    return o2td.exact.model(problem())


def compile_all() -> None:
    """Compile what calls will need, so that their time is not that of the compiler."""
    for kind in o2td.registry.LEARNERS.names():
        for rows in (batch(), sparse_batch(), table_batch()):
            for more in ({}, {"average": True}):
                with contextlib.suppress(O2TDError):
                    one = learner(kind).set_params(**more)
                    one.partial_fit(rows).predict(rows.phi)
                    one.learn_one(PHI[0], 1.0, NEXT[0], 0.9)


def coin(x: Any) -> Any:
    """A policy of two actions."""
    return np.full((*np.shape(x)[:-1], 2), 0.5) if np.ndim(x) > 1 else np.array([0.5, 0.5])


def begin(rng: Any) -> Any:
    return np.array([rng.random()])


def move(x: Any, action: Any, rng: Any) -> Any:
    return 0.5 * x, float(x[0]), False


def beside_one(X: Any) -> Any:
    return np.hstack([X, np.ones_like(X)])


def nothing(*_: Any) -> None:
    return None
