"""Weighted TD: the family of TD, V-trace, tree backup, ABTD, emphatic TD and O2TD.

    z_t = c_{t-1} gamma_t lambda z_{t-1} + M_t phi_t,    theta += alpha rho_t delta_t z_t

A member says two things: its emphasis `M`, and `trace_decay`, its `lambda c` as a function of the
ratio and the two probabilities. The same function serves sampled rows and the exact dynamics.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from o2td.emphasis import Emphasis, FollowOn, Omega, Uniform, as_emphasis
from o2td.kernels.packing import ALPHA, BETA, DECAY, FOLLOWED, FOLLOWS, INNER, LARGEST, TRACE
from o2td.kernels.weighted_lanes import WeightedLanes
from o2td.learners.base import Learner, Step
from o2td.learners.dynamics import MeanDynamics, trace_moments, weighted_dynamics
from o2td.learners.family import Arrays, Driver, Family, Parts, side_by_side
from o2td.learners.parameters import fraction
from o2td.learners.step_sizes import as_step_size, fill
from o2td.model import Model
from o2td.transitions import Transitions

Floats = npt.NDArray[np.float64]


class WeightedFamily(Family):
    """Lanes that move along one trace."""

    rows = ("gain", "weight", "decay")

    def kind(self, learner: Any, batch: Transitions) -> Hashable:
        """With or without a trace beyond the current row."""
        return bool(learner.traced)

    def settings(self, learners: Sequence[Any]) -> Arrays:
        """Whether the kernel works out omega, and whether there are traces."""
        return {
            "inner": np.array([x.weighting.inner for x in learners]),
            "traced": np.array([x.traced for x in learners]),
        }

    def lanes(self, parts: Parts) -> WeightedLanes:
        """Theta, the trace with a bound on it, and its list of indices."""
        names = ("theta", "z", "bound", "active", "size")
        return WeightedLanes(**parts.common(), **{k: parts.state[k] for k in names})

    def driver(self, lanes: Any, block: Transitions) -> Driver:
        """Sixteen side by side where lanes share dense rows."""
        if not side_by_side(lanes, block):
            return super().driver(lanes, block)
        from o2td.kernels.side_weighted import drive_side

        return drive_side


class WeightedLearner(Learner):
    """Base of the weighted-TD members; a member overrides `trace_decay`, or its emphasis."""

    family: ClassVar[Family] = WeightedFamily()
    vectors: ClassVar[tuple[str, ...]] = ("theta", "z")
    traces: ClassVar[tuple[str, ...]] = ("z",)
    step_size: Any
    trace: float

    def __init__(
        self,
        step_size: Any,
        trace: float = 0.0,
        emphasis: Any = None,
        initial_theta: Any = None,
    ) -> None:
        self.step_size = as_step_size("step_size", step_size)
        self.trace = fraction("trace", trace)
        self._emphasis = Uniform() if emphasis is None else as_emphasis(emphasis)
        super().__init__(initial_theta)

    def _one_row(self) -> Step | None:
        """The compiled step, where decay and weight are those of TD, ETD or sample O2TD."""
        known = isinstance(self._emphasis, FollowOn) or self._emphasis == Omega("sample")
        plain = (
            type(self).trace_decay is WeightedLearner.trace_decay
            and type(self).correction is WeightedLearner.correction
            and type(self)._fill_rows is WeightedLearner._fill_rows
            and (self._emphasis.uniform or known)
            and isinstance(self.step_size, float)
        )
        if not plain:
            return None
        from o2td.kernels.one import one_weighted

        return cast(Step, one_weighted)

    def _pack(self, packed: Floats) -> None:
        """Step size, lambda, and what the emphasis is."""
        packed[[ALPHA, TRACE, INNER]] = self.step_size, self.trace, self._emphasis.inner
        if isinstance(self._emphasis, FollowOn):
            beta = self._emphasis.decay
            packed[[FOLLOWS, BETA]] = 1.0, -1.0 if beta is None else beta
            followed = packed[FOLLOWED : FOLLOWED + 2]
            followed[:] = self._memory.get("follow_on", 0.0)
            self._memory["follow_on"] = followed

    @property
    def weighting(self) -> Emphasis:
        """The emphasis in force."""
        return self._emphasis

    def trace_decay(self, rho: Any, target_prob: Any, behavior_prob: Any) -> Any:
        """`lambda c`: what a row passes on of the trace, before the discount."""
        return self.trace * rho

    def correction(self, rho: Any) -> Any:
        """The ratio in the update itself."""
        return rho

    @property
    def traced(self) -> bool:
        """Whether the trace reaches beyond the current row."""
        return self.trace > 0.0

    def _fill_rows(self, block: Transitions, out: dict[str, Floats]) -> None:
        """Fill gain, weight and decay for the rows of the block; carries the last row on."""
        largest = largest_norms(self, block)
        fill(self.step_size, self.steps, largest, out["gain"])
        out["gain"] *= self.correction(block.rho)
        self.weighting.weigh(block, self._memory, self.trace, out["weight"])
        if self.traced:
            passed = self.trace_decay(block.rho, block.target_prob, block.behavior_prob)
            np.multiply(passed[:-1], block.discount[:-1], out=out["decay"][1:])
            out["decay"][0] = self._carried[DECAY]
            out["decay"][block.start] = 0.0
            self._carried[DECAY] = passed[-1] * block.discount[-1]

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """`A = E[rho z dphi^T]`, `b = E[rho z r]`."""
        emphasis = self.weighting.expected(model, self.trace)
        decay = np.zeros_like(model.rho)
        if self.traced:
            decay += self.trace_decay(model.rho, model.target_prob, model.behavior_prob)
        return weighted_dynamics(trace_moments(model, emphasis, decay, self.correction(model.rho)))


def largest_norms(learner: Learner, block: Transitions) -> Floats:
    """The running largest `|phi|^2` of each row, where a step size asks for it."""
    sizes = (getattr(learner, name, None) for name in ("step_size", "second_step_size"))
    if not any(isinstance(size, str) for size in sizes):
        return np.empty(0)
    from o2td.kernels.rows import running_largest

    largest = np.empty(block.n)
    carried = float(learner._carried[LARGEST])
    learner._carried[LARGEST] = running_largest(block.rows("phi"), carried, largest)
    return largest
