"""Eigenvalues of matrices whose rows and columns differ in size."""

from __future__ import annotations

import numpy as np

from o2td.linear_algebra.scaled_spectrum import spectrum


def test_a_leading_part_that_is_singular() -> None:
    """The eigenvalues of a graded matrix need not follow its sizes."""
    s = np.array([1e4, 1.0])
    M = np.array([[0.0, 1.0], [1.0, 0.0]])
    (found,) = spectrum(M, s)
    np.testing.assert_allclose(np.sort(found.real), [-1e4, 1e4], rtol=1e-12)


def test_groups_of_eigenvalues() -> None:
    """Triangular up to a similarity by the grading: `S M S` with M lower triangular."""
    s = np.array([1e-6, 1e6, 1.0, 1e3])
    M = np.tril(np.random.default_rng(0).standard_normal((4, 4))) + 3.0 * np.eye(4)
    order = np.argsort(s)
    graded = np.empty((4, 4))
    graded[np.ix_(order, order)] = M
    found = np.sort(np.concatenate(spectrum(graded, s)).real)
    np.testing.assert_allclose(found, np.sort(M.diagonal() * s[order] ** 2), rtol=1e-12)
