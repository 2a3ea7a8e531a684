"""Words for numbers: *trust*, *caution* or *cannot answer*, by the thresholds, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from o2td.evaluation.bootstrap import Interval
from o2td.evaluation.moments import Spread
from o2td.evaluation.thresholds import CANNOT, CAUTION, TRUST, Thresholds, worst

ROBUST = ("dr", "wdr")
HISTORIES = ("is", "wis", "pdis", "wpdis", *ROBUST)
ONE_PASS = ("o2td", "etd", "tdrc")
ROUNDING = 1e-9  # of a value


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
    unlogged: float = 0.0  # share of the target's visits to what no row leaves
    sound: bool = False  # no doubt, but for an interval without width
    contradicted: bool = False
    narrow: float = np.inf  # half-width of a better interval from the same rows, if there is one
    reasons: list[str] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)

    def note(self, verdict: str, reason: str) -> None:
        """Add a doubt, once."""
        if reason in self.reasons:
            return
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
    effective_rows: float
    endless: bool  # nothing is discounted and nothing terminates
    hastened: float  # share of value that is lost with dropped last rows
    hastened_actions: float  # the same of action values, which need more of a last row
    lost: float  # share of start states lost with them
    lost_histories: float  # share of episodes of which no history remains
    thresholds: Thresholds


def judge_case(case: Case, grounds: Grounds, base: Case) -> None:
    """Give an estimate its verdict; `base` is that of LSTD, which dr and wdr go on with."""
    bounds = grounds.thresholds
    _about_log(case, grounds)
    _about_ends(case, grounds)
    if case.trouble or not np.isfinite(case.value):
        case.note(CANNOT, case.trouble or "the estimate is not finite")
        return
    if case.method in HISTORIES:
        _about_weights(case, grounds)
    if case.method in ROBUST:
        _about_rest(case, grounds, base)
    if case.method not in HISTORIES:
        _about_fit(case, grounds)
    width, scale = case.half_width, abs(case.value) + grounds.spread
    if not np.isfinite(width):
        case.note(CANNOT, "no interval: too few episodes")
    elif width > bounds.width_none * scale > 0.0:
        case.note(CANNOT, f"the interval is ±{width:.3g}, wider than the values themselves")
    _about_variation(case, bounds)


def _about_variation(case: Case, bounds: Thresholds) -> None:
    case.sound = case.verdict == TRUST
    influence = case.influence
    if influence is None or influence.count < 2:
        return
    carrying = influence.carrying
    if influence.error <= ROUNDING * abs(case.value):
        if not case.half_width > 0.0:
            case.note(
                CAUTION,
                "all episodes say 0: the interval has no width, and what is rarer than one in"
                f" {influence.count} of them may be of any size",
            )
    elif carrying < bounds.rewarded_caution:
        case.sound = False
        said = "one episode carries" if carrying < 1.5 else f"{carrying:.0f} episodes carry"
        case.note(CAUTION, f"about {said} all of the variation")


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
    if case.method != "lstdq":  # which uses rows whatever their ratios
        rows = grounds.effective_rows
        if rows < bounds.rows_none:
            case.note(CANNOT, f"ratios leave {rows:.1f} effective rows")
        elif rows < bounds.rows_caution:
            case.note(CAUTION, f"ratios leave {rows:.0f} effective rows")
    _about_mean(case, grounds)


def _about_mean(case: Case, grounds: Grounds) -> None:
    """Ratios average at most 1, whatever the policies: those of this log do not exceed it by far."""
    mean, error = grounds.step_support
    if mean - 1.0 <= max(4.0 * error, 0.02):
        return
    none = mean * grounds.thresholds.support_none > 1.0 and case.method != "lstdq"
    case.note(
        CANNOT if none else CAUTION,
        f"the ratios average {mean:.4g} instead of 1: are these the probabilities of this log? rho is"
        " the target's over the behaviour's, of the action that was taken",
    )


def _about_ends(case: Case, grounds: Grounds) -> None:
    """What lies beyond the last rows of episodes that were cut."""
    bounds = grounds.thresholds
    if grounds.endless:
        case.note(
            CANNOT,
            "nothing terminates at discount 1: the value is not a number; pass a smaller discount",
        )
    if case.unlogged > 1.0 - bounds.support_caution:
        case.note(
            CANNOT if case.unlogged > 1.0 - bounds.support_none else CAUTION,
            f"about {case.unlogged:.0%} of what the target would visit lies in or beyond states that"
            " no usable row starts from",
        )
    scale = abs(case.value) + grounds.spread
    actions = case.method == "lstdq"
    hastened = grounds.hastened_actions if actions else grounds.hastened
    histories = case.method in HISTORIES
    lost = grounds.lost_histories if histories else grounds.lost
    missing = "their start states are missing from the mean"
    if histories:
        missing = "they are missing from the mean"
    if case.method in ROBUST:
        missing = "nothing corrects their part of the mean"
    said = (
        f"last rows that go on were left out and those that end were kept: values may be"
        f" {hastened:.1%} too small; log what follows the last step",
        f"{lost:.1%} of the episodes had only a row that was left out, and {missing}; log what"
        " follows the last step",
    )
    for share, reason in zip((hastened, lost), said, strict=True):
        if share > bounds.approximation_none:
            case.note(CANNOT, reason)
        elif share * scale > bounds.approximation_caution * case.half_width:
            case.note(CAUTION, reason)


def _about_rest(case: Case, grounds: Grounds, base: Case) -> None:
    """Doubts about the fit that dr and wdr go on with where episodes were cut."""
    bounds, cut = grounds.thresholds, grounds.cut
    if cut <= bounds.cut_caution:
        return
    _about_fit(case, grounds)
    much = cut > bounds.approximation_none
    said = f"where episodes were cut, {cut:.0%} of the discount, this goes on with lstd's values"
    if base.verdict == CANNOT:
        case.note(CANNOT if much else CAUTION, f"{said}, which cannot be told")
    elif base.verdict == CAUTION and much:
        case.note(CAUTION, f"{said}, which are in doubt")


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
    if grounds.cut > bounds.cut_caution and case.method not in ROBUST:
        case.note(
            CANNOT if grounds.cut > 1.0 - bounds.support_none else CAUTION,
            f"truncated episodes leave out about {grounds.cut:.0%} of the rewards",
        )


def _about_fit(case: Case, grounds: Grounds) -> None:
    bounds = grounds.thresholds
    if case.condition > bounds.condition_caution:
        case.note(CAUTION, f"the equations are nearly singular (condition {case.condition:.1g})")
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
        apart = _apart(case, other)
        found.append({"method": other.method, "standard_errors": apart})
        trusted = other.sound and not other.contradicted and other.method not in ONE_PASS
        if trusted and apart > bounds.agreement_caution:
            _disagree(case, other, apart)
    return found


def _apart(case: Case, other: Case) -> float:
    """Standard errors between two estimates; a difference by rounding is none."""
    parts = [case.interval.standard_error, other.interval.standard_error, case.approximation or 0.0]
    parts.append(0.0 if other.method in ONE_PASS else other.approximation or 0.0)
    parts.append(ROUNDING * max(abs(case.value), abs(other.value)))
    scale = float(np.sqrt(np.sum(np.square(parts))))
    return abs(other.value - case.value) / scale if scale > 0.0 else 0.0


def _disagree(case: Case, other: Case, apart: float) -> None:
    far = f"{apart:.1f}" if apart < 100.0 else "more than 100"
    case.note(CAUTION, f"{other.method} says {other.value:.4g}, {far} standard errors away")


def doubt_fits(cases: list[Case], bounds: Thresholds) -> None:
    """Doubt trusted fits that all trusted histories contradict, before one of them is recommended.

    Weighted histories are right whatever the features and whether or not states tell what follows,
    so of the two it is the fit that is wrong.
    """
    sound = [case for case in cases if case.sound]
    histories = [case for case in sound if case.method in HISTORIES]
    for case in sound:
        if case.method in HISTORIES or not histories:
            continue
        nearest = min(histories, key=lambda other: _apart(case, other))
        if _apart(case, nearest) > bounds.agreement_caution:
            case.contradicted = True
            _disagree(case, nearest, _apart(case, nearest))


def recommend(cases: list[Case]) -> Case:
    """The most trusted estimate; among equals fits before histories, then the least doubt."""
    order = {TRUST: 0, CAUTION: 1, CANNOT: 2}
    able = [case for case in cases if case.method not in ("sotd", "lsetd", "o2td", "etd", "tdrc")]
    pool = [case for case in able or cases if np.isfinite(case.value)] or cases

    def rank(case: Case) -> tuple[int, bool, bool, float]:
        # Where weights are doubtful so is the length of a history's interval: fits go first.
        doubt = case.doubt if np.isfinite(case.doubt) else np.inf
        return order[case.verdict], case.contradicted, case.method in HISTORIES, doubt

    return min(pool, key=rank)
