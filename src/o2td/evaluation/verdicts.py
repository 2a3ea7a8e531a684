"""Verdicts from numbers: *trust*, *caution* or *cannot answer*, by the thresholds, with reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.evaluation.bootstrap import Interval
from o2td.evaluation.thresholds import CANNOT, CAUTION, TRUST, Thresholds, worst

if TYPE_CHECKING:
    from o2td.evaluation.estimator import Estimator, Outcome
    from o2td.evaluation.study import Study

ROUNDING = 1e-9  # of a value
FLAT = 1e-6  # of a value: a smaller standard error is rounding
WIDTH = "width"  # subject of doubts that depend on the interval's width
_VETO = 3.0  # standard errors, where the estimates differ by the size of the value
_ALIKE = 0.2  # of a standard error: smaller differences do not matter to the reader
_CLEARLY = 0.9  # of LSTD's stated error: another fit on chosen features must state less than this
_CONFIRMS = 3.0  # half-widths of a fit: a wider history cannot tell whether it is right


@dataclass(eq=False)
class Case:
    """An estimator's estimate and interval, and the doubts about them."""

    estimator: Estimator
    outcome: Outcome
    interval: Interval
    unlogged: float = 0.0  # share of the target's visits to states that no row leaves
    sound: bool = False  # not a doubt unless the interval has no width
    contradicted: bool = False
    beside: bool = False  # a fit other than the reference, on features chosen for the reference
    faults: float = 0.0  # tests of the log that say it is biased
    reasons: list[str] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    abouts: list[str] = field(default_factory=list)

    def note(self, verdict: str, reason: str, about: str = "") -> None:
        """Add a doubt, once."""
        if reason in self.reasons:
            return
        self.verdicts.append(verdict)
        self.reasons.append(reason)
        self.abouts.append(about)

    @property
    def notes(self) -> list[tuple[str, str, str]]:
        """Each doubt: the best verdict it allows, the reason, and its subject."""
        return list(zip(self.verdicts, self.reasons, self.abouts, strict=True))

    @property
    def method(self) -> str:
        """The estimator's name."""
        return self.estimator.name

    @property
    def value(self) -> float:
        """The estimate."""
        return self.outcome.value

    @property
    def approximation(self) -> float | None:
        """How far other features would move it."""
        return self.outcome.approximation

    @property
    def weighs_histories(self) -> bool:
        """Whether it does not depend on features, as with weighted histories."""
        return self.estimator.kind in ("history", "hybrid")

    @property
    def arrives(self) -> bool:
        """Whether it has converged, which a learner may not have."""
        return self.estimator.kind != "learner"

    @property
    def verdict(self) -> str:
        """The worst of all doubts."""
        return worst(self.verdicts)

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.interval.high - self.interval.low) / 2.0

    @property
    def doubt(self) -> float:
        """Half the interval plus the approximation error."""
        return self.half_width + (self.approximation or 0.0)

    def handicap(self, doubt: float) -> float:
        """A doubt as it counts against others: the reference keeps its place among equals."""
        return doubt / _CLEARLY if self.beside else doubt


@dataclass(frozen=True)
class Grounds:
    """What is known about the log, the same for all estimates."""

    episodes: int
    effective: float
    pareto: float | None
    share: float | None
    support: float
    step_support: tuple[float, float]
    spread: float  # of the logged discounted returns
    cut: float  # share of value that may lie beyond truncations
    effective_rows: float
    mean_weight: tuple[float, float]  # of whole histories, with its standard error
    endless: bool  # nothing is discounted and nothing terminates
    hastened: float  # share of the value lost with dropped last rows
    hastened_actions: float  # the same for action values, which need more from a last row
    lost: float  # share of start states lost with them
    lost_histories: float  # share of episodes without any history left
    thresholds: Thresholds
    estimated: bool = False  # whether the behaviour was estimated from the log
    unit: str = "episode"  # what is resampled


def keep_in_range(case: Case, low: float, high: float) -> None:
    """Clip an estimate to what rewards and discount allow, and say so; refuse one far outside."""
    value, interval = case.value, case.interval
    slack = ROUNDING * max(abs(low), abs(high), abs(value))
    if not np.isfinite(value) or low - slack <= value <= high + slack:
        return
    allowed = f"rewards and discount allow values from {low:.4g} to {high:.4g}"
    if interval.low > high or interval.high < low:
        case.note(CANNOT, f"{allowed}, and the whole interval lies outside")
        return
    clipped = float(np.clip(value, low, high))
    ends = np.clip([interval.low, interval.high], low, high)
    case.outcome = replace(case.outcome, value=clipped)
    case.interval = replace(interval, low=float(ends[0]), high=float(ends[1]))
    case.note(TRUST, f"{allowed}: {value:.4g} was clipped")


