"""The first pass over a log: diagnostics of its weights, and a sample of whole episodes.

The share of the target's probability that the logged actions cover is `E_b[rho]`, which is 1 if the
behaviour sometimes does whatever the target does. What a step loses adds up over further steps: the
share of the target's discounted visits that the log covers is `sum_t (gamma s)^t / sum_t gamma^t`
over the length of the episodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from o2td.arrays import Floats, Ints
from o2td.errors import InputError
from o2td.evaluation.episodes import Episodes, Keys, joined
from o2td.evaluation.histories import effective, padded_sum
from o2td.evaluation.importance import Weighed
from o2td.evaluation.pareto import pareto_shape, tail_size
from o2td.evaluation.systems import FOLDS

SAMPLE = 100_000  # rows of the sample
FEWEST = 20  # episodes in it, if the log has that many
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
_LISTED = 10  # largest weights shown
_TOLD = 10.0  # least effective episodes for a value up to a step to be given
_DRAWN = 200  # and to be drawn
_BLOCKS = 64  # blocks of a sample before they are joined: small ones are mostly overhead
_SALT = np.uint64(0xD1B54A32D192ED03)


def folds_of(key: Keys, folds: int) -> Any:
    """The fold of each episode, from its key alone."""
    mixed = (key ^ (key >> np.uint64(29))) * _SALT
    return ((mixed >> np.uint64(33)) % np.uint64(folds)).astype(np.int64)


def by_fold(block: Episodes) -> Episodes:
    """A block with its episodes sorted by fold, so that a fold is one range of rows."""
    return block.ordered(np.argsort(folds_of(block.key, FOLDS), kind="stable"))


@dataclass(eq=False)
class Sample:
    """Whole episodes, chosen by their keys so that the choice does not depend on the order.

    If a log does not fit, episodes longer than a tenth of `limit` keep only their first rows, so
    that about `FEWEST` episodes fit.
    """

    limit: int
    rows: int = 0
    threshold: float = 1.0
    full: bool = False
    blocks: list[Episodes] = field(default_factory=list)

    def add(self, block: Episodes) -> None:
        """Add a block; halve the sample if it has become too large."""
        self._keep(block)
        if self.rows > self.limit and not self.full:
            self.full = True
            self._again()
        while self.rows > self.limit and sum(b.count for b in self.blocks) > FEWEST:
            self.threshold /= 2.0
            self._again()
        if len(self.blocks) > _BLOCKS:
            self.joined()

    def merge(self, other: Sample) -> None:
        """Bring both to the smaller threshold, then add the other's episodes."""
        self.threshold = min(self.threshold, other.threshold)
        self.full |= other.full
        blocks, self.blocks, self.rows = [*self.blocks, *other.blocks], [], 0
        for block in blocks:
            self.add(block)

    def _again(self) -> None:
        before, self.blocks, self.rows = self.blocks, [], 0
        for held in before:
            self._keep(held)

    def _keep(self, block: Episodes) -> None:
        if not self._drawn(block.key).any():
            return
        part = block if self.threshold >= 1.0 else self._chosen(block)
        if self.full:
            part = part.shortened(max(self.limit // 10, 1))
        self.blocks.append(part)
        self.rows += len(part.rows)

    def _drawn(self, key: Keys) -> Any:
        return ((key * _SALT) >> np.uint64(11)).astype(np.float64) / 2.0**53 < self.threshold

    def _chosen(self, block: Episodes) -> Episodes:
        lone = None if block.lone is None else self._drawn(block.lone.key)
        return block.pick(self._drawn(block.key), lone)

    def joined(self) -> Episodes:
        """The sample as one block."""
        if len(self.blocks) > 1:
            self.blocks = [joined(self.blocks)]
        return self.blocks[0]


@dataclass(eq=False)
class Survey:
    """What one pass found."""

    sample: Sample = field(default_factory=lambda: Sample(SAMPLE))
    weighed: Weighed = field(default_factory=Weighed)
    rows: int = 0
    zero: int = 0
    taken: Floats = field(default_factory=lambda: np.zeros((3, 0)))
    highest: float = -np.inf
    lowest: float = np.inf
    largest_discount: float = 0.0
    smallest_discount: float = 1.0
    n_actions: int = 0
    unknown: int = 0  # rows whose successor lacks the target's probabilities
    low: Any = None  # least and largest input of each variable, successors included
    high: Any = None

    def add(self, block: Episodes) -> None:
        """Take in a block."""
        rows = block.rows
        self.weighed.add(block)
        self.sample.add(block)
        self.rows += len(rows)
        self.zero += int(np.count_nonzero(rows.rho == 0.0))
        self.highest = max(self.highest, float(rows.reward.max()))
        self.lowest = min(self.lowest, float(rows.reward.min()))
        alive = rows.discount[~rows.terminated]
        if len(alive):
            self.largest_discount = max(self.largest_discount, float(alive.max()))
            self.smallest_discount = min(self.smallest_discount, float(alive.min()))
        self._count_actions(rows)
        if rows.next_target_probs is not None:
            self.unknown += int(np.isnan(rows.next_target_probs).any(axis=1).sum())
        lone = () if block.lone is None else (block.lone.input,)
        for inputs in (rows.input, rows.next_input, *lone):
            self.widen(inputs.min(axis=0), inputs.max(axis=0))

    def merge(self, other: Survey) -> None:
        """Add another one's counts and sums."""
        self.weighed.merge(other.weighed)
        self.sample.merge(other.sample)
        self.rows, self.zero = self.rows + other.rows, self.zero + other.zero
        self.highest = max(self.highest, other.highest)
        self.lowest = min(self.lowest, other.lowest)
        self.largest_discount = max(self.largest_discount, other.largest_discount)
        self.smallest_discount = min(self.smallest_discount, other.smallest_discount)
        self.n_actions = max(self.n_actions, other.n_actions)
        self.unknown += other.unknown
        if other.low is not None:
            self.widen(other.low, other.high)
        pairs = zip(self.taken, other.taken, strict=True)
        self.taken = np.stack([padded_sum(one, two) for one, two in pairs])

    def widen(self, low: Any, high: Any) -> None:
        """Widen the range by more inputs."""
        self.low = low if self.low is None else np.minimum(self.low, low)
        self.high = high if self.high is None else np.maximum(self.high, high)

    def _count_actions(self, rows: Any) -> None:
        """By action: rows, sum of the ratios where it was taken, and of the target's probability."""
        action = rows.action
        if action is None or action.ndim != 1 or action.dtype.kind not in "iu":
            return
        wide = 0 if rows.target_probs is None else rows.target_probs.shape[1]
        if wide:
            _check_known(action, wide)
        if len(action) and (action.min() < 0 or action.max() > 1000):
            return
        count = max(self.taken.shape[1], int(action.max()) + 1, wide)
        grown = np.zeros((3, count))
        grown[:, : self.taken.shape[1]] = self.taken
        grown[0] += np.bincount(action, minlength=count)
        grown[1] += np.bincount(action, rows.rho, minlength=count)
        if wide:
            grown[2, :wide] += rows.target_probs.sum(axis=0)
            self.n_actions = wide
        self.taken = grown

    # -- what it means -----------------------------------------------------------------------------

    @property
    def episodes(self) -> int:
        """Number of episodes (pieces of long ones count)."""
        return self.weighed.count

    def most(self) -> float:
        """An upper bound of |value|: `max |r| sum_t gamma^t` over the longest possible episode."""
        gamma, longest = self.largest_discount, int(np.flatnonzero(self.weighed.lengths)[-1])
        return max(abs(self.highest), abs(self.lowest)) * (
            1.0 / (1.0 - gamma) if gamma < 1.0 else float(longest)
        )

    def bounds(self, horizon: int | None = None) -> tuple[float, float]:
        """Bounds of the values: `[min r, max r] sum_t gamma^t`, over one step or all."""
        gamma = self.largest_discount
        steps = int(np.flatnonzero(self.weighed.lengths)[-1]) if horizon is None else horizon
        most = 1.0 / (1.0 - gamma) if gamma < 1.0 and horizon is None else float(steps)
        if gamma < 1.0 and horizon is not None:
            most = (1.0 - gamma**horizon) / (1.0 - gamma)
        low, high = (self.lowest, self.highest)
        return low * (most if low < 0.0 else 1.0), high * (most if high > 0.0 else 1.0)

    def ahead(self) -> float:
        """Discounted visits from a visit on, including itself: `1 / (1 - gamma (1 - p))`."""
        ends = self.weighed.totals.ended / self.rows
        return 1.0 / max(1.0 - self.largest_discount * (1.0 - ends), 1e-9)

    def left(self) -> float:
        """Mean discount left where episodes were truncated (0 where they terminate)."""
        return self.weighed.totals.left / self.episodes

    @property
    def endless(self) -> bool:
        """Whether nothing is discounted and nothing terminates."""
        return self.smallest_discount >= 1.0 and not self.weighed.totals.ended

    @property
    def unended(self) -> int:
        """How many episodes neither terminate nor reach the horizon."""
        return int(self.episodes + self.weighed.lone - self.weighed.totals.ended)

    def hastened(self, dropped: int, unknown: int = 0) -> float:
        """Relative bias from dropping non-terminal last rows.

        Only last rows that terminate are kept, so `p = T / n` of the rows used seem to terminate
        instead of `T / (n + dropped)`; a value is proportional to the visits ahead.
        """
        ended, used = self.weighed.totals.ended, self.rows - unknown
        if not ended or not used:
            return 0.0
        gamma, all_rows = self.largest_discount, used + unknown + dropped
        short, right = (1.0 - gamma * (1.0 - ended / n) for n in (used, all_rows))
        return short / right - 1.0

    def lost(self, unheld: int, alone: bool = False) -> float:
        """Share of the episodes whose only row was dropped, and the start with it.

        With `alone`, those whose start is known count too: a start alone is of no use there.
        """
        lone = self.weighed.lone
        gone = unheld + (lone if alone else 0)
        return gone / (unheld + lone + self.episodes)

    def step_support(self) -> tuple[float, float]:
        """`E_b[rho]` over rows, and its standard error over episodes, infinite for only one."""
        sums, count = self.weighed.totals, self.episodes
        away = sums.apart / sums.rows
        if count < 2:
            return 1.0 + away, np.inf
        # Variance of sum_t (rho_t - mean) by episode, from sums of rho_t - 1 to limit rounding.
        square = sums.apart_squared - 2.0 * away * sums.apart_by_rows + away**2 * sums.rows_squared
        return 1.0 + away, float(np.sqrt(max(square, 0.0) * count / (count - 1)) / sums.rows)

    def support(self) -> float:
        """Share of the target's discounted visits that the log covers, two errors up."""
        mean, error = self.step_support()
        if mean <= 0.0:
            return 0.0
        step = min(1.0, mean + 2.0 * error)
        missing = self._missing()
        step = min(step, 1.0 - missing)
        lengths = self.weighed.lengths
        gamma = self.largest_discount
        steps = np.arange(int(np.flatnonzero(lengths)[-1]))
        alive = 1.0 - np.cumsum(lengths)[steps] / self.episodes
        whole = alive * gamma**steps
        return float((whole * step**steps).sum() / whole.sum())

    def _missing(self) -> float:
        """The target's probability of actions that were never logged at all."""
        if not self.n_actions or not self.taken[2].sum():
            return 0.0
        never = self.taken[0] == 0
        return float(self.taken[2][never].sum() / self.taken[2].sum())

    def weights(self) -> dict[str, Any]:
        """Diagnostics of the histories' weights, by name."""
        sums, count = self.weighed.totals, self.episodes
        total = self.weighed.spread("weight").mean * count
        # If fewer weights are positive than are listed, the others are 0.
        order = self.weighed.top.sorted()
        listed = np.concatenate([order, np.zeros(_LISTED)])[: min(_LISTED, count)]
        size = self.weighed.horizon.effective_size
        shown = [step for step in _STEPS if step <= len(size)]
        shares = listed / total if total > 0.0 else np.zeros(0)
        return {
            "effective_sample_size": float(effective(total, sums.weight_squared)),
            "effective_sample_size_by_horizon": {step: float(size[step - 1]) for step in shown},
            "effective_rows": float(effective(sums.rho, sums.rho_squared)),
            "max_rho": self.weighed.largest,
            "max_weight": float(listed[0]),
            "max_weight_share": float(shares[0]) if len(shares) else None,
            "largest_weights": listed,
            "largest_weights_share": float(shares.sum()) if len(shares) else None,
            "pareto_shape": pareto_shape(order, int(sums.positive)),
            "pareto_tail_size": min(tail_size(int(sums.positive)), max(len(order) - 1, 0)),
        }

    def overlap(self) -> list[dict[str, Any]]:
        """By action: how often it was logged and the target takes it, and the share covered."""
        found = []
        for action, (count, ratio, wanted) in enumerate(self.taken.T):
            known = self.n_actions > 0
            target = wanted / self.rows if known else ratio / self.rows
            met = min(ratio / wanted, 1.0) if known and wanted > 0.0 else None
            found.append(
                {
                    "action": action,
                    "logged": count / self.rows,
                    "target": target,
                    "share_met": met,
                }
            )
        return found

    def series(self) -> dict[str, Any]:
        """The data of a report's figures."""
        size = self.weighed.horizon.effective_size
        at = np.unique(np.geomspace(1, len(size), 60).astype(np.int64))
        weight = np.concatenate([self.weighed.top.sorted(), np.zeros(_DRAWN)])
        total = self.weighed.spread("weight").mean * self.episodes
        drawn = weight[: min(_DRAWN, self.episodes)]
        value = np.where(size < _TOLD, np.nan, np.cumsum(self.weighed.horizon.weighted()))
        return {
            "horizon": {"step": at, "size": size[at - 1], "value": value[at - 1]},
            "weights": drawn / total if total > 0.0 else [],
        }


def _check_known(action: Ints, count: int) -> None:
    """Refuse an action of which the target's probabilities say nothing, also where ratios are given."""
    bad = action[(action < 0) | (action >= count)]
    if len(bad):
        raise InputError(
            f"logs: an action is {bad[0]}, and the target has probabilities of {count} actions; number"
            " the actions from 0 in the order of these, or leave the probabilities out"
        )
