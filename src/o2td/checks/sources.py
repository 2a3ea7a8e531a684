"""Checks of sources: the same rows at every reading, episodes in order, ends that are ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.checks.base import DoesNotApply, expect, expect_close, expect_equal, promise
from o2td.checks.base import expect_refusal as refuses
from o2td.errors import InputError

SIZES = (1, 7, 1000)
VECTORS = (
    "reward",
    "terminated",
    "truncated",
    "discount",
    "start",
    "episode",
    "step",
    "rho",
    "key",
)
EXTRAS = ("observation", "next_observation", "state", "next_state", "action")


class CheckedSource:
    """A source, and its rows as one pass gave them."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self._rows: dict[str, Any] = {}

    @property
    def rows(self) -> dict[str, Any]:
        """All columns of a pass with chunks of the default size."""
        if not self._rows:
            self._rows = gathered(self.source)
        return self._rows

    @property
    def last(self) -> Any:
        """Whether each row is the last of its episode."""
        return np.append(self.rows["episode"][1:] != self.rows["episode"][:-1], True)


def subject(given: Any) -> tuple[CheckedSource, str]:
    """A source with the name to show."""
    if not callable(getattr(given, "chunks", None)):
        raise InputError(f"sources: check a source, such as open_logs(...), not {given!r}")
    return CheckedSource(given), type(given).__name__


def gathered(source: Any, **size: int) -> dict[str, Any]:
    """The columns that a pass yields, joined."""
    chunks = list(source.chunks(**size))
    expect(chunks, "no rows at all")
    columns = {}
    for name in (*VECTORS, *EXTRAS):
        parts = [getattr(chunk, name) for chunk in chunks]
        columns[name] = None if parts[0] is None else np.concatenate(parts)
    return columns


@promise("sources", "a second pass gives the same rows")
def read_again(log: CheckedSource) -> None:
    """Solvers and intervals need several passes."""
    _same(log.rows, gathered(log.source))


@promise("sources", "chunks of any size give the same rows")
def chunk_sizes(log: CheckedSource) -> None:
    """Including one row at a time."""
    for size in SIZES:
        _same(log.rows, gathered(log.source, rows=size))


@promise("sources", "no chunk is empty or larger than requested")
def bounded(log: CheckedSource) -> None:
    """Memory stays bounded by the caller's choice."""
    for size in SIZES:
        found = {len(chunk) for chunk in log.source.chunks(rows=size)}
        expect(
            min(found) >= 1 and max(found) <= size, f"chunks of {found} rows where {size} is most"
        )


@promise("sources", "a chunk of no rows cannot be requested")
def no_rows(log: CheckedSource) -> None:
    """Refused with a sentence."""
    refuses(lambda: next(iter(log.source.chunks(rows=0))), "rows=0", "rows")


@promise("sources", "episodes count from 0 without gaps, and their steps do")
def numbered(log: CheckedSource) -> None:
    """Rows of an episode are consecutive and in order; its key stays the same."""
    episode, step, last = log.rows["episode"], log.rows["step"], log.last
    first = np.append(True, last[:-1])
    expect_equal(episode, np.cumsum(first) - 1, "numbers of episodes")
    expect((step[first] == 0).all(), "an episode whose first step is not 0")
    expect((np.diff(step)[~last[:-1]] == 1).all(), "steps with gaps")
    expect((np.diff(log.rows["key"])[~last[:-1]] == 0).all(), "a key that changes in an episode")


@promise("sources", "the first row of every episode is marked as a start, and no other")
def starts(log: CheckedSource) -> None:
    """Traces are cut there."""
    expect_equal(log.rows["start"], log.rows["step"] == 0, "marks of starts")


@promise(
    "sources", "the discount is 0 where a row terminates and nowhere else, unless it is 0 always"
)
def terminations(log: CheckedSource) -> None:
    """Truncation is no termination: it keeps its discount and bootstraps."""
    gone, discount = log.rows["terminated"], log.rows["discount"]
    expect((discount[gone] == 0.0).all(), "a row that terminates with a discount")
    if log.source.discount:
        kept = discount[~gone]
        expect((kept == log.source.discount).all(), f"discounts of {set(kept.tolist())}")
    expect(not (gone & log.rows["truncated"]).any(), "rows that terminate and are truncated")


