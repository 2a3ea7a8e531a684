"""Decompositions that the rank rests on."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from o2td.linear_algebra import rank


def test_a_decomposition_that_fails_is_tried_another_way(monkeypatch):
    A = np.array([[3.0, 0.0], [4.0, 5.0]])
    right = scipy.linalg.svd
    tried = []

    def sometimes(given, lapack_driver="gesdd", **options):
        tried.append((lapack_driver, options))
        if len(tried) == 1:
            raise np.linalg.LinAlgError
        return right(given, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr(scipy.linalg, "svd", sometimes)
    U, s, Vt = rank.svd(A)
    np.testing.assert_allclose(s, np.sqrt([45.0, 5.0]))
    np.testing.assert_allclose(U * s @ Vt, A, atol=1e-14)
    assert [name for name, _ in tried] == ["gesdd", "gesvd"]
    assert tried[0][1] == tried[1][1] == {"full_matrices": False, "check_finite": False}
