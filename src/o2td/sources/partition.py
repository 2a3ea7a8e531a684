"""Cutting a log between files although episodes cross the cuts.

A part owns the episodes that start after its first row and not after the first row of the next
part (the first part also owns its first row). So each part passes over the rows before the first
start inside it, which the part before reads, and itself reads on into the next files. No part has
to know what stands before its first row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from o2td.sources.blocks import Block, Where


def owned(blocks: Iterator[tuple[int, Block]], low: int, high: int) -> Iterator[Block]:
    """The rows that belong to the files `low` to `high - 1`, of blocks that start at file `low`."""
    begun = low == 0
    first = beyond = True
    for part, block in blocks:
        starts = np.flatnonzero(block.new)
        if first and low > 0:
            starts = starts[starts > 0]
        first = False
        stop = len(block)
        if part >= high:
            later = starts[starts > 0] if beyond else starts
            starts = starts[:1] if beyond and len(starts) and starts[0] == 0 else starts[:0]
            beyond = False
            stop = int(later[0]) if len(later) else stop
        begin = 0
        if not begun and len(starts):
            begun, begin = True, int(starts[0])
        if not begun and part >= high:
            return
        if begun and begin < stop:
            yield cut(block, begin, stop)
        if part >= high and stop < len(block):
            return


def cut(block: Block, begin: int, stop: int) -> Block:
    """The rows `begin` to `stop - 1` of a block."""
    if begin == 0 and stop == len(block):
        return block
    names = [
        *("new", "reward", "terminated", "truncated", "state", "action", "next_observation"),
        *("next_state", "next_known", "bare", "rho", "behavior_prob", "target_prob"),
        *("behavior_logprob", "target_logprob", "next_target_probs", "discount"),
    ]
    values: dict[str, Any] = {
        name: None if (array := getattr(block, name)) is None else array[begin:stop]
        for name in names
    }
    for name in ("observation", "target_probs"):
        array = getattr(block, name)
        values[name] = None if array is None else array[begin : stop + 1].copy()
    before = int(block.new[:begin].sum())
    values["key"] = block.key[before : before + int(block.new[begin:stop].sum())]
    where = block.where
    if isinstance(where.first, int):
        where = Where(where.names, where.part, where.first + begin)
    return replace(block, where=where, **values)
