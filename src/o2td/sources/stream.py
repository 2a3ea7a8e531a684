"""From blocks of rows to chunks of transitions: successors, truncation, what is dropped.

A row needs the row after it, so the last row of each block waits for the next block; chunk
boundaries inside an episode do not matter. With `last` the final row of an episode:

- its successor is its own next observation where the log gives one, else the row after it,
- a terminated row needs none (discount 0); a truncated one keeps gamma and needs one,
- a flag on a row that is only a final observation ends the row before it,
- a row that needs a successor and has none is dropped and counted; nothing is invented,
- of an episode of which nothing else is left, that row's state still tells where it started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from o2td.sources.blocks import Block, Bools, Floats, Ints, Keys, Where
from o2td.sources.ratio import Ratio
from o2td.sources.rows import NO_FINAL, UNHELD, LogRows, LoneStarts, inputs_of

_JOINED = (
    *("new", "key", "reward", "terminated", "truncated", "state", "action", "next_observation"),
    *("next_state", "next_known", "bare", "rho", "behavior_prob", "target_prob"),
    *("behavior_logprob", "target_logprob", "next_target_probs", "discount"),
)
_PADDED = ("observation", "target_probs")
_FLAGS = ("terminated", "truncated")
ALONE = "final observation without a step before it"
_WAITING = 1 << 17  # lone starts held until a chunk comes that they can go with
_AFTER = "give the next episode another number, or remove the rows after the end"


@dataclass
class Tally:
    """Counts of one pass."""

    rows: int = 0
    transitions: int = 0
    episodes: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


class Window:
    """The rows of a block, behind the row that waited for it (`lead` is then 1)."""

    def __init__(self, block: Block, waiting: Block | None) -> None:
        self.block, self.waiting = block, waiting
        self.lead = 0 if waiting is None else 1
        self.n = len(block) + self.lead
        for name in _PADDED:
            rows, first = getattr(block, name), getattr(waiting, name, None)
            if rows is not None and first is not None:
                rows[0] = first[-1]

    def get(self, name: str) -> Any:
        """A field of all rows of the window, None where the log does not give it."""
        value = getattr(self.block, name)
        if name in _PADDED:
            return None if value is None else value[1 - self.lead :]
        if self.waiting is None:
            return value
        first = getattr(self.waiting, name)
        if value is None and first is None:
            return None
        # A mask that is absent in one block says "all known" or "none bare".
        blank = name == "next_known"
        first = np.full(1, blank) if first is None else first
        value = np.full(len(self.block), blank) if value is None else value
        return np.concatenate([first, value])

    def place(self, row: int) -> tuple[Where, int]:
        """Where a row of the window stands in its file."""
        if row < self.lead and self.waiting is not None:
            return self.waiting.where, 0
        return self.block.where, row - self.lead

    def tail(self) -> Block:
        """The last row alone, which waits for the next block."""
        block = self.block
        values: dict[str, Any] = {}
        for name in _JOINED:
            array = getattr(block, name)
            values[name] = None if array is None else array[-1:].copy()
        values["key"] = block.key[-1:] if block.new[-1] else block.key[:0]
        for name in _PADDED:
            array = getattr(block, name)
            values[name] = None if array is None else np.repeat(array[-1:], 2, axis=0)
        name, row = block.where.of(len(block) - 1)
        return replace(block, where=Where([name], 0, row - 1), **values)


class Stream:
    """Chunks of one pass over a log."""

    def __init__(self, discount: float | None, ratio: Ratio, tally: Tally, rows: int) -> None:
        self.discount = discount
        self.rows = rows
        self.ratio = ratio
        self.tally = tally
        self._episode, self._step, self._key = -1, 0, np.uint64(0)
        self._drop: Counter[str] = Counter()
        self._lone: list[LoneStarts] = []

    def chunks(self, blocks: Iterator[Block]) -> Iterator[LogRows]:
        """One chunk for each block that completes a row, each held until the next one comes.

        So the last one can take along lone starts that come after all transitions.
        """
        held: LogRows | None = None
        for chunk in self._made(blocks):
            if held is not None:
                yield held
            held = chunk
        if held is not None:
            lone = LoneStarts.joined([held.lone, *(one.at(len(held)) for one in self._lone)])
            self._lone = []
            yield replace(held, lone=lone)

    def _made(self, blocks: Iterator[Block]) -> Iterator[LogRows]:
        waiting: Block | None = None
        block = next(blocks, None)
        while block is not None:
            following = next(blocks, None)
            self.tally.rows += len(block)
            window = Window(block, waiting)
            end = following is None and window.n <= self.rows
            yield from self._chunk(window, end)
            waiting = None if end else window.tail()
            block = following
        if waiting is not None:
            yield from self._chunk(Window(waiting, None), end=True)

    def _chunk(self, window: Window, end: bool) -> Iterator[LogRows]:
        """The rows of the window that are complete: all but the last, or all at the end."""
        count = window.n if end else window.n - 1
        if count == 0:
            return
        new = window.get("new")
        last = np.append(new[1:], True) if end else new[1:]
        bare = window.get("bare")
        terminated, truncated = (_ends(window, flag, bare, new)[:count] for flag in _FLAGS)
        self._check_ends(window, terminated | truncated, last, bare)
        known = _known(window, count)
        keep = terminated | known | ~last
        if bare is not None:
            keep &= ~bare[:count]
            alone = int((bare & new)[:count].sum())
            if alone:
                self._drop[ALONE] += alone
        empty = int((new[:count] & ~keep).sum())
        if empty:
            self.tally.notes["episodes of which no transition remains"] += empty
        lost = count - int(keep.sum()) - (0 if bare is None else int(bare[:count].sum()))
        if lost:
            self._drop[NO_FINAL] += lost
        kept = None if keep.all() else np.flatnonzero(keep)
        labels, keys = self._labels(window, new[:count], keep)
        alone_here = new[:count] & last & ~keep
        if bare is not None:
            alone_here &= ~bare[:count]
        if alone_here.any():
            self._keep_starts(window, np.flatnonzero(alone_here), keep, keys)
        if kept is not None and not len(kept):
            return
        chosen = slice(0, count) if kept is None else kept
        ends = {"terminated": terminated[chosen], "truncated": truncated[chosen]}
        rows = self._rows(window, chosen, known[chosen], last[chosen], ends) | labels

        def place(row: int) -> tuple[Where, int]:
            return window.place(row if kept is None else int(kept[row]))

        yield self._finish(rows, place)

    def _keep_starts(self, window: Window, which: Ints, keep: Bools, keys: Keys) -> None:
        """Note where episodes started whose only row is dropped."""
        room = _WAITING - sum(len(lone) for lone in self._lone)
        if len(which) > room:
            self.tally.notes[UNHELD] += len(which) - max(room, 0)
            which = which[: max(room, 0)]
        if not len(which):
            return
        observation, state = window.get("observation"), window.get("state")
        inputs = inputs_of(observation, state).take(which, axis=0)

        def place(row: int) -> tuple[Where, int]:
            return window.place(int(which[row]))

        probs = window.get("target_probs")
        given = None if probs is None else probs.take(which, axis=0)
        self._lone.append(
            LoneStarts(
                inputs,
                keys[which],
                np.concatenate([[0], np.cumsum(keep)])[which],
                self.ratio.target_matrix(inputs, given, place),
            )
        )

    def _finish(self, rows: dict[str, Any], place: Any) -> LogRows:
        both = int((rows["terminated"] & rows["truncated"]).sum())
        if both:
            self.tally.notes["terminated and truncated at once, read as terminated"] += both
        self.ratio.apply(rows, place, self.tally.notes)
        rows["discount"] = self._discount(rows, place)
        drop, self._drop = dict(self._drop), Counter()
        self.tally.dropped.update(drop)
        self.tally.transitions += len(rows["reward"])
        self.tally.episodes = self._episode + 1
        lone, self._lone = LoneStarts.joined(self._lone), []
        return LogRows(**rows, drop=drop, lone=lone)

    def account(self) -> None:
        """Count what was dropped after the last chunk."""
        if self._lone:
            self.tally.notes[UNHELD] += sum(len(lone) for lone in self._lone)
        self.tally.dropped.update(self._drop)
        self._drop = Counter()

    def _check_ends(self, window: Window, ended: Bools, last: Bools, bare: Bools | None) -> None:
        if bare is not None and (bare[: len(last)] & ~last).any():
            row = int(np.argmax(bare[: len(last)] & ~last))
            where, index = window.place(row)
            name = self.ratio.mapped.one("reward") or "reward"
            where.refuse(index, name, "is missing", "only an episode's last row may lack it")
        after = ended & ~last
        if bare is not None and after.any():
            after &= ~np.append(bare[1:], False)[: len(after)]
        if after.any():
            row = int(np.argmax(after))
            where, index = window.place(row + 1)
            role = "terminated" if window.get("terminated")[row] else "truncated"
            name = self.ratio.mapped.one(role) or self.ratio.mapped.one("done") or role
            where.refuse(index, name, "comes after the row that ended the episode", _AFTER)

    def _rows(
        self,
        window: Window,
        chosen: slice | Ints,
        known: Bools,
        last: Bools,
        flags: dict[str, Bools],
    ) -> dict[str, Any]:
        """All fields of the chosen rows, with their successors."""
        rows: dict[str, Any] = {
            name: None if (value := window.get(name)) is None else _take(value, chosen)
            for name in ("reward", "action", *_RATIO, "discount")
        }
        rows |= flags
        ends = flags["terminated"]
        for name in ("observation", "state"):
            here = window.get(name)
            rows[name] = rows[f"next_{name}"] = None
            if here is not None:
                rows[name] = _take(here, chosen)
                following = _successors(here, window.get(f"next_{name}"), known, chosen)
                following[ends] = rows[name][ends] if name == "observation" else -1
                rows[f"next_{name}"] = following
        rows["target_probs"] = rows["next_target_probs"] = None
        probs = window.get("target_probs")
        if probs is not None:
            rows["target_probs"] = _take(probs, chosen)
            given = window.get("next_target_probs")
            rows["next_target_probs"] = self._next_probs(probs, given, chosen, last, ends)
        return rows

    def _next_probs(
        self, probs: Floats, given: Floats | None, chosen: slice | Ints, last: Bools, ends: Bools
    ) -> Floats:
        """pi(.|s') as given, else from the row after; NaN where neither is known."""
        known = np.zeros(len(last), dtype=np.bool_)
        if given is not None:
            known = np.isfinite(_take(given, chosen)).all(axis=1)
        following: Floats = _successors(probs, given, known, chosen)
        following[last & ~known] = np.nan
        following[ends] = 0.0
        unknown = int(np.isnan(following).any(axis=1).sum())
        if unknown:
            self.tally.notes["next_target_prob unknown in the last row of an episode"] += unknown
        return following

    def _labels(self, window: Window, new: Bools, keep: Bools) -> tuple[dict[str, Any], Keys]:
        """Start marks, episode, step and key of the rows that are kept, and the keys of all."""
        start = (new & keep)[keep]
        position = np.arange(len(start), dtype=np.int64)
        episode: Ints = self._episode + np.cumsum(start)
        step: Ints = position - np.maximum.accumulate(np.where(start, position, -self._step))
        names: Keys = np.concatenate([[self._key], window.get("key")])
        keys: Keys = names[np.cumsum(new)]
        if len(start):
            self._episode, self._step = int(episode[-1]), int(step[-1]) + 1
        self._key = names[int(new.sum())]
        return {"start": start, "episode": episode, "step": step, "key": keys[keep]}, keys

    def _discount(self, rows: dict[str, Any], place: Any) -> Floats:
        given = rows["discount"]
        if given is None:
            return np.where(rows["terminated"], 0.0, self.discount or 0.0)
        bad = (given < 0.0) | (given > 1.0)
        if bad.any():
            where, index = place(int(np.argmax(bad)))
            name = self.ratio.mapped.one("discount") or "discount"
            where.refuse(index, name, f"is {given[np.argmax(bad)]:g}", "a discount is in [0, 1]")
        return np.where(rows["terminated"], 0.0, given)


_RATIO = ("rho", "behavior_prob", "target_prob", "behavior_logprob", "target_logprob")


def _ends(window: Window, flag: str, bare: Bools | None, new: Bools) -> Bools:
    """The flag of each row; what a final observation says holds for the step that led to it."""
    marks: Bools = window.get(flag)
    if bare is None:
        return marks
    final = bare & ~new & marks
    carried: Bools = (marks & ~bare) | np.append(final[1:], False)
    return carried


def _known(window: Window, count: int) -> Bools:
    """Rows whose own successor is written in the log."""
    for name in ("observation", "state"):
        if getattr(window.block, name) is not None and window.get(f"next_{name}") is None:
            return np.zeros(count, dtype=np.bool_)
    known = window.get("next_known")
    everywhere: Bools = np.ones(count, dtype=np.bool_) if known is None else known[:count]
    return everywhere


def _take(rows: Any, chosen: slice | Ints) -> Any:
    """The chosen rows: a view of consecutive ones, else a copy."""
    return rows[chosen] if isinstance(chosen, slice) else rows.take(chosen, axis=0)


def _successors(here: Any, given: Any, known: Bools, chosen: slice | Ints) -> Any:
    """The successor written in the row where known, else the row after (at the end, itself)."""
    if given is not None and known.all():
        return np.array(_take(given, chosen))
    if isinstance(chosen, slice):
        inner = min(chosen.stop, len(here) - 1)
        following = np.concatenate([here[1 : 1 + inner], here[inner : chosen.stop]])
    else:
        following = here.take(np.minimum(chosen + 1, len(here) - 1), axis=0)
    if given is not None:
        following[known] = _take(given, chosen)[known]
    return following
