"""From decoded columns to transitions: successors, truncation, what is dropped.

A row needs the row after it, so the last row of each batch waits for the next batch; batch
boundaries inside an episode do not matter. With `last` the final row of an episode:

- its successor is its own next observation if the log gives one, else the row after it,
- a terminated row needs none (discount 0); a truncated one keeps gamma and needs one,
- a flag on a row that is only a final observation ends the row before it,
- a row that needs a successor and has none is dropped and counted; nothing is invented,
- the row at which a requested horizon ends needs none: without one it counts as terminated,
- if nothing else is left of an episode, that row's state still tells where it started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from o2td.arrays import Bools, Floats, Ints
from o2td.sources.decode import Decoded
from o2td.sources.log_rows import NO_FINAL, UNHELD, LogRows, LoneStarts, inputs_of
from o2td.sources.places import Keys, Where
from o2td.sources.ratio import Place, RatioRule

_RATIO = (
    *("rho", "behavior_prob", "target_prob", "behavior_logprob", "target_logprob"),
    *("behavior_probs",),
)
_FLAGS = ("terminated", "truncated")
ALONE = "final observation without a step before it"
_WAITING = 1 << 17  # lone starts kept until the next chunk, which carries them
_AFTER = "give the next episode another number, or remove the rows after the end"


@dataclass
class Tally:
    """Counts of one pass."""

    rows: int = 0
    transitions: int = 0
    episodes: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


class Stream:
    """Rows of one pass over a log."""

    def __init__(
        self,
        discount: float | None,
        ratio: RatioRule,
        tally: Tally,
        rows: int,
        horizon: int | None = None,
    ) -> None:
        self.discount = discount
        self.horizon = horizon
        self.rows = rows
        self.ratio = ratio
        self.tally = tally
        self._episode, self._step = -1, 0
        self._drop: Counter[str] = Counter()
        self._lone: list[LoneStarts] = []

    def chunks(self, batches: Iterator[tuple[Where, Decoded]]) -> Iterator[LogRows]:
        """One chunk per batch that completes a row, each held back until the next one.

        So the last one can carry lone starts that come after all transitions.
        """
        held: LogRows | None = None
        for chunk in self._made(batches):
            if held is not None:
                yield held
            held = chunk
        if held is not None:
            lone = LoneStarts.joined([held.lone, *(one.at(len(held)) for one in self._lone)])
            self._lone = []
            yield replace(held, lone=lone)

    def _made(self, batches: Iterator[tuple[Where, Decoded]]) -> Iterator[LogRows]:
        """Chunks, each with the waiting row in front of its batch's rows."""
        waiting: Decoded | None = None
        before = Where([])
        following = next(batches, None)
        while following is not None:
            (where, own), following = following, next(batches, None)
            lead = 0 if waiting is None else 1
            columns = own if waiting is None else _joined(waiting, own)
            count = len(columns["reward"])
            self.tally.rows += count - lead
            end = following is None and count <= self.rows
            yield from self._chunk(columns, _places(where, before, lead), end)
            waiting = None if end else {name: one[-1:].copy() for name, one in columns.items()}
            name, row = where.of(count - lead - 1)
            before = Where([name], 0, row - 1)
        if waiting is not None:
            yield from self._chunk(waiting, _places(before, before, 0), end=True)

    def _chunk(self, columns: Decoded, place: Place, end: bool) -> Iterator[LogRows]:
        """The complete rows: all but the last, or all at the end."""
        new, bare = columns["start"], columns.get("bare")
        count = len(new) if end else len(new) - 1
        if count == 0:
            return
        last = np.append(new[1:], True) if end else new[1:]
        terminated, truncated = (_ends(columns, flag)[:count] for flag in _FLAGS)
        self._check_ends(columns, terminated | truncated, last, place)
        known = _known(columns, count)
        if self.horizon is not None:
            reached = last & ~known & (self._steps(new[:count]) == self.horizon - 1)
            if bare is not None:
                reached &= ~bare[:count]
            terminated, truncated = terminated | reached, truncated & ~reached
        keep = terminated | known | ~last
        alone = new[:count] & last & ~keep
        if bare is not None:
            keep &= ~bare[:count]
            alone &= ~bare[:count]
            _count(self._drop, ALONE, bare[:count] & new[:count])
        empty = new[:count] & ~keep
        _count(self.tally.notes, "episodes of which no transition remains", empty)
        _count(self._drop, NO_FINAL, ~keep if bare is None else ~keep & ~bare[:count])
        if alone.any():
            self._keep_starts(columns, np.flatnonzero(alone), keep, place)
        chosen: slice | Ints = slice(0, count) if keep.all() else np.flatnonzero(keep)
        labels = self._labels(_take(new, chosen), _take(columns["key"], chosen))
        if not len(labels["start"]):
            return
        ends = {"terminated": terminated[chosen], "truncated": truncated[chosen]}
        rows = self._rows(columns, chosen, known[chosen], last[chosen], ends) | labels

        def chosen_place(row: int) -> tuple[Where, int]:
            return place(row if isinstance(chosen, slice) else int(chosen[row]))

        yield self._finish(rows, _own_values(columns, chosen, last[chosen]), chosen_place)

    def _keep_starts(self, columns: Decoded, which: Ints, keep: Bools, place: Place) -> None:
        """Keep the start states of episodes whose only row is dropped."""
        room = _WAITING - sum(len(lone) for lone in self._lone)
        if len(which) > room:
            self.tally.notes[UNHELD] += len(which) - room
            which = which[:room]
        if not len(which):
            return
        observation, state = columns.get("observation"), columns.get("state")
        inputs = inputs_of(observation, state).take(which, axis=0)
        probs = columns.get("target_probs")
        given = None if probs is None else probs.take(which, axis=0)
        chances = self.ratio.target_matrix(inputs, given, lambda row: place(int(which[row])))
        before = np.concatenate([[0], np.cumsum(keep)])[which]
        lone = LoneStarts(inputs, columns["key"][which], before, chances)
        if self.ratio.values is not None:
            raw: Decoded = {name: columns[name][which] for name in ("v", "q") if name in columns}
            at = self.ratio.values.at_starts(inputs, chances, raw, lambda k: place(int(which[k])))
            lone = replace(lone, value=at)
        self._lone.append(lone)

    def _finish(self, rows: dict[str, Any], raw: dict[str, Any], place: Place) -> LogRows:
        both = rows["terminated"] & rows["truncated"]
        _count(self.tally.notes, "terminated and truncated at once, read as terminated", both)
        self.ratio.apply(rows, place, self.tally.notes)
        rows["discount"] = self._discount(rows, place)
        drop, self._drop = dict(self._drop), Counter()
        self.tally.dropped.update(drop)
        self.tally.transitions += len(rows["reward"])
        self.tally.episodes = self._episode + 1
        lone, self._lone = LoneStarts.joined(self._lone), []
        made = LogRows(**rows, drop=drop, lone=lone)
        return made if self.ratio.values is None else self.ratio.values.apply(made, raw, place)

    def account(self) -> None:
        """Count what was dropped after the last chunk."""
        if self._lone:
            self.tally.notes[UNHELD] += sum(len(lone) for lone in self._lone)
        self.tally.dropped.update(self._drop)
        self._drop = Counter()

    def _check_ends(self, columns: Decoded, ended: Bools, last: Bools, place: Place) -> None:
        after, bare = ended & ~last, columns.get("bare")
        if bare is not None:
            early = bare[: len(last)] & ~last
            if early.any():
                where, row = place(int(np.argmax(early)))
                name = self.ratio.mapped.one("reward") or "reward"
                where.refuse(row, name, "is missing", "only an episode's last row may lack it")
            after &= ~np.append(bare[1:], False)[: len(after)]
        if after.any():
            row = int(np.argmax(after))
            role = "terminated" if columns["terminated"][row] else "truncated"
            name = self.ratio.mapped.one(role) or self.ratio.mapped.one("done") or role
            where, row = place(row + 1)
            where.refuse(row, name, "comes after the row that ended the episode", _AFTER)

    def _rows(
        self,
        columns: Decoded,
        chosen: slice | Ints,
        known: Bools,
        last: Bools,
        flags: dict[str, Bools],
    ) -> dict[str, Any]:
        """All fields of the chosen rows, with their successors."""
        rows: dict[str, Any] = {
            name: None if (value := columns.get(name)) is None else _take(value, chosen)
            for name in ("reward", "action", *_RATIO, "discount")
        }
        rows |= flags
        ends = flags["terminated"]
        for name in ("observation", "state"):
            here = columns.get(name)
            rows[name] = rows[f"next_{name}"] = None
            if here is not None:
                rows[name] = _take(here, chosen)
                following = _successors(here, columns.get(f"next_{name}"), known, chosen)
                following[ends] = rows[name][ends] if name == "observation" else -1
                rows[f"next_{name}"] = following
        rows["target_probs"] = rows["next_target_probs"] = None
        probs = columns.get("target_probs")
        if probs is not None:
            rows["target_probs"] = _take(probs, chosen)
            given = columns.get("next_target_probs")
            rows["next_target_probs"] = self._next_probs(probs, given, chosen, last, ends)
        return rows

    def _next_probs(
        self, probs: Floats, given: Floats | None, chosen: slice | Ints, last: Bools, ends: Bools
    ) -> Floats:
        """pi(.|s') as given, else from the next row; NaN if neither is known."""
        following = _following(probs, given, chosen, last)
        following[ends] = 0.0
        unknown = np.isnan(following).any(axis=1)
        _count(self.tally.notes, "next_target_prob unknown in the last row of an episode", unknown)
        return following

    def _labels(self, start: Bools, key: Keys) -> dict[str, Any]:
        """Start marks, episode, step and key of the rows that are kept."""
        episode: Ints = self._episode + np.cumsum(start)
        step = self._steps(start)
        if len(start):
            self._episode, self._step = int(episode[-1]), int(step[-1]) + 1
        return {"start": start, "episode": episode, "step": step, "key": key}

    def _steps(self, start: Bools) -> Ints:
        """The number of each row within its episode, from 0."""
        position = np.arange(len(start), dtype=np.int64)
        found: Ints = position - np.maximum.accumulate(np.where(start, position, -self._step))
        return found

    def _discount(self, rows: dict[str, Any], place: Place) -> Floats:
        given = rows["discount"]
        if given is None:
            return np.where(rows["terminated"], 0.0, self.discount or 0.0)
        bad = (given < 0.0) | (given > 1.0)
        if bad.any():
            where, index = place(int(np.argmax(bad)))
            name = self.ratio.mapped.one("discount") or "discount"
            where.refuse(index, name, f"is {given[np.argmax(bad)]:g}", "a discount is in [0, 1]")
        return np.where(rows["terminated"], 0.0, given)


