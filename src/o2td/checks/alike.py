"""Checks of both learners and solvers: predictions, layouts, terminations, arrays, files, memory."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from o2td.checks.base import (
    Function,
    expect,
    expect_close,
    expect_equal,
    fingerprint,
    promise,
    repickled,
)
from o2td.checks.data import (
    LAYOUTS,
    Fields,
    as_csr,
    dense_fields,
    fields_for,
    rows_for,
    select,
    stream,
)
from o2td.checks.learner_rows import constant, made, weights
from o2td.checks.solver_rows import digits
from o2td.solvers.base import Solver
from o2td.transitions import Transitions

CUT = 41  # a row inside a trajectory


def _both(sentence: str) -> Any:
    def register(function: Function) -> Function:
        return promise("learners", sentence)(promise("solvers", sentence)(function))

    return register


def _take(subject: Any, rows: Transitions) -> Any:
    return subject.update(rows) if isinstance(subject, Solver) else subject.partial_fit(rows)


def _answer(subject: Any) -> Any:
    return subject.theta if isinstance(subject, Solver) else weights(subject)


def _fields(subject: Any) -> Fields:
    return stream(weights=isinstance(subject, Solver))


def _rows(subject: Any) -> Transitions:
    return rows_for(subject, _fields(subject))


def _tolerance(learners: float, *subjects: Any) -> float:
    """That of learners, or the largest of the solvers' own."""
    return max(digits(one) if isinstance(one, Solver) else learners for one in subjects)


@_both("predict is pure and takes dense rows, CSR rows or one vector")
def predict_pure(subject: Any) -> None:
    """Predictions are phi . theta, and predicting changes nothing."""
    found = _take(constant(subject), _rows(subject))
    phi = _fields(subject)["table"]
    expected = phi @ found.theta  # a solver solves here and keeps the solution
    before, values = fingerprint(found), found.predict(phi)
    expect_close(values, expected, "predictions and phi . theta", 1e-13)
    expect_equal(found.predict(phi), values, "two predictions of the same rows")
    expect_close(found.predict(as_csr(phi)), values, "predictions from CSR and dense rows", 1e-13)
    expect_close(found.predict(phi[0]), values[0], "predictions of one vector", 1e-13)
    expect(fingerprint(found) == before, "another state after predict")


@_both("dense, CSR and table features give the same weights")
def layouts(subject: Any) -> None:
    """Also when the layout changes between batches."""
    fields = _fields(subject)
    results = {k: _take(constant(subject), rows_for(subject, fields, k)) for k in LAYOUTS}
    dense, results["mixed"] = results.pop("dense"), constant(subject)
    for k, layout in enumerate(("dense", "csr", "table", "csr", "dense")):
        part = select(fields, slice(18 * k, 18 * k + 18))
        _take(results["mixed"], rows_for(subject, part, layout))
    for layout, other in results.items():
        tolerance = _tolerance(1e-10, other, dense)
        expect_close(_answer(other), _answer(dense), f"{layout} and dense weights", tolerance)


@_both("permuting the features permutes the weights")
def permuted_features(subject: Any) -> None:
    """No feature is special."""
    fields, order = _fields(subject), np.array([3, 0, 4, 1, 2])
    plain = _take(constant(subject), rows_for(subject, fields))
    permuted = rows_for(subject, fields, table=fields["table"][:, order])
    theta = _take(constant(subject), permuted).theta
    expect_close(theta, plain.theta[order], "permuted weights", 100 * _tolerance(1e-13, plain))


@_both("rows with discount 0 ignore their successors, even where those are NaN")
def termination_ignores_successors(subject: Any) -> None:
    """On dense and CSR rows; bitwise for learners."""
    solver = isinstance(subject, Solver)
    fields = fields_for(subject, weights=solver)
    for layout in ("dense", "csr"):
        results = []
        for value in (0.0, np.nan, np.inf, 1e300):
            given = dense_fields(fields)
            given["next_phi"][fields["discount"] == 0.0] = value
            if layout == "csr":
                given = {k: as_csr(v) if "phi" in k else v for k, v in given.items()}
            results.append(_answer(_take(constant(subject), Transitions(**given))))
        for other in results[1:]:
            if solver:
                expect_close(other, results[0], f"{layout} weights", 1e-10)
            else:
                expect_equal(other, results[0], f"{layout} weights")


@_both("the arrays of a batch are untouched, byte for byte")
def inputs_untouched(subject: Any) -> None:
    """The arrays are the user's own and writeable: a batch does not copy them."""
    given = dense_fields(fields_for(subject, weights=isinstance(subject, Solver)))
    before = {name: value.tobytes() for name, value in given.items()}
    _answer(_take(constant(subject), Transitions(**given)))
    for name, value in given.items():
        expect(value.tobytes() == before[name], f"{name} changed")


@_both("saved, loaded and resumed, it finds the same bits as one never stopped")
def save_and_resume(subject: Any) -> None:
    """Stopped between batches inside a trajectory; by file, by pickle and by copy."""
    rows, learner = _rows(subject), not isinstance(subject, Solver)
    straight = _take(made(subject), rows[:CUT])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved.npz"
        straight.save(path)
        copies = {"loaded": type(subject).load(path)}
    copies["unpickled"] = repickled(straight)
    copies["copied"] = copy.deepcopy(straight)
    for how, other in copies.items():
        expect(repr(other) == repr(straight), f"{other!r} {how} from {straight!r}")
        same = not learner or fingerprint(other) == fingerprint(straight)
        expect(same, f"another state when {how}")
    _take(straight, rows[CUT:])
    for how, other in copies.items():
        _take(other, rows[CUT:])
        expect_equal(_answer(other), _answer(straight), f"the answer when {how}")
        expect(not learner or other.status == straight.status, f"another status when {how}")


@_both("what it remembers does not grow with the number of rows")
def bounded_memory(subject: Any) -> None:
    """Sums and weights grow with features or states, not with rows."""
    rows = _rows(subject)
    found = _take(constant(subject), rows)
    size = len(pickle.dumps(found))
    for _ in range(20):
        _take(found, rows)
    grown = len(pickle.dumps(found)) - size
    most = 256 if isinstance(subject, Solver) else 64
    expect(grown < most, f"{grown} more bytes after 20 times the rows")
