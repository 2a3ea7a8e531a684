"""The same updates as a plain NumPy loop: what a researcher writes first, one row at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.transitions import Transitions

__all__ = ["LOOPS", "bind"]

Floats = npt.NDArray[np.float64]
Loop = Callable[[Any, Any, Transitions, float, float, Floats, Floats], None]


def bind(name: str, batch: Transitions) -> Callable[[float, float, Floats, Floats], None]:
    """The update `name` over every row of the batch, its rows gathered beforehand."""
    loop = LOOPS[f"{name}_sparse" if batch.sparse else name]
    phi, next_phi = batch.phi, batch.next_phi
    return lambda alpha, alpha_w, theta, w: loop(phi, next_phi, batch, alpha, alpha_w, theta, w)


def td(
    phi: Any, next_phi: Any, batch: Transitions, alpha: float, alpha_w: float, theta: Any, w: Any
) -> None:
    """`theta += alpha rho delta phi`."""
    reward, gamma, rho = batch.reward, batch.discount, batch.rho
    for t in range(batch.n):
        delta = reward[t] + gamma[t] * (next_phi[t] @ theta) - phi[t] @ theta
        theta += alpha * rho[t] * delta * phi[t]


def o2td(
    phi: Any, next_phi: Any, batch: Transitions, alpha: float, alpha_w: float, theta: Any, w: Any
) -> None:
    """`theta += alpha rho omega delta phi`, `omega = dphi.phi / |dphi|^2`."""
    reward, gamma, rho = batch.reward, batch.discount, batch.rho
    for t in range(batch.n):
        dphi = phi[t] - gamma[t] * next_phi[t]
        square = dphi @ dphi
        omega = dphi @ phi[t] / square if square > 0.0 else 0.0
        delta = reward[t] - dphi @ theta
        theta += alpha * rho[t] * omega * delta * phi[t]


def etd(
    phi: Any, next_phi: Any, batch: Transitions, alpha: float, alpha_w: float, theta: Any, w: Any
) -> None:
    """`theta += alpha rho F delta phi`, `F = 1 + gamma rho F` of the row before."""
    reward, gamma, rho, start = batch.reward, batch.discount, batch.rho, batch.start
    follow = 0.0
    for t in range(batch.n):
        follow = 1.0 if t == 0 or start[t] else 1.0 + gamma[t - 1] * rho[t - 1] * follow
        delta = reward[t] + gamma[t] * (next_phi[t] @ theta) - phi[t] @ theta
        theta += alpha * rho[t] * follow * delta * phi[t]


def gtd2(
    phi: Any, next_phi: Any, batch: Transitions, alpha: float, alpha_w: float, theta: Any, w: Any
) -> None:
    """`theta += alpha rho (phi.w) dphi`, `w += alpha_w (rho delta - phi.w) phi`."""
    reward, gamma, rho = batch.reward, batch.discount, batch.rho
    for t in range(batch.n):
        dphi = phi[t] - gamma[t] * next_phi[t]
        delta = reward[t] - dphi @ theta
        wphi = phi[t] @ w
        theta += alpha * rho[t] * wphi * dphi
        w += alpha_w * (rho[t] * delta - wphi) * phi[t]


def tdrc(
    phi: Any, next_phi: Any, batch: Transitions, alpha: float, alpha_w: float, theta: Any, w: Any
) -> None:
    """As `td`, less `alpha rho gamma (phi.w) phi'`; `w += alpha_w (rho delta phi - (phi.w) phi - w)`."""
    reward, gamma, rho = batch.reward, batch.discount, batch.rho
    for t in range(batch.n):
        delta = reward[t] + gamma[t] * (next_phi[t] @ theta) - phi[t] @ theta
        wphi = phi[t] @ w
        theta += alpha * rho[t] * (delta * phi[t] - gamma[t] * wphi * next_phi[t])
        w += alpha_w * ((rho[t] * delta - wphi) * phi[t] - w)


def gtd2mp(
    phi: Any, next_phi: Any, batch: Transitions, alpha: float, alpha_w: float, theta: Any, w: Any
) -> None:
    """A step of `gtd2`, then one from the same place with the directions found where the first ended."""
    reward, gamma, rho = batch.reward, batch.discount, batch.rho
    for t in range(batch.n):
        dphi = phi[t] - gamma[t] * next_phi[t]
        wphi, delta = phi[t] @ w, reward[t] - dphi @ theta
        there = theta + alpha * rho[t] * wphi * dphi
        then = w + alpha_w * (rho[t] * delta - wphi) * phi[t]
        wphi, delta = phi[t] @ then, reward[t] - dphi @ there
        theta += alpha * rho[t] * wphi * dphi
        w += alpha_w * (rho[t] * delta - wphi) * phi[t]


def tdcmp(
    phi: Any, next_phi: Any, batch: Transitions, alpha: float, alpha_w: float, theta: Any, w: Any
) -> None:
    """The same of TDC: `theta += alpha rho (delta phi - gamma (phi.w) phi')`, w as in `gtd2`."""
    reward, gamma, rho = batch.reward, batch.discount, batch.rho
    for t in range(batch.n):
        dphi = phi[t] - gamma[t] * next_phi[t]
        wphi, delta = phi[t] @ w, reward[t] - dphi @ theta
        there = theta + alpha * rho[t] * (delta * phi[t] - gamma[t] * wphi * next_phi[t])
        then = w + alpha_w * (rho[t] * delta - wphi) * phi[t]
        wphi, delta = phi[t] @ then, reward[t] - dphi @ there
        theta += alpha * rho[t] * (delta * phi[t] - gamma[t] * wphi * next_phi[t])
        w += alpha_w * (rho[t] * delta - wphi) * phi[t]


def td_sparse(
    phi: Any, next_phi: Any, batch: Transitions, alpha: float, alpha_w: float, theta: Any, w: Any
) -> None:
    """As `td`, on the entries of a row only."""
    for t in range(batch.n):
        (i, x), (k, y) = _entries(phi, t), _entries(next_phi, t)
        delta = batch.reward[t] + batch.discount[t] * (y @ theta[k]) - x @ theta[i]
        theta[i] += alpha * batch.rho[t] * delta * x


def o2td_sparse(
    phi: Any, next_phi: Any, batch: Transitions, alpha: float, alpha_w: float, theta: Any, w: Any
) -> None:
    """As `o2td`; `phi.phi'` over the indices that both rows have."""
    for t in range(batch.n):
        (i, x), (k, y), gamma = _entries(phi, t), _entries(next_phi, t), batch.discount[t]
        _, a, b = np.intersect1d(i, k, assume_unique=True, return_indices=True)
        both, own = x[a] @ y[b], x @ x
        square = own - 2.0 * gamma * both + gamma * gamma * (y @ y)
        omega = (own - gamma * both) / square if square > 0.0 else 0.0
        delta = batch.reward[t] + gamma * (y @ theta[k]) - x @ theta[i]
        theta[i] += alpha * batch.rho[t] * omega * delta * x


def etd_sparse(
    phi: Any, next_phi: Any, batch: Transitions, alpha: float, alpha_w: float, theta: Any, w: Any
) -> None:
    """As `etd`, on the entries of a row only."""
    follow, carried = 0.0, 0.0
    for t in range(batch.n):
        (i, x), (k, y), gamma = _entries(phi, t), _entries(next_phi, t), batch.discount[t]
        follow = 1.0 if t == 0 or batch.start[t] else 1.0 + carried * follow
        carried = gamma * batch.rho[t]
        delta = batch.reward[t] + gamma * (y @ theta[k]) - x @ theta[i]
        theta[i] += alpha * batch.rho[t] * follow * delta * x


def gtd2_sparse(
    phi: Any, next_phi: Any, batch: Transitions, alpha: float, alpha_w: float, theta: Any, w: Any
) -> None:
    """As `gtd2`, on the entries of both rows."""
    for t in range(batch.n):
        (i, x), (k, y), gamma = _entries(phi, t), _entries(next_phi, t), batch.discount[t]
        delta = batch.reward[t] + gamma * (y @ theta[k]) - x @ theta[i]
        wphi = x @ w[i]
        theta[i] += alpha * batch.rho[t] * wphi * x
        theta[k] -= alpha * batch.rho[t] * wphi * gamma * y
        w[i] += alpha_w * (batch.rho[t] * delta - wphi) * x


def _entries(rows: Any, t: int) -> tuple[Any, Floats]:
    part = slice(rows.indptr[t], rows.indptr[t + 1])
    return rows.indices[part], rows.data[part]


LOOPS: dict[str, Loop] = {
    loop.__name__: loop
    for loop in (
        *(td, o2td, etd, gtd2, tdrc, gtd2mp, tdcmp),
        *(td_sparse, o2td_sparse, etd_sparse, gtd2_sparse),
    )
}
