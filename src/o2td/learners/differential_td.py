"""Differential TD(lambda): values relative to the average reward of a continuing problem.

    delta_t = r_{t+1} - mean_t + gamma_{t+1} theta.phi_{t+1} - theta.phi_t
    theta += alpha rho delta z,    mean += rate alpha rho delta

With discounts of 1, `mean` converges to the target's average reward and `Phi theta` to its
differential values, up to a constant; with discounts below 1 it is TD with a learned baseline. The
mean is updated by delta, not by the reward, which makes it correct off-policy.

Wan, Naik & Sutton (2021), "Learning and planning in average-reward Markov decision processes", eq. 8-9.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from o2td.arguments import number
from o2td.compiled import njit
from o2td.learners.dynamics import MeanDynamics, trace_moments
from o2td.learners.step_learner import Row, StepLearner, add, follow, td_error
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import TraceAxes
from o2td.model import Model

__all__ = ["DifferentialTD"]

Floats = npt.NDArray[np.float64]


@njit(cache=True, allocates=False)
def step(row: Row, p, s, theta, z):  # type: ignore[no-untyped-def]
    """One row."""
    delta = td_error(row, theta) - s.mean
    follow(z, row.decay, row.emphasis, row.phi)
    add(theta, row.alpha * row.rho * delta, z)
    s.mean += p.rate * row.alpha * row.rho * delta


class DifferentialTD(StepLearner):
    """Differential TD, for average-reward problems.

    Parameters
    ----------
    rate : float
        Step size of the average reward divided by that of theta.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> cycle = np.eye(2)
    >>> rows = o2td.Transitions(np.tile(cycle, (500, 1)), np.tile([0.0, 2.0], 500),
    ...                         np.tile(cycle[::-1], (500, 1)), discount=1.0)
    >>> round(o2td.DifferentialTD(0.1).partial_fit(rows).average_reward, 6)
    1.0
    """

    discounted: ClassVar[bool] = False
    vectors: ClassVar[tuple[str, ...]] = ("theta", "z")
    traces: ClassVar[tuple[str, ...]] = ("z",)
    scalars: ClassVar[tuple[str, ...]] = ("mean",)
    undefined: ClassVar[tuple[str, ...]] = ("second_step_size",)
    step = staticmethod(step)

    def __init__(
        self, step_size: StepSize = "auto", *, rate: float = 1.0, **axes: Unpack[TraceAxes]
    ) -> None:
        self.rate = number("rate", rate, above=0.0)
        super().__init__(step_size, **axes)

    @property
    def average_reward(self) -> float:
        """The estimate of the target's average reward."""
        return self.scalar("mean")

    def _moving(self) -> Floats:
        return np.append(super()._moving(), self.average_reward)

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """The joint system of theta and the average reward."""
        d, one = model.d, np.ones((model.n_states, 1))
        wide = replace(model, phi=np.concatenate([model.table, one], axis=1))
        emphasis, decay = self._expected(model)
        z = trace_moments(wide, emphasis, decay, wide.rho)
        ones = np.ones_like(wide.rho)
        plain = trace_moments(wide, ones, 0.0 * ones, wide.rho)
        A, b = np.zeros((d + 1, d + 1)), np.empty(d + 1)
        A[:d, :d], A[:d, d], b[:d] = z.dphi[:d, :d], z.phi[:d, d], z.reward[:d]
        A[d, :d], A[d, d] = self.rate * plain.dphi[d, :d], self.rate * plain.phi[d, d]
        b[d] = self.rate * plain.reward[d]
        return MeanDynamics(A, b, d)