def _count(counts: Counter[str], reason: str, rows: Any) -> None:
    """Count the marked rows; a reason that never occurred is not listed."""
    if rows.any():
        counts[reason] += int(rows.sum())


def _places(where: Where, before: Where, lead: int) -> Place:
    """The place of each row, behind the row that waited (`lead` is then 1)."""
    return lambda row: (before, 0) if row < lead else (where, row - lead)


def _joined(waiting: Decoded, own: Decoded) -> Decoded:
    """The row that waited and the rows of the next batch; a mask may be absent from one of them."""
    both = {}
    for name in waiting.keys() | own.keys():
        parts = [
            columns.get(name, np.full(len(columns["reward"]), name == "next_known"))
            for columns in (waiting, own)
        ]
        both[name] = np.concatenate(parts)
    return both


def _ends(columns: Decoded, flag: str) -> Bools:
    """The flag of each row; that of a final observation applies to the step before it."""
    marks: Bools = columns[flag]
    bare = columns.get("bare")
    if bare is None:
        return marks
    final = bare & ~columns["start"] & marks
    carried: Bools = (marks & ~bare) | np.append(final[1:], False)
    return carried


def _known(columns: Decoded, count: int) -> Bools:
    """Rows whose own successor is written in the log."""
    if any(name in columns and f"next_{name}" not in columns for name in ("observation", "state")):
        return np.zeros(count, dtype=np.bool_)
    known = columns.get("next_known")
    everywhere: Bools = np.ones(count, dtype=np.bool_) if known is None else known[:count]
    return everywhere


