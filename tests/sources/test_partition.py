"""A log divided between parts: every row is in one of them, with its whole episode."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from o2td.sources.partition import Where, owned

Batches = list[tuple[int, Where, dict[str, Any]]]


def files_of(seed: int) -> tuple[list[Batches], np.ndarray]:
    """Five files in batches of a few rows, of which episodes start anywhere; also all marks."""
    rng = np.random.default_rng(seed)
    files: list[Batches] = []
    number, marks = 0, []
    for part in range(5):
        batches: Batches = []
        first = 0
        for _ in range(int(rng.integers(1, 4))):
            size = int(rng.integers(1, 5))
            start = rng.random(size) < rng.choice([0.1, 0.4, 0.8])
            if not number:
                start[0] = True
            columns = {"start": start, "row": np.arange(number, number + size)}
            batches.append((part, Where([f"{k}.csv" for k in range(5)], part, first), columns))
            marks.append(start)
            number, first = number + size, first + size
        files.append(batches)
    return files, np.concatenate(marks)


def read_on(files: list[Batches], low: int) -> Iterator[Any]:
    """Batches from a file on."""
    return (batch for batches in files[low:] for batch in batches)


@pytest.mark.parametrize("seed", range(60))
def test_a_part_has_the_episodes_that_start_after_its_first_row_to_the_first_of_the_next(
    seed: int,
) -> None:
    files, marks = files_of(seed)
    firsts = [int(batches[0][2]["row"][0]) for batches in files]
    begins = np.flatnonzero(marks)
    owner = np.searchsorted(firsts, begins, side="left") - 1  # the file that has a row before it
    owner[0] = 0
    episode = np.cumsum(marks) - 1
    for cuts in ([0, 5], [0, 1, 5], [0, 2, 3, 5], [0, 1, 2, 3, 4, 5]):
        for low, high in pairwise(cuts):
            mine = np.flatnonzero((owner[episode] >= low) & (owner[episode] < high))
            found = list(owned(read_on(files, low), low, high))
            rows = [int(row) for _, columns in found for row in columns["row"]]
            assert rows == mine.tolist()
            for where, columns in found:
                part, row = where.part, int(columns["row"][0])
                assert (part, where.first) == (
                    int(np.searchsorted(firsts, row, side="right")) - 1,
                    row - firsts[part],
                )
                np.testing.assert_array_equal(columns["start"], marks[columns["row"]])
