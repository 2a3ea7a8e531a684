"""Residual gradient: stochastic gradient descent on the squared Bellman error.

    theta += alpha rho delta dphi                                (one successor)
    theta += alpha rho rho_2 delta (phi - gamma_2 phi_2')        (two independent successors)

With double sampling the limit minimises the Bellman error: `X = Xi L Phi`. With one successor there is
no X: it minimises `E[rho delta^2]`, which also penalises the variance of the target. Stable always,
and often far from V.

Baird (1995).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from o2td.errors import InputError
from o2td.learners.base import Learner
from o2td.learners.dynamics import MeanDynamics, residual_moments
from o2td.learners.step_sizes import as_step_size, fill
from o2td.learners.weighted import largest_norms
from o2td.model import Model
from o2td.transitions import Transitions

Floats = npt.NDArray[np.float64]


class ResidualGradient(Learner):
    """Residual gradient.

    Parameters
    ----------
    step_size : float, PowerDecay or "auto"
        alpha; "auto" is 0.1 over the largest squared norm of features so far.
    double : bool, optional
        Use the second successor of double sampling; None: where the transitions carry one.
    initial_theta : (d,) array, optional
        Where learning starts; zero if left out.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> batch = o2td.Transitions([[1.0]], [1.0], [[1.0]], discount=0.5)
    >>> o2td.ResidualGradient(step_size=0.5).partial_fit(batch).theta
    array([0.25])
    """

    family: ClassVar[str] = "residual"

    def __init__(
        self, step_size: Any = "auto", double: bool | None = None, initial_theta: Any = None
    ) -> None:
        if double not in (None, True, False):
            raise InputError(f"double must be True, False or None, got {double!r}")
        self.step_size = as_step_size("step_size", step_size)
        self.double = double
        super().__init__(initial_theta)

    def check(self, batch: Transitions) -> bool:
        """A second successor where it was asked for."""
        if self.double and isinstance(batch, Transitions) and batch.discount_2 is None:
            raise InputError("ResidualGradient(double=True) needs next_phi_2 in the transitions")
        return super().check(batch)

    def second_successor(self, block: Transitions) -> tuple[str, str]:
        """Which features and discounts make the direction of the update."""
        if self.double or (self.double is None and block.discount_2 is not None):
            return "next_phi_2", "discount_2"
        return "next_phi", "discount"

    def fill_rows(self, block: Transitions, out: dict[str, Floats]) -> None:
        """Gain = alpha rho, times rho_2 with double sampling."""
        fill(self.step_size, self.steps, largest_norms(self, block), out["gain"])
        out["gain"] *= block.rho
        if block.rho_2 is not None and self.second_successor(block)[0] == "next_phi_2":
            out["gain"] *= block.rho_2

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """`A = E[rho dphi dphi^T]`; with `double=True`, `A = (L Phi)^T Xi L Phi`."""
        A, b = residual_moments(model, bool(self.double))
        return MeanDynamics(A, b, model.d)
