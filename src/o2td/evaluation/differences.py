"""The paired difference between two policies, with its own interval and verdict.

Both sides come from the same episodes, by the same estimator, on the same features. So the interval
is that of the difference of the episodes' influences and of the two estimates' bootstrap lanes, and
the approximation error is how far the difference moves under other features: what two fits have in
common cancels in both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import hypot
from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.arrays import Floats
from o2td.documents import finite
from o2td.evaluation.bootstrap import Interval, bca, rule_of_three, sandwich
from o2td.evaluation.estimators.lstd import off_by
from o2td.evaluation.fitting import FEW
from o2td.evaluation.moments import Spread
from o2td.evaluation.thresholds import CANNOT, CAUTION, Thresholds, worst
from o2td.evaluation.verdicts import FLAT, ROUNDING, WIDTH, Case

if TYPE_CHECKING:
    from o2td.evaluation.study import Settings

LOGGED = "logged"  # the name of the policy that made the log


@dataclass(frozen=True)
class Difference:
    """How much more the policy `of` is worth than the policy `over`.

    Parameters
    ----------
    of, over : str
        Names of the two policies; "logged" is the one that made the log.
    value : float or None
        The difference.
    low, high : float or None
        Its interval, paired: from the same episodes on both sides.
    standard_error : float or None
        Of `value`.
    probability : float or None
        That the difference is above 0: the share of bootstrap lanes in which it is, blurred by the
        approximation error.
    approximation_error : float or None
        How far other features would move the difference.
    verdict, reasons : str, list of str
        "trust", "caution" or "cannot answer", and why.
    method : str
        The estimator, the same for both sides; of the logged policy it is the mean return.
    interval : str
        How the interval was made.
    joint_low, joint_high : float or None
        The interval that holds together with those of all other differences of a comparison.
    unpaired_error : float or None
        The standard error if both sides came from different episodes.

    Examples
    --------
    >>> found = Difference("B", "A", 0.3, 0.1, 0.5, 0.1, 0.99, 0.2, "caution")
    >>> found.words, found.covers(0.05), found.covers(0.05, widened=True)
    ('no clear difference', False, True)
    """

    of: str
    over: str
    value: float | None
    low: float | None
    high: float | None
    standard_error: float | None
    probability: float | None
    approximation_error: float | None
    verdict: str
    reasons: list[str] = field(default_factory=list)
    method: str = ""
    interval: str = ""
    joint_low: float | None = None
    joint_high: float | None = None
    unpaired_error: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, none of them NaN or infinite."""
        return {name: finite(value) for name, value in vars(self).items()}

    def covers(self, truth: float, widened: bool = False) -> bool:
        """Whether `truth` is in the interval, optionally widened by the approximation error."""
        ends = self.ends(widened)
        return ends is not None and ends[0] <= truth <= ends[1]

    def ends(self, widened: bool = True) -> tuple[float, float] | None:
        """The interval, with the approximation error on both sides; None if there is none."""
        if self.low is None or self.high is None:
            return None
        slack = (self.approximation_error or 0.0) if widened else 0.0
        return self.low - slack, self.high + slack

    @property
    def words(self) -> str:
        """Which of the two is better, in a few words."""
        ends = self.ends()
        if self.verdict == CANNOT or ends is None:
            return "cannot answer"
        if ends[0] > 0.0:
            return f"{self.of} is better"
        if ends[1] < 0.0:
            return f"{self.over} is better"
        return "no clear difference"


@dataclass(frozen=True, eq=False)
class NamedCase:
    """An estimate of one policy, by name."""

    name: str
    case: Case


def lanes_of(case: Case) -> Floats:
    """An estimate in each bootstrap lane; empty where there are none."""
    outcome = case.outcome
    if outcome.lanes is not None:
        return np.asarray(outcome.lanes)
    if outcome.influence is None:
        return np.zeros(0)
    return np.asarray(outcome.value - outcome.influence.mean + outcome.influence.lanes)


