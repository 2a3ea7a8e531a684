"""Sparse matrices whose indices are wrong are refused by name wherever one comes in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import (
    bsr_array,
    coo_array,
    csc_array,
    csr_array,
    csr_matrix,
    eye_array,
    lil_array,
)

from o2td import LSTD, LSTDQ, TD, Problem, Transitions, evaluation, sources
from o2td.errors import InputError
from o2td.sparse import as_coo, as_csr

N, D = 3, 4


def rows_with(column: int, kind=csr_array):
    """Three rows of one entry, the second of which is in this column of four."""
    parts = np.ones(N), np.array([0, column, 2], dtype=np.int32), np.arange(N + 1, dtype=np.int32)
    return kind(parts, shape=(N, D))


GOOD = rows_with(1)
BAD = [rows_with(k, kind) for k in (-1, D, 2**31 - 1) for kind in (csr_array, csr_matrix)]


def learned(learner=TD):
    batch = Transitions(GOOD, 1.0, GOOD, 0.5)
    model = learner(0.1)
    return model.partial_fit(batch) if learner is TD else model.fit(batch)


DOORS = {
    "Transitions phi": ("phi", lambda bad: Transitions(bad, 1.0, GOOD, 0.5)),
    "Transitions next_phi": ("next_phi", lambda bad: Transitions(GOOD, 1.0, bad, 0.5)),
    "from_table": (
        "table",
        lambda bad: Transitions.from_table(bad, [0, 1], 1.0, [1, 2], 0.5),
    ),
    "learner's predict": ("phi", lambda bad: learned().predict(bad)),
    "solver's predict": ("phi", lambda bad: learned(LSTD).predict(bad)),
    "LSTDQ": ("phi", lambda bad: LSTDQ.features(bad, [0, 1, 0], 2)),
    "features of a problem": (
        "features",
        lambda bad: Problem([eye_array(N, format="csr")], 0.0, 0.5, [[1.0]] * N, [[1.0]] * N, bad),
    ),
}


@pytest.mark.parametrize("bad", BAD, ids=[f"{type(x).__name__}-{x.indices[1]}" for x in BAD])
@pytest.mark.parametrize("door", DOORS)
def test_a_column_outside_the_shape_is_refused_at_every_door(door, bad):
    name, enter = DOORS[door]
    found = rf"{name} has column index {bad.indices[1]} in row 1, and 4 columns"
    with pytest.raises(InputError, match=found):
        enter(bad)


def test_learn_one_refuses_it():
    bad = csr_array(([1.0], [D], [0, 1]), shape=(1, D))
    with pytest.raises(InputError, match="phi has column index 4 in row 0"):
        learned().learn_one(bad, 1.0, GOOD[[0]], 0.5)


@pytest.mark.parametrize("index", [-1, N])
def test_a_problem_refuses_it_in_its_transitions(index):
    bad = csr_array((np.ones(N), [0, index, 2], np.arange(N + 1)), shape=(N, N))
    given = 0.0, 0.5, [[1.0]] * N, [[1.0]] * N, np.eye(N)
    with pytest.raises(InputError, match=rf"transition\[0\] has column index {index} in row 1"):
        Problem([bad], *given)


@pytest.mark.parametrize(
    ("indptr", "found"),
    [
        ([0, 1, 2], "indptr has 3 numbers"),
        ([1, 1, 2, 3], "begins with 1"),
        ([0, 2, 1, 3], "falls from 2 to 1 in row 1"),
        ([0, 1, 2, 9], "ends with 9, and there are 3 entries"),
        ([0.0, 1.0, 2.0, 3.0], "whole numbers"),
    ],
)
@pytest.mark.parametrize("take", [as_csr, as_coo])
def test_row_ends_that_do_not_fit_are_refused(take, indptr, found):
    bad = GOOD.copy()
    bad.indptr = np.array(indptr)
    with pytest.raises(InputError, match=f"phi is not a CSR matrix: .*{found}"):
        take("phi", bad)


def test_parts_of_different_lengths_are_refused():
    bad = GOOD.copy()
    bad.data = np.ones(2)
    with pytest.raises(InputError, match="indices has 3 numbers and data 2"):
        Transitions(bad, 1.0, GOOD, 0.5)
    pairs = coo_array(GOOD)
    pairs.data = np.ones(2)
    with pytest.raises(InputError, match="3 rows and 3 columns of 2 entries"):
        Transitions(pairs, 1.0, GOOD, 0.5)


def test_other_formats_are_checked_before_scipy_converts_them():
    columns = csc_array((np.ones(2), [0, 7], [0, 1, 2, 2, 2]), shape=(N, D))
    with pytest.raises(InputError, match="row index 7 in column 1, and 3 rows"):
        as_csr("phi", columns)
    blocks = bsr_array((np.ones((1, 1, 2)), [5], [0, 1, 1, 1]), shape=(N, D))
    with pytest.raises(InputError, match="column of blocks index 5 in row of blocks 0, and 2 col"):
        as_csr("phi", blocks)
    pairs = coo_array(GOOD)
    pairs.coords = (np.array([0, 1, 2]), np.array([0, -2, 2]))
    with pytest.raises(InputError, match="column index -2 in entry 1, and 4 columns"):
        as_csr("phi", pairs)
    lists = lil_array((N, D))
    lists.rows[1], lists.data[1] = [9], [1.0]
    with pytest.raises(InputError, match="column index 9 in row 1"):
        as_csr("phi", lists)


def test_one_row_of_a_sparse_vector_is_refused():
    with pytest.raises(InputError, match="two-dimensional"):
        learned().predict(coo_array(np.ones(D)))


def test_good_matrices_of_every_format_are_taken_as_they_are():
    given = [GOOD, csr_matrix(GOOD), GOOD.tocsc(), GOOD.tocoo(), lil_array(GOOD), GOOD.todok()]
    for value in [*given, bsr_array(GOOD), csr_array((N, D)), GOOD.todia()]:
        assert (as_csr("phi", value).toarray() == value.toarray()).all()
        assert (as_coo("phi", value).toarray() == value.toarray()).all()
    assert np.shares_memory(as_csr("phi", GOOD).data, GOOD.data)


def test_features_of_a_log_are_checked():
    log = pd.DataFrame({"episode": [0, 0, 0], "obs_0": [0.0, 0.5, 1.0], "state": [0, 1, 2]})
    log["reward"], log["terminated"], log["rho"] = 1.0, [False, False, True], 1.0
    source = sources.open_logs(log.drop(columns="state"), discount=0.5)

    def phi(rows):
        bad = csr_array(eye_array(len(rows)))
        bad.indices[-1] = 99
        return bad

    with pytest.raises(InputError, match="has column index 99 in row"):
        list(source.batches(phi))
    with pytest.raises(InputError, match="has column index 99 in row"):
        evaluation.evaluate(log.drop(columns="state"), discount=0.5, features=phi)
    with pytest.raises(InputError, match="has column index 99 in row"):
        evaluation.evaluate(log.drop(columns="obs_0"), discount=0.5, features=phi(range(3)))
