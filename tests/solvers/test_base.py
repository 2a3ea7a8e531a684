"""Sums that were saved: what no rows can have given is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2td.solvers import base

GOOD = {
    "data": np.array([1.0, 2.0, 3.0]),
    "indices": np.array([0, 3, 1], dtype=np.int32),
    "indptr": np.array([0, 2, 2, 3], dtype=np.int32),
}


def test_a_sparse_matrix_comes_back() -> None:
    arrays = {f"A.{name}": value for name, value in GOOD.items()}
    found = base.stored_csr("A", arrays, (3, 4)).toarray()
    np.testing.assert_array_equal(found, [[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]])
    empty = {"A.data": np.zeros(0), "A.indices": np.zeros(0, int), "A.indptr": np.zeros(4, int)}
    assert base.stored_csr("A", empty, (3, 4)).nnz == 0


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("data", np.ones(2)),
        ("data", np.ones((3, 1))),
        ("indices", np.array([0, 3])),
        ("indices", np.array([0, 4, 1])),
        ("indices", np.array([0, -1, 1])),
        ("indices", np.array([0.0, 3.0, 1.0])),
        ("indptr", np.array([0, 2, 3])),
        ("indptr", np.array([0, 2, 2, 2, 3])),
        ("indptr", np.array([1, 2, 2, 3])),
        ("indptr", np.array([0, 2, 2, 4])),
        ("indptr", np.array([0, 3, 2, 3])),
        ("indptr", np.array([0.0, 2.0, 2.0, 3.0])),
    ],
    ids=str,
)
def test_arrays_that_are_no_sparse_matrix_are_refused(part: str, value: Any) -> None:
    arrays = {f"A.{name}": array for name, array in (GOOD | {part: value}).items()}
    with pytest.raises(ValueError, match="A is not a sparse matrix"):
        base.stored_csr("A", arrays, (3, 4))
