"""Malformed problems, observations, weights, metrics and logs: one typed sentence, nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td import Problem, Transitions, exact, features, metrics
from o2td.checks import fingerprint
from o2td.errors import O2TDError
from o2td.registry import LEARNERS, SOLVERS

from .inputs import FEATURES, ROWS, D, fields
from .test_bad_input import PHI, made, told

# -- problems --------------------------------------------------------------------------------------


def problem_fields() -> dict[str, Any]:
    P = np.zeros((3, 2, 3))
    P[:, 0, 1] = P[:, 1, 2] = 1.0
    even = np.full((3, 2), 0.5)
    return {
        "transition": P,
        "reward": np.ones((3, 2)),
        "discount": 0.9,
        "behavior": even,
        "target": even,
        "features": np.eye(3),
        "start": np.array([1.0, 0.0, 0.0]),
        "interest": np.ones(3),
        "initial_theta": np.zeros(3),
    }


def spoiled(name: str, value: Any) -> Any:
    array = np.array(problem_fields()[name], dtype=float)
    array[(1,) * array.ndim] = value
    return array


def not_summing(name: str) -> Any:
    return np.array(problem_fields()[name]) * 0.9


BAD_PROBLEMS: list[tuple[str, Any]] = [
    *((name, spoiled(name, value)) for name in problem_fields() for value in (np.nan, np.inf)
      if name != "discount"),
    *((name, spoiled(name, -0.5)) for name in ("transition", "behavior", "target", "start")),
    *((name, not_summing(name)) for name in ("transition", "behavior", "target", "start")),
    *((name, np.array(value).astype(kind)) for name, value in problem_fields().items()
      for kind in (object, complex, np.float16, str)),
    *((name, np.ma.masked_array(value, np.zeros(np.shape(value)))) for name, value
      in problem_fields().items()),
    *((name, np.ones((4, 5, 6, 7))) for name in problem_fields()),
    *((name, [[1.0], [1.0, 2.0]]) for name in problem_fields()),
    ("discount", -0.1), ("discount", 1.1), ("discount", np.nan), ("discount", "x"),
    ("discount", None), ("transition", None), ("transition", []), ("transition", np.ones((0, 2, 0))),
    ("transition", [csr_array(np.eye(3)), csr_array(np.eye(2))]),
    ("transition", [csr_array(np.full((3, 3), np.nan))] * 2),
    ("features", np.ones((3, 0))), ("features", np.ones((2, 3))), ("features", None),
    ("behavior", np.ones((3, 1))), ("behavior", np.array([[1.0, 0.0]] * 3)), ("target", None),
    ("terminal", [7]), ("terminal", [-1]), ("terminal", [0.5]), ("terminal", "x"),
    ("terminal", [True] * 3), ("terminal", [True]), ("terminal", [[0]]),
    ("start", np.zeros(3)), ("interest", -np.ones(3)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD_PROBLEMS)
def test_problem(name: str, value: Any) -> None:
    told(lambda: Problem(**problem_fields() | {name: value}), name)


@pytest.mark.parametrize(
    ("name", "given"),
    [("n", -1), ("n", 2.5), ("n", None), ("n", "x"), ("scheme", "other"), ("seed", -1),
     ("seed", 0.5), ("seed", "x"), ("n", 10**15)],
)  # fmt: skip
def test_sample(name: str, given: Any) -> None:
    problem = Problem(**problem_fields())
    told(lambda: problem.sample(**{"n": 3, name: given}), name)


# -- exact quantities and metrics ------------------------------------------------------------------

THETAS = {
    "nan": [np.nan] * 3, "inf": [0.0, np.inf, 0.0], "short": [1.0], "number": 1.0,
    "3d": np.ones((3, 1, 1)), "object": np.array([None] * 3), "text": ["a", "b", "c"],
    "complex": np.ones(3) * 1j, "ragged": [[1.0], [1.0, 2.0], [0.0]], "none": None,
    "masked": np.ma.masked_array(np.ones(3), [1, 0, 0]), "half": np.ones(3, np.float16),
}  # fmt: skip
ERRORS = ("mse", "msbe", "mspbe", "rmse", "rmsbe", "rmspbe", "suboptimality")


@pytest.mark.parametrize("wrong", list(THETAS))
@pytest.mark.parametrize("name", ERRORS)
def test_theta_of_an_error(name: str, wrong: str) -> None:
    problem = Problem(**problem_fields())
    told(lambda: getattr(exact, name)(problem, THETAS[wrong]), "theta")


@pytest.mark.parametrize("wrong", list(THETAS))
def test_theta_of_a_metric(wrong: str) -> None:
    problem = Problem(**problem_fields())
    told(lambda: metrics.rmse(problem).value(THETAS[wrong]), "theta")


@pytest.mark.parametrize("name", ["mse", "msbe", "mspbe", "rmse", "rmsbe", "rmspbe"])
@pytest.mark.parametrize("wrong", [None, 3, "baird", problem_fields()])
def test_what_is_no_problem(name: str, wrong: Any) -> None:
    told(lambda: getattr(exact, name)(wrong, np.zeros(3)), "Problem")
    for one in ("value", "state_distribution", "best_approximation", "optimal_direction", "model"):
        told(lambda one=one: getattr(exact, one)(wrong), "Problem")
    for one in ("rmse", "rmspbe", "rmsbe"):
        told(lambda one=one: getattr(metrics, one)(wrong), "Problem")


X: dict[str, Any] = {
    "nan": np.full((3, 2), np.nan), "inf": np.full((3, 2), np.inf), "vector": np.ones(3),
    "short": np.ones((2, 2)), "object": np.full((3, 2), None), "text": np.full((3, 2), "x"),
    "complex": np.eye(3) * 1j, "none": None, "ragged": [[1.0], [1.0, 2.0], [0.0]],
}  # fmt: skip


@pytest.mark.parametrize("wrong", list(X))
def test_directions(wrong: str) -> None:
    problem = Problem(**problem_fields())
    told(lambda: exact.oblique_projection(np.eye(3), X[wrong]), "X")
    told(lambda: exact.oblique_projection(X[wrong], np.eye(3)), "Phi")
    told(lambda: exact.oblique_fixed_point(problem, X[wrong]), "X")
    told(lambda: exact.amplification(problem, X[wrong]), "X")


def test_fixed_point_of_what_is_no_learner() -> None:
    problem = Problem(**problem_fields())
    for wrong in (None, 3, "TD", o2td.TD):
        told(lambda wrong=wrong: exact.fixed_point(problem, wrong), "learner")
    told(lambda: exact.fixed_point(None, o2td.TD(step_size=0.1)), "Problem")


def test_held_out_rows() -> None:
    for name, wrong in PHI.items():
        if name != "too wide":
            told(lambda wrong=wrong: metrics.held_out(wrong, [1.0, 1.0]), "phi")
    rows = np.ones((2, D))
    for value in ([1.0], [np.nan, 1.0], ["a", "b"], None, [1j, 1j], [[1.0], [1.0]], [[1.0], 1.0]):
        told(lambda value=value: metrics.held_out(rows, value), "value")
        if value is not None:
            told(lambda value=value: metrics.held_out(rows, [1.0, 1.0], value), "weight")
    for weight in ([0.0, 0.0], [-1.0, 2.0]):
        told(lambda weight=weight: metrics.held_out(rows, [1.0, 1.0], weight), "weight")
    told(lambda: metrics.held_out_rmspbe(Transitions(**fields())[:0]), "transitions")
    told(lambda: metrics.held_out_rmspbe(None), "Transitions")


# -- sweeps ----------------------------------------------------------------------------------------


def test_sweeps() -> None:
    batch, td = Transitions(**fields()), o2td.TD(step_size=0.1)
    narrow = metrics.held_out(np.ones((2, 1)), [1.0, 1.0])
    wrong: list[tuple[str, Callable[[], Any]]] = [
        ("learner", lambda: o2td.sweep([], batch)),
        ("learner", lambda: o2td.sweep([None], batch)),
        ("learner", lambda: o2td.sweep([o2td.LSTD()], batch)),
        ("learner", lambda: o2td.sweep(td, batch)),
        ("Transitions", lambda: o2td.sweep([td], None)),
        ("Transitions", lambda: o2td.sweep([td], np.ones((2, 3)))),
        ("Transitions", lambda: o2td.sweep([td], [None])),
        ("streams", lambda: o2td.sweep([td], [])),
        ("streams", lambda: o2td.sweep([td], [batch, batch[:2]])),
        ("every", lambda: o2td.sweep([td], batch, every=0)),
        ("every", lambda: o2td.sweep([td], batch, every=-3)),
        ("every", lambda: o2td.sweep([td], batch, every=1.5)),
        ("every", lambda: o2td.sweep([td], batch, every="x")),
        ("workers", lambda: o2td.sweep([td], [batch], workers=0)),
        ("metric", lambda: o2td.sweep([td], batch, metrics={"a": narrow})),
        ("metric", lambda: o2td.sweep([td], batch, metrics={"a": 3})),
        ("metrics", lambda: o2td.sweep([td], batch, metrics=[{}])),
    ]
    before = fingerprint(td)
    for field, call in wrong:
        told(call, field)
    assert fingerprint(td) == before


# -- features --------------------------------------------------------------------------------------

MAPS: dict[str, Callable[[], Any]] = {
    "fourier": lambda: features.Fourier(order=2),
    "polynomial": lambda: features.Polynomial(degree=2),
    "radial": lambda: features.Radial(3),
    "tiles": lambda: features.Tiles(tilings=2, bins=4),
    "scaling": features.Scaling,
    "grid": lambda: features.GridAggregation(4),
    "tabular": features.Tabular,
}
OBSERVATIONS: dict[str, Any] = {
    "nan": np.array([[0.0, 1.0], [np.nan, 1.0]]),
    "inf": np.array([[0.0, 1.0], [1.0, -np.inf]]),
    "text": np.array([["a", "b"]]),
    "complex": np.ones((2, 2)) * 1j,
    "objects": np.array([[None, {}]]),
    "vector of vectors": np.ones((2, 2, 2)),
    "ragged": [[1.0], [1.0, 2.0]],
    "sparse": csr_array(np.eye(2)),
    "no columns": np.ones((2, 0)),
    "masked": np.ma.masked_array(np.ones((2, 2)), np.eye(2)),
    "times": np.ones((2, 2)).astype("datetime64[s]"),
    "other width": np.ones((2, 5)),
    "none": None,
}


@pytest.mark.parametrize("wrong", list(OBSERVATIONS))
@pytest.mark.parametrize("name", list(MAPS))
def test_feature_maps(name: str, wrong: str) -> None:
    good = np.arange(5) if name == "tabular" else np.random.default_rng(0).random((6, 2))
    ready = MAPS[name]().fit(good)
    before = fingerprint(ready)
    row = 1 if wrong in ("nan", "inf") and name != "tabular" else None
    named = "(state|X)" if name == "tabular" else "X"
    told(lambda: ready.transform(OBSERVATIONS[wrong]), named, row)
    assert fingerprint(ready) == before
    if wrong not in ("other width", "none"):
        told(lambda: MAPS[name]().fit(OBSERVATIONS[wrong]), named, row)


def test_maps_of_too_many_features_are_refused_before_allocation() -> None:
    wide = np.random.default_rng(0).random((2, 40))
    for make in (
        lambda: features.Fourier(order=9),
        lambda: features.Polynomial(degree=9),
        lambda: features.Radial(9),
        lambda: features.Tiles(tilings=8, bins=9),
        lambda: features.GridAggregation(9),
    ):
        with pytest.raises(O2TDError):
            make().fit(wide)


# -- very many features ----------------------------------------------------------------------------


def wide_batch(d: int) -> Transitions:
    rows = csr_array((np.ones(2), ([0, 1], [0, 1])), shape=(2, d))
    return Transitions(rows, [1.0, 1.0], rows, 0.5)


def test_more_columns_than_indices_can_name_are_refused() -> None:
    told(lambda: wide_batch(2**31), "phi")
    told(lambda: wide_batch(2**40), "phi")


@pytest.mark.parametrize("name", [*LEARNERS.names(), *SOLVERS.names()])
def test_features_beyond_memory_are_one_sentence(name: str) -> None:
    """In a process that may not have what they need; see `limited`."""
    pytest.importorskip("resource")
    kind = (LEARNERS if name in LEARNERS else SOLVERS)[name]
    model = made(kind).reset()
    rows = wide_batch(2**31 - 1)
    before = fingerprint(model)
    take = model.partial_fit if hasattr(model, "partial_fit") else model.fit
    with limited(2 << 30), pytest.raises(O2TDError, match=r"features|needs|state"):
        take(rows)
    assert fingerprint(model) == before


class limited:  # noqa: N801
    """At most so many more bytes of address space."""

    def __init__(self, more: int) -> None:
        self.more = more

    def __enter__(self) -> None:
        import resource
        from pathlib import Path

        self.old = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        now = pages * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + self.more, self.old[1]))

    def __exit__(self, *_: object) -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, self.old)


# -- scikit-learn and logs -------------------------------------------------------------------------

METADATA = [
    bad
    for bad in ROWS
    if bad.field in ("discount", "rho", "start", "state", "next_state", "target_prob", "interest")
]


@pytest.mark.parametrize("bad", METADATA, ids=[bad.id for bad in METADATA])
def test_scikit_learn(bad: Any) -> None:
    """What scikit-learn checks itself (X, y) gives its own ValueError; the rest is ours."""
    from o2td.sklearn import ValueRegressor

    given = fields() | bad.change(fields())
    rest = {k: v for k, v in given.items() if k not in (*FEATURES, "reward", "discount_2", "rho_2")}
    model = ValueRegressor("lstd")
    told(
        lambda: model.fit(given["phi"], given["reward"], next_X=given["next_phi"], **rest),
        bad.field,
        bad.row,
    )
    assert not hasattr(model, "theta_")


LOG = [
    bad
    for bad in ROWS
    if bad.row is not None and bad.field in ("reward", "rho", "target_prob", "behavior_prob")
]


@pytest.mark.parametrize("bad", LOG, ids=[bad.id for bad in LOG])
def test_logs(bad: Any) -> None:
    from o2td import sources

    pl = pytest.importorskip("polars")
    given = fields() | bad.change(fields())
    names = ["reward", "rho"] if bad.field in ("reward", "rho") else [
        "reward", "target_prob", "behavior_prob"
    ]  # fmt: skip
    frame = pl.DataFrame(
        {
            "episode": [0, 0, 0, 0, 0],
            "step": [0, 1, 2, 3, 4],
            "state": [0, 1, 2, 0, 1],
            "terminated": [False] * 4 + [True],
            **{name: given[name] for name in names},
        }
    )
    told(lambda: list(sources.open_logs(frame, discount=0.9).chunks()), bad.field, bad.row + 1)


@pytest.mark.parametrize("discount", [-0.1, 1.1, np.nan, "x", [0.9]])
def test_discounts_of_logs(discount: Any) -> None:
    from o2td import sources

    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {"episode": [0], "state": [0], "reward": [1.0], "terminated": [True], "rho": [1.0]}
    )
    told(lambda: list(sources.open_logs(frame, discount=discount).chunks()), "discount")
