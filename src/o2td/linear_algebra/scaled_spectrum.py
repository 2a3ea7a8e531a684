"""Linear algebra for `A = S M S`: S the sizes of the coordinates, M with entries of like size.

Features in different units make A graded: its eigenvalues span the square of the range of the
units. Ranks are decided and systems solved on M, where units do not matter. The eigenvalues must be
those of A, which scaling does not preserve but similarity does: coordinates of large and small size
are decoupled first, since otherwise rounding errors of the large eigenvalues drown the small ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.linear_algebra.rank import COMPUTED, count, rounding

Ints = npt.NDArray[np.intp]
Complexes = npt.NDArray[np.complex128]

_NOISE = 1e-13  # entries of a null vector below this share of the largest are rounding
_SEMISIMPLE = 1e-8
_WIDE = 100.0  # ratio of sizes up to which eigenvalues are computed together
_SWEEPS = 120


def sizes(A: Floats, scale: Floats | None) -> Floats:
    """The sizes of the coordinates, as powers of two, so that `S^-1 A S^-1` is free of rounding.

    `scale` holds the sizes of theta. What is stacked below theta (w) repeats them, unless its own
    diagonal is larger (a regulariser has no unit).
    """
    n = len(A)
    if scale is None or not (scale > 0.0).any():
        return np.ones(n)
    d = len(scale)
    s = _power_of_two(np.where(scale > 0.0, scale, scale[scale > 0.0].min()))
    s = np.concatenate([np.tile(s, n // d), np.ones(n % d)])
    M = np.abs(A / s / s[:, None])
    own = M.diagonal()[d:].copy()
    M[np.arange(d, n), np.arange(d, n)] = 0.0
    others = M.max(initial=0.0)
    if others > 0.0:
        s[d:] *= _power_of_two(np.sqrt(np.maximum(1.0, own / others)))
    return s


class Deflated:
    """M without its left null space: `M[dropped] = ratio M[kept]`.

    On the range of A, `x[dropped] = S[dropped] ratio S[kept]^-1 x[kept]`, and there A acts on
    `x[kept]` as `S[kept] core S[kept]`. The eigenvalue 0 of A has as many eigenvectors as its
    multiplicity (`semisimple`) if and only if `core` is regular.
    """

    def __init__(self, M: Floats, s: Floats, d: int) -> None:
        n = len(M)
        # The rows of w have another step size than those of theta.
        blocks = [np.abs(M[low : low + d]).max(initial=0.0) for low in range(0, n, d)]
        self.row = np.repeat(np.where(np.array(blocks) > 0.0, blocks, 1.0), d)[:n]
        self._saddle = _Saddle.found(M, s, d)
        U, size, Vt = np.linalg.svd(M / self.row[:, None])
        rank = n if self._saddle else count(size, (n,), slack=COMPUTED)
        self.rank = rank
        if not self._saddle:
            self._inverse = (Vt[:rank].T / size[:rank]) @ U[:, :rank].T
        self.left, self.right = U[:, rank:], Vt[rank:].T
        self.kept, self.dropped, self.ratio = _pivots(self.left / self.row[:, None], s)
        p, q = self.kept, self.dropped
        carried = self.ratio * (s[q, None] / s[p]) ** 2
        self.core = M[np.ix_(p, p)] + M[np.ix_(p, q)] @ carried
        self.semisimple = True
        if 0 < rank < n:
            least = np.linalg.svd(self.core / self.row[p, None], compute_uv=False)[-1]
            self.semisimple = bool(least > _SEMISIMPLE * size[rank - 1])

    @property
    def pulls(self) -> bool:
        """Whether every eigenvalue of A is known to have a positive real part."""
        return self._saddle is not None and self._saddle.pulls

    def closed(self, s: Floats) -> Complexes | None:
        """The eigenvalues of A if its form gives them accurately."""
        return None if self._saddle is None else self._saddle.closed(s)

    def solvable(self, b: Floats) -> bool:
        """Whether `M z = b` has a solution."""
        b = b / self.row
        unit = b / (np.abs(b).max(initial=0.0) or 1.0)  # its square must not overflow
        return bool(np.linalg.norm(self.left.T @ unit) <= 1e-9 * np.linalg.norm(unit))

    def solution(self, b: Floats) -> Floats:
        """The solution of `M z = b` of minimum norm."""
        if self._saddle:
            return self._saddle.solution(b)
        return np.asarray(self._inverse @ (b / self.row))


class _Saddle:
    """`[[0, B], [C, G]]` with B and C regular: so is the whole, however large G is.

    Gradient learners whose theta follows w alone are of this form. If G has no unit and a feature
    is small, neither the singular values nor the eigenvalues of the whole say anything; but if `B =
    -c C^T` and G is positive definite, all eigenvalues have positive real parts. For an eigenvector
    `(theta, w)` the real part is that of `c w^* G w`, in a norm, and w is not 0 as C is regular.
    """

    def __init__(self, B: Floats, C: Floats, G: Floats, ratio: Floats) -> None:
        self._B, self._C, self._G, self._ratio = B, C, G, ratio

    @classmethod
    def found(cls, M: Floats, s: Floats, d: int) -> _Saddle | None:
        """M in this form, or None if it is not."""
        if len(M) != 2 * d or M[:d, :d].any():
            return None
        ratio = s[d:] / s[:d]
        B, C = M[:d, d:] * ratio, M[d:, :d] * ratio[:, None]
        for part in (B, C):
            size: Floats = np.linalg.svd(part, compute_uv=False).astype(np.float64)
            if count(size, (len(M),), slack=COMPUTED) < len(size):
                return None
        return cls(B, C, M[d:, d:], ratio)

    @property
    def pulls(self) -> bool:
        """Whether every eigenvalue has a positive real part, from the form alone."""
        if self._factor is None:
            return False
        H = self._G + self._G.T
        size = np.sqrt(np.maximum(H.diagonal(), 0.0))
        if not size.all():
            return False
        return bool(
            np.linalg.eigvalsh(H / size / size[:, None])[0] > rounding(H.shape, slack=COMPUTED)
        )

    @property
    def _factor(self) -> float | None:
        """`c` of `B = -c C^T`, or None if there is none."""
        c = -float(np.sum(self._B * self._C.T) / np.sum(self._C * self._C))
        same = np.abs(self._B + c * self._C.T).max() <= _NOISE * c * np.abs(self._C).max()
        return c if same else None

    def closed(self, s: Floats) -> Complexes | None:
        """The eigenvalues `g/2 +- sqrt(g^2/4 - c sigma^2)` where `G = g I`, sigma those of C."""
        d, c = len(self._ratio), self._factor
        g = self._G * s[d:] * s[d:, None]
        if c is None or not np.array_equal(g, g[0, 0] * np.eye(d)):
            return None
        order = np.argsort(-s[:d], kind="stable")  # small entries last: they keep their digits
        C = (self._C * s[:d] * s[:d, None])[np.ix_(order, order)]
        half = 0.5 * g[0, 0]
        mu = c * np.linalg.svd(C, compute_uv=False) ** 2
        root = np.sqrt((half * half - mu).astype(np.complex128))
        other = np.where(mu > half * half, half - root, mu / (half + root))
        return np.concatenate([half + root, other])

    def solution(self, b: Floats) -> Floats:
        """`B w = b_1`, then `C theta = b_2 - G w`."""
        d = len(self._ratio)
        w = self._ratio * np.linalg.solve(self._B, b[:d])
        theta = np.linalg.solve(self._C, self._ratio * (b[d:] - self._G @ w))
        return np.concatenate([theta, w])


def spectrum(M: Floats, s: Floats) -> list[Complexes]:
    """The eigenvalues of `S M S` in groups of similar size, each accurate relative to its group."""
    if len(s) == 0:
        return []
    order = np.argsort(-s, kind="stable")
    M, s = M[np.ix_(order, order)], s[order]
    if s[0] > _WIDE * s[-1]:
        cut = int(np.argmax(s[:-1] / s[1:])) + 1
        halves = _decoupled(M, s, cut)
        if halves is not None:
            return spectrum(halves[0], s[:cut]) + spectrum(halves[1], s[cut:])
    return [np.linalg.eigvals(M * s * s[:, None]).astype(np.complex128)]


def _decoupled(M: Floats, s: Floats, cut: int) -> tuple[Floats, Floats] | None:
    """The two parts of M after a similarity that leaves nothing below its first `cut` columns.

    With `A[i, j] = S_i M_ij S_j` and the similarity `[[I, 0], [S_2 Q S_1^-1, I]]`, Q must satisfy
    `Q (M_11 + M_12 X) = M_21 + M_22 X`, `X = S_2^2 Q S_1^-2`. Repeated substitution contracts by the
    ratio of the eigenvalues; None where that is too slow or the first part is singular.
    """
    one, two = slice(0, cut), slice(cut, None)
    shrink = (s[two, None] / s[one]) ** 2
    Q: Floats = np.zeros(shrink.shape)
    before = np.inf
    for _ in range(_SWEEPS):
        X = Q * shrink
        lead = M[one, one] + M[one, two] @ X
        try:
            found = np.linalg.solve(lead.T, (M[two, one] + M[two, two] @ X).T).T
        except np.linalg.LinAlgError:
            return None
        change, size = np.abs(found - Q).max(), np.abs(found).max()
        Q = np.asarray(found, dtype=np.float64)
        if not size < 1e8:
            return None
        if change <= 1e-14 * size or 0.9 * before < change <= 1e-8 * size:
            # Converged, or as near as the condition of the first part lets it come.
            return M[one, one] + M[one, two] @ (Q * shrink), M[two, two] - Q @ M[one, two]
        before = change
    return None


def _pivots(left: Floats, s: Floats) -> tuple[Ints, Ints, Floats]:
    """Which coordinates to keep and to drop, small ones first, and the ratio of their rows."""
    n, m = left.shape
    if m == 0:
        return np.arange(n), np.arange(0), np.zeros((0, n))
    from scipy.linalg import qr

    left = np.where(np.abs(left) > _NOISE * np.abs(left).max(), left, 0.0)
    chosen = qr((left / s[:, None]).T, mode="r", pivoting=True)[1][:m]
    dropped: Ints = np.sort(chosen).astype(np.intp)
    kept = np.delete(np.arange(n), dropped)
    ratio = -np.linalg.solve(left[dropped].T, left[kept].T)
    return kept, dropped, np.where(np.abs(ratio) > _NOISE, ratio, 0.0)


def _power_of_two(x: Floats) -> Floats:
    return np.asarray(np.exp2(np.round(np.log2(x))))
