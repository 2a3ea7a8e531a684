"""Many lanes over one stream: the compiled driver of every family.

A lane is one learner. Rows come in small blocks that stay in the processor's cache while every
lane passes over them, and theta goes into the ring buffer every k steps without leaving compiled code.
A lane that diverges stops there, with its step recorded, and never touches another.

A family brings a NamedTuple of its lanes' arrays, and `@overload(advance)` for that type.
"""

from __future__ import annotations

from typing import Any, Literal

from o2td.compiled import jitable, njit
from o2td.kernels.ring_buffer import append

__all__ = ["CACHED_ROWS", "Flag", "advance", "block_end", "drive"]

Flag = Literal[True] | None  # None is a type: branches that it rules out are not compiled
CACHED_ROWS = 64  # every lane passes over this many rows before the next are read


def advance(*arguments: Any) -> int:
    """Move one lane over rows lo:hi; returns the first row that was not applied.

    Called as `advance(rows, following, lanes, lane, lo, hi)`; the type of `lanes` selects the family.
    """
    raise NotImplementedError("compiled code only")


@jitable
def block_end(lo: int, n: int, first: int, every: int) -> int:
    """The end of the block that begins at row lo.

    It does not depend on the number of lanes, so neither do the results.
    """
    if every <= 0:
        return n
    size = every - (first + lo) % every  # `min` would be compiled, too
    size = CACHED_ROWS if size > CACHED_ROWS else size
    return n if lo + size > n else lo + size


@njit(cache=True, nogil=True, allocates=False)
def drive(rows, following, lanes, diverged, n: int, first: int, every: int, ring) -> None:
    """Move all lanes over n rows, the first of which is step `first` of the stream.

    `diverged[lane]` is -1 or the step that could not be taken. After each step whose number is a
    multiple of `every` (none if every is 0) every theta goes into the ring.
    """
    lo = min(0, n)  # a literal 0 would make Numba compile everything that follows twice
    while lo < n:
        hi = block_end(lo, n, first, every)
        for lane in range(len(diverged)):
            if diverged[lane] < 0:
                done = advance(rows, following, lanes, lane, lo, hi)
                if done < hi:
                    diverged[lane] = first + done
        if every > 0 and (first + hi) % every == 0:
            append(lanes.theta, False, ring)
        lo = hi
