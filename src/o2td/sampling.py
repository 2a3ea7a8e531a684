"""Compiled sampling of finite problems: two random numbers, two table look-ups a transition.

Each state has an alias table (Walker 1977; Vose 1991) over its actions and each (s, a) one over its
successors, so a transition costs the same whatever the number of states. A walk waits for memory
once a step, so the table of successors is small: an entry holds its alias and the leading bits of
its threshold in 16 bits where no (s, a) has more than 512 successors; the full threshold is read
only where those bits leave it open. Random numbers are the raw 64-bit output of PCG64, which is the
same on every machine and in every version of NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable

from o2td.arguments import is_whole
from o2td.arrays import Floats, Ints, freeze
from o2td.compiled import jitable, njit, put_off
from o2td.errors import InputError

Seed = int | Sequence[int] | np.random.SeedSequence


_MOST_SEEDS = 1000
_AHEAD = 4  # steps whose part of the table is asked for before it is needed
_BLOCK = 4096  # rows whose random numbers are drawn at a time
_FEW = 4096  # rows, or entries of tables, for which nothing is compiled: some 50 ms of plain Python
_PACKED = ((np.uint16, 9), (np.uint32, 20), (np.uint64, 31))  # type, and bits of it for the alias


class AliasTables(NamedTuple):
    """Alias tables of many distributions stored one after the other: k has entries ptr[k]:ptr[k+1]."""

    ptr: Ints
    threshold: Floats
    alias: npt.NDArray[np.int32]


def seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """The stream of random numbers that a seed names: `(seed, run)` gives independent streams."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    given: Any = [seed] if is_whole(seed) else seed
    several = isinstance(given, (list, tuple, range)) or getattr(given, "ndim", 0) == 1
    numbers = list(given[: _MOST_SEEDS + 1]) if several else []
    usable = all(is_whole(k) and k >= 0 for k in numbers)
    if not 0 < len(numbers) <= _MOST_SEEDS or not usable:
        raise InputError(f"seed must be a non-negative integer or several, got {seed!r}")
    # NumPy pads with zeros, so that 5 and (5, 0) would be one stream: their lengths differ.
    return np.random.SeedSequence([*(int(k) for k in numbers), len(numbers)])


def streams(seed: Seed, count: int) -> list[np.random.PCG64]:
    """`count` independent generators; the same ones each time, also where `seed` is an object."""
    root = seed_sequence(seed)
    keys = [(*root.spawn_key, k) for k in range(count)]
    return [np.random.PCG64(np.random.SeedSequence(root.entropy, spawn_key=key)) for key in keys]


def raw_numbers(bits: np.random.PCG64, n: int) -> npt.NDArray[np.uint64]:
    """`n` times 64 random bits."""
    return np.asarray(bits.random_raw(n), dtype=np.uint64)


def alias_tables(ptr: Ints, probability: Floats) -> AliasTables:
    """Alias tables of the distributions `probability[ptr[k]:ptr[k+1]]` (normalised here)."""
    threshold = np.empty(len(probability))
    alias = np.empty(len(probability), dtype=np.int32)
    lists = np.empty((2, int(np.diff(ptr).max(initial=0))), dtype=np.int64)
    # A view that is read-only whether or not the array is: one type, compiled once.
    _build(len(alias), ptr, freeze(probability), threshold, alias, *lists)
    return AliasTables(ptr, threshold, alias)


@put_off(_FEW)
@njit(cache=True, nogil=True, allocates=False)
def _build(ptr: Any, probability: Any, threshold: Any, alias: Any, small: Any, large: Any) -> None:
    """Fill `threshold` and `alias`; `small` and `large` are room for the entries of one table."""
    for k in range(len(ptr) - 1):
        low, high = ptr[k], ptr[k + 1]
        size = high - low
        total = 0.0
        for j in range(low, high):
            total += probability[j]
        n_small = n_large = 0
        for j in range(size):
            share = probability[low + j] * size / total if total > 0.0 else 1.0
            threshold[low + j] = share
            alias[low + j] = j
            if share < 1.0:
                small[n_small] = j
                n_small += 1
            else:
                large[n_large] = j
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            lack, rich = small[n_small], large[n_large - 1]
            alias[low + lack] = rich
            threshold[low + rich] -= 1.0 - threshold[low + lack]
            if threshold[low + rich] < 1.0:
                n_large -= 1
                small[n_small] = rich
                n_small += 1
        for j in range(n_small):
            threshold[low + small[j]] = 1.0
        for j in range(n_large):
            threshold[low + large[j]] = 1.0


