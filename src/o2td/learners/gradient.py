"""Gradient TD: the family of GTD, GTD2, TDC, TDRC, HTD and their mirror-prox forms.

    z_t = rho_t (gamma_t lambda z_{t-1} + M_t phi_t)

and two vectors, theta and w, that move in directions linear in delta, phi.w, z.w and z^b.w. A member
is the `Member` that says with which coefficients.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from o2td.arrays import freeze
from o2td.emphasis import Emphasis, Uniform, as_emphasis
from o2td.kernels.gradient import Member
from o2td.kernels.gradient_lanes import GradientLanes
from o2td.kernels.packing import ALPHA, BOUND, DISCOUNT, MEMBER, MIRROR, SECOND, TRACE
from o2td.learners.base import Learner, Step
from o2td.learners.dynamics import MeanDynamics, gradient_dynamics, trace_moments
from o2td.learners.family import Arrays, Driver, Family, Parts, side_by_side
from o2td.learners.parameters import fraction
from o2td.learners.step_sizes import PowerDecay, as_step_size, fill
from o2td.learners.weighted import largest_norms
from o2td.model import Model
from o2td.transitions import Transitions

Floats = npt.NDArray[np.float64]


class GradientFamily(Family):
    """Lanes of two vectors, theta and w, each a `Member` of its own."""

    rows = ("gain", "second_gain", "weight", "decay", "decay_b")

    def kind(self, learner: Any, batch: Transitions) -> Hashable:
        """With or without traces, one step or two."""
        return bool(learner.traced), bool(learner.mirror)

    def settings(self, learners: Sequence[Any]) -> Arrays:
        """The members' coefficients, whether there are traces, and mirror-prox."""
        return {
            "member": np.array([x.member() for x in learners], dtype=np.float64),
            "traced": np.array([x.traced for x in learners]),
            "mirror": np.array([x.mirror for x in learners]),
        }

    def lanes(self, parts: Parts) -> GradientLanes:
        """Theta and w, both traces, and their lists of indices."""
        names = ("theta", "w", "z", "zb", "bound", "active", "active_b", "size")
        return GradientLanes(**parts.common(), **{k: parts.state[k] for k in names})

    def driver(self, lanes: Any, block: Transitions) -> Driver:
        """Sixteen side by side where lanes share dense rows and keep no traces."""
        alone = lanes.traced.any() or lanes.mirror.any()
        if alone or not side_by_side(lanes, block):
            return super().driver(lanes, block)
        from o2td.kernels.side_gradient import drive_side

        return drive_side


class GradientLearner(Learner):
    """Base of the gradient-TD members; a member overrides `member`."""

    family: ClassVar[Family] = GradientFamily()
    vectors: ClassVar[tuple[str, ...]] = ("theta", "w", "z", "zb")
    traces: ClassVar[tuple[str, ...]] = ("z", "zb")
    mirror: ClassVar[bool] = False
    step_size: Any
    second_step_size: Any
    trace: float

    def __init__(
        self,
        step_size: Any = "auto",
        second_step_size: Any = None,
        trace: float = 0.0,
        initial_theta: Any = None,
    ) -> None:
        self.step_size = as_step_size("step_size", step_size)
        self.second_step_size = (
            None if second_step_size is None else as_step_size("second_step_size", second_step_size)
        )
        self.trace = fraction("trace", trace)
        self._emphasis: Emphasis = Uniform()
        super().__init__(initial_theta)

    @property
    def weighting(self) -> Emphasis:
        """The emphasis in force."""
        return self._emphasis

    def weigh_by(self, emphasis: Any) -> None:
        """Take an emphasis, for members that offer one."""
        self.emphasis = emphasis
        self._emphasis = Uniform() if emphasis is None else as_emphasis(emphasis)

    def member(self) -> Member:
        """The coefficients of this method's directions."""
        raise NotImplementedError

    @property
    def traced(self) -> bool:
        """Whether the trace reaches beyond the current row."""
        return self.trace > 0.0

    @property
    def w(self) -> Floats:
        """The second weights as they are now, read-only."""
        return freeze(self._arrays["w"][0].copy() if self._arrays else np.empty(0))

    def _fill_rows(self, block: Transitions, out: dict[str, Floats]) -> None:
        """Fill both gains, weight and decays for the rows of the block."""
        scale, second_scale = self.auto_scales(largest_norms(self, block))
        fill(self.step_size, self.steps, scale, out["gain"])
        fill(self._second(), self.steps, second_scale, out["second_gain"])
        self._weigh(block, out["weight"])
        out["weight"] *= block.rho
        if self.traced:
            into = out["decay_b"]
            np.multiply(block.discount[:-1], self.trace, out=into[1:])
            into[0] = self.trace * self._carried[DISCOUNT]
            into[block.start] = 0.0
            np.multiply(into, block.rho, out=out["decay"])
        self._carried[DISCOUNT] = block.discount[-1]

    def auto_scales(self, largest: Floats) -> tuple[Floats, Floats]:
        """What "auto" divides 0.1 by for theta and for w, from the largest `|phi|^2` so far.

        Where w loses kappa of itself in every step, alpha_w must stay below 2 / kappa.
        """
        return largest, np.maximum(largest, self.member().kappa)

    def _one_row(self) -> Step | None:
        """The compiled step, where the emphasis is uniform and step sizes are numbers."""
        sizes = (self.step_size, self._second())
        plain = self._emphasis.uniform and type(self)._fill_rows is GradientLearner._fill_rows
        if not plain or not all(isinstance(x, float) for x in sizes):
            return None
        from o2td.kernels.one import one_gradient

        return cast(Step, one_gradient)

    def _pack(self, packed: Floats) -> None:
        """Step sizes, lambda, and the member's coefficients."""
        packed[[ALPHA, SECOND, TRACE]] = self.step_size, self._second(), self.trace
        packed[MIRROR] = self.mirror
        packed[MEMBER:BOUND] = self.member()

    def _second(self) -> Any:
        return self.step_size if self.second_step_size is None else self.second_step_size

    def _weigh(self, block: Transitions, out: Floats) -> None:
        self.weighting.weigh(block, self._memory, self.trace, out)
        if self.weighting.inner:
            from o2td.kernels.rows import omegas

            omegas(block.rows("phi"), block.rows("next_phi"), block.discount, out)

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """The joint system of theta and w, w's rows scaled by alpha_w / alpha."""
        emphasis = self.weighting.expected(model, self.trace)
        one = np.ones_like(model.rho)
        z = trace_moments(model, emphasis, self.trace * model.rho, model.rho)
        zb = trace_moments(model, one, self.trace * one, one)
        features = trace_moments(model, one, 0.0 * one, one).phi
        return gradient_dynamics(self.member(), z, zb, features, self._eta())

    def _eta(self) -> float:
        sizes = [x.c if isinstance(x, PowerDecay) else x for x in (self.step_size, self._second())]
        if any(isinstance(x, str) for x in sizes) or sizes[0] == 0.0:
            return 1.0
        return float(sizes[1] / sizes[0])
