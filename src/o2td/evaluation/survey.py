"""The first pass over a log: what its weights allow, and a sample of whole episodes to try things on.

The share of the target's probability that the logged actions can carry is `E_b[rho]`, which is 1
where the behaviour sometimes does whatever the target does. A step that loses a little loses more
at every further step: the share of the target's discounted visits that the log can tell about is
`sum_t (gamma s)^t / sum_t gamma^t` over the length of the episodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from o2td.evaluation.blocks import Block, Floats, Keys, Log, joined
from o2td.evaluation.histories import effective
from o2td.evaluation.importance import Weighed
from o2td.evaluation.systems import FOLDS
from o2td.evaluation.tail import pareto_shape, tail_size

SAMPLE = 100_000  # rows of the sample
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
_LISTED = 10  # largest weights shown
_SALT = np.uint64(0xD1B54A32D192ED03)


def folds_of(key: Keys, folds: int) -> Any:
    """The fold of each episode, by its key alone."""
    mixed = (key ^ (key >> np.uint64(29))) * _SALT
    return ((mixed >> np.uint64(33)) % np.uint64(folds)).astype(np.int64)


def by_fold(block: Block) -> Block:
    """A block with its episodes sorted by fold, so that a fold is one stretch of rows."""
    return block.ordered(np.argsort(folds_of(block.key, FOLDS), kind="stable"))


@dataclass(eq=False)
class Sample:
    """Whole episodes, chosen by their keys so that the choice does not depend on the order."""

    limit: int = SAMPLE
    rows: int = 0
    threshold: float = 1.0
    blocks: list[Block] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """Take in a block; halve the sample where it has become too large."""
        self._keep(block)
        while self.rows > self.limit and sum(b.episodes for b in self.blocks) > 20:
            self.threshold /= 2.0
            before, self.blocks, self.rows = self.blocks, [], 0
            for held in before:
                self._keep(held)

    def _keep(self, block: Block) -> None:
        draw = ((block.key * _SALT) >> np.uint64(11)).astype(np.float64) / 2.0**53
        chosen = draw < self.threshold
        part = block if chosen.all() else block.pick(chosen)
        if part.episodes:
            self.blocks.append(part)
            self.rows += len(part.rows)

    def joined(self) -> Block:
        """The sample as one block."""
        if len(self.blocks) > 1:
            self.blocks = [joined(self.blocks)]
        return self.blocks[0]


@dataclass(eq=False)
class Survey:
    """What one pass found."""

    weighed: Weighed = field(default_factory=Weighed)
    sample: Sample = field(default_factory=Sample)
    rows: int = 0
    zero: int = 0
    taken: Floats = field(default_factory=lambda: np.zeros((3, 0)))
    highest: float = -np.inf
    lowest: float = np.inf
    largest_discount: float = 0.0
    smallest_discount: float = 1.0
    n_actions: int = 0
    low: Any = None  # least and largest input of each variable, successors included
    high: Any = None

    @classmethod
    def of(cls, log: Log, limit: int = SAMPLE) -> Survey:
        """Read the log once."""
        found: Survey = log.collect(cls(sample=Sample(limit)))
        return found

    def add(self, block: Block) -> None:
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
        for inputs in (rows.input, rows.next_input):
            self.widen(inputs.min(axis=0), inputs.max(axis=0))

    def widen(self, low: Any, high: Any) -> None:
        """Take in the range of more inputs."""
        self.low = low if self.low is None else np.minimum(self.low, low)
        self.high = high if self.high is None else np.maximum(self.high, high)

    def _count_actions(self, rows: Any) -> None:
        """By action: rows, sum of the ratios where it was taken, and of the target's probability."""
        action = rows.action
        if action is None or action.ndim != 1 or action.dtype.kind not in "iu":
            return
        if len(action) and (action.min() < 0 or action.max() > 1000):
            return
        wide = 0 if rows.target_probs is None else rows.target_probs.shape[1]
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
        return len(self.weighed.episodes["key"])

    def step_support(self) -> tuple[float, float]:
        """`E_b[rho]` over rows, and its standard error by episodes, infinite where there is one."""
        ratio, length = (self.weighed.episodes[name] for name in ("ratio", "length"))
        mean = float(ratio.sum() / length.sum())
        spread = ratio - mean * length
        count = len(ratio)
        if count < 2:
            return mean, np.inf
        return mean, float(np.sqrt((spread**2).sum() * count / (count - 1)) / length.sum())

    def support(self) -> float:
        """Share of the target's discounted visits that the log can tell about, given the doubt."""
        mean, error = self.step_support()
        if mean <= 0.0:
            return 0.0
        step = min(1.0, mean + 2.0 * error)
        missing = self._missing()
        step = min(step, 1.0 - missing)
        length = np.minimum(self.weighed.episodes["length"], 16_384)
        gamma = self.largest_discount
        steps = np.arange(int(length.max()))
        alive = 1.0 - np.searchsorted(np.sort(length), steps, side="right") / len(length)
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
        weight = self.weighed.episodes["weight"]
        total = float(weight.sum())
        order = np.sort(weight)[::-1]
        size = self.weighed.horizon.effective_size
        shown = [step for step in _STEPS if step <= len(size)]
        shares = order[:_LISTED] / total if total > 0.0 else np.zeros(0)
        return {
            "effective_sample_size": float(effective(total, float((weight**2).sum()))),
            "effective_sample_size_by_horizon": {step: float(size[step - 1]) for step in shown},
            "effective_rows": float(
                effective(
                    self.weighed.episodes["ratio"].sum(), self.weighed.episodes["square"].sum()
                )
            ),
            "max_rho": float(self.weighed.episodes["largest"].max()),
            "max_weight": float(order[0]),
            "max_weight_share": float(shares[0]) if len(shares) else None,
            "largest_weights": order[:_LISTED],
            "largest_weights_share": float(shares.sum()) if len(shares) else None,
            "pareto_shape": pareto_shape(weight),
            "pareto_tail_size": tail_size(int(np.count_nonzero(weight))),
        }

    def overlap(self) -> list[dict[str, Any]]:
        """By action: how often it was logged, how often the target takes it, and the share met."""
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
        """What the figures of a report draw."""
        size = self.weighed.horizon.effective_size
        at = np.unique(np.geomspace(1, len(size), 60).astype(np.int64))
        weight = np.sort(self.weighed.episodes["weight"])[::-1]
        total = float(weight.sum())
        return {
            "horizon": {"step": at, "size": size[at - 1]},
            "weights": (weight / total)[:200] if total > 0.0 else [],
        }