@jitable
def _unit(raw: Any) -> Any:
    """A number in [0, 1) with 53 random bits."""
    return np.int64(raw >> np.uint64(11)) * 2.0**-53


@jitable
def _draw(ptr: Any, threshold: Any, alias: Any, k: int, u: float) -> int:
    low = ptr[k]
    scaled = u * (ptr[k + 1] - low)
    j = int(scaled)
    if scaled - j >= threshold[low + j]:
        j = alias[low + j]
    return int(low + j)


@jitable
def _action(threshold: Any, alias: Any, n_actions: int, state: int, u: float) -> Any:
    """Row `s * A + a` of an action drawn with `u`."""
    # Sums with a condition, not branches: a wrong guess would cost more than all the arithmetic.
    scaled = u * n_actions
    action = int(scaled)
    row = state * n_actions + action
    return row + (alias[row] - action) * (scaled - action >= threshold[row])


@jitable
def _span(ptr: Any, width: int, row: int) -> Any:
    """Where the successors of a row begin and how many there are: `width` where all have as many."""
    # Known ahead, the number of successors need not be waited for.
    if width > 0:
        return row * width, width
    return ptr[row], ptr[row + 1] - ptr[row]


@jitable
def _successor(threshold: Any, packed: Any, shift: int, low: int, size: int, u: float) -> Any:
    """Pair of a successor drawn with `u` among those at `low:low + size`."""
    scaled = u * size
    j = int(scaled)
    rest = scaled - j
    word = np.int64(packed[low + j])
    mark = word >> shift
    lead = int(rest * (1 << (8 * packed.itemsize - shift)))
    other = lead > mark
    if lead == mark:
        other = rest >= threshold[low + j]
    return low + j + ((word & ((1 << shift) - 1)) - j) * other


def _fetch(array: Any, index: Any) -> None:
    """Nothing; compiled, it asks memory for an element that may be read soon."""


@type_callable(_fetch)
def _typed(_: Any) -> Any:
    return lambda array, index: types.none(array, types.intp)


@lower_builtin(_fetch, types.Array, types.intp)
def _lowered(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, given[0]).data
    number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    call = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    place = builder.bitcast(builder.gep(data, [given[1]]), byte)
    builder.call(call, [place, number(0), number(3), number(1)])  # to read, and to keep
    return context.get_dummy_value()


@put_off(_FEW)
@njit(cache=True, nogil=True, allocates=False)
def _walk(
    tables: Any, restart: Any, terminal: Any, n_actions: int, raw: Any, again: Any, s: int, out: Any
) -> Any:
    """Steps on from state `s` (-1: a restart comes first); where it stands, restarts it made."""
    # Tuples are unpacked once: taking an array out of one counts references, atomically.
    action_threshold, action_alias, ptr, width, threshold, packed, shift, following = tables
    restart_ptr, restart_threshold, restart_alias = restart
    state, row, pair, next_state, start = out
    restarts = 0
    for t in range(len(state)):
        ahead = t + _AHEAD
        if width == len(terminal) and ahead < len(state):
            # Most steps end where their number says, whatever came before: a guess that costs little.
            guess = int(_unit(raw[2 * ahead - 1]) * width)
            r = _action(action_threshold, action_alias, n_actions, guess, _unit(raw[2 * ahead]))
            _fetch(packed, r * width + int(_unit(raw[2 * ahead + 1]) * width))
        start[t] = s < 0
        if s < 0:
            u = _unit(again[restarts])
            s = _draw(restart_ptr, restart_threshold, restart_alias, 0, u)
            restarts += 1
        state[t] = s
        r = _action(action_threshold, action_alias, n_actions, s, _unit(raw[2 * t]))
        low, size = _span(ptr, width, r)
        k = _successor(threshold, packed, shift, low, size, _unit(raw[2 * t + 1]))
        # A row with all states in it lists them in order.
        s = k - low if size == len(terminal) else following[k]
        row[t], pair[t], next_state[t] = r, k, s
        if terminal[s]:
            s = -1
    return s, restarts


