"""Splitting a log between files, even where episodes cross them.

A part owns the episodes that start after its first row and not after the first row of the next part
(the first part also owns its first row). So each part skips the rows before the first start inside
it, which the previous part reads, and itself reads on into the next files. No part needs to know
what comes before its first row.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from o2td.sources.decode import Decoded
from o2td.sources.places import Where


def owned(
    batches: Iterator[tuple[int, Where, Decoded]], low: int, high: int
) -> Iterator[tuple[Where, Decoded]]:
    """The rows owned by the files `low` to `high - 1`, from batches that start at file `low`."""
    begun = low == 0
    first = beyond = True
    for part, where, columns in batches:
        starts = np.flatnonzero(columns["start"])
        if first and low > 0:
            starts = starts[starts > 0]
        first = False
        stop = len(columns["start"])
        if part >= high:
            later = starts[starts > 0] if beyond else starts
            starts = starts if beyond and len(starts) and starts[0] == 0 else starts[:0]
            beyond = False
            stop = int(later[0]) if len(later) else stop
        begin = 0
        if not begun and len(starts):
            begun, begin = True, int(starts[0])
        if not begun and part >= high:
            return
        if begun and begin < stop:
            place = Where(where.names, where.part, where.first + begin)
            yield place, {name: values[begin:stop] for name, values in columns.items()}
        if part >= high and stop < len(columns["start"]):
            return
