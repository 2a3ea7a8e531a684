"""The T-step plug-in: the value over T steps, from a model of the log.

`V_{k+1}(s) = sum_a pi(a, s) (r(s, a) + sum_s' gamma p(s', s, a) V_k(s'))`, T times. T is the
requested horizon, or the step at which a time limit ends the log's episodes. States that recur have a
mean for each of them. For observations that do not, means are regressions on chosen features
(`horizon_features`), and the estimate is the mean of the middle half of several such fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from o2td.evaluation.basis import Cells, States
from o2td.evaluation.estimator import Doubt, Outcome
from o2td.evaluation.families import FitEstimator
from o2td.evaluation.features import first_episodes
from o2td.evaluation.fitting import AnySystem, Blend, mean_of, middle, spread_of, usable
from o2td.evaluation.horizon import ModelSystem
from o2td.evaluation.horizon_features import StepsSystem
from o2td.evaluation.statistic import Passes
from o2td.evaluation.systems import FeatureSystem
from o2td.evaluation.thresholds import CAUTION

if TYPE_CHECKING:
    from o2td.evaluation.study import Study
    from o2td.evaluation.verdicts import Case

_SETTLED = 0.25  # of the interval's half-width: smaller differences do not matter
_WIDE = 2048  # states: the influence of rows is a matrix of them
_FEATURES = 1024


def clock_doubts(case: Case, study: Study, endless: float) -> Iterator[Doubt]:
    """Doubt whether the value up to a detected time limit is meant, if it matters.

    If it hardly matters, the difference counts as an error of approximation.
    """
    apart = abs(endless - case.value)
    if study.settings.horizon is not None:
        return
    if apart < _SETTLED * case.half_width:
        found = case.outcome
        case.outcome = replace(found, approximation=max(found.approximation or 0.0, apart))
    else:
        further = f"it would be {endless:.4g}" if np.isfinite(endless) else "it cannot be told"
        yield (
            CAUTION,
            f"a clock ends episodes at step {study.steps}, and this is the value up to then; had they"
            f" continued, {further}; say which you want (horizon={study.steps}, or mark these ends as"
            " truncated)",
        )


def _plain(basis: States, fitted: list[AnySystem]) -> FeatureSystem:
    """LSTD's system without a trace on this basis: one that is fitted anyway, or a new one."""
    for one in fitted:
        if isinstance(one, FeatureSystem) and one.whole.basis is basis and one.trace == 0.0:
            return one.whole
    return FeatureSystem(basis)