def measure(
    one: NamedCase,
    two: NamedCase,
    spread: Spread | None,
    settings: Settings,
    approximation: float | None,
) -> Difference:
    """The difference of two estimates; `spread` is its influence by episodes, if known."""
    value = one.case.value - two.case.value
    if abs(value) <= ROUNDING * max(abs(one.case.value), abs(two.case.value)):
        value = 0.0
    errors = [side.case.interval.standard_error for side in (one, two)]
    found = _interval(one, two, spread, settings)
    bounds = settings.thresholds
    notes = [*_of_sides(one, two), *_own(value, found, spread, approximation, one, bounds)]
    logged = LOGGED in (one.name, two.name)
    return Difference(
        one.name,
        two.name,
        finite(float(value)),
        finite(float(found.low)),
        finite(float(found.high)),
        finite(float(found.standard_error)),
        finite(_probability(value, paired_lanes(one.case, two.case), found, approximation)),
        finite(approximation),
        worst([verdict for verdict, _ in notes]),
        [reason for _, reason in notes],
        f"{one.case.method} against logged returns" if logged else one.case.method,
        found.name,
        unpaired_error=finite(hypot(*errors)),
    )


def paired_lanes(one: Case, two: Case) -> Floats:
    """The difference in each bootstrap lane; empty where either side has none."""
    a, b = lanes_of(one), lanes_of(two)
    return a - b if len(a) == len(b) else np.zeros(0)


def _interval(
    one: NamedCase, two: NamedCase, spread: Spread | None, settings: Settings
) -> Interval:
    from scipy.stats import norm

    value = one.case.value - two.case.value
    if spread is None:
        error = hypot(one.case.interval.standard_error, two.case.interval.standard_error)
        reach = float(norm.ppf(0.5 + settings.confidence / 2.0)) * error
        return Interval(value - reach, value + reach, "both sides apart", error)
    scale = max(abs(one.case.value), abs(two.case.value))
    if spread.error <= FLAT * scale:
        if abs(value) <= ROUNDING * scale:
            return Interval(0.0, 0.0, "no episode tells the two apart", spread.error)
        # What was never seen changes the value of one side: their size counts, however near they are.
        return rule_of_three(value, spread.count, settings.confidence, spread.error, scale)
    lanes = paired_lanes(one.case, two.case)
    if not len(lanes):
        found = sandwich(value, spread, settings.confidence)
    else:
        found = bca(value, lanes, spread, settings.confidence)
    return replace(found, name=f"{found.name}, paired")


def _probability(value: float, lanes: Floats, found: Interval, blur: float | None) -> float | None:
    """The probability that the difference is above 0."""
    from scipy.stats import norm

    if not np.isfinite(value):
        return None
    if found.low == found.high and not blur:
        return 0.5 + 0.5 * float(np.sign(value)) if value else 0.5
    error = found.standard_error
    lanes = lanes[np.isfinite(lanes)]
    if len(lanes) < 2:
        scale = hypot(error, blur or 0.0)
        return float(norm.cdf(value / scale)) if scale > 0.0 else 0.5 + 0.5 * float(np.sign(value))
    if not blur:
        return float(np.where(lanes == 0.0, 0.5, lanes > 0.0).mean())
    return float(norm.cdf(lanes / blur).mean())


def _of_sides(one: NamedCase, two: NamedCase) -> list[tuple[str, str]]:
    """Doubts about either side, except for interval widths: the difference has its own."""
    found: dict[tuple[str, str], list[str]] = {}
    for side in (one, two):
        for verdict, reason, about in side.case.notes:
            if about != WIDTH:
                found.setdefault((verdict, reason), []).append(side.name)
    return [
        (verdict, reason if len(names) == 2 or two.name == LOGGED else f"{names[0]}: {reason}")
        for (verdict, reason), names in found.items()
    ]


def _own(
    value: float,
    found: Interval,
    spread: Spread | None,
    approximation: float | None,
    one: NamedCase,
    bounds: Thresholds,
) -> list[tuple[str, str]]:
    notes = []
    if not np.isfinite([value, found.low, found.high]).all():
        return [(CANNOT, "there is no estimate with an interval on both sides")]
    if spread is None:
        notes.append((CAUTION, "the interval treats both sides as independent"))
    elif found.low == found.high:
        notes.append(
            (CAUTION, "both are alike in every logged row: the log cannot tell them apart")
        )
    elif spread.carrying < bounds.rewarded_caution:
        count = spread.carrying
        said = "one episode carries" if count < 1.5 else f"{count:.0f} episodes carry"
        notes.append((CAUTION, f"about {said} all of the variation of the difference"))
    if approximation is None:
        notes.append((CAUTION, "the approximation error is not known"))
    elif (found.low > 0.0 >= found.low - approximation) or (
        found.high < 0.0 <= found.high + approximation
    ):
        notes.append(
            (CAUTION, f"an approximation error of {approximation:.2g} could turn the sign")
        )
    return notes


