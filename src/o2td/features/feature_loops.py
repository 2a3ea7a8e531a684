"""The compiled loops of the feature maps. Rows `u` are already scaled.

Imported on first use, so that naming a feature map does not load the compiler.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from o2td.arrays import Floats, Ints
from o2td.compiled import njit

# Taylor coefficients of sin(pi h) / h and cos(pi h) in h^2: for |h| <= 1/2 the first term left out
# is below 1e-17.
_S0, _S1, _S2, _S3, _S4, _S5, _S6, _S7, _S8, _S9, _S10 = (
    (-1) ** i * math.pi ** (2 * i + 1) / math.factorial(2 * i + 1) for i in range(11)
)
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11 = (
    (-1) ** i * math.pi ** (2 * i) / math.factorial(2 * i) for i in range(12)
)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def scale(
    x: Any, low: Floats, high: Floats, width: Floats, gain: Floats, shift: Floats, clip: bool
) -> Any:
    """Scale the rows of `x` in place; return the flat index of the first bad value, else -1."""
    n, k = x.shape
    for i in range(n):
        for j in range(k):
            value = x[i, j]
            if not np.isfinite(value):
                return i * k + j
            if clip:
                value = min(max(value, low[j]), high[j])
            u = (value - low[j]) / width[j]
            if not np.isfinite(u):
                return i * k + j
            x[i, j] = u * gain[j] + shift[j]
    return -1


# Fourier ---------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def _sin_pi(h: Any) -> Any:
    """sin(pi h) for |h| <= 1/2."""
    q = h * h
    s = _S10 * q + _S9
    s = s * q + _S8
    s = s * q + _S7
    s = s * q + _S6
    s = s * q + _S5
    s = s * q + _S4
    s = s * q + _S3
    s = s * q + _S2
    s = s * q + _S1
    return (s * q + _S0) * h


@njit(cache=True, nogil=True, inline="always")
def _cos_pi(h: Any) -> Any:
    """cos(pi h) for |h| <= 1/2."""
    q = h * h
    c = _C11 * q + _C10
    c = c * q + _C9
    c = c * q + _C8
    c = c * q + _C7
    c = c * q + _C6
    c = c * q + _C5
    c = c * q + _C4
    c = c * q + _C3
    c = c * q + _C2
    c = c * q + _C1
    return c * q + _C0


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def cos_pi(phase: Floats) -> None:
    """`cos(pi v)` in place, free of branches so that it runs in vector registers."""
    for i in range(phase.size):
        v = phase[i]
        t = abs(v - 2.0 * np.floor(0.5 * v + 0.5))
        phase[i] = _sin_pi(0.5 - t)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def phases(u: Any, coefficients: Floats, out: Any) -> None:
    """`out = u @ coefficients`, for few variables."""
    n, k = u.shape
    d = out.shape[1]
    for i in range(n):
        row = out[i]
        first = coefficients[0]
        for f in range(d):
            row[f] = first[f] * u[i, 0]
        for j in range(1, k):
            c = coefficients[j]
            for f in range(d):
                row[f] += c[f] * u[i, j]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def phases_uncoupled(u: Any, frequency: Floats, variable: Ints, out: Any) -> None:
    """`frequency[f] u_variable[f]` for each feature f."""
    for i in range(u.shape[0]):
        row, x = out[i], u[i]
        for f in range(frequency.size):
            row[f] = frequency[f] * x[variable[f]]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _circle(u: Any, re: Floats, im: Floats) -> None:
    """`exp(i pi u)`."""
    for i in range(u.size):
        t = u[i] - 2.0 * np.floor(0.5 * u[i] + 0.5)
        h = 0.5 - abs(t)
        re[i] = _sin_pi(h)
        s = _cos_pi(h)
        im[i] = s if t >= 0.0 else -s


@njit(cache=True, nogil=True, inline="always", fastmath={"reassoc", "contract"})
def _turn(
    from_re: Floats, from_im: Floats, x: float, y: float, re: Floats, im: Floats, size: int
) -> None:
    for p in range(size):
        re[p] = from_re[p] * x - from_im[p] * y
        im[p] = from_re[p] * y + from_im[p] * x


@njit(cache=True, nogil=True, inline="always", fastmath={"reassoc", "contract"})
def _real_turn(from_re: Floats, from_im: Floats, x: float, y: float, out: Any, size: int) -> None:
    for p in range(size):
        out[p] = from_re[p] * x - from_im[p] * y


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def fourier_product(u: Any, order: int, out: Any) -> None:
    """`cos(pi c.u)` as the real part of the product of the `exp(i pi c_j u_j)`.

    The last variable is expanded first, each further one multiplies all products so far, and only
    the first variable's step writes to `out`: three operations per feature, along contiguous rows.
    """
    n, k = u.shape
    m = order + 1
    block = out.shape[1] // m
    unit_re, unit_im = np.empty((n, k)), np.empty((n, k))
    _circle(u.reshape(-1), unit_re.reshape(-1), unit_im.reshape(-1))
    re, im = np.empty(block), np.empty(block)
    for i in range(n):
        re[0], im[0] = 1.0, 0.0
        size = 1
        for j in range(k - 1, 0, -1):
            x, y = unit_re[i, j], unit_im[i, j]
            for c in range(1, m):
                a, b = (c - 1) * size, c * size
                _turn(re[a:b], im[a:b], x, y, re[b:], im[b:], size)
            size *= m
        x, y = 1.0, 0.0
        for c in range(m):
            _real_turn(re, im, x, y, out[i, c * block :], block)
            x, y = (
                x * unit_re[i, 0] - y * unit_im[i, 0],
                x * unit_im[i, 0] + y * unit_re[i, 0],
            )


# Tiles and grids -------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def cells(u: Any, bins: Ints, strides: Ints, out: Any) -> None:
    """Number of the grid cell that each row lies in; the top edge belongs to the last cell."""
    n, k = u.shape
    for i in range(n):
        cell = 0
        for j in range(k):
            b = np.int64(np.floor(u[i, j] * bins[j]))
            cell += min(max(b, 0), bins[j] - 1) * strides[j]
        out[i] = cell


@njit(cache=True, nogil=True, inline="always")
def _place(u: Any, bins: Ints, tilings: Any, clip: bool) -> Any:
    """Tile and rest of the undisplaced tiling, in steps of 1/tilings of a tile."""
    q: Any = np.int64(np.floor(u * (bins * tilings)))
    if clip:
        q = min(max(q, 0), bins * tilings - 1)
    return q // tilings, q % tilings


@njit(cache=True, nogil=True)
def tiles(u: Any, bins: Ints, shifts: Any, strides: Ints, per_tiling: int, out: Any) -> None:
    """Column of the active tile of each tiling."""
    n, k = u.shape
    tilings = shifts.shape[0]
    column = np.empty(tilings, np.int64)
    for i in range(n):
        for t in range(tilings):
            column[t] = t * per_tiling
        for j in range(k):
            tile, rest = _place(u[i, j], bins[j], tilings, True)
            here, needed, stride = tile * strides[j], tilings - rest, strides[j]
            # Without a branch, which would be taken at random.
            for t in range(tilings):
                column[t] += here + stride * np.int64(shifts[t, j] >= needed)
        for t in range(tilings):
            out[i, t] = column[t]


@njit(cache=True, nogil=True, inline="always")
def _mix(x: Any) -> Any:
    """SplitMix64's output function (Steele, Lea & Flood 2014), a bijection of 64-bit words."""
    z = x + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def hashed_tiles(
    u: Any, bins: Ints, shifts: Any, seed: Any, size: int, clip: bool, out: Any
) -> None:
    """Column of the active tile of each tiling, by its hash."""
    n, k = u.shape
    tilings = shifts.shape[0]
    tile, rest = np.empty(k, np.int64), np.empty(k, np.int64)
    start = np.empty(tilings, np.uint64)
    for t in range(tilings):
        start[t] = _mix(_mix(seed) ^ np.uint64(t))
    for i in range(n):
        for j in range(k):
            tile[j], rest[j] = _place(u[i, j], bins[j], tilings, clip)
        for t in range(tilings):
            h = start[t]
            for j in range(k):
                carry = 1 if rest[j] + shifts[t, j] >= tilings else 0
                h = _mix(h ^ np.uint64(tile[j] + carry))
            out[i, t] = np.int64(((h >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))


@njit(cache=True, nogil=True)
def sum_duplicates(columns: Ints, filled: int, data: Floats, indices: Ints, indptr: Ints) -> int:
    """Append rows of ones at `columns` to CSR arrays, sorted, equal columns summed."""
    n, m = columns.shape
    row = np.empty(m, columns.dtype)
    for i in range(n):
        for t in range(m):
            c = columns[i, t]
            p = t
            while p > 0 and row[p - 1] > c:
                row[p] = row[p - 1]
                p -= 1
            row[p] = c
        first = filled
        for t in range(m):
            if filled > first and indices[filled - 1] == row[t]:
                data[filled - 1] += 1.0
            else:
                indices[filled] = row[t]
                data[filled] = 1.0
                filled += 1
        indptr[i + 1] = filled
    return filled


@njit(cache=True, nogil=True)
def add_ones(columns: Ints, out: Any) -> None:
    """Dense rows with ones added at `columns`."""
    n, m = columns.shape
    for i in range(n):
        for t in range(m):
            out[i, columns[i, t]] += 1.0


# Radial and polynomial -------------------------------------------------------------------------


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def radial_grid(u: Any, bins: Ints, width: Floats, normalize: bool, out: Any) -> None:
    """Gaussians on a grid, which are products of one-dimensional ones, as are their sums."""
    n, k = u.shape
    bump = np.empty(bins.max())
    for i in range(n):
        row = out[i]
        row[0] = 1.0
        size = 1
        for j in range(k - 1, -1, -1):
            m = bins[j]
            nearest = np.inf
            for c in range(m):
                z = (u[i, j] - (c / (m - 1) if m > 1 else 0.5)) / width[j]
                bump[c] = 0.5 * z * z
                nearest = min(nearest, bump[c])
            total = 0.0
            for c in range(m):
                bump[c] = math.exp((nearest if normalize else 0.0) - bump[c])
                total += bump[c]
            gain = 1.0 / total if normalize else 1.0
            for c in range(m - 1, -1, -1):
                weight = bump[c] * gain
                for p in range(size):
                    row[c * size + p] = row[p] * weight
            size *= m


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def radial(u: Any, centers: Floats, width: Floats, normalize: bool, out: Any) -> None:
    """Gaussians at any centres."""
    n, k = u.shape
    m = centers.shape[0]
    for i in range(n):
        row = out[i]
        nearest = np.inf
        for c in range(m):
            half = 0.0
            for j in range(k):
                z = (u[i, j] - centers[c, j]) / width[j]
                half += 0.5 * z * z
            row[c] = half
            nearest = min(nearest, half)
        total = 0.0
        for c in range(m):
            row[c] = math.exp((nearest if normalize else 0.0) - row[c])
            total += row[c]
        if normalize:
            for c in range(m):
                row[c] /= total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def polynomial(u: Any, parent: Ints, variable: Ints, out: Any) -> None:
    """Each monomial is an earlier one times one variable."""
    for i in range(u.shape[0]):
        row = out[i]
        row[0] = 1.0
        for f in range(1, out.shape[1]):
            row[f] = row[parent[f]] * u[i, variable[f]]
