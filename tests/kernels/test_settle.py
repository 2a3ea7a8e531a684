"""What happens to theta after a step, as plain functions, against formulas written out."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.kernels import settle
from o2td.kernels.access import SparseFeatures, SparseTrace

D = 6


def features(*indices: int) -> SparseFeatures:
    return SparseFeatures(np.ones(len(indices)), np.array(indices, np.int32), 0, len(indices))


def trace(*indices: int) -> SparseTrace:
    """Of these entries; the list has room for more, which do not count."""
    listed = np.array([*indices, 0, 0], np.int32)
    return SparseTrace(np.ones(D), listed, np.array([9, len(indices)]), 1)


def averaged(thetas: list[np.ndarray], a: float, first: int = 0) -> np.ndarray:
    mean = np.zeros(D)
    for t, theta in enumerate(thetas, first):
        mean = theta.copy() if a == 0.0 else mean + (theta - mean) * min(1.0, a / (t + a))
    return mean


@pytest.mark.parametrize("a", [0.0, 0.5, 1.0, 3.0])
def test_an_average_is_its_formula(a):
    rng = np.random.default_rng(0)
    thetas, mean = list(rng.normal(size=(5, D))), np.zeros(D)
    for t, theta in enumerate(thetas):
        settle.average(mean, theta, a, float(t))
    np.testing.assert_allclose(mean, averaged(thetas, a), rtol=1e-13)
    if a == 1.0:
        np.testing.assert_allclose(mean, np.mean(thetas, axis=0), rtol=1e-13)


def test_a_bound_and_a_ball_confine():
    theta = np.array([3.0, -4.0, 0.5, -0.5, 1.0, -1.0])
    settle.confine(theta, 1.0, np.inf)
    np.testing.assert_array_equal(theta, [2.0, -3.0, 0.0, 0.0, 0.0, 0.0])
    settle.confine(theta, 0.0, 4.0)  # inside the ball
    np.testing.assert_array_equal(theta, [2.0, -3.0, 0.0, 0.0, 0.0, 0.0])
    theta[:] = [3.0, 0.0, -4.0, 0.0, 0.0, 0.0]
    settle.confine(theta, 0.0, 2.5)
    np.testing.assert_allclose(theta, [1.5, 0.0, -2.0, 0.0, 0.0, 0.0])
    settle.confine(theta, 0.5, 0.75)  # the prox comes first: 1 and -1.5 remain
    np.testing.assert_allclose(theta, np.array([1.0, 0.0, -1.5, 0.0, 0.0, 0.0]) * 0.75 / 3.25**0.5)
    assert np.linalg.norm(theta) == pytest.approx(0.75)


@pytest.mark.parametrize("first", [0, 4])
@pytest.mark.parametrize("a", [0.0, 0.3, 1.0, 1e3, 1e12])
def test_a_mean_kept_lazily_is_the_mean(a, first):
    """Rows and traces move their entries only; stretches end."""
    rng = np.random.default_rng(int(a) + first)
    theta, mean, thetas = np.zeros(D), np.zeros(D), []
    lazy = settle.Lazy(np.full(D, np.nan), np.empty(1))
    for t in range(first, first + 30):
        if (t - first) % 12 == 0:
            settle.open_lane(theta, mean, lazy)
        phi, after = features(t % D, (t + 2) % D), features((t + 3) % D)
        z = trace(t % D, (t + 1) % D)
        parts, touched = (phi, after, z), {t % D, (t + 2) % D, (t + 3) % D, (t + 1) % D}
        settle.touch(parts, theta, lazy.old, mean, 0.0)
        theta[list(touched)] += rng.normal(size=4)
        thetas.append(theta.copy())
        factor = settle.shrink(mean, a, float(t), lazy)
        assert (factor > 0.0) == (a > 0.0 and t > 0)
        if factor > 0.0:
            settle.touch(parts, theta, lazy.old, mean, factor)
        if (t - first) % 12 == 11 or t == first + 29:
            settle.close_lane(theta, mean, lazy)
            np.testing.assert_allclose(mean, averaged(thetas, a, first), rtol=1e-9, atol=1e-12)


def test_a_share_that_gets_too_small_is_given_back():
    lazy, mean = settle.Lazy(np.zeros(2), np.array([1e-101])), np.array([2.0, -3.0])
    assert settle.shrink(mean, 1.0, 3.0, lazy) == 1.0
    np.testing.assert_allclose(mean, [2e-101, -3e-101])
    assert lazy.share[0] == pytest.approx(0.75)
    assert settle.shrink(mean, 1.0, 1.0, lazy) == pytest.approx(1.0 / 0.75)
    np.testing.assert_allclose(mean, [2e-101, -3e-101])
    assert lazy.share[0] == pytest.approx(0.375)
    assert settle.shrink(mean, 1.0, 0.0, lazy) == 0.0  # all of the mean is theta
    np.testing.assert_array_equal(mean, 0.0)
    assert lazy.share[0] == 1.0