def moved(one: Case, two: Case, reference: tuple[Case, Case], shorts: list[Spread]) -> float | None:
    """The approximation error of a difference: how far other features and methods move it.

    For the reference it is half the range of the differences over all features that both sides
    have, or the distance to other features if that is larger; and at least what weighted histories
    correct, `shorts`, beyond two standard errors. For another fit it is also at least the distance
    to the reference.
    """
    if one.approximation is None or two.approximation is None:
        return None
    if not (one.approximation or two.approximation):
        return 0.0
    base = _of_reference(*reference, shorts)
    if one.method == reference[0].method:
        return base
    if one.weighs_histories:
        shares = [abs(side.approximation or 0.0) for side in (one, two)]
        whole = [side.approximation or 0.0 for side in reference]
        return max(shares) * (base / max(whole) if max(whole) > 0.0 else 1.0)
    if not (reference[0].approximation or reference[1].approximation):
        return max(one.approximation, two.approximation)  # its own, such as actions never tried
    between = (one.value - two.value) - (reference[0].value - reference[1].value)
    allowed = 2.0 * max(side.interval.standard_error for side in reference)
    return max(base, abs(between) - allowed)


def _of_reference(one: Case, two: Case, shorts: list[Spread]) -> float:
    value = one.value - two.value
    a, b = one.outcome.variants, two.outcome.variants
    others = [a[name] - b[name] for name in a.keys() & b.keys()]
    found = max(one.approximation or 0.0, two.approximation or 0.0)
    if others:
        found = half_spread(others)
        found = max(found, abs(float(np.median(others)) - value))
    for short in shorts:
        found = max(found, off_by(short, len(others) > 1))
    return found


def half_spread(values: list[float]) -> float:
    """Half the range of the middle half of some values; of all values if fewer than eight.

    >>> half_spread([1.0, 2.0, 3.0, 7.0]), half_spread([*range(8), 100.0])
    (3.0, 2.0)
    """
    if len(values) < FEW:
        return float(np.ptp(values)) / 2.0
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low) / 2.0


def joint(
    found: list[Difference], lanes: list[Floats], spreads: list[Spread | None], confidence: float
) -> list[Difference]:
    """The same with simultaneous intervals.

    Their common level comes from the quantile of the largest deviation among the differences, each
    in its own standard errors, over the same bootstrap lanes (max-t); ends are BCa at that level.
    """
    from scipy.stats import norm

    usable = [
        k
        for k, one in enumerate(found)
        if spreads[k] is not None and len(lanes[k]) and one.standard_error and one.low != one.high
    ]
    if len(found) < 2 or not usable:
        return [replace(one, joint_low=one.low, joint_high=one.high) for one in found]
    values = np.array([found[k].value for k in usable], dtype=np.float64)
    errors = np.array([found[k].standard_error for k in usable], dtype=np.float64)
    apart = np.abs(np.column_stack([lanes[k] for k in usable]) - values) / errors
    apart = apart[np.isfinite(apart).all(axis=1)].max(axis=1)
    plain = float(norm.ppf(0.5 + confidence / 2.0))
    reach = max(float(np.quantile(apart, confidence, method="higher")), plain) if len(apart) else 0
    level = float(2.0 * norm.cdf(reach) - 1.0)
    made = [replace(one, joint_low=one.low, joint_high=one.high) for one in found]
    for k in usable:
        one, spread = found[k], spreads[k]
        assert spread is not None  # noqa: S101
        assert one.value is not None  # noqa: S101
        wide = bca(one.value, lanes[k], spread, min(level, 1.0 - 1e-12))
        made[k] = replace(
            one, joint_low=_least(wide.low, one.low), joint_high=_most(wide.high, one.high)
        )
    return made


def _least(wide: float, own: float | None) -> float:
    return wide if own is None else min(wide, own)


def _most(wide: float, own: float | None) -> float:
    return wide if own is None else max(wide, own)
