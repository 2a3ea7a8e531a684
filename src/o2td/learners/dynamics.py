"""Mean dynamics: a learner's expected update, in closed form.

    E[x_{t+1} - x_t] = alpha (b - A x),    x = theta, or theta and w stacked

For traces this takes one linear solve over states. With `e_t` the trace before the ratio of row t,

    E[rho_t e_t u_t] = E[rho M phi u] + Z^T E[rho u | s],
    Z = lambda flow(c gamma M)^T Phi + lambda K^T Z,     K(s, s') = E[c gamma; s' | s]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from o2td import chain
from o2td.arrays import Floats
from o2td.errors import NoAnswerError
from o2td.model import Model


@dataclass(frozen=True, eq=False)
class MeanDynamics:
    """`E[x_{t+1} - x_t] = alpha (b - A x)`; the first `d` entries of x are theta."""

    A: Floats
    b: Floats
    d: int


@dataclass(frozen=True, eq=False)
class TraceMoments:
    """Long-run expectations of the trace times the factors of the update."""

    phi: Floats
    """E[z phi^T]"""
    following: Floats
    """E[z gamma phi'^T]"""
    reward: Floats
    """E[z r]"""

    @property
    def dphi(self) -> Floats:
        """`E[z dphi^T]`: the matrix A of weighted TD."""
        return self.phi - self.following


def trace_moments(
    model: Model, emphasis: Floats, decay: Floats, correction: Floats
) -> TraceMoments:
    """Moments of `z_t = correction_t (decay_{t-1} gamma_t e_{t-1} + M_t phi_t)`.

    `emphasis`, `decay` (lambda c) and `correction` (rho, or one) have an entry per transition.
    """
    current = correction * emphasis
    reward = model.table.T @ model.by_state(current * model.reward)
    if not decay.any():
        phi, following = model.gram(current), model.cross(current * model.discount)
        return TraceMoments(phi, following, np.asarray(reward))
    carried = decay * model.discount
    phi, following = model.once(
        ("trace moments", emphasis, carried, correction),
        lambda: _traced_matrices(model, emphasis, carried, correction),
    )
    ahead = model.ahead(_given(model, correction * model.reward), carried)
    reward = reward + model.table.T @ (model.flow(carried * emphasis) @ ahead)
    return TraceMoments(phi, following, np.asarray(reward))


def trace_square(model: Model, decay: Floats) -> float:
    """`E |e|^2` for `e_t = decay_{t-1} gamma_t e_{t-1} + phi_t`; infinite if it has no mean."""
    carried, table = decay * model.discount, model.table
    own = model.visits * np.sum(table**2, axis=1)
    if not carried.any():
        return float(own.sum())
    z = chain.solve_transposed(model.step(carried), model.flow(carried).T @ table)
    own = own + 2.0 * np.sum(np.asarray(z) * table, axis=1)
    later = model.step(carried**2)
    try:
        kept = chain.solve_transposed(later, later.T @ own)
    except NoAnswerError:
        return np.inf
    return float(own.sum() + kept.sum())


def _traced_matrices(
    model: Model, emphasis: Floats, carried: Floats, correction: Floats
) -> tuple[Floats, Floats]:
    """`E[z phi^T]` and `E[z gamma phi'^T]`.

    If the trace's decay is a multiple of the row's correction, one solve serves every emphasis:
    `(I - K)^-1 E[rho gamma phi' | s] = ((I - K)^-1 Phi - Phi) / lambda`. Otherwise Z is computed.
    """
    table, followed = model.table, correction * model.discount
    current = correction * emphasis
    phi, following = model.gram(current), model.cross(current * model.discount)
    inflow = model.flow(carried * emphasis)
    factor = _multiple(carried, followed)
    if factor is None:
        z = chain.solve_transposed(model.step(carried), inflow.T @ table)
        z = z / np.where(model.visits > 0.0, model.visits, 1.0)[:, None]
        return (
            phi + z.T @ (model.by_state(correction)[:, None] * table),
            following + z.T @ (model.flow(followed) @ table),
        )
    own = model.features_ahead(model.share(correction), carried)
    whole = model.features_ahead(np.ones(model.n_states), carried)
    later = table.T @ (inflow @ (whole - table))
    return phi + table.T @ (inflow @ own), following + later / factor


def _entering(model: Model, weight: Floats) -> Floats:
    """`E[weight; s_{t+1} = s]` for every state."""
    total = np.bincount(model.next_state, model.probability * weight, minlength=model.n_states)
    return total.astype(np.float64, copy=False)


def _given(model: Model, weight: Floats) -> Floats:
    """`E[weight | s]`, 0 where a state is never visited."""
    return model.by_state(weight) / np.where(model.visits > 0.0, model.visits, 1.0)


def _multiple(part: Floats, whole: Floats) -> float | None:
    """The factor between two vectors, or None if they are not proportional."""
    k = int(np.argmax(whole))
    factor = float(part[k] / whole[k]) if whole[k] > 0.0 else 0.0
    same = factor > 0.0 and np.allclose(part, factor * whole, rtol=1e-14, atol=0.0)
    return factor if same else None


def residual_moments(model: Model, double: bool) -> tuple[Floats, Floats]:
    """`E[rho dphi dphi^T]` and `E[rho dphi r]`; with double sampling, of the means given s."""
    table, followed = model.table, model.rho * model.discount
    if double:

        def squared() -> Floats:
            mean = model.by_state(model.rho)[:, None] * table - model.flow(followed) @ table
            root = np.sqrt(np.where(model.visits > 0.0, model.visits, 1.0))
            mean = np.asarray(mean) / root[:, None]
            return np.asarray(mean.T @ mean)

        given = _given(model, model.rho * model.reward)
        weight = model.by_state(model.rho) * given - model.flow(followed).T @ given
        return model.once(("residual",), squared), np.asarray(table.T @ weight)
    cross = model.cross(followed)
    A = model.gram(model.rho) - cross - cross.T
    A = A + model.products(_entering(model, followed * model.discount))
    received = model.by_state(model.rho * model.reward)
    passed = _entering(model, followed * model.reward)
    return np.asarray(A), np.asarray(table.T @ (received - passed))


def weighted_dynamics(moments: TraceMoments) -> MeanDynamics:
    """Weighted TD: `A = E[rho z dphi^T]`, `b = E[rho z r]`."""
    return MeanDynamics(moments.dphi, moments.reward, len(moments.reward))


def gradient_dynamics(
    member: Any, z: TraceMoments, zb: TraceMoments, features: Floats, eta: float
) -> MeanDynamics:
    """The joint system of theta and w from a member's ten numbers; `eta` is alpha_w / alpha.

    `features` is `C = E[phi phi^T]`; `z` carries the ratio, `zb` (hybrid TD's trace) does not.
    """
    d = len(z.reward)
    A = np.zeros((2 * d, 2 * d))
    top, bottom = slice(0, d), slice(d, 2 * d)
    A[top, top] = member.theta_delta_z * z.dphi
    A[top, bottom] = -(
        member.theta_w_phi * features
        + member.theta_z_phi * z.phi.T
        - member.theta_z_next * z.following.T
        + member.theta_b_phi * zb.phi.T
        - member.theta_b_next * zb.following.T
    )
    A[bottom, top] = eta * member.w_delta_z * z.dphi
    A[bottom, bottom] = eta * (
        member.kappa * np.eye(d) - member.w_w_phi * features - member.w_b_dphi * zb.dphi.T
    )
    b = np.concatenate([member.theta_delta_z * z.reward, eta * member.w_delta_z * z.reward])
    return MeanDynamics(A, b, d)
