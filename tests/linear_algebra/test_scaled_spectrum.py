"""Eigenvalues of matrices whose rows and columns differ in size."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.linear_algebra.scaled_spectrum import Deflated, sizes, spectrum


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


@pytest.mark.parametrize("unit", [2.0**-20, 1.0, 2.0**20])
@pytest.mark.parametrize(("ratio", "groups"), [(1.0, 1), (64.0, 1), (100.0, 1), (128.0, 2)])
def test_sizes_within_a_factor_of_a_hundred_are_one_group(
    unit: float, ratio: float, groups: int
) -> None:
    M = np.array([[2.0, 1.0, 0.5], [0.3, 3.0, 0.2], [-0.4, 0.1, 1.5]])
    s = unit * np.array([1.0, ratio, 1.0])
    found = spectrum(M, s)
    assert [len(part) for part in found] == ([3] if groups == 1 else [1, 2])
    want = np.linalg.eigvals(M * s * s[:, None])
    both = (np.sort_complex(np.concatenate(found)), np.sort_complex(want))
    np.testing.assert_allclose(*both, rtol=1e-10)


def test_groups_that_are_coupled_have_the_eigenvalues_of_the_whole() -> None:
    """Of a grading that numbers hold exactly: the answer of long arithmetic is not needed."""
    rng = np.random.default_rng(3)
    s = np.array([256.0, 1.0, 256.0, 1.0, 2.0])
    M = rng.normal(size=(5, 5)) + 4.0 * np.eye(5)
    found = np.sort_complex(np.concatenate(spectrum(M, s)))
    want = np.sort_complex(np.linalg.eigvals(M * s * s[:, None]))
    np.testing.assert_allclose(found, want, rtol=1e-9)
    assert [len(part) for part in spectrum(M, s)] == [2, 3]
    assert spectrum(np.zeros((0, 0)), np.zeros(0)) == []


def test_sizes_of_coordinates() -> None:
    """Those of theta, repeated for w unless its own diagonal has no unit and is larger."""
    A = np.array([[0.0, 4.0], [4.0, 1024.0]])
    np.testing.assert_array_equal(sizes(A, np.ones(1)), [1.0, 16.0])
    np.testing.assert_array_equal(sizes(A / 1024.0, np.ones(1)), [1.0, 16.0])
    np.testing.assert_array_equal(sizes(A * [[1.0, 1.0], [1.0, 1e-3]], np.ones(1)), [1.0, 1.0])
    np.testing.assert_array_equal(sizes(np.eye(3), None), np.ones(3))
    np.testing.assert_array_equal(sizes(np.eye(3), np.zeros(3)), np.ones(3))
    np.testing.assert_array_equal(sizes(np.eye(3), np.array([0.0, 8.1, 3.9])), [4.0, 8.0, 4.0])
    A = np.ones((5, 5)) - 0.5 * np.eye(5)
    np.testing.assert_array_equal(sizes(A, np.array([2.0, 8.0])), [2, 8, 2, 8, 1])


@pytest.mark.parametrize("c", [0.25, 3.0])
@pytest.mark.parametrize("g", [1.0, 6.0])
def test_a_saddle_has_its_eigenvalues_in_closed_form(c: float, g: float) -> None:
    C = np.array([[2.0, 0.5], [-0.3, 1.0]])
    M = np.block([[np.zeros((2, 2)), -c * C.T], [C, g * np.eye(2)]])
    parts, ones = Deflated(M, np.ones(4), 2), np.ones(4)
    found = parts.closed(ones)
    assert found is not None
    want = np.linalg.eigvals(M)
    one, two = (sorted(x, key=lambda y: (round(y.real, 9), y.imag)) for x in (found, want))
    np.testing.assert_allclose(one, two, rtol=1e-12)
    assert parts.pulls
    assert (parts.rank, parts.semisimple) == (4, True)
    b = np.arange(1.0, 5.0)
    assert parts.solvable(b)
    np.testing.assert_allclose(parts.solution(b), np.linalg.solve(M, b), rtol=1e-12)
    turned = M * [[1.0], [1.0], [-1.0], [-1.0]]  # w follows the other way: nothing pulls
    assert not Deflated(turned, ones, 2).pulls
    assert Deflated(turned, ones, 2).closed(ones) is None
    M[2, 3] = 0.1
    assert Deflated(M, ones, 2).closed(ones) is None
    assert Deflated(M, ones, 2).pulls
    M[2:, 2:] = [[1.0, 3.0], [3.0, 1.0]]
    assert not Deflated(M, ones, 2).pulls
