"""Residual gradient: stochastic gradient descent on the squared Bellman error.

    theta += alpha rho delta dphi                                (one successor)
    theta += alpha rho rho_2 delta (phi - gamma_2 phi_2')        (two independent successors)

With double sampling the limit minimises the Bellman error: `X = Xi L Phi`. With one successor there is
no X: it minimises `E[rho delta^2]`, which also penalises the variance of the target. Always stable,
but often far from V.

Baird (1995).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Unpack

import numpy as np

from o2td.arguments import switch
from o2td.arrays import Floats
from o2td.emphasis import pair_moments
from o2td.errors import InputError
from o2td.kernels.residual import ResidualLanes
from o2td.kernels.row_passes import row_norms
from o2td.learners.base import Axes, Learner
from o2td.learners.dynamics import MeanDynamics, residual_moments
from o2td.learners.family import Family, Parts
from o2td.learners.step_sizes import Gauge, Measured, StepSize, as_step_size, rule_of
from o2td.model import Model
from o2td.transitions import Transitions


class ResidualFamily(Family):
    """Lanes whose direction may use a second successor of the stream."""

    rows = ("gain",)

    def kind(self, learner: Any, batch: Transitions) -> Hashable:
        """Whether there are one or two successors."""
        return str(learner._second_successor(batch)[0])

    def lanes(self, parts: Parts) -> ResidualLanes:
        """Theta, and the successors that directions take."""
        which, name = parts.learners[0]._second_successor(parts.block)
        return ResidualLanes(
            **parts.common(),
            second=parts.block.rows(which),
            discount_2=np.stack([getattr(own, name) for own in parts.seen]),
            theta=parts.state["theta"],
        )


class ResidualGradient(Learner):
    """Residual gradient: gradient descent on the squared Bellman error.

    Parameters
    ----------
    double : bool, optional
        Use the second successor of double sampling; None means to use it if the transitions have
        one.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> batch = o2td.Transitions([[1.0]], [1.0], [[1.0]], discount=0.5)
    >>> o2td.ResidualGradient(step_size=0.5).partial_fit(batch).theta
    array([0.25])
    """

    family: ClassVar[Family] = ResidualFamily()

    def __init__(
        self, step_size: StepSize = "auto", *, double: bool | None = None, **axes: Unpack[Axes]
    ) -> None:
        if double is not None:
            double = switch("double", double)
        self.step_size = as_step_size("step_size", step_size)
        self.double = double
        super().__init__(**axes)

    def _check(self, batch: Transitions) -> bool:
        """Require a second successor if `double` is set."""
        if self.double and isinstance(batch, Transitions) and batch.discount_2 is None:
            raise InputError("ResidualGradient(double=True) needs next_phi_2 in the transitions")
        return super()._check(batch)

    def _check_retargeted(self, batch: Transitions) -> None:
        """Reject a lane's own target with double sampling: the second successor is the stream's."""
        if self._second_successor(batch)[0] == "next_phi_2":
            raise InputError(
                f"{self!r} uses a second successor, whose ratio and discount are the stream's:"
                " a lane cannot have its own; give it transitions of its own, or double=False"
            )

    def _second_successor(self, block: Transitions) -> tuple[str, str]:
        """Which features and discounts make the direction of the update."""
        if self.double or (self.double is None and block.discount_2 is not None):
            return "next_phi_2", "discount_2"
        return "next_phi", "discount"

    def _fill_rows(self, block: Transitions, out: dict[str, Floats]) -> None:
        """Gain = alpha rho, times rho_2 with double sampling."""

        def measure() -> Measured:
            along, square, norm = np.empty((3, block.n))
            pair_moments(block, along, square)
            row_norms(block.rows("phi"), norm)
            return Measured(block.rho * square, block.rho * square, norm)

        rule_of(self.step_size).fill(Gauge(self.steps, self._memory, measure), out["gain"])
        if "alpha_t" in out:
            out["alpha_t"][:] = out["gain"]
        out["gain"] *= block.rho
        if block.rho_2 is not None and self._second_successor(block)[0] == "next_phi_2":
            out["gain"] *= block.rho_2

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """`A = E[rho dphi dphi^T]`; with `double=True`, `A = (L Phi)^T Xi L Phi`."""
        A, b = residual_moments(model, bool(self.double))
        return MeanDynamics(A, b, model.d)