def judge(case: Case, study: Study) -> None:
    """Give an estimate its verdict: from doubts common to all, and the estimator's own."""
    grounds, estimator = study.grounds, case.estimator
    bounds = grounds.thresholds
    _about_log(case, grounds)
    _about_ends(case, grounds)
    trouble = case.outcome.trouble
    if trouble or not np.isfinite(case.value):
        case.note(CANNOT, trouble or "the estimate is not finite")
        return
    for doubt in estimator.doubts(case, study):
        case.note(*doubt)
    width, scale = case.half_width, abs(case.value) + grounds.spread
    if not np.isfinite(width):
        case.note(CANNOT, "no interval: too few episodes")
    elif width > bounds.width_none * scale > 0.0:
        case.note(CANNOT, f"the interval is ±{width:.3g}, wider than the values themselves")
    _about_variation(case, bounds)


def _about_variation(case: Case, bounds: Thresholds) -> None:
    case.sound = case.verdict == TRUST
    influence = case.outcome.influence
    if influence is None or influence.count < 2:
        return
    carrying = influence.carrying
    if influence.error <= ROUNDING * abs(case.value):
        if not case.half_width > 0.0:
            case.note(
                CAUTION,
                "every episode gives 0: the interval has no width, and an outcome rarer than one in"
                f" {influence.count} episodes could have any size",
            )
    elif carrying < bounds.rewarded_caution:
        case.sound = False
        said = "one episode carries" if carrying < 1.5 else f"{carrying:.0f} episodes carry"
        case.note(CAUTION, f"about {said} all of the variation")


def _about_log(case: Case, grounds: Grounds) -> None:
    bounds, count, support = grounds.thresholds, grounds.episodes, grounds.support
    if count < bounds.episodes_none:
        said = f"one {grounds.unit}" if count == 1 else f"{count} {grounds.unit}s"
        case.note(
            CANNOT,
            f"{said}: an interval needs at least {bounds.episodes_none} that are independent of each"
            " other; log more of them",
        )
    elif count < bounds.episodes_caution:
        case.note(CAUTION, f"only {count} {grounds.unit}s")
    if support < bounds.support_none:
        case.note(
            CANNOT,
            f"the log covers {support:.0%} of the target's visits: the behaviour hardly"
            " ever does what the target does",
        )
    elif support < bounds.support_caution:
        case.note(CAUTION, f"the log covers {support:.0%} of the target's visits")
    if case.estimator.uses_ratios:
        rows = grounds.effective_rows
        if rows < bounds.rows_none:
            case.note(CANNOT, f"ratios leave {rows:.1f} effective rows")
        elif rows < bounds.rows_caution:
            case.note(CAUTION, f"ratios leave {rows:.0f} effective rows")
    _about_mean(case, grounds)


def _about_mean(case: Case, grounds: Grounds) -> None:
    """Ratios average at most 1, whatever the policies: doubt a log whose ratios far exceed it."""
    mean, error = grounds.step_support
    ours = grounds.estimated and not case.estimator.uses_ratios  # then nobody relies on them
    if ours or mean - 1.0 <= max(4.0 * error, 0.02):
        return
    none = mean * grounds.thresholds.support_none > 1.0 and case.estimator.uses_ratios
    why = (
        "the behaviour estimated from this log does not fit it; log the probabilities of the actions"
        " taken (behavior_prob), or more of what the policy saw"
        if grounds.estimated
        else "check the probabilities: rho is the target's probability of the logged action divided by"
        " the behaviour's"
    )
    case.note(CANNOT if none else CAUTION, f"the ratios average {mean:.4g} instead of 1: {why}")


def _about_ends(case: Case, grounds: Grounds) -> None:
    """Doubts about what lies beyond the last rows of truncated episodes."""
    bounds = grounds.thresholds
    if grounds.endless:
        case.note(
            CANNOT,
            "nothing terminates at discount 1, so there is no finite value; pass a smaller discount",
        )
    if case.unlogged > 1.0 - bounds.support_caution:
        case.note(
            CANNOT if case.unlogged > 1.0 - bounds.support_none else CAUTION,
            f"about {case.unlogged:.0%} of the target's visits lie in or beyond states that"
            " no usable row starts from",
        )
    scale = abs(case.value) + grounds.spread
    for share, reason in case.estimator.losses(grounds):
        if share > bounds.approximation_none:
            case.note(CANNOT, reason)
        elif share * scale > bounds.loss_caution * case.half_width:
            case.note(CAUTION, reason)


def agreement(case: Case, others: list[Case], bounds: Thresholds) -> list[dict[str, Any]]:
    """Distances of the other usable estimates, in standard errors.

    A distant one is a doubt if it is trusted itself. Learners never are: they start from zero, see
    the rows once, and may not have converged.
    """
    found = []
    for other in others:
        if other is case or other.verdict == CANNOT or not np.isfinite(other.value):
            continue
        apart = _apart(case, other)
        found.append({"method": other.method, "standard_errors": apart})
        trusted = other.sound and not other.contradicted and other.arrives
        if trusted and apart > bounds.agreement_caution:
            _disagree(case, other, apart)
    return found