class TStepEstimator(FitEstimator):
    """A model of the log, followed for a fixed number of steps."""

    name = "tstep"
    title = "T-step plug-in"

    def missing(self, study: Study) -> str:
        """What is missing: a horizon, and states that recur or features that can be fitted."""
        if study.steps is None:
            return "no horizon was requested, and no clock ends the episodes"
        if study.choice.tabular is None and not isinstance(study.choice.lead, FeatureSystem):
            return "the log has no states that recur, and features name cells"
        return ""

    def too_large(self, study: Study) -> bool:
        """Whether there are too many states or features to run it unasked."""
        states = study.choice.tabular
        if states is None:
            return study.choice.width > _FEATURES
        return int(states.n_features_out_) > _WIDE

    def spared(self, study: Study) -> tuple[str, ...]:
        """Exempt from the test of the clock, which it models."""
        return ("clock",)

    def doubts(self, case: Case, study: Study) -> Iterator[Doubt]:
        """Doubt whether the value up to a detected time limit is what was asked for."""
        yield from super().doubts(case, study)
        outside = self._extrapolated(study)
        if outside > 1.0 - study.settings.thresholds.support_caution:
            yield (
                CAUTION,
                f"{outside:.0%} of the weight that rows have in it is negative: the target goes where"
                " the log has hardly any rows, and values there are extrapolated",
            )
        yield from clock_doubts(case, study, self._endless)

    def collect(self, study: Study) -> Passes:
        """Fit, then accumulate the influence of episodes."""
        if self.missing(study):
            return
        systems = self._systems(study)
        for one in systems:
            if isinstance(one, StepsSystem):
                study.fitting.want(one.plain)
            study.fitting.want(one)
        yield [study.fitting]
        fits = [study.fitting.fit(one) for one in systems]
        self.members = usable(fits)
        self.middle = middle(self.members)
        self.blend: Blend = self.middle
        if study.choice.tabular is not None or not study.choice.average:
            self.blend = [(1.0, fits[0])]
        self.column = study.influences.blend(self.blend)
        yield [study.influences]

    def _systems(self, study: Study) -> list[AnySystem]:
        """A model of states, or one system for each of the chosen bases."""
        choice, steps = study.choice, study.steps
        assert steps is not None  # noqa: S101
        if choice.tabular is not None:
            return [study.model(Cells(choice.tabular), steps)]
        gamma = study.survey.largest_discount
        made: list[AnySystem] = []
        if not choice.average:
            plain = _plain(choice.states, [choice.lead])
            made.append(StepsSystem(plain, steps, gamma, choice.lead.ridge))
        wholes: dict[int, StepsSystem] = {}
        found: set[int] = set()
        for one, fitted in zip(choice.kept, choice.panel, strict=True):
            assert isinstance(fitted, FeatureSystem)  # noqa: S101
            basis, own = fitted.whole.basis, fitted.basis
            assert isinstance(basis, States) and isinstance(own, States)  # noqa: S101, PT018
            if id(basis) not in wholes:
                wholes[id(basis)] = StepsSystem(_plain(basis, choice.panel), steps, gamma)
            if id(one.features) not in found:
                found.add(id(one.features))
                made.append(wholes[id(basis)].part(own, fitted.index, one.ridge))
        return made

    @property
    def _endless(self) -> float:
        """The same model's value over an infinite horizon."""
        found = 0.0
        for weight, fit in self.blend:
            assert isinstance(fit.system, (ModelSystem, StepsSystem))  # noqa: S101
            found += weight * fit.system.endless()
        return found

    def _extrapolated(self, study: Study) -> float:
        """Share of negative weights, on average over the fits; none where states recur."""
        part, found = first_episodes(study.sample), 0.0
        for weight, fit in self.blend:
            if isinstance(fit.system, StepsSystem):
                found += weight * fit.system.extrapolated(part)
        return found

    def estimate(self, study: Study) -> Outcome:
        """The value over the horizon, exact for the model of states."""
        why = self.missing(study)
        if why:
            return Outcome.none(why)
        lead, value = self.blend[0][1], mean_of(self.blend)
        if study.choice.tabular is not None:
            approximation: float | None = 0.0
            about = f"{study.steps} steps through a plug-in model of {lead.system.d} states"
        else:
            approximation = self._apart(study, value)
            about = (
                f"{study.steps} steps: mean of {len(self.blend)} of {len(self.members)} fits, the"
            )
            about += f" first on {lead.system.basis.name}"
        return Outcome(
            value,
            *study.influences.found(self.column, self.blend),
            approximation=approximation,
            condition=lead.condition,
            about=f"{about}; without an end the same model gives {self._endless:.4g}",
            model=lead.model(),
            variants={fit.system.label: fit.value for fit in self.members if len(self.members) > 1},
        )

    def _apart(self, study: Study, value: float) -> float | None:
        """How far other features move the value; None if there are no others."""
        if len(self.members) < 2:
            return None
        return abs(mean_of(self.middle) - value) + spread_of(self.members, self.middle)

    def unlogged(self, study: Study) -> float:
        """Measured over the requested steps, where states recur."""
        system = self.blend[0][1].system
        if isinstance(system, ModelSystem):
            return system.unlogged(study.survey.ahead())
        return study.unlogged