def _take(rows: Any, chosen: slice | Ints) -> Any:
    """The chosen rows: a view if they are consecutive, else a copy."""
    return rows[chosen] if isinstance(chosen, slice) else rows.take(chosen, axis=0)


def _own_values(columns: Decoded, chosen: slice | Ints, last: Bools) -> dict[str, Any]:
    """What columns say of the values of rows and of their successors, where there are such."""
    found = {}
    for name in ("v", "q"):
        here = columns.get(name)
        if here is not None:
            given = columns.get("next_v") if name == "v" else None
            found[name] = _take(here, chosen)
            found[f"next_{name}"] = _following(here, given, chosen, last)
    if "q" in columns and "next_v" in columns:
        found["next_v"] = _take(columns["next_v"], chosen)
    return found


def _following(here: Floats, given: Floats | None, chosen: slice | Ints, last: Bools) -> Floats:
    """What the log gives for the successor, else the row after; NaN where neither is known."""
    known = np.zeros(len(last), dtype=np.bool_)
    if given is not None:
        fine = np.isfinite(_take(given, chosen))
        known = fine if fine.ndim == 1 else fine.all(axis=1)
    following: Floats = _successors(here, given, known, chosen)
    following[last & ~known] = np.nan
    return following


def _successors(here: Any, given: Any, known: Bools, chosen: slice | Ints) -> Any:
    """The successor written in the row if known, else the next row (at the end, itself)."""
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