def _error(case: Case, other: Case) -> float:
    """Standard error of the difference of two estimates, from each episode's influence on both."""
    own, theirs = case.interval.standard_error, other.interval.standard_error
    one, two = case.outcome.influence, other.outcome.influence
    joint = float(np.hypot(own, theirs)) if one is None or two is None else one.apart(two)
    return max(joint, _ALIKE * max(own, theirs))


def _apart(case: Case, other: Case) -> float:
    """Standard errors between two estimates; rounding errors count as 0."""
    parts = [_error(case, other), case.approximation or 0.0]
    parts.append((other.approximation or 0.0) if other.arrives else 0.0)
    parts.append(ROUNDING * max(abs(case.value), abs(other.value)))
    scale = float(np.sqrt(np.sum(np.square(parts))))
    return abs(other.value - case.value) / scale if scale > 0.0 else 0.0


def _disagree(case: Case, other: Case, apart: float) -> None:
    far = f"{apart:.1f}" if apart < 100.0 else "more than 100"
    case.note(CAUTION, f"{other.method} says {other.value:.4g}, {far} standard errors away")


def doubt_fits(cases: list[Case], study: Study) -> None:
    """Doubt fits that weighted histories contradict, before one is recommended.

    Weighted histories need neither the right features nor Markov states, so if the two disagree,
    the fit is wrong. Among estimates from whole histories the one with the smallest error of the
    difference decides; if the weights are too heavy for all of them, their first steps still count.
    """
    bounds = study.settings.thresholds
    histories = [case for case in cases if case.sound and case.weighs_histories]
    for case in cases:
        if case.weighs_histories or not case.sound:
            continue
        if histories:
            best = min(histories, key=lambda other: _error(case, other))
            if _apart(case, best) > bounds.agreement_caution:
                case.contradicted = True
                _disagree(case, best, _apart(case, best))
        spared = case.estimator.spared(study)
        known = case.estimator.mends or "clock" in spared
        if case.arrives and not known:
            _first_steps(case, study)
        if "memory" in spared and not any(_confirms(other, case) for other in histories):
            case.note(
                CAUTION,
                "the state alone is not Markov; one row of its past was added, and no weighted history"
                " is precise enough to confirm that one is enough",
            )


def _confirms(history: Case, fit: Case) -> bool:
    return history.half_width <= _CONFIRMS * fit.half_width


def _first_steps(case: Case, study: Study) -> None:
    """Doubt a fit whose values are inconsistent over the first steps that weights reach."""
    influence = case.outcome.influence
    for steps, correction in study.corrections():
        if influence is None or not np.isfinite(correction.mean):
            continue
        alike = _ALIKE * max(case.interval.standard_error, case.half_width / 2.0)
        error = max(correction.apart(influence), alike)
        apart = abs(correction.mean) / max(error, ROUNDING * abs(case.value), 1e-300)
        if apart > study.settings.thresholds.agreement_caution:
            case.contradicted = True
            case.note(
                CAUTION,
                f"over the first {steps} steps weighted histories change its value by"
                f" {correction.mean:.3g}, {apart:.1f} standard errors from zero",
            )
            return


def recommend(cases: list[Case]) -> Case:
    """The most trusted estimate; among equals fits before histories, then the least doubt."""
    return preferred(cases, lambda case: case.doubt)


def preferred(cases: list[Case], doubt: Callable[[Case], float]) -> Case:
    """The same, with doubts about something other than the estimate itself."""
    order = {TRUST: 0, CAUTION: 1, CANNOT: 2}
    able = [case for case in cases if case.estimator.recommendable]
    pool = [case for case in able or cases if np.isfinite(case.value)] or cases

    def rank(case: Case) -> tuple[int, float, bool, bool, bool, float]:
        # Where weights are doubtful, so is the interval of a history's estimate: fits go first.
        width = case.handicap(doubt(case))
        width = width if np.isfinite(width) else np.inf
        fault = max(case.faults, float(case.contradicted and not case.faults))
        whole, mends = case.estimator.whole, case.estimator.mends
        return order[case.verdict], fault, case.weighs_histories, whole, mends, width

    return min(pool, key=rank)


def veto(case: Case, others: list[Case], study: Study) -> None:
    """Doubt an estimate that differs from a usable one by the size of the value itself.

    Histories miss the rewards beyond a truncation; the share they are known to miss does not count
    as disagreement.
    """
    bounds, grounds = study.settings.thresholds, study.grounds
    for other in others:
        if other is case or other.verdict == CANNOT or not other.arrives or other.faults:
            continue
        influence = other.outcome.influence
        if influence is None or influence.carrying < bounds.rewarded_caution:
            continue
        apart, size = abs(other.value - case.value), max(abs(case.value), abs(other.value))
        if other.estimator.kind == "history":
            apart -= grounds.cut * (abs(case.value) + grounds.spread)
        if apart > 0.5 * size and _apart(case, other) > _VETO:
            _disagree(case, other, _apart(case, other))
