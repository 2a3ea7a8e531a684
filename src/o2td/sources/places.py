"""Places of rows in their files, and hashes of their episodes' names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from o2td.arrays import Ints
from o2td.errors import InputError, option

Keys = npt.NDArray[np.uint64]
ROWS = "rows of data count from 1"


@dataclass(frozen=True, slots=True)
class Where:
    """The places of some rows: one file from row `first`, or a file and row for each."""

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


def mix(values: npt.NDArray[Any]) -> Keys:
    """A bijection of 64-bit integers that scatters them (the finaliser of SplitMix64)."""
    x = values.astype(np.int64).view(np.uint64).copy()
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Keys = x ^ (x >> np.uint64(31))
    return mixed


def named(role: str, column: str = "…") -> str:
    """How to name a column for a role, in Python or on the command line.

    >>> named("reward")
    'columns={"reward": …}'
    """
    value = column if column == "…" else repr(column)
    return option(f'columns={{"{role}": {value}}}', f"--columns {role}={column}")


def sorted_rows() -> str:
    """The remedy for rows that are out of order."""
    return f"pass {option('sort=True', '--sort')}, or sort the rows by episode and step"
