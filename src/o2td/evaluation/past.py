"""States extended by part of the past, for logs in which the state alone is not Markov.

Which part (the previous action, state or reward, or the step) is chosen by how well it predicts the
rewards, ends and next states of held-out episodes: predictions are means over the rows with the
same past, state and action, shrunk towards the means by state and action alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from o2td.arrays import Floats, Ints
from o2td.evaluation.basis import Cells
from o2td.evaluation.episodes import Episodes
from o2td.evaluation.horizon import steps_of
from o2td.evaluation.log_tests.score import means
from o2td.evaluation.log_tests.seen import Seen, marks, stratum_of

__all__ = ["Past", "PastCells", "choose_past"]

CHOICES = (
    ("action",),
    ("state", "action"),
    ("action", "reward"),
    ("step",),
    ("step", "action"),
    ("step", "reward"),
)
_MOST = 2.0**62


@dataclass(frozen=True)
class Past:
    """Numbering of states with part of their past; a first row has none."""

    parts: tuple[str, ...]
    states: int
    actions: int
    steps: int
    middle: float = 0.0  # the previous reward is coded as above or below this

    @property
    def fits(self) -> bool:
        """Whether there are numbers enough for all of them."""
        return float(self.states) ** 2 * (self.actions + 1.0) * (self.steps + 2.0) * 3.0 < _MOST

    def code(self, state: Ints, action: Ints, before: Ints, paid: Ints, step: Ints) -> Ints:
        """The number; `action`, `before` and `paid` are the previous row's plus 1, or 0."""
        code = state
        if "action" in self.parts:
            code = code * (self.actions + 1) + action
        if "state" in self.parts:
            code = code * (self.states + 1) + before
        if "reward" in self.parts:
            code = code * 3 + paid
        if "step" in self.parts:
            code = code * (self.steps + 2) + step
        return code

    def state_of(self, states: Any) -> Ints:
        """The number of start states."""
        none = np.zeros(len(states), dtype=np.int64)
        return self.code(np.asarray(states, dtype=np.int64), none, none, none, none)

    def __str__(self) -> str:
        names = {f"{part}": f"previous {part}" for part in ("action", "state", "reward")}
        names["step"] = "step"
        return "state with the " + " and ".join(names[part] for part in self.parts)


class PastCells(Cells):
    """One weight per state and past."""

    def __init__(self, past: Past) -> None:
        super().__init__(past)
        self.past = past

    @property
    def name(self) -> str:
        """In words."""
        return str(self.past)

    def index(self, block: Episodes) -> tuple[Ints, Ints]:
        """The number of each row and of its successor, -1 where it terminates."""
        rows, step = block.rows, np.minimum(steps_of(block), self.past.steps)
        state = np.asarray(rows.input, dtype=np.int64)
        taken = np.asarray(rows.action, dtype=np.int64)
        later = step > 0
        pays = (rows.reward > self.past.middle).astype(np.int64)
        action, before, paid = (np.where(later, np.roll(x, 1) + 1, 0) for x in (taken, state, pays))
        here = self.past.code(state, action, before, paid, step)
        following = np.asarray(rows.next_input, dtype=np.int64)
        ahead = self.past.code(following, taken + 1, state + 1, pays + 1, step + 1)
        return here, np.where(rows.terminated, -1, ahead)


def choose_past(view: Seen, states: int, actions: int, steps: int) -> Past | None:
    """The part of the past that predicts held-out rows best, or None if none helps."""
    y = _outcomes(view)
    plain, middle = stratum_of(view.pair), float(np.median(view.reward))
    if middle == view.reward.max():
        middle = float(view.reward.mean())
    least, best = _loss(y, plain, plain, view), None
    for parts in CHOICES:
        past = Past(parts, states, actions, steps, middle)
        if not past.fits:
            continue
        loss = _loss(y, strata(view, past), plain, view)
        if loss < least:
            least, best = loss, past
    return best


def strata(view: Seen, past: Past) -> Ints:
    """State, past and action of each row as one number without gaps."""
    here, _ = PastCells(past).index(view.episodes)
    _, code = np.unique(here, return_inverse=True)
    return stratum_of(code, view.action)


def _outcomes(view: Seen) -> Floats:
    rows = view.rows
    reward = view.reward[:, None] / max(float(view.reward.std()), 1e-12)
    ahead, _ = marks(np.where(rows.terminated, view.states, view.ahead), 12)
    return np.column_stack([reward, ahead])


def _loss(y: Floats, fine: Ints, coarse: Ints, view: Seen) -> float:
    """Mean squared error of means over the other half of the episodes."""
    total = 0.0
    half = view.unit % 2 == 1
    for fit in (half, ~half):
        base = np.broadcast_to(y[fit].mean(axis=0), y[~fit].shape)
        base = means(y, fine, fit, means(y, coarse, fit, base))
        total += float(np.square(y[~fit] - base).sum())
    return total / len(y)
