"""Options that combine freely on every learner with traces: lambda, how traces are cut, emphasis.

    e_t = lambda_t c_{t-1} gamma_t e_{t-1} + M_t phi_t

`trace` is lambda: a number, an array with one number per state, or a function of states. `cut`
defines c (`o2td.cuts`), `clip` is short for `cut=Clipped(clip)`, and `emphasis` is M
(`o2td.emphasis`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from o2td.arguments import answer_of, as_float, function, listed, unit
from o2td.arrays import Floats, as_numbers
from o2td.cuts import Cut, Ratio, as_cut
from o2td.emphasis import Emphasis, Uniform, as_emphasis, states_of
from o2td.errors import InputError
from o2td.kernels.packing import DECAY
from o2td.learners.base import Axes, Learner
from o2td.learners.dynamics import MeanDynamics, gradient_dynamics, trace_moments, weighted_dynamics
from o2td.learners.step_sizes import Measured, StepSize, as_step_size
from o2td.model import Model
from o2td.transitions import Transitions

__all__ = [
    "CutAxes",
    "EmphasisAxes",
    "LambdaAxes",
    "Trace",
    "TraceAxes",
    "TraceLearner",
    "TwoStepLearner",
    "WeightAxes",
]

Trace = float | npt.ArrayLike | Callable[[Any], Any]


class EmphasisAxes(Axes, total=False):
    """Parameters of learners that set both lambda and the cut themselves."""

    emphasis: Emphasis | str | None


class WeightAxes(EmphasisAxes, total=False):
    """Parameters of learners that set the cut themselves."""

    trace: Trace


class LambdaAxes(Axes, total=False):
    """Parameters of learners that set everything else themselves."""

    trace: Trace


class CutAxes(LambdaAxes, total=False):
    """Parameters of learners that set their emphasis themselves."""

    clip: float | None
    cut: Cut | str | None


class TraceAxes(CutAxes, total=False):
    """Parameters of every other learner with traces."""

    emphasis: Emphasis | str | None


class TraceLearner(Learner):
    """Base class of learners with traces: computes the decay and weight of every row."""

    _by_feature: ClassVar[bool] = False  # whether step sizes of features are known here
    one_lambda: ClassVar[bool] = False
    """Whether lambda must be the same for all states."""
    cautious: ClassVar[bool] = False
    """Whether "auto" takes small steps where the discount is near 1 (`step_sizes.auto`)."""

    def __init__(
        self,
        step_size: StepSize = "auto",
        *,
        trace: Trace = 0.0,
        clip: float | None = None,
        cut: Cut | str | None = None,
        emphasis: Emphasis | str | None = None,
        **axes: Unpack[Axes],
    ) -> None:
        traced = None if isinstance(trace, (int, float)) and trace == 0 else trace
        given = {"trace": traced, "clip": clip, "cut": cut, "emphasis": emphasis}
        for name in self.undefined:
            if given.get(name) is not None:
                raise InputError(f"{type(self).__name__} is not defined with {name}: leave it out")
        self.step_size = as_step_size("step_size", step_size, self._by_feature)
        self.trace = as_trace(trace)
        if self.one_lambda:
            self._one_lambda()
        as_cut(cut, clip)
        self.clip = None if clip is None else as_float(clip)
        self.cut, self.emphasis = cut, emphasis
        self._emphasis = Uniform() if emphasis is None else as_emphasis(emphasis)
        super().__init__(**axes)

    def _one_lambda(self) -> float:
        """Lambda, for learners that accept only one number for all states."""
        if not isinstance(self.trace, float):
            raise InputError(f"{type(self).__name__} takes one number as trace for all states")
        return self.trace

    @property
    def _weighting(self) -> Emphasis:
        """The emphasis in force."""
        return self._emphasis

    @property
    def _traced(self) -> bool:
        """Whether the trace reaches beyond the current row."""
        trace = self.trace
        return not isinstance(trace, float) or trace > 0.0

    @property
    def _by_number(self) -> bool:
        """Whether lambda is one number for all states."""
        return isinstance(self.trace, float)

    @property
    def _cut(self) -> Cut:
        return as_cut(self.cut, self.clip)

    @property
    def _plain(self) -> bool:
        """Whether lambda is one number and the trace uses the ratio itself."""
        own = type(self).trace_decay is not TraceLearner.trace_decay
        return self._by_number and isinstance(self._cut, Ratio) and not own

    def trace_decay(self, rho: Any, target_prob: Any, behavior_prob: Any) -> Any:
        """`lambda c`: the factor by which the trace decays after a row, apart from the discount.

        If lambda depends on the state that is reached, c alone.
        """
        passed = self._cut.passed(rho, target_prob, behavior_prob)
        return self.trace * passed if self._by_number else passed

    def _check(self, batch: Transitions) -> bool:
        if isinstance(batch, Transitions):
            cut = self._cut
            for field in cut.needs:
                if getattr(batch, field) is None:
                    raise InputError(
                        f"{type(self).__name__} with {cut!r} needs {field} in the transitions"
                    )
            if not self._by_number:
                self._lambda(batch)  # refuses what it cannot be
        return super()._check(batch)

    def _lambda(self, block: Transitions) -> Any:
        """Lambda of each row: one number, or the value for its state."""
        return (
            self.trace if isinstance(self.trace, float) else by_state(self.trace, states_of(block))
        )

    def _constants(self) -> dict[str, float]:
        """Rows of `family.rows` that hold one number throughout, if it is known."""
        return {}

    def _weigh(self, block: Transitions, out: Floats) -> None:
        """Fill `out` with M_t, except for the factor that the weighted kernel computes itself."""
        self._emphasis.weigh(block, self._memory, self._lambda(block), out)

    def _weigh_inner(self, block: Transitions, out: Floats) -> None:
        """Multiply `out` by the factor that the weighted kernel computes itself."""
        if self._emphasis.inner:
            from o2td.kernels.row_passes import omegas

            omegas(block.rows("phi"), block.rows("next_phi"), block.discount, out)

    def _fill_decay(self, block: Transitions, passed: Floats, out: Floats) -> None:
        """`passed_{t-1} gamma_t` of every row, 0 at starts; carries the last row on."""
        np.multiply(passed[:-1], block.discount[:-1], out=out[1:])
        out[0] = self._carried[DECAY]
        out[block.start] = 0.0
        self._carried[DECAY] = passed[-1] * block.discount[-1]
        if not self._by_number:
            out *= self._lambda(block)

    def _measure(
        self, block: Transitions, weight: Floats, decay: Floats, z: Floats, correction: Any = 1.0
    ) -> Measured:
        """Sizes of every row, along a copy of the trace z as it was before the block."""
        from o2td.kernels.gauges import measure_dense, measure_sparse

        rows, out = (
            (block.rows("phi"), block.rows("next_phi"), block.discount),
            np.empty((3, block.n)),
        )
        traced = self._traced or None
        if block.sparse:
            active = np.zeros(block.d if traced else 0, dtype=np.int32)
            index = np.flatnonzero(z) if traced else active
            active[: len(index)] = index
            measure_sparse(*rows, weight, decay, traced, z, active, len(index), out)
        else:
            measure_dense(*rows, weight, decay, traced, z, out)
        return Measured(out[0] * correction, out[1] * correction, out[2])

    def _expected(self, model: Model) -> tuple[Floats, Floats]:
        """The long-run emphasis and `lambda c` of each transition of the model."""
        states = np.arange(model.n_states)
        trace = self.trace if self._by_number else by_state(self.trace, states)
        emphasis = self._emphasis.expected(model, trace)
        decay = np.zeros_like(model.rho)
        if self._traced:
            decay += self.trace_decay(model.rho, model.target_prob, model.behavior_prob)
        if not self._by_number:
            decay *= self._expected_lambda(model)
        return emphasis, decay

    def _weighted_dynamics(self, model: Model, correction: Any = None) -> MeanDynamics:
        """`A = E[rho z dphi^T]`, `b = E[rho z r]`; `correction` replaces the ratio."""
        emphasis, decay = self._expected(model)
        ratio = model.rho if correction is None else correction
        return weighted_dynamics(trace_moments(model, emphasis, decay, ratio))

    def _gradient_dynamics(
        self, model: Model, member: Any, eta: float = 1.0, learned: Floats | None = None
    ) -> MeanDynamics:
        """The joint system of theta and w, with w's rows scaled by `eta`, alpha_w / alpha.

        `learned` is 1 for transitions that are learned from, else 0.
        """
        emphasis, decay = self._expected(model)
        one = np.ones_like(model.rho)
        z = trace_moments(model, emphasis, decay, model.rho)
        if learned is None:
            learned = one
        else:
            member = member._replace(kappa=member.kappa * float(model.probability @ learned))
        zb = trace_moments(model, one, self._expected_lambda(model), learned)
        features = trace_moments(model, one, 0.0 * one, learned).phi
        return gradient_dynamics(member, z, zb, features, eta)

    def _expected_lambda(self, model: Model) -> Floats:
        """The lambda of the state that each transition of the model leads to."""
        one = np.ones_like(model.rho)
        return self.trace * one if self._by_number else by_state(self.trace, model.next_state)


class TwoStepLearner(TraceLearner):
    """Base class of learners with traces and a second step size.

    Parameters
    ----------
    second_step_size : optional
        alpha_w; None means the same as `step_size`.
    """

    def __init__(
        self,
        step_size: StepSize = "auto",
        *,
        second_step_size: StepSize | None = None,
        **axes: Unpack[TraceAxes],
    ) -> None:
        if second_step_size is not None and "second_step_size" in self.undefined:
            raise InputError(f"{type(self).__name__} has no second step size")
        self.second_step_size = (
            None if second_step_size is None else as_step_size("second_step_size", second_step_size)
        )
        super().__init__(step_size, **axes)


def as_trace(value: Any) -> Any:
    """Lambda as a float, a tuple of one number per state, or a function."""
    if callable(value):
        return function("trace", value, "a number in [0, 1] or a function")
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) == 1:
        return tuple(unit("trace", x) for x in listed("trace", value, "numbers"))
    return unit("trace", value)


def by_state(trace: Any, state: Any) -> Floats:
    """Lambda of these states, by the function or from the list."""
    if callable(trace):
        found = as_numbers("trace", answer_of("trace, a function of states", trace, state))
        if found.shape != np.shape(state) or not ((found >= 0.0) & (found <= 1.0)).all():
            raise InputError("trace, a function of states, must give a number in [0, 1] for each")
        return found
    numbers = np.asarray(trace)
    if np.max(state, initial=-1) >= len(numbers):
        raise InputError(
            f"trace has {len(numbers)} numbers, one per state, and there is a state {np.max(state)}"
        )
    return np.asarray(numbers[state])
