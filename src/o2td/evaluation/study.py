"""What estimators and tests of the log see: the log, the settings, and the results of passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from o2td.arguments import instance
from o2td.evaluation.basis import Actions, Cells, Own
from o2td.evaluation.bootstrap import LANES, Interval, bca, rule_of_three, sandwich
from o2td.evaluation.cells import CellSystem
from o2td.evaluation.contrasts import Contrasts
from o2td.evaluation.coverage import unlogged_regions
from o2td.evaluation.episodes import Episodes, Log
from o2td.evaluation.estimator import Estimator, Outcome
from o2td.evaluation.estimators import REFERENCE, known, make
from o2td.evaluation.features import JUDGED, Chosen, choose, first_episodes
from o2td.evaluation.fitting import AnySystem, Fitting
from o2td.evaluation.horizon import ModelSystem
from o2td.evaluation.horizon_features import unclocked
from o2td.evaluation.importance import Weighed
from o2td.evaluation.influence import Baseline, Influences
from o2td.evaluation.log_tests.clock import clock_step
from o2td.evaluation.log_tests.memory import own_dependence
from o2td.evaluation.log_tests.seen import seen
from o2td.evaluation.logged import LoggedValue
from o2td.evaluation.moments import Spread
from o2td.evaluation.past import Past, choose_past
from o2td.evaluation.plan import together
from o2td.evaluation.statistic import Passes
from o2td.evaluation.survey import FEWEST, Survey
from o2td.evaluation.systems import LEAST_RIDGE, FeatureSystem
from o2td.evaluation.thresholds import Thresholds
from o2td.evaluation.verdicts import FLAT, Case, Grounds, keep_in_range
from o2td.sources import Source
from o2td.sources.log_rows import NO_FINAL, UNHELD

SHORT = "short "  # prefix of the columns that correct LSTD over some steps
WIDE_ACTIONS = 1024  # features, over all actions, that dense equations of LSTDQ may have
_NUMBERS = 1 << 22  # features kept to look for regions without rows


@dataclass(frozen=True)
class Settings:
    """The options of `evaluate`, apart from the log and the target."""

    features: Any = "auto"
    confidence: float = 0.95
    seed: int = 0
    lanes: int = LANES
    trace: float | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)
    influence: bool = False
    horizon: int | None = None


class Study:
    """One question to one log: a `log` of episodes, and the `settings` of the question.

    `leader` is the study of the same log under another target, whose features are used here too.
    `survey` and `sample` are complete after the first pass; then estimators begin to collect.
    """

    reference: Case  # LSTD's estimate, which is always computed: others are compared with it

    def __init__(self, log: Log, settings: Settings, leader: Study | None = None) -> None:
        self.log = instance("log", log, Log, "a log of episodes, as evaluate makes it")
        self.settings = instance("settings", settings, Settings, "the settings that evaluate makes")
        if leader is not None:
            instance("leader", leader, Study, "a study of the same log")
        self.leader = leader
        self.survey = Survey(weighed=Weighed(self.users))
        self.contrasts = Contrasts()
        self.followers: list[Study] = []  # of the same log under other targets
        if leader is not None:
            leader.followers.append(self)

    def collect(self, methods: list[str] | None = None, everything: bool = False) -> Passes:
        """Run the first pass, then those of the named estimators, or of all that suit the log."""
        yield [self.survey]
        self.estimators = self._suitable(methods, everything)
        asked = [one for one in self.estimators if one.name == REFERENCE.name]
        self._reference: Estimator = asked[0] if asked else REFERENCE()
        others = [one for one in self.estimators if one is not self._reference]
        self._logged = LoggedValue()
        all_of_them = (self._reference, self._logged, *others)
        yield from together([*(one.collect(self) for one in all_of_them), self._trace_lifts()])

    def _trace_lifts(self) -> Passes:
        """In the pass for influences, track each estimate's difference from the logged value."""
        yield []
        logged = self._traced(self._logged.column)
        self._lifts = {
            name: self.contrasts.want(self._traced(column), logged)
            for name, column in self.columns().items()
        }
        yield [self.influences, self.contrasts]

    def columns(self) -> dict[str, int]:
        """The influence columns of the estimators, and those that correct LSTD."""
        listed = (self._reference, *self.estimators)
        found = {one.name: getattr(one, "column", None) for one in listed}
        short = {} if self.choice.exact else getattr(self._reference, "short", {})
        found |= {f"{SHORT}{steps}": column for steps, column in short.items()}
        return {name: column for name, column in found.items() if column is not None}

    def _traced(self, column: int) -> tuple[Influences, int]:
        """A column of this study's influences, for `Contrasts`."""
        return self.influences, column

    def lift_spread(self, method: str) -> Spread | None:
        """Spread of an estimate's difference from the logged value, or None if unknown."""
        number = self._lifts.get(method)
        return None if number is None else self.contrasts.spread(number)

    def _suitable(self, methods: list[str] | None, everything: bool) -> list[Estimator]:
        made = [make(name) for name in methods or known()]
        if methods is not None:
            return made
        offered = [one for one in made if everything or one.recommendable]
        return [one for one in offered if not one.missing(self) and not one.too_large(self)]

    @property
    def source(self) -> Source:
        """Where the rows come from: `mapped` has the columns, `info` what was read."""
        return self.log.source

    @property
    def users(self) -> bool:
        """Whether episodes have users, which are then resampled instead of episodes."""
        return self.source.mapped.one("user") is not None

    # -- after the first pass ----------------------------------------------------------------------

    @cached_property
    def sample(self) -> Episodes:
        """Some whole episodes, at most about 100,000 rows, chosen by their keys alone."""
        return self.survey.sample.joined()

    @cached_property
    def steps(self) -> int | None:
        """The requested horizon, or the step at which a time limit ends episodes."""
        return self.settings.horizon or clock_step(seen(self))[0]

    @property
    def unclocked(self) -> Episodes:
        """The sample by which features are chosen: a time limit says nothing about observations."""
        if self.sample.rows.observation is None or self.steps is None:
            return self.sample
        return unclocked(self.sample, self.steps)

    @cached_property
    def past(self) -> Past | None:
        """The part of the past that extends the state if the state alone is not Markov."""
        view, survey = seen(self), self.survey
        states = self.sample.rows.state is not None and self.sample.rows.observation is None
        if not states or view.action is None or not own_dependence(view)[0].alarming:
            return None
        actions = max(survey.n_actions, int(np.asarray(view.rows.action).max()) + 1)
        return choose_past(view, int(survey.high) + 1, actions, int(view.length.max()))

    def model(self, basis: Cells, steps: int | None) -> ModelSystem:
        """A model of cells and actions, or of cells alone where the target's choices are not known."""
        rows, survey = self.sample.rows, self.survey
        known = rows.target_probs is not None and rows.action is not None
        actions = max(survey.n_actions, 1) if known else 1
        lanes = self.settings.lanes
        return ModelSystem(basis, actions, steps, survey.largest_discount, lanes)

    @property
    def weighed(self) -> Weighed:
        """Sums over weighted histories."""
        return self.survey.weighed

    @cached_property
    def choice(self) -> Chosen:
        """The features: the lead system and its alternatives.

        Policies that are compared share them: a map rejected for one is rejected for all.
        """
        if self.leader is not None:
            return self.leader.choice.again()
        asked, one = self.settings, self.unclocked
        others = [each.unclocked for each in self.followers]
        return choose(self.survey, one, asked.features, asked.trace, asked.seed, others)

    @cached_property
    def grounds(self) -> Grounds:
        """What is known about the log, the same for all estimates."""
        survey, weights, info = self.survey, self.survey.weights(), self.source.info
        weight = self.weighed.spread("weight")
        unheld = info.notes.get(UNHELD, 0)
        # One row of an episode at most; those beyond the horizon are not missing.
        dropped = min(info.dropped.get(NO_FINAL, 0), survey.unended + unheld)
        return Grounds(
            survey.weighed.moments.units,
            weights["effective_sample_size"],
            weights["pareto_shape"],
            weights["max_weight_share"],
            survey.support(),
            survey.step_support(),
            survey.weighed.spread("plain").deviation,
            survey.left(),
            weights["effective_rows"],
            (weight.mean, weight.error),
            survey.endless,
            survey.hastened(dropped),
            survey.hastened(dropped, survey.unknown),
            survey.lost(unheld),
            survey.lost(unheld, alone=True),
            self.settings.thresholds,
            self.source.behavior_model is not None,
            "user" if self.users else "episode",
        )

    @cached_property
    def fitting(self) -> Fitting:
        """The systems that the next pass fits."""
        return Fitting(self.settings.lanes, self.settings.seed)

    # -- after systems were fitted -----------------------------------------------------------------

    @property
    def wide_actions(self) -> bool:
        """Whether features for each action are too many for equations of their own."""
        return self.choice.width * max(self.survey.n_actions, 1) > WIDE_ACTIONS

    @cached_property
    def action_values(self) -> FeatureSystem | None:
        """LSTDQ's equations, if the log has what they need and they are small enough."""
        rows, actions = self.sample.rows, max(self.survey.n_actions, 1)
        needed = (rows.next_target_probs, rows.target_probs, rows.action)
        if any(part is None for part in needed) or self.wide_actions or self.survey.unknown:
            return None
        ridge = max(self.choice.lead.ridge, LEAST_RIDGE)
        return FeatureSystem(Actions(self.choice.states, actions), ridge=ridge)

    @property
    def corrected(self) -> AnySystem:
        """What histories correct: action values where each state has its own, else V."""
        found = self.action_values if self.choice.exact else None
        return self.choice.lead if found is None else found

    @cached_property
    def baseline(self) -> Baseline:
        """Values cross-fitted over folds of episodes, which histories correct."""
        return Baseline.of(self.corrected, self.weighed.totals.opened)

    @cached_property
    def own(self) -> FeatureSystem | None:
        """The values of a model of the user's, where there is one."""
        return None if self.source.own_values is None else FeatureSystem(Own())

    @cached_property
    def control(self) -> Baseline:
        """The values that doubly robust estimates correct: the user's, else those fitted here."""
        if self.own is None:
            return self.baseline
        return Baseline.of(self.own, self.weighed.totals.opened)

    @cached_property
    def influences(self) -> Influences:
        """The influence columns, which the pass after the fits fills."""
        weighed, asked = self.weighed, self.settings
        shape = (weighed.units, weighed.totals.opened)
        return Influences(*shape, asked.seed, asked.lanes, asked.influence, self.users)

    @cached_property
    def unlogged(self) -> float:
        """Share of the target's visits to states that no row leaves, by the lead's features."""
        ahead, lead = self.survey.ahead(), self.choice.lead
        if isinstance(lead, CellSystem):
            return lead.unlogged(ahead)
        width = self.choice.size if self.sample.rows.observation is None else 1
        part = first_episodes(self.sample, min(JUDGED, max(_NUMBERS // width, FEWEST)))
        return unlogged_regions(part, lead.basis, ahead)

    # -- estimates ---------------------------------------------------------------------------------

    def cases(self) -> list[Case]:
        """Each estimator's estimate with its interval, not yet judged."""
        self.reference = self._case(self._reference)
        return [
            self.reference if one is self._reference else self._case(one) for one in self.estimators
        ]

    def _case(self, estimator: Estimator) -> Case:
        outcome = estimator.estimate(self)
        case = Case(estimator, outcome, self._interval(outcome))
        if not outcome.trouble:
            case.unlogged = estimator.unlogged(self)
        case.beside = self.choice.average and not isinstance(estimator, REFERENCE)
        keep_in_range(case, *self.survey.bounds(self.settings.horizon))
        return case

    def logged(self) -> Case:
        """The value of the policy that made the log."""
        return self._case(self._logged)

    def corrections(self) -> list[tuple[int, Spread]]:
        """What histories add to state values over the first steps, if features are cheap."""
        assert isinstance(self._reference, REFERENCE)  # noqa: S101
        return list(self._reference.corrections(self)) if self.choice.exact else []

    def judged(self, cases: list[Case]) -> list[Case]:
        """The cases in the order of judging: the reference first, even if not asked for."""
        return [self.reference, *(case for case in cases if case is not self.reference)]

    def _interval(self, outcome: Outcome) -> Interval:
        value, influence, lanes = outcome.value, outcome.influence, outcome.lanes
        found = outcome.interval
        if found is None and influence is None:
            return Interval(np.nan, np.nan, "none", np.nan)
        if found is None and influence is not None:
            confidence = self.settings.confidence
            if not self.settings.lanes:
                found = sandwich(value, influence, confidence)
            else:
                lanes = value - influence.mean + influence.lanes if lanes is None else lanes
                found = bca(value, lanes, influence, confidence)
        assert found is not None  # noqa: S101
        if value != 0.0 and found.standard_error <= FLAT * abs(value):
            # All episodes agree; the effective number is what the ratios leave.
            count = min(self.weighed.units, self.survey.weights()["effective_rows"])
            return rule_of_three(value, count, self.settings.confidence, found.standard_error)
        return found

    def beside(self, value: float, noise: float = 2.0) -> float | None:
        """An approximation error of at least the distance between a value and the reference.

        Up to `noise` standard errors the distance may be chance; not for a learner, which uses the
        reference's own rows and features and differs only in how far it has converged.
        """
        base = self.reference
        if base.approximation is None or not np.isfinite([value, base.value]).all():
            return None
        allowed = noise * base.interval.standard_error if noise else 0.0
        return max(base.approximation, abs(value - base.value) - allowed)
