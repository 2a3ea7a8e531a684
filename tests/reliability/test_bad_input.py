"""Malformed input at every public entry point: one typed sentence that names it, nothing changed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td import Transitions
from o2td.checks import fingerprint
from o2td.errors import O2TDError
from o2td.learners import Lane
from o2td.registry import LEARNERS, SOLVERS

from .inputs import FEATURES, ROWS, Bad, D, fields, row_of

each_row_case = pytest.mark.parametrize("bad", ROWS, ids=[bad.id for bad in ROWS])


def made(kind: Any) -> Any:
    """With its defaults, or with a step size where there is no default."""
    try:
        return kind()
    except TypeError:
        return kind(step_size=0.1)


def told(call: Callable[[], Any], field: str, row: int | None = None) -> str:
    """The sentence of the typed error that `call` must raise."""
    with pytest.raises(O2TDError) as caught:  # a warning is an error too: see pyproject.toml
        call()
    sentence = str(caught.value)
    assert re.search(rf"\b{field}\b", sentence), sentence
    assert row is None or re.search(rf"\brow {row}\b", sentence), sentence
    assert "\n" not in sentence
    return sentence


def test_there_are_enough() -> None:
    assert len(ROWS) >= 60
    assert len({bad.id for bad in ROWS}) == len(ROWS)


@each_row_case
def test_transitions(bad: Bad) -> None:
    given = fields()
    before = fingerprint(given)
    told(lambda: Transitions(**given | bad.change(given)), bad.field, bad.row)
    assert fingerprint(given) == before


SPARSE = [bad for bad in ROWS if bad.field in FEATURES and bad.row is not None]


@pytest.mark.parametrize("bad", SPARSE, ids=[bad.id for bad in SPARSE])
def test_transitions_of_csr_rows(bad: Bad) -> None:
    given = fields() | bad.change(fields())
    for name in FEATURES:
        given[name] = csr_array(given[name])
    told(lambda: Transitions(**given), bad.field, bad.row)


TABLE = [  # a table has as many rows as `state`, so the others are too short or too long there
    bad
    for bad in ROWS
    if bad.field not in FEATURES
    and not (bad.field == "state" and bad.id.endswith(("short", "long", "empty")))
]


@pytest.mark.parametrize("bad", TABLE, ids=[bad.id for bad in TABLE])
def test_transitions_from_a_table(bad: Bad) -> None:
    given = fields() | bad.change(fields())
    rest = {name: value for name, value in given.items() if name not in FEATURES}
    rest["next_state_2"] = np.array([1, 2, 0, 1, 2])
    told(lambda: Transitions.from_table(np.eye(3, D), **rest), bad.field, bad.row)


OWN = [bad for bad in ROWS if bad.field in ("rho", "reward", "discount")]


@pytest.mark.parametrize("bad", OWN, ids=[bad.id for bad in OWN])
def test_retargeted_batches_and_lanes_of_a_sweep(bad: Bad) -> None:
    batch = Transitions(**fields())
    changed = bad.change(fields())
    told(lambda: batch.retargeted(**changed), bad.field, bad.row)
    changed = bad.change(fields())  # a generator is spent after one look
    lane = Lane(o2td.TD(step_size=0.1), **changed)
    told(lambda: o2td.sweep([o2td.TD(step_size=0.1), lane], batch), bad.field, bad.row)


# -- learners --------------------------------------------------------------------------------------

ONE = [bad for bad in ROWS if bad.row is not None and bad.field in row_of(fields())]


@pytest.mark.parametrize("name", LEARNERS.names())
def test_learn_one(name: str) -> None:
    """A bad row changes nothing: neither what is learned nor what is carried to the next row."""
    learner = made(LEARNERS[name])
    if learner.__class__.__name__ == "ResidualGradient":
        learner = o2td.ResidualGradient(step_size=0.1, double=False)
    learner.partial_fit(Transitions(**fields()))
    extra = ("state", "target_prob", "behavior_prob", "interest")
    learner.learn_one(**row_of(fields()))
    before = fingerprint(learner)
    for bad in ONE:
        if bad.field == "start":
            continue  # any truth value marks a start here
        row = row_of(fields() | bad.change(fields()))
        if bad.field == "rho":
            del row["target_prob"], row["behavior_prob"]
        told(lambda row=row: learner.learn_one(**row), bad.field, 0)
        if bad.field not in extra:  # without them the compiled step runs
            plain = {k: v for k, v in row.items() if k not in extra}
            if not learner.needs and getattr(learner._weighting, "reading", "") != "state":
                told(lambda plain=plain: learner.learn_one(**plain), bad.field, 0)
        assert fingerprint(learner) == before, bad.id


@pytest.mark.parametrize("name", LEARNERS.names())
@pytest.mark.parametrize("wrong", [None, {}, [], np.ones((2, 3)), "rows", fields()])
def test_what_is_no_transitions_is_not_learned_from(name: str, wrong: Any) -> None:
    learner = made(LEARNERS[name]).partial_fit(Transitions(**fields()))
    before = fingerprint(learner)
    told(lambda: learner.partial_fit(wrong), "Transitions")
    assert fingerprint(learner) == before


@pytest.mark.parametrize("name", LEARNERS.names())
def test_other_features_and_features_that_overflow_are_refused(name: str) -> None:
    learner = made(LEARNERS[name]).partial_fit(Transitions(**fields()))
    before = fingerprint(learner)
    given = fields()
    wide = {k: np.ones((5, D + 1)) for k in FEATURES}
    told(lambda: learner.partial_fit(Transitions(**given | wide)), "features")
    for field in ("phi", "next_phi"):
        large = given | {field: np.where(np.eye(5, D) > 0, 1e200, given[field])}
        told(lambda large=large: learner.partial_fit(Transitions(**large)), "features")
        one = row_of(large, 0)
        told(lambda one=one: learner.learn_one(**one), "features")
        if not learner.needs:
            plain = {k: one[k] for k in ("phi", "next_phi", "reward", "discount", "rho")}
            told(lambda plain=plain: learner.learn_one(**plain), "features")
    assert fingerprint(learner) == before


SETTINGS: dict[str, list[Any]] = {
    "step_size": [-1.0, np.nan, np.inf, "fast", None, True, [0.1], {"c": 1}, 1j],
    "second_step_size": [-1.0, np.nan, np.inf, "fast", True, [0.1]],
    "trace": [-0.1, 1.1, np.nan, None, "x", [0.5], [1.5], (1.5,), [0.5, np.nan], ["x"], [[0.5]]],
    "decay": [-0.1, 1.1, np.nan, "x", [0.5]],
    "zeta": [-0.1, np.nan, "x", [0.5]],
    "clip": [-1.0, np.nan, "x", [0.5]],
    "regularizer": [-1.0, np.nan, "x", [0.5]],
    "psi_0": [np.nan, "x"],
    "psi_max": [np.nan, "x"],
    "form": ["other", None, 3],
    "omega": ["other", 3, None],
    "emphasis": ["other", 3],
    "double": ["yes", 3],
    "ridge": [-1.0, np.nan, np.inf, "x", None, True],
    "weighting": ["other", None],
    "solver": ["other", None],
    "rho_on": ["other", None],
    "max_iterations": [0, -1, 1.5, "x", None],
    "tolerance": [-1.0, np.nan, "x", None],
}


def settings() -> list[Any]:
    found = []
    for registry in (LEARNERS, SOLVERS):
        for name in registry.names():
            known = made(registry[name]).get_params()
            found += [
                pytest.param(registry[name], key, value, id=f"{name} {key}={value!r}")
                for key in known
                for value in SETTINGS.get(key, [])
                if not sound(registry[name], key, value)
            ]
    return found


def sound(kind: Any, key: str, value: Any) -> bool:
    """Whether a value that most refuse is one that this kind takes: one lambda a state, a default."""
    by_state = not getattr(kind, "one_lambda", True)
    default = inspect.signature(kind).parameters[key].default
    return (key == "trace" and value == [0.5] and by_state) or (value is None and default is None)


@pytest.mark.parametrize(("kind", "key", "value"), settings())
def test_settings(kind: Any, key: str, value: Any) -> None:
    good = {} if key == "step_size" else {"step_size": 0.1}
    good = {k: v for k, v in good.items() if k in made(kind).get_params()}
    told(lambda: kind(**good, **{key: value}), key)


@pytest.mark.parametrize(
    "value", [[1.0, 2.0], np.nan, [np.inf] * D, "x", [[1.0] * D], [1j] * D, [None] * D]
)
def test_initial_theta(value: Any) -> None:
    for name in LEARNERS.names():

        def start(kind: Any = LEARNERS[name]) -> Any:
            return made(kind).clone(initial_theta=value).partial_fit(Transitions(**fields()))

        told(start, "initial_theta")


# -- solvers ---------------------------------------------------------------------------------------


def batch_for(name: str) -> Transitions:
    given = fields()
    if name == "Averager":  # its features are weights of states
        for key in FEATURES:
            given[key] = np.abs(given[key]) / np.abs(given[key]).sum(axis=1, keepdims=True)
    return Transitions(**given)


def other_width(name: str) -> Transitions:
    given = fields() | {k: np.full((5, D + 1), 0.25) for k in FEATURES}
    return Transitions(**given)


@pytest.mark.parametrize("name", SOLVERS.names())
def test_solvers_refuse_what_they_cannot_take_and_keep_what_they_have(name: str) -> None:
    solver = made(SOLVERS[name]).fit(batch_for(name))
    before = fingerprint(solver)
    for wrong in (None, {}, [], np.ones((2, 3)), "rows", fields()):
        for method in (solver.fit, solver.update):
            told(lambda wrong=wrong, method=method: method(wrong), "Transitions")
    for method in (solver.update,):
        told(lambda method=method: method(other_width(name)), "features")
    for other in (None, 3, made(SOLVERS["LSTD" if name != "LSTD" else "SOTD"]), solver):
        told(lambda other=other: solver.merge(other), "merge")
    assert fingerprint(solver) == before


PHI: dict[str, Any] = {
    "nan": np.array([[0.0] * D, [np.nan] * D]),
    "inf": np.array([[0.0] * D, [np.inf] * D]),
    "nan in CSR": csr_array(np.array([[0.0] * D, [np.nan] * D])),
    "object": np.ones((2, D), dtype=object),
    "complex": np.ones((2, D), dtype=complex),
    "float16": np.ones((2, D), dtype=np.float16),
    "text": np.full((2, D), "x"),
    "masked": np.ma.masked_array(np.ones((2, D)), np.eye(2, D)),
    "too wide": np.ones((2, D + 1)),
    "a number": 1.0,
    "three-dimensional": np.ones((1, 2, D)),
    "no columns": np.ones((2, 0)),
    "None": None,
    "ragged": [[1.0], [1.0, 2.0]],
}


@pytest.mark.parametrize("wrong", list(PHI), ids=list(PHI))
def test_predict(wrong: str) -> None:
    row = 1 if wrong in ("nan", "inf", "nan in CSR") else None
    models = [
        made(LEARNERS[name]).partial_fit(Transitions(**fields())) for name in LEARNERS.names()
    ]
    models.append(o2td.LSTD().fit(Transitions(**fields())))
    for model in models:
        before = fingerprint(model)
        told(lambda model=model: model.predict(PHI[wrong]), "phi", row)
        assert fingerprint(model) == before
