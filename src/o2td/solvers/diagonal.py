"""The map `omega -> Delta^T diag(omega xi) Phi` of one weight per state, and its preconditioner.

Its square is a sum of Kronecker products, nearly that of two covariances. In coordinates in which
`Delta` and `Phi` are orthonormal over states and correlated feature by feature (canonical
correlations `c`, Hotelling 1936) it is, were the features Gaussian, `Y -> Y + c Y^T c` and a matrix of
rank one. Dividing symmetric and antisymmetric parts of Y by the roots of `1 + c_i c_j` and
`1 - c_i c_j` leaves little for an iteration to do: a tenth of the steps or fewer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from o2td.arrays import Floats
from o2td.linear_algebra import triangle
from o2td.solvers.aggregate import Aggregate, row_norms, scaled

_LARGEST = 1 << 25  # entries of a (states, features) matrix that is stored in other coordinates
_DEPENDENT = 1e-10
_MOST = 0.999  # canonical correlations are capped at this


class Diagonal:
    """The linear map `omega -> Delta^T diag(omega xi) Phi` and its transpose."""

    def __init__(self, data: Aggregate) -> None:
        self.data = data
        size = max(64, (1 << 20) // data.shape[1])
        self._parts = [slice(k, k + size) for k in range(0, data.shape[0], size)]

    def apply(self, omega: Floats) -> Floats:
        """`Delta^T diag(omega xi) Phi`."""
        data, d = self.data, self.data.shape[1]
        out = np.zeros((d, d))
        for part in self._parts:
            out += _dense(data.delta[part].T @ scaled(data.phi[part], (omega * data.xi)[part]))
        return out

    def adjoint(self, Y: Floats) -> Floats:
        """`xi_s Delta_s^T Y phi_s` of each state."""
        data = self.data
        out = np.empty(data.shape[0])
        for part in self._parts:
            pulled = np.asarray(data.delta[part] @ Y)
            phi = data.phi[part]
            if isinstance(phi, np.ndarray):
                out[part] = np.einsum("sj,sj->s", pulled, phi)
            else:
                out[part] = np.asarray(phi.multiply(pulled).sum(axis=1)).ravel()
        return out * data.xi

    def norm(self) -> float:
        """The Frobenius norm: column s of the map is `xi_s Delta_s phi_s^T`."""
        data = self.data
        return float(np.linalg.norm(data.xi * row_norms(data.delta) * row_norms(data.phi)))

    def largest(self) -> float:
        """The largest squared singular value, rounded up, by the Lanczos method."""
        from scipy.sparse.linalg import LinearOperator, eigsh

        S = self.data.shape[0]
        start = 0.5 + np.random.default_rng(0).random(S)
        if S < 3:
            columns = np.column_stack([self.apply(unit).ravel() for unit in np.eye(S)])
            return float(np.linalg.norm(columns) ** 2) or 1.0
        if not self.adjoint(self.apply(start)).any():
            return 1.0  # features of zero, which the method refuses
        square = LinearOperator(
            (S, S), matvec=lambda v: self.adjoint(self.apply(v.ravel())), dtype=np.float64
        )
        value = float(eigsh(square, k=1, v0=start, tol=1e-3, return_eigenvectors=False)[0])
        return 1.01 * value if value > 0.0 else 1.0


class Suited:
    """The map in preconditioned coordinates: as many equations, with the same solutions."""

    def __init__(self, data: Aggregate, delta: Floats, phi: Floats) -> None:
        """`delta` and `phi` are the triangles of `Delta` and `Phi`, rows weighted by `sqrt(xi)`."""
        ahead, here = _inverse(delta), _inverse(phi)
        C = ahead.T @ data.weighted(data.delta).T @ here
        U, c, Vt = np.linalg.svd(C)
        self._ahead, self._here = ahead @ U, here @ Vt.T
        both = np.outer(np.minimum(c, _MOST), np.minimum(c, _MOST))
        self._even, self._odd = 0.5 / np.sqrt(1.0 + both), 0.5 / np.sqrt(1.0 - both)
        moved = {"delta": data.delta @ self._ahead, "phi": data.phi @ self._here}
        self._map = Diagonal(replace(data, **moved))
        self.norm = self._map.norm

    @classmethod
    def found(cls, data: Aggregate) -> Suited | None:
        """None if there are too few states for an exact fit, or the features are dependent."""
        S, d = data.shape
        if d * d > S or S * d > _LARGEST:
            return None
        triangles = [triangle(_rooted(rows, data.xi), d) for rows in (data.delta, data.phi)]
        if any(_dependent(R) for R in triangles):
            return None
        return cls(data, *triangles)

    def target(self, gap: Floats) -> Floats:
        """The right-hand side in these coordinates."""
        return self._evened(self._ahead.T @ gap @ self._here)

    def apply(self, omega: Floats) -> Floats:
        """The map."""
        return self._evened(self._map.apply(omega))

    def adjoint(self, Y: Floats) -> Floats:
        """Its transpose."""
        return self._map.adjoint(self._evened(Y))

    def _evened(self, Y: Floats) -> Floats:
        return np.asarray(self._even * (Y + Y.T) + self._odd * (Y - Y.T))


def _rooted(rows: Any, weight: Floats) -> Any:
    size = max(64, (1 << 20) // rows.shape[1])
    root = np.sqrt(weight)
    for low in range(0, rows.shape[0], size):
        yield _dense(scaled(rows[low : low + size], root[low : low + size]))


def _dependent(R: Floats) -> bool:
    """Whether the columns of a triangle are nearly dependent, regardless of their scale."""
    length = np.sqrt((R * R).sum(axis=0))
    return bool((np.abs(R.diagonal()) <= _DEPENDENT * length).any())


def _inverse(R: Floats) -> Floats:
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(R, np.eye(len(R))))


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
