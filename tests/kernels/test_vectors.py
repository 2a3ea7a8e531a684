"""Sixteen lanes side by side: the compiled loops against what they say in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from o2td.kernels import vectors
from o2td.kernels.vectors import WIDTH, aligned


def array(rng, d, extra=0):
    return rng.normal(size=d + extra)


def lanes(rng):
    return rng.normal(size=WIDTH)


def slide(rng, d):
    return array(rng, WIDTH * d), lanes(rng), array(rng, d, 3), 3, array(rng, d, 2), 1


def slide_both(rng, d):
    return (
        *(array(rng, WIDTH * d), lanes(rng), array(rng, d, 3), 2),
        *(lanes(rng), array(rng, d, 1), 1, array(rng, d, 4), 4),
    )


def fade(rng, d):
    M, *rest = slide_both(rng, d)
    return M, lanes(rng), *rest


def trail(rng, d):
    M, Z = array(rng, WIDTH * d), array(rng, WIDTH * d)
    return M, Z, lanes(rng), lanes(rng), lanes(rng), array(rng, d, 3), 1, array(rng, d, 2), 2


def squares(rng, d):
    return rng.normal(size=(d, d)).ravel(), array(rng, WIDTH * d)


@njit
def _slide(M, a, x, i, e, q, out, d):
    vectors.slide(M, a, x, i, e, q, out, d)


@njit
def _slide_both(M, a, x, i, b, y, k, e, q, out, d):
    vectors.slide_both(M, a, x, i, b, y, k, e, q, out, d)


@njit
def _fade(M, keep, a, x, i, b, y, k, e, q, out, d):
    vectors.fade(M, keep, a, x, i, b, y, k, e, q, out, d)


@njit
def _trail(M, Z, keep, m, a, x, i, e, q, out, d):
    vectors.trail(M, Z, keep, m, a, x, i, e, q, out, d)


@njit
def _squares(R, M, out, d):
    vectors.squares(R, M, out, d)


COMPILED = {
    slide: _slide,
    slide_both: _slide_both,
    fade: _fade,
    trail: _trail,
    squares: _squares,
}


@pytest.mark.parametrize("d", [1, 2, 7, 32])
@pytest.mark.parametrize("given", COMPILED, ids=lambda f: f.__name__)
def test_compiled_loops_do_what_they_say(given, d):
    arguments = given(np.random.default_rng(d), d)
    plain, compiled = ([np.copy(x) if np.ndim(x) else x for x in arguments] for _ in range(2))
    out, found = np.zeros(WIDTH), np.ones(WIDTH)
    getattr(vectors, given.__name__)(*plain, out, d)
    COMPILED[given](*compiled, found, d)
    np.testing.assert_allclose(found, out, rtol=1e-12, atol=1e-12)
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("given", [slide, slide_both, fade, trail])
def test_loops_move_and_multiply(given):
    """By hand, one lane at a time."""
    d = 3
    M, *rest, e, q = arguments = given(np.random.default_rng(0), d)
    expected = M.reshape(d, WIDTH).copy()
    for j in range(d):
        for s in range(WIDTH):
            if given is slide:
                a, x, i = rest
                expected[j, s] += a[s] * x[i + j]
            elif given is slide_both:
                a, x, i, b, y, k = rest
                expected[j, s] += a[s] * x[i + j] + b[s] * y[k + j]
            elif given is fade:
                keep, a, x, i, b, y, k = rest
                expected[j, s] = keep[s] * expected[j, s] + a[s] * x[i + j] + b[s] * y[k + j]
            else:
                Z, keep, m, a, x, i = rest
                trace = keep[s] * Z[j * WIDTH + s] + m[s] * x[i + j]
                expected[j, s] += a[s] * trace
    out = np.zeros(WIDTH)
    getattr(vectors, given.__name__)(*arguments, out, d)
    np.testing.assert_allclose(M.reshape(d, WIDTH), expected, rtol=1e-13)
    np.testing.assert_allclose(out, e[q : q + d] @ expected, rtol=1e-12)


def test_memory_begins_at_lines_of_the_cache():
    for d in (1, 3, 20):
        rows = aligned(3, d)
        assert rows.shape == (3, WIDTH * d)
        assert all(row.ctypes.data % 64 == 0 for row in rows)