@put_off(_FEW)
@njit(cache=True, nogil=True, allocates=False)
def _steps(tables: Any, n_states: int, n_actions: int, raw: Any, out: Any) -> None:
    action_threshold, action_alias, ptr, width, threshold, packed, shift, following = tables
    state, row, pair, next_state, _ = out
    for t in range(len(state)):
        r = _action(action_threshold, action_alias, n_actions, state[t], _unit(raw[2 * t]))
        low, size = _span(ptr, width, r)
        k = _successor(threshold, packed, shift, low, size, _unit(raw[2 * t + 1]))
        row[t], pair[t] = r, k
        next_state[t] = k - low if size == n_states else following[k]


@put_off(_FEW)
@njit(cache=True, nogil=True, allocates=False)
def _draw_many(tables: Any, raw: Any, out: Any) -> None:
    ptr, threshold, alias = tables
    for t in range(len(out)):
        out[t] = _draw(ptr, threshold, alias, 0, _unit(raw[t]))


class Draws(NamedTuple):
    """Sampled steps: `row` is `s * A + a`, `pair` the position among the problem's pairs."""

    state: Ints
    row: Ints
    pair: Ints
    next_state: Ints
    start: npt.NDArray[np.bool_]

    @classmethod
    def empty(cls, n: int) -> Draws:
        """Columns for `n` steps, to be filled."""
        state, row, pair, next_state = (np.empty(n, dtype=np.int64) for _ in range(4))
        return cls(state, row, pair, next_state, np.ones(n, dtype=np.bool_))


class Sampler:
    """The tables of one finite problem.

    `row` (k,) gives `s * A + a` of the k pairs, sorted; `next_state` and `probability` theirs.
    """

    def __init__(
        self,
        behavior: Floats,
        row: Ints,
        next_state: npt.NDArray[np.int32],
        probability: Floats,
        start: Floats,
        terminal: npt.NDArray[np.bool_],
    ) -> None:
        n, m = behavior.shape
        ptr = np.searchsorted(row, np.arange(n * m + 1)).astype(np.int64)
        action = alias_tables(np.arange(0, n * m + 1, m), np.ascontiguousarray(behavior).ravel())
        successor = alias_tables(ptr, probability)
        sizes = np.diff(ptr)
        longest = int(sizes.max(initial=1))
        width = longest if (sizes == longest).all() else 0
        kind, shift = next((k, b) for k, b in _PACKED if longest <= 1 << b)
        marks = 1 << (8 * np.dtype(kind).itemsize - shift)
        mark = np.clip((successor.threshold * marks).astype(np.int64), 0, marks - 1)
        packed = (mark << shift | successor.alias).astype(kind)
        self._steps = (
            *(action.threshold, action.alias, ptr, width),
            *(successor.threshold, packed, shift, next_state),
        )
        self._restart = alias_tables(np.array([0, n]), start)
        self._terminal, self._n_actions = terminal, m

    def walk(self, n: int, bits: np.random.PCG64, restarts: np.random.PCG64) -> Draws:
        """A trajectory of `n` steps that restarts where it ends."""
        out, state = Draws.empty(n), -1
        again = raw_numbers(restarts, n if self._terminal.any() else 1)
        for part in _blocks(n):
            to = tuple(column[part] for column in out)
            raw = raw_numbers(bits, 2 * len(to[0]))
            where = (self._terminal, self._n_actions)
            given = (self._steps, self._restart, *where, raw, again, state, to)
            state, used = _walk(len(to[0]), *given)
            again = again[used:]
        return out

    def steps_from(self, states: Ints, bits: np.random.PCG64) -> Draws:
        """One independent step from each of the states."""
        out = Draws.empty(len(states))._replace(state=states)
        for part in _blocks(len(states)):
            to = tuple(column[part] for column in out)
            raw = raw_numbers(bits, 2 * len(to[0]))
            _steps(len(to[0]), self._steps, len(self._terminal), self._n_actions, raw, to)
        return out


def _blocks(n: int) -> Iterator[slice]:
    """Rows in parts whose random numbers fit into memory that is used again and again."""
    return (slice(low, min(low + _BLOCK, n)) for low in range(0, n, _BLOCK))


def draw_states(probability: Floats, n: int, bits: np.random.PCG64) -> Ints:
    """`n` states drawn independently."""
    out = np.empty(n, dtype=np.int64)
    tables = alias_tables(np.array([0, len(probability)]), probability)
    _draw_many(n, tuple(tables), raw_numbers(bits, n), out)
    return out
