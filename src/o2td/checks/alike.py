"""Checks of both learners and solvers: predictions, the user's arrays, files, memory."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path
from typing import Any

from o2td.checks.base import (
    Function,
    expect,
    expect_close,
    expect_equal,
    fingerprint,
    promise,
    repickled,
)
from o2td.checks.data import as_csr, dense_fields, fields_for, rows_for, stream
from o2td.checks.learner_rows import constant, made, weights
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


def _rows(subject: Any) -> Transitions:
    return rows_for(subject, stream(weights=isinstance(subject, Solver)))


@_both("predict is pure and takes dense rows, CSR rows or one vector")
def predict_pure(subject: Any) -> None:
    """Predictions are phi . theta, and predicting changes nothing."""
    found = _take(constant(subject), _rows(subject))
    phi = stream(weights=isinstance(subject, Solver))["table"]
    expected = phi @ found.theta  # a solver solves here and keeps the solution
    before, values = fingerprint(found), found.predict(phi)
    expect_close(values, expected, "predictions and phi . theta", 1e-13)
    expect_equal(found.predict(phi), values, "two predictions of the same rows")
    expect_close(found.predict(as_csr(phi)), values, "predictions from CSR and dense rows", 1e-13)
    expect_close(found.predict(phi[0]), values[0], "predictions of one vector", 1e-13)
    expect(fingerprint(found) == before, "another state after predict")


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
