"""Gradient TD: the family of GTD, GTD2, TDC, TDRC, HTD and their mirror-prox forms.

    z_t = rho_t e_t,    e_t = lambda c_{t-1} gamma_t e_{t-1} + M_t phi_t

and two vectors, theta and w, whose updates are linear in delta, phi.w, z.w and z^b.w. Each method's
`Member` gives the coefficients. w estimates `C^-1 E[delta z]`, and

    E[delta z] - C w + E[dphi z^T] w = E[delta z] - E[gamma phi' ((1 - lambda) z)^T] w

holds for uniform emphasis and traces that use the ratio itself: only then is TDC's usual
correction, on the right, that of the gradient. The form on the left holds for any trace; methods
use it in all other cases.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np

from o2td.arrays import Floats, freeze
from o2td.errors import InputError
from o2td.kernels.gradient import Member
from o2td.kernels.gradient_lanes import GradientLanes
from o2td.kernels.packing import ALPHA, BOUND, DISCOUNT, LAMBDA, MEMBER, MIRROR, SECOND
from o2td.kernels.settle import After
from o2td.learners.base import Step
from o2td.learners.dynamics import MeanDynamics
from o2td.learners.family import Driver, Family, Parts, side_by_side
from o2td.learners.row_mask import RowMask, learned, skip_rows
from o2td.learners.step_sizes import Auto, Gauge, Measured, PowerDecay, StepSize, rule_of
from o2td.learners.traced import TraceAxes
from o2td.model import Model
from o2td.transitions import Transitions


class GradientFamily(Family):
    """Lanes of two vectors, theta and w, each lane with its own `Member`."""

    rows = ("gain", "second_gain", "weight", "decay", "decay_b")
    step_sizes = ("gain", "second_gain")

    def kind(self, learner: Any, batch: Transitions) -> Hashable:
        """Whether there are traces, and one step or two."""
        return bool(learner._traced), bool(learner.mirror)

    def settings(self, learners: Sequence[Any]) -> dict[str, Any]:
        """The members' coefficients, whether there are traces, and mirror-prox."""
        return {
            "member": np.array([x.member() for x in learners], dtype=np.float64),
            "traced": learners[0]._traced or None,
            "mirror": learners[0].mirror or None,
        }

    def lanes(self, parts: Parts) -> GradientLanes:
        """Theta and w, both traces, and their lists of indices."""
        names = ("theta", "w", "z", "zb", "bound", "active", "active_b", "size")
        return GradientLanes(**parts.common(), **parts.named(*names))

    def driver(self, lanes: Any, block: Transitions, after: After) -> Driver:
        """Sixteen lanes side by side if they share dense rows and have no traces."""
        alone = after.settle is not None or lanes.traced or lanes.mirror
        if alone or not side_by_side(lanes, block):
            return super().driver(lanes, block, after)
        from o2td.kernels.simd_gradient import drive_side

        return drive_side


class GradientAxes(TraceAxes, total=False):
    """Parameters of every gradient-TD learner."""

    second_step_size: StepSize | None
    skip_zero_ratio: bool


