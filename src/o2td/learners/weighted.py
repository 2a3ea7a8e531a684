"""Weighted TD: the family of TD, V-trace, tree backup, ABTD, emphatic TD and O2TD.

    z_t = c_{t-1} gamma_t lambda z_{t-1} + M_t phi_t,    theta += alpha rho_t delta_t z_t

A method defines two things: its emphasis `M`, and `trace_decay`, its `lambda c` as a function of
the ratio and the two probabilities. The same function serves sampled rows and the exact dynamics.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any, ClassVar, cast

import numpy as np

from o2td.arrays import Floats
from o2td.emphasis import FollowOn, Omega
from o2td.errors import InputError, NoAnswerError
from o2td.kernels.kept import CARRIED
from o2td.kernels.packing import ALPHA, BETA, FOLLOWED, FOLLOWS, INNER, LAMBDA
from o2td.kernels.settle import After
from o2td.kernels.weighted_lanes import WeightedLanes
from o2td.learners.base import Step
from o2td.learners.dynamics import MeanDynamics
from o2td.learners.family import Driver, Family, Parts, side_by_side
from o2td.learners.step_learner import StepFamily
from o2td.learners.step_sizes import TIDBD, Gauge, Measured, Rule, rule_of
from o2td.learners.traced import TraceLearner
from o2td.model import Model
from o2td.transitions import Transitions


class WeightedFamily(Family):
    """Lanes that move along one trace."""

    rows = ("gain", "weight", "decay")

    def kind(self, learner: Any, batch: Transitions) -> Hashable:
        """Whether the trace reaches beyond the current row."""
        return bool(learner._traced)

    def settings(self, learners: Sequence[Any]) -> dict[str, Any]:
        """Whether the kernel computes omega, and whether there are traces."""
        inner = [x._weighting.inner for x in learners]
        return {
            "inner": np.array(inner) if any(inner) else None,
            "traced": learners[0]._traced or None,
        }

    def lanes(self, parts: Parts) -> WeightedLanes:
        """Theta, the trace with a bound on it, and its list of indices."""
        names = ("theta", "z", "bound", "active", "size")
        return WeightedLanes(**parts.common(), **parts.named(*names))

    def driver(self, lanes: Any, block: Transitions, after: After) -> Driver:
        """Sixteen lanes side by side if they share dense rows."""
        if after.settle is not None or not side_by_side(lanes, block):
            return super().driver(lanes, block, after)
        from o2td.kernels.simd_weighted import drive_side

        return drive_side


WEIGHTED = WeightedFamily()
_by_step = cache(StepFamily)  # for rules with their own step


class WeightedLearner(TraceLearner):
    """Base class of weighted-TD methods, which set an option or override `trace_decay`."""

    traces: ClassVar[tuple[str, ...]] = ("z",)
    scalars: ClassVar[tuple[str, ...]] = ()
    _by_feature: ClassVar[bool] = True

    @property
    def _rule(self) -> Rule | None:
        """The step-size rule, if it has a step size per feature."""
        rule = self.step_size
        if isinstance(rule, float):
            return None
        return rule if isinstance(rule, Rule) and rule.vectors else None

    @property
    def family(self) -> Family:  # type: ignore[override]
        """The family of weighted TD, or that of the step that the step-size rule provides."""
        rule = self._rule
        return WEIGHTED if rule is None else _by_step(rule.step, type(rule).__name__)

    @property
    def vectors(self) -> tuple[str, ...]:  # type: ignore[override]
        """Theta, the vectors of the rule, and the trace."""
        rule = self._rule
        return ("theta", "z") if rule is None else ("theta", *rule.vectors, "z")

    @property
    def feature_step_sizes(self) -> Floats:
        """The step size of each feature, if `step_size` is a rule that has them (`TIDBD`)."""
        if not isinstance(self.step_size, TIDBD):
            raise InputError(f"{self!r} has one step size for all features: give step_size=TIDBD()")
        return self.step_size.sizes(self._arrays["beta"][0] if self._arrays else np.empty(0))

    def _allocate(self, d: int) -> None:
        rule = self._rule
        if rule is not None and self.replicates:
            raise InputError(f"replicates are not defined with step_size={rule!r}: leave them out")
        super()._allocate(d)
        if rule is not None:
            self._arrays["scalars"] = np.zeros((self._width, len(CARRIED)))

    def _check(self, batch: Transitions) -> bool:
        if self._arrays and (self._rule is not None) != ("scalars" in self._arrays):
            raise InputError(
                f"{type(self).__name__} cannot change to or from step sizes of features on the way:"
                " clone it with the other step_size"
            )
        return super()._check(batch)

    def _numbers(self, lane: int) -> dict[str, float]:
        """What the rule's step gets as `p`."""
        return {name: float(number) for name, number in vars(self._rule).items()}

    def _one_row(self) -> Step | None:
        """The compiled step, if decay and weight are those of TD, ETD or sample O2TD."""
        known = isinstance(self._emphasis, FollowOn) or self._emphasis == Omega("sample")
        plain = (
            self._plain
            and type(self).correction is WeightedLearner.correction
            and type(self)._fill_rows is WeightedLearner._fill_rows
            and (self._emphasis.uniform or known)
            and isinstance(self.step_size, float)
        )
        if not plain:
            return None
        from o2td.kernels.single_row import one_weighted

        return cast(Step, one_weighted)

    def _pack(self, packed: Floats) -> None:
        """Step size, lambda, and the kind of emphasis."""
        packed[ALPHA] = float(cast(float, self.step_size))
        packed[[LAMBDA, INNER]] = self.trace, self._emphasis.inner
        if isinstance(self._emphasis, FollowOn):
            beta = self._emphasis.decay
            packed[[FOLLOWS, BETA]] = 1.0, -1.0 if beta is None else beta
            followed = packed[FOLLOWED : FOLLOWED + 2]
            followed[:] = self._memory.get("follow_on", 0.0)
            self._memory["follow_on"] = followed

    def correction(self, rho: Any) -> Any:
        """The ratio in the update itself."""
        return rho

    def _fill_by_feature(self, rule: Rule, block: Transitions, out: dict[str, Floats]) -> None:
        """The rows for a step provided by the rule: `alpha_w` is the ratio in the update."""
        self._weigh(block, out["emphasis"])
        self._weigh_inner(block, out["emphasis"])
        passed = self.trace_decay(block.rho, block.target_prob, block.behavior_prob)
        self._fill_decay(block, passed, out["decay"])
        ratio = out["alpha_w"]
        ratio[:] = self.correction(block.rho)

        def measure() -> Measured:
            z = self._arrays["z"][0].copy()
            return self._measure(block, out["emphasis"], out["decay"], z, ratio)

        rule.fill(Gauge(self.steps, self._memory, measure), out["alpha"])
        if "alpha_t" in out:
            out["alpha_t"][:] = out["alpha"]

    def _fill_rows(self, block: Transitions, out: dict[str, Floats]) -> None:
        rule = self._rule
        if rule is not None:
            self._fill_by_feature(rule, block, out)
            return
        self._weigh(block, out["weight"])
        if self._traced:
            passed = self.trace_decay(block.rho, block.target_prob, block.behavior_prob)
            self._fill_decay(block, passed, out["decay"])
        ratio = self.correction(block.rho)
        if isinstance(self.step_size, float) and "alpha_t" not in out:
            np.multiply(ratio, self.step_size, out=out["gain"])
            return

        def measure() -> Measured:
            weight = out["weight"].copy()
            self._weigh_inner(block, weight)
            return self._measure(block, weight, out["decay"], self._arrays["z"][0].copy(), ratio)

        rule_of(self.step_size).fill(Gauge(self.steps, self._memory, measure), out["gain"])
        if "alpha_t" in out:
            out["alpha_t"][:] = out["gain"]
        out["gain"] *= ratio

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """`A = E[rho z dphi^T]`, `b = E[rho z r]`."""
        if self._rule is not None:
            raise NoAnswerError(
                f"{self!r} gives no mean dynamics: its step sizes change with what is learned; ask for"
                " those of the same learner with a number as step_size, which has the same limit"
            )
        return self._weighted_dynamics(model, self.correction(model.rho))