@promise("sources", "an episode terminates or is truncated in its last row only")
def ends(log: CheckedSource) -> None:
    """What follows an end is another episode."""
    ended = log.rows["terminated"] | log.rows["truncated"]
    expect(not ended[~log.last].any(), "an end in the middle of an episode")


@promise("sources", "a row's successor is the next row of its episode")
def successors(log: CheckedSource) -> None:
    """By observation, or by state."""
    name = "observation" if log.rows["observation"] is not None else "state"
    here, following = log.rows[name], log.rows[f"next_{name}"]
    expect(here is not None and following is not None, "neither observations nor states")
    inner = np.flatnonzero(~log.last)
    expect_equal(following[inner], here[inner + 1], "successors and next rows")


@promise("sources", "where a row terminates its successor holds nothing new")
def nothing_after(log: CheckedSource) -> None:
    """The observation repeats, the next state is -1."""
    gone = log.rows["terminated"]
    if not gone.any():
        raise DoesNotApply("has no row that terminates")
    if log.rows["state"] is not None:
        expect((log.rows["next_state"][gone] == -1).all(), "a successor after the end")
    if log.rows["observation"] is not None:
        repeated = log.rows["observation"][gone]
        expect_equal(log.rows["next_observation"][gone], repeated, "observations after the end")


@promise("sources", "rewards, ratios and observations are finite, ratios not negative")
def finite(log: CheckedSource) -> None:
    """Nothing downstream has to check again."""
    for name in ("reward", "rho", "observation", "next_observation"):
        values = log.rows[name]
        if values is not None:
            expect(np.isfinite(values).all(), f"{name} that is not finite")
    expect((log.rows["rho"] >= 0.0).all(), "a negative ratio")


@promise("sources", "the ratio is the target's probability over the behaviour's")
def ratios(log: CheckedSource) -> None:
    """Wherever a chunk carries both."""
    compared = 0
    for chunk in log.source.chunks():
        if chunk.target_prob is None or chunk.behavior_prob is None:
            continue
        seen = chunk.behavior_prob > 0.0
        quotient = chunk.target_prob[seen] / chunk.behavior_prob[seen]
        expect_close(chunk.rho[seen], quotient, "ratios", 1e-9)
        compared += len(quotient)
    if not compared:
        raise DoesNotApply("carries ratios without probabilities")


@promise("sources", "the account counts what a pass delivered")
def account(log: CheckedSource) -> None:
    """Dropped rows are counted too, and none is invented."""
    info = log.source.scan()
    delivered, episodes = len(log.rows["reward"]), int(log.rows["episode"][-1]) + 1
    expect(info.complete, "an account that is not complete after a pass")
    expect(info.transitions == delivered, f"{info.transitions} transitions of {delivered}")
    expect(info.episodes == episodes, f"{info.episodes} episodes of {episodes}")
    dropped = sum(info.dropped.values())
    expect(info.rows <= delivered + dropped, f"{info.rows} rows, {dropped} dropped")


@promise("sources", "transitions under a feature map carry the chunk's numbers")
def as_transitions(log: CheckedSource) -> None:
    """Features of the observations (or states), discounts, ratios and starts."""
    chunk = next(iter(log.source.chunks(rows=1000)))
    batch = log.source.transitions(_features, chunk)
    for name in ("reward", "discount", "rho", "start"):
        expect_equal(getattr(batch, name), getattr(chunk, name), f"{name} of transitions")
    expect_close(batch.phi, _features(chunk.input), "features")
    going = ~chunk.terminated
    expect_close(batch.next_phi[going], _features(chunk.next_input)[going], "next features")


def _features(inputs: Any) -> Any:
    rows = np.asarray(inputs, dtype=np.float64).reshape(len(inputs), -1)
    return np.column_stack([np.ones(len(rows)), rows])


def _same(one: dict[str, Any], two: dict[str, Any]) -> None:
    for name, values in one.items():
        expect((values is None) == (two[name] is None), f"{name} in one pass only")
        if values is not None:
            expect_equal(values, two[name], name)
