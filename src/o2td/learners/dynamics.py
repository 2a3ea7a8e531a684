"""Mean dynamics: what a learner does on average, in closed form.

    E[x_{t+1} - x_t] = alpha (b - A x),    x = theta, or theta and w stacked

For traces this takes one linear solve over states. With `e_t` the trace before the ratio of row t,

    E[rho_t e_t u_t] = E[rho M phi u] + Z^T E[rho u | s],
    Z = lambda flow(c gamma M)^T Phi + lambda K^T Z,     K(s, s') = E[c gamma; s' | s]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.emphasis import dense
from o2td.model import Model

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeanDynamics:
    """`E[x_{t+1} - x_t] = alpha (b - A x)`; the first `d` entries of x are theta."""

    A: Floats
    b: Floats
    d: int


@dataclass(frozen=True, eq=False)
class TraceMoments:
    """Expectations of the trace with what it is multiplied by, at the long run."""

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

    `emphasis`, `decay` (lambda c) and `correction` (rho, or one) have an entry a transition.
    """
    table = dense(model.phi)
    current = correction * emphasis
    phi = table.T @ (model.by_state(current)[:, None] * table)
    following = table.T @ (model.flow(current * model.discount) @ table)
    reward = table.T @ model.by_state(current * model.reward)
    if decay.any():
        carried = decay * model.discount
        z = model.traced(model.flow(carried * emphasis).T @ table, carried)
        seen = np.where(model.visits > 0.0, model.visits, 1.0)
        z = np.asarray(z) / seen[:, None]
        phi = phi + z.T @ (model.by_state(correction)[:, None] * table)
        following = following + z.T @ (model.flow(correction * model.discount) @ table)
        reward = reward + z.T @ model.by_state(correction * model.reward)
    return TraceMoments(np.asarray(phi), np.asarray(following), np.asarray(reward))


def residual_moments(model: Model, double: bool) -> tuple[Floats, Floats]:
    """`E[rho dphi dphi^T]` and `E[rho dphi r]`; with double sampling, of the means given s."""
    table = dense(model.phi)
    followed = model.rho * model.discount
    seen = np.where(model.visits > 0.0, model.visits, 1.0)
    mean = model.by_state(model.rho)[:, None] * table - model.flow(followed) @ table
    if double:
        scaled = np.asarray(mean) / seen[:, None]
        return scaled.T @ mean, scaled.T @ model.by_state(model.rho * model.reward)
    cross = table.T @ (model.flow(followed) @ table)
    entered = np.bincount(
        model.next_state,
        model.probability * followed * model.discount,
        minlength=model.n_states,
    )
    square = table.T @ (model.by_state(model.rho)[:, None] * table)
    A = square - cross - cross.T + table.T @ (entered[:, None] * table)
    received = np.bincount(
        model.next_state,
        model.probability * followed * model.reward,
        minlength=model.n_states,
    )
    b = table.T @ (model.by_state(model.rho * model.reward) - received)
    return np.asarray(A), np.asarray(b)


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
