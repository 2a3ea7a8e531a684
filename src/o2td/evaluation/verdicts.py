"""Words for numbers: *trust*, *caution* or *cannot answer*, by the thresholds, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from o2td.evaluation.bootstrap import Interval
from o2td.evaluation.moments import Spread
from o2td.evaluation.thresholds import CANNOT, CAUTION, TRUST, Thresholds, worst

HISTORIES = ("is", "wis", "pdis", "wpdis", "dr", "wdr")
ONE_PASS = ("o2td", "etd", "tdrc")


@dataclass(eq=False)
class Case:
    """What is known about one estimate before it gets its verdict."""

    method: str
    value: float
    interval: Interval
    approximation: float | None
    influence: Spread | None = None
    condition: float = 1.0
    about: str = ""
    trouble: str = ""
    narrow: float = np.inf  # half-width of a better interval from the same rows, if there is one
    reasons: list[str] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)

    def note(self, verdict: str, reason: str) -> None:
        """Add a doubt."""
        self.verdicts.append(verdict)
        self.reasons.append(reason)

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


@dataclass(frozen=True)
class Grounds:
    """What is known about the log, for all estimates alike."""

    episodes: int
    effective: float
    pareto: float | None
    share: float | None
    support: float
    step_support: tuple[float, float]
    spread: float  # of the logged discounted returns
    cut: float  # share of value that may lie beyond truncations
    thresholds: Thresholds


def judge_case(case: Case, grounds: Grounds) -> None:
    """Give an estimate its verdict."""
    bounds = grounds.thresholds
    _about_log(case, grounds)
    if case.trouble or not np.isfinite(case.value):
        case.note(CANNOT, case.trouble or "the estimate is not finite")
        return
    if case.method in HISTORIES:
        _about_weights(case, grounds)
    else:
        _about_fit(case, grounds)
    width, scale = case.half_width, abs(case.value) + grounds.spread
    if not np.isfinite(width):
        case.note(CANNOT, "no interval: too few episodes")
    elif width > bounds.width_none * scale > 0.0:
        case.note(CANNOT, f"the interval is ±{width:.3g}, wider than the values themselves")


def _about_log(case: Case, grounds: Grounds) -> None:
    bounds, count, support = grounds.thresholds, grounds.episodes, grounds.support
    if count < bounds.episodes_none:
        said = "one episode" if count == 1 else f"{count} episodes"
        case.note(
            CANNOT,
            f"{said}: an interval needs at least {bounds.episodes_none} that are independent of each"
            " other; log more of them",
        )
    elif count < bounds.episodes_caution:
        case.note(CAUTION, f"only {count} episodes")
    if support < bounds.support_none:
        case.note(
            CANNOT,
            f"the log supports {support:.0%} of what the target would visit: the behaviour hardly"
            " ever does what the target does",
        )
    elif support < bounds.support_caution:
        case.note(CAUTION, f"the log supports {support:.0%} of what the target would visit")
    mean, error = grounds.step_support
    if mean - 1.0 > max(4.0 * error, 0.02):
        case.note(
            CAUTION,
            f"the ratios average {mean:.3f} instead of 1: are these the probabilities of this log?",
        )


def _about_weights(case: Case, grounds: Grounds) -> None:
    bounds = grounds.thresholds
    if grounds.effective < bounds.ess_none:
        case.note(CANNOT, f"weights leave {grounds.effective:.1f} effective episodes")
    elif grounds.effective < bounds.ess_caution:
        case.note(CAUTION, f"weights leave {grounds.effective:.0f} effective episodes")
    shape = grounds.pareto
    if shape is not None and shape > bounds.pareto_none:
        case.note(CANNOT, f"the weights' tail is too heavy for any mean (Pareto shape {shape:.2f})")
    elif shape is not None and shape > bounds.pareto_caution:
        case.note(CAUTION, f"the weights' variance may not exist (Pareto shape {shape:.2f})")
    if grounds.share is not None and grounds.share > bounds.share_caution:
        case.note(CAUTION, f"one episode holds {grounds.share:.0%} of all weight")
    if grounds.cut > 0.01 and case.method not in ("dr", "wdr"):
        case.note(CAUTION, f"truncated episodes leave out about {grounds.cut:.0%} of the rewards")


def _about_fit(case: Case, grounds: Grounds) -> None:
    bounds = grounds.thresholds
    if case.condition > bounds.condition_caution:
        case.note(CAUTION, f"the equations are nearly singular (condition {case.condition:.1g})")
    if case.influence is not None and case.influence.count > 1:
        carrying = case.influence.carrying
        if carrying < bounds.rewarded_caution:
            case.note(CAUTION, f"about {carrying:.0f} episodes carry all of the variation")
    if case.approximation is None:
        case.note(CAUTION, "the approximation error is not known")
        return
    scale = abs(case.value) + grounds.spread
    if case.approximation > bounds.approximation_none * scale > 0.0:
        case.note(
            CANNOT,
            f"other features give answers {case.approximation:.3g} away: these do not carry the"
            " values",
        )
    elif case.approximation > bounds.approximation_caution * min(case.half_width, case.narrow):
        case.note(
            CAUTION,
            f"the approximation error, about {case.approximation:.2g}, is beside an interval of"
            f" ±{case.half_width:.2g}",
        )


def agreement(case: Case, others: list[Case], bounds: Thresholds) -> list[dict[str, Any]]:
    """How far the usable others are from an estimate, in standard errors.

    A far one is a doubt if it is trusted itself. Learners that saw the rows once are never one: they
    start from zero, and may not have arrived.
    """
    found = []
    for other in others:
        if other is case or other.verdict == CANNOT or not np.isfinite(other.value):
            continue
        parts = [case.interval.standard_error, other.interval.standard_error]
        online = other.method in ONE_PASS
        parts += [case.approximation or 0.0, 0.0 if online else other.approximation or 0.0]
        scale = float(np.sqrt(np.sum(np.square(parts))))
        apart = abs(other.value - case.value) / scale if scale > 0.0 else 0.0
        found.append({"method": other.method, "standard_errors": apart})
        if apart > bounds.agreement_caution and other.verdict == TRUST and not online:
            case.note(
                CAUTION, f"{other.method} says {other.value:.4g}, {apart:.1f} standard errors away"
            )
    return found


def recommend(cases: list[Case]) -> Case:
    """The most trusted estimate; among equals fits before histories, then the least doubt."""
    order = {TRUST: 0, CAUTION: 1, CANNOT: 2}
    able = [case for case in cases if case.method not in ("sotd", "lsetd", "o2td", "etd", "tdrc")]
    pool = [case for case in able or cases if np.isfinite(case.value)] or cases

    def rank(case: Case) -> tuple[int, bool, float]:
        # Where weights are doubtful so is the length of a history's interval: fits go first.
        doubt = case.doubt if np.isfinite(case.doubt) else np.inf
        return order[case.verdict], case.method in HISTORIES, doubt

    return min(pool, key=rank)
