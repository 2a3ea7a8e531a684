"""BiCGSTAB's five passes over a block of `WIDTH` columns side by side, one column per equation.

A sparse matrix costs as much to read for one column as for a cache line of them, and reading is
most of the work. Each pass also computes the inner products that the next one needs.
"""

from __future__ import annotations

from o2td.arrays import Floats, Ints
from o2td.compiled import njit

WIDTH = 8  # columns: a line of the cache

_OPTIONS = {"cache": True, "nogil": True, "fastmath": {"reassoc", "contract"}}


@njit(**_OPTIONS)
def multiply(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    V: Floats,
    along: Floats,
    out: Floats,
    dots: Floats,
    own: Floats,
) -> None:
    """`out = A V`, `dots = sum_i along_i out_i` and `own = sum_i out_i^2`, by column."""
    dots[:] = 0.0
    own[:] = 0.0
    for i in range(len(indptr) - 1):
        a = b = c = d = e = f = g = h = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            x, v = data[k], V[indices[k]]
            a += x * v[0]
            b += x * v[1]
            c += x * v[2]
            d += x * v[3]
            e += x * v[4]
            f += x * v[5]
            g += x * v[6]
            h += x * v[7]
        row, other = out[i], along[i]
        row[0], row[1], row[2], row[3] = a, b, c, d
        row[4], row[5], row[6], row[7] = e, f, g, h
        for j in range(WIDTH):
            dots[j] += other[j] * row[j]
            own[j] += row[j] * row[j]


@njit(**_OPTIONS)
def turn(P: Floats, R: Floats, V: Floats, beta: Floats, omega: Floats) -> None:
    """`P = R + beta (P - omega V)`."""
    for i in range(len(P)):
        for j in range(WIDTH):
            P[i, j] = R[i, j] + beta[j] * (P[i, j] - omega[j] * V[i, j])


@njit(**_OPTIONS)
def shorten(R: Floats, V: Floats, alpha: Floats, square: Floats) -> None:
    """`R -= alpha V`, `square = sum_i R_i^2`."""
    square[:] = 0.0
    for i in range(len(R)):
        for j in range(WIDTH):
            R[i, j] -= alpha[j] * V[i, j]
            square[j] += R[i, j] * R[i, j]


@njit(**_OPTIONS)
def step(
    X: Floats,
    P: Floats,
    R: Floats,
    T: Floats,
    along: Floats,
    alpha: Floats,
    omega: Floats,
    dots: Floats,
    square: Floats,
) -> None:
    """`X += alpha P + omega R`, `R -= omega T`, `dots = sum_i along_i R_i`, `square` of R."""
    dots[:] = 0.0
    square[:] = 0.0
    for i in range(len(X)):
        for j in range(WIDTH):
            X[i, j] += alpha[j] * P[i, j] + omega[j] * R[i, j]
            R[i, j] -= omega[j] * T[i, j]
            dots[j] += along[i, j] * R[i, j]
            square[j] += R[i, j] * R[i, j]
