"""The distribution of returns under the target: quantiles, and the mean of the worst share (CVaR).

Whole returns `G` are weighted by the weights `w` of whole histories: `F(x) = sum_e w_e [G_e <= x] /
sum_e w_e`. A quantile's interval inverts that of F at the estimate (Woodruff 1952). The mean of the
worst share `a` is `q - E[(q - G)^+] / a` with q the quantile at a (Rockafellar and Uryasev 2000),
whose derivative in q is 0, so its influence is that of a mean. Where the weights do not support a
mean, they do not support a tail either, and there is no answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from o2td.arguments import number
from o2td.arrays import Floats
from o2td.documents import finite
from o2td.errors import InputError
from o2td.evaluation.bootstrap import Keys, bca, poisson_counts, sandwich
from o2td.evaluation.moments import Spread
from o2td.evaluation.thresholds import CANNOT, CAUTION, worst

_REDRAWN = 1 << 14  # up to this many episodes a tail is recomputed in each lane
_MOST = 1 << 18  # episodes whose returns are kept
_TAIL = (10.0, 30.0)  # effective episodes beyond a quantile: fewer tell nothing, or little
_WHOLE = float(2**64)


@dataclass(eq=False)
class EpisodeReturns:
    """Returns and weights of episodes; of many episodes, a sample chosen by their keys."""

    threshold: float = 1.0
    parts: list[tuple[Keys, Floats]] = field(default_factory=list)
    count: int = 0

    def add(self, key: Keys, plain: Floats, weight: Floats) -> None:
        """Add episodes: return, and weight of the whole history."""
        self._keep(key, np.column_stack([plain, weight]))
        while self.count > _MOST:
            self.threshold /= 2.0
            self._again()

    def merge(self, other: EpisodeReturns) -> None:
        """Add another sample, at the smaller share of the two."""
        self.threshold = min(self.threshold, other.threshold)
        self.parts += other.parts
        self._again()
        while self.count > _MOST:
            self.threshold /= 2.0
            self._again()

    def _again(self) -> None:
        before, self.parts, self.count = self.parts, [], 0
        for key, values in before:
            self._keep(key, values)

    def _keep(self, key: Keys, values: Floats) -> None:
        if self.threshold < 1.0:
            mine = (key * np.uint64(0xD1342543DE82EF95)).astype(
                np.float64
            ) < self.threshold * _WHOLE
            key, values = key[mine], values[mine]
        self.parts.append((key, values))
        self.count += len(key)

    def joined(self) -> tuple[Keys, Floats, Floats]:
        """Keys, returns and weights."""
        key = np.concatenate([key for key, _ in self.parts])
        values = np.concatenate([values for _, values in self.parts])
        return key, values[:, 0], values[:, 1]


@dataclass(frozen=True)
class ReturnEstimate:
    """One figure about the distribution of returns.

    Parameters
    ----------
    name : str
        "quantile" or "cvar", the mean of the worst share.
    level : float
        Which quantile, or the share.
    value, low, high : float or None
        Under the target, with the interval; None if the log cannot tell.
    logged : float or None
        The same for the returns as logged.
    verdict, reasons : str, list of str
        "trust", "caution" or "cannot answer", and why.

    Examples
    --------
    >>> ReturnEstimate("cvar", 0.1, 2.0, 1.5, 2.4, 1.0, "trust").as_dict()["value"]
    2.0
    """

    name: str
    level: float
    value: float | None
    low: float | None
    high: float | None
    logged: float | None
    verdict: str
    reasons: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, none of them NaN or infinite."""
        return {name: finite(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class ReturnDistribution:
    """Returns of episodes with their weights, and the doubts about the weights."""

    sample: EpisodeReturns
    doubts: list[tuple[str, str]]
    confidence: float
    seed: Any
    lanes: int

    def quantile(self, level: float) -> ReturnEstimate:
        """The return below which a share `level` of the target's episodes stay."""
        key, plain, weight = self.sample.joined()
        notes = self._notes(weight, min(level, 1.0 - level))
        logged = float(np.quantile(plain, level)) if len(plain) else None
        if worst([verdict for verdict, _ in notes]) == CANNOT:
            return self._none("quantile", level, logged, notes)
        order = np.argsort(plain, kind="stable")
        share = np.cumsum(weight[order]) / weight.sum()
        value = _at(plain[order], share, level)
        each = weight * ((plain <= value) - level) / weight.mean()
        spread = _tailed(Spread.of(each, key), weight, min(level, 1.0 - level))
        reach = sandwich(0.0, spread, self.confidence).high
        low, high = (_at(plain[order], share, level + sign * reach) for sign in (-1.0, 1.0))
        return self._made("quantile", level, (value, low, high), logged, notes)

    def cvar(self, share: float) -> ReturnEstimate:
        """The mean of the worst `share` of the target's returns."""
        key, plain, weight = self.sample.joined()
        notes = self._notes(weight, share)
        logged = _worst(plain, np.ones(len(plain)), share)[0] if len(plain) else None
        if worst([verdict for verdict, _ in notes]) == CANNOT:
            return self._none("cvar", share, logged, notes)
        value, each = _worst(plain, weight, share)
        spread = Spread.of(weight * (each - value) / weight.mean(), key, self.seed, self.lanes)
        spread = _tailed(spread, weight, share)
        found = sandwich(value, spread, self.confidence)
        if self.lanes:
            lanes = value - spread.mean + spread.lanes
            if len(key) <= _REDRAWN:
                lanes = self._redrawn(key, plain, weight, share)
            found = bca(value, lanes, spread, self.confidence)
        return self._made("cvar", share, (value, found.low, found.high), logged, notes)

    def _redrawn(self, key: Keys, plain: Floats, weight: Floats, share: float) -> Floats:
        """The mean of the worst share in each bootstrap lane, with the lane's own quantile."""
        order = np.argsort(plain, kind="stable")
        drawn = poisson_counts(key[order], self.seed, self.lanes) * weight[order, None]
        some = drawn.sum(axis=0) > 0.0
        found = np.full(self.lanes, np.nan)
        for lane in np.flatnonzero(some):
            found[lane] = _worst(plain[order], drawn[:, lane], share)[0]
        return found

    def _notes(self, weight: Floats, tail: float) -> list[tuple[str, str]]:
        notes = list(self.doubts)
        beyond = _beyond(weight, tail)
        if beyond < _TAIL[0]:
            notes.append((CANNOT, f"about {beyond:.1f} effective episodes lie beyond it: too few"))
        elif beyond < _TAIL[1]:
            notes.append((CAUTION, f"about {beyond:.0f} effective episodes lie beyond it"))
        return notes

    @staticmethod
    def _none(
        name: str, level: float, logged: float | None, notes: list[tuple[str, str]]
    ) -> ReturnEstimate:
        reasons = [reason for _, reason in notes]
        return ReturnEstimate(name, level, None, None, None, logged, CANNOT, reasons)

    @staticmethod
    def _made(
        name: str,
        level: float,
        found: tuple[float, float, float],
        logged: float | None,
        notes: list[tuple[str, str]],
    ) -> ReturnEstimate:
        verdict = worst([verdict for verdict, _ in notes])
        reasons = [reason for _, reason in notes]
        value, low, high = (float(one) for one in found)
        return ReturnEstimate(name, level, value, low, high, logged, verdict, reasons)


def share_of(name: str, value: Any) -> float:
    """A share strictly between 0 and 1."""
    share = number(name, value, 0.0, 1.0)
    if 0.0 < share < 1.0:
        return share
    raise InputError(f"{name}: {value} is not a share; pass one between 0 and 1, such as 0.1")


def _beyond(weight: Floats, tail: float) -> float:
    """Effective episodes in a tail of this share."""
    square = float(weight @ weight)
    return tail * float(weight.sum()) ** 2 / square if square > 0.0 else 0.0


def _tailed(spread: Spread, weight: Floats, tail: float) -> Spread:
    """The same with the tail's number of units, so that t and BCa widen by it."""
    few = min(_beyond(weight, tail), spread.carrying, spread.count)
    return replace(spread, count=max(int(few), 2))


def _at(plain: Floats, share: Floats, level: float) -> float:
    """The smallest return whose share is at least `level`, or the outermost one."""
    place = int(np.searchsorted(share, level - 1e-12))
    return float(plain[min(max(place, 0), len(plain) - 1)])


def _worst(plain: Floats, weight: Floats, share: float) -> tuple[float, Floats]:
    """The mean of the worst share, and `q - (q - G)^+ / share` per episode."""
    order = np.argsort(plain, kind="stable")
    level = _at(plain[order], np.cumsum(weight[order]) / weight.sum(), share)
    each = level - np.maximum(level - plain, 0.0) / share
    return float(weight @ each / weight.sum()), each
