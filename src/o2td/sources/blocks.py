"""What all sources hand on: consecutive rows of a log as NumPy arrays, and where they came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from o2td.errors import InputError
from o2td.sources.text import ROWS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
LARGEST = 1e75  # of numbers: the square of a product of two of them is still a number
_TILE = 4096  # rows transposed at a time, so that the target stays in the cache


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a block's rows: one file from row `first`, or a file and row for each."""

    names: list[str]
    part: int | Ints = 0
    first: int | Ints = 0

    def of(self, row: int) -> tuple[str, int]:
        """File and row of data, counted from 1."""
        if isinstance(self.first, np.ndarray) and isinstance(self.part, np.ndarray):
            return self.names[int(self.part[row])], int(self.first[row]) + 1
        return self.names[int(self.part)], int(self.first) + row + 1

    def refuse(self, row: int, column: str, value: Any, remedy: str) -> NoReturn:
        """Raise the sentence about one cell."""
        name, number = self.of(row)
        shown = f"{value:g}" if isinstance(value, float) else str(value)
        raise InputError(f"{name}: column {column}, row {number} ({ROWS}) {shown}; {remedy}")


@dataclass(slots=True)
class Block:
    """Consecutive rows of a log. `new` marks first rows of episodes, `key` hashes their names.

    `observation` and `target_probs` carry one spare row in front, where the stream puts the row
    that waited for this block; so a window over both needs no copy.
    """

    where: Where
    new: Bools
    key: Keys  # one entry for each True in `new`
    reward: Floats
    terminated: Bools
    truncated: Bools
    observation: Floats | None = None  # (1 + n, k)
    state: Ints | None = None
    action: npt.NDArray[Any] | None = None
    next_observation: Floats | None = None
    next_state: Ints | None = None
    next_known: Bools | None = None  # None: all, where a next observation or state is given
    bare: Bools | None = None  # rows that only hold an episode's final observation
    rho: Floats | None = None
    behavior_prob: Floats | None = None
    target_prob: Floats | None = None
    behavior_logprob: Floats | None = None
    target_logprob: Floats | None = None
    target_probs: Floats | None = None  # (1 + n, A)
    next_target_probs: Floats | None = None
    discount: Floats | None = None

    def __len__(self) -> int:
        return len(self.reward)


def padded(columns: list[npt.NDArray[Any]]) -> Floats:
    """The columns as rows of one C-contiguous matrix, after one spare row."""
    n, k = len(columns[0]), len(columns)
    rows = np.empty((n + 1, k))
    rows[0] = 0.0
    for low in range(0, n, _TILE):
        for j, column in enumerate(columns):
            part = column[low : low + _TILE]
            rows[1 + low : 1 + low + len(part), j] = part
    return rows


def mix(values: npt.NDArray[Any]) -> Keys:
    """A bijection of 64-bit integers that scatters them (the finaliser of SplitMix64)."""
    x = values.astype(np.int64).view(np.uint64).copy()
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Keys = x ^ (x >> np.uint64(31))
    return mixed