class GradientLearner(RowMask):
    """Base class of the gradient-TD methods, each of which overrides `member`.

    Parameters
    ----------
    second_step_size : optional
        alpha_w; None means the same as `step_size`.
    skip_zero_ratio : bool
        Whether rows with ratio 0 leave theta and w unchanged. By default w moves on such rows, in
        most methods by `-alpha_w (phi.w) phi`, and so does theta in HTD and in GTD2's expanded
        form.
    """

    family: ClassVar[Family] = GradientFamily()
    vectors: ClassVar[tuple[str, ...]] = ("theta", "w", "z", "zb")
    traces: ClassVar[tuple[str, ...]] = ("z", "zb")
    mirror: ClassVar[bool] = False

    def member(self) -> Member:
        """The coefficients of this method's updates."""
        raise InputError(
            f"{type(self).__name__} states no method: override member, or take one such as TDC"
        )

    @property
    def _ordinary(self) -> bool:
        """Whether emphasis is uniform, traces use the ratio itself, and lambda is one number."""
        return self._plain and self._emphasis.uniform

    @property
    def w(self) -> Floats:
        """The current second vector w, read-only."""
        return freeze(self._arrays["w"][0].copy() if self._arrays else np.empty(0))

    def _fill_rows(self, block: Transitions, out: dict[str, Floats]) -> None:
        self._weigh(block, out["weight"])
        self._weigh_inner(block, out["weight"])
        out["weight"] *= block.rho
        if self._traced:
            self._fill_traces(block, out)
        self._carried[DISCOUNT] = block.discount[-1]

        def measure() -> Measured:
            return self._measure(block, out["weight"], out["decay"], self._arrays["z"][0].copy())

        sizes = self.step_size, self._second()
        if isinstance(sizes[0], float) and isinstance(sizes[1], float):
            out["gain"].fill(sizes[0])
            out["second_gain"].fill(sizes[1])
        else:
            share = 0.25 if self.mirror else 1.0
            kappa = self.member().kappa
            lost = 1.0 - block.discount if self.cautious else None
            gauge = Gauge(self.steps, self._memory, measure, kappa, True, share, lost)
            self._fill_gains(gauge, out)
        skip_rows(self, block, out)
        if "alpha_t" in out:
            out["alpha_t"][:] = out["gain"]

    def _fill_gains(self, gauge: Gauge, out: dict[str, Floats]) -> None:
        """Both step sizes; a rule that they share is evaluated once."""
        rule_of(self.step_size).fill(replace(gauge, kappa=0.0), out["gain"])
        if self.second_step_size not in (None, self.step_size):
            gauge.fill_second(rule_of(self.second_step_size), out["second_gain"])
        elif isinstance(
            rule_of(self.step_size), Auto
        ):  # w, which loses kappa of itself, may not turn
            np.divide(out["gain"], 1.0 + gauge.kappa * out["gain"], out=out["second_gain"])
        else:
            out["second_gain"][:] = out["gain"]

    def _fill_traces(self, block: Transitions, out: dict[str, Floats]) -> None:
        """The decay of both traces: as `z = rho e`, z's is `rho_t / rho_{t-1}` times that of e."""
        into = out["decay_b"]
        np.multiply(block.discount[:-1], self.trace if self._by_number else 1.0, out=into[1:])
        into[0] = (self.trace if self._by_number else 1.0) * self._carried[DISCOUNT]
        into[block.start] = 0.0
        if not self._by_number:
            into *= self._lambda(block)
        if self._plain:
            np.multiply(into, block.rho, out=out["decay"])
            return
        passed = self.trace_decay(block.rho, block.target_prob, block.behavior_prob)
        with np.errstate(divide="ignore"):
            share = np.where(block.rho > 0.0, passed / block.rho, 0.0)
        self._fill_decay(block, share, out["decay"])
        out["decay"] *= block.rho

    def _one_row(self) -> Step | None:
        """The compiled step, if all options are plain and the step sizes are numbers."""
        sizes = (self.step_size, self._second())
        plain = (
            self._ordinary
            and not self.skip_zero_ratio
            and type(self)._fill_rows is GradientLearner._fill_rows
        )
        if not plain or not all(isinstance(x, float) for x in sizes):
            return None
        from o2td.kernels.single_row import one_gradient

        return cast(Step, one_gradient)

    def _pack(self, packed: Floats) -> None:
        """Step sizes, lambda, and the member's coefficients."""
        packed[ALPHA], packed[SECOND] = self._sizes()
        packed[LAMBDA] = self.trace
        packed[MIRROR] = self.mirror
        packed[MEMBER:BOUND] = self.member()

    def _second(self) -> Any:
        return self.step_size if self.second_step_size is None else self.second_step_size

    def mean_dynamics(self, model: Model) -> MeanDynamics:
        """The joint system of theta and w, with w's rows scaled by alpha_w / alpha."""
        return self._gradient_dynamics(model, self.member(), self._eta(), learned(self, model))

    def _sizes(self) -> tuple[float, float]:
        """Both step sizes at the first step, if known."""
        given = (self.step_size, self._second())
        sizes = [x.c if isinstance(x, PowerDecay) else x for x in given]
        known = [x for x in sizes if isinstance(x, float)]
        return (known[0], known[1]) if len(known) == 2 else (1.0, 1.0)

    def _eta(self) -> float:
        first, second = self._sizes()
        return second / first if first > 0.0 else 1.0
