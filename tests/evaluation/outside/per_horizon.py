"""Per-horizon weighted doubly robust, as a package of somebody else's would add it.

Weights are normalised among episodes of the same length only (Doroudi, Thomas and Brunskill 2017),
because long and short episodes have weights of different sizes:
`V(s_0) + sum_l (n_l / n) sum_t (sum_{e in l} g_t w_t delta_t) / (sum_{e in l} w_t)`.
"""

from __future__ import annotations

import numpy as np

from o2td.evaluation import Column, Episodes, Histories, HybridEstimator, Passes, Study, histories


class WeightsByLength:
    """Sums of weights by length of the episode and step, and how many episodes have the length."""

    def __init__(self) -> None:
        self.total: dict[tuple[int, int], float] = {}
        self.count: dict[int, int] = {}

    def add(self, episodes: Episodes) -> None:
        weight, _, step = histories(episodes)
        length = np.diff(episodes.first)
        for one in np.unique(length):
            self.count[int(one)] = self.count.get(int(one), 0) + int((length == one).sum())
        each = np.repeat(length, length)
        keys, where = np.unique(np.column_stack([each, step]), axis=0, return_inverse=True)
        sums = np.bincount(where.ravel(), weight)
        for (own, at), value in zip(keys.tolist(), sums.tolist(), strict=True):
            self.total[own, at] = self.total.get((own, at), 0.0) + value

    def merge(self, other: WeightsByLength) -> None:
        for mine, theirs in ((self.total, other.total), (self.count, other.count)):
            for key, value in theirs.items():
                mine[key] = mine.get(key, 0) + value  # type: ignore[index,call-overload,operator]


class PerHorizonWDR(HybridEstimator):
    """Weighted doubly robust, normalised among episodes of one length."""

    name = "phwdr"
    title = "per-horizon weighted doubly robust"

    def collect(self, study: Study) -> Passes:
        self.sums = WeightsByLength()
        yield [self.sums]
        self.column = study.influences.want(self.make_column(study))
        yield [study.influences]

    def make_column(self, study: Study) -> Column:
        number = study.influences.correct(study.baseline)
        return Part(number, study.baseline.mean, study.weighed.units, self.sums)


class Part(Column):
    """What an episode adds to the mean of `V(s_0)`."""

    def __init__(self, baseline: int, base: float, units: int, sums: WeightsByLength) -> None:
        self.baseline, self.base, self.units, self.sums = baseline, base, units, sums

    def of(self, histories: Histories) -> np.ndarray:
        block = histories.episodes
        length = np.diff(block.first)
        each = np.repeat(length, length)
        sums = self.sums
        keys = zip(each.tolist(), histories.step.tolist(), strict=True)
        total = np.array([sums.total[key] for key in keys])
        share = np.array([sums.count[n] for n in each.tolist()]) / self.units
        error = histories.weight * histories.gone * histories.delta[self.baseline]
        scaled = np.divide(error, total, out=np.zeros(len(error)), where=total > 0.0)
        apart = np.where(block.opens, histories.first[self.baseline] - self.base, 0.0)
        return apart + self.units * block.sums(share * scaled)

    def alone(self, count: int, first: list[np.ndarray]) -> np.ndarray:
        return first[self.baseline] - self.base
