"""Sums of rows and the rows that they are made of."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td import Transitions
from o2td.solvers.system import dense_rows


def test_successors_that_are_not_read_are_zero_whatever_the_memory_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    phi = csr_array(np.arange(1.0, 9.0).reshape(4, 2))
    batch = Transitions(phi, np.zeros(4), phi, [0.9, 0.0, 0.9, 0.0])
    monkeypatch.setattr(np, "empty", lambda shape, *_, **__: np.full(shape, np.nan))
    full = dense_rows(batch, "next_phi")
    np.testing.assert_array_equal(full.matrix[full.at], [[1, 2], [0, 0], [5, 6], [0, 0]])
    full = dense_rows(batch, "phi")
    np.testing.assert_array_equal(full.matrix[full.at], phi.toarray())
