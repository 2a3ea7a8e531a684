"""Start states of episodes, collected while the log is read: their values are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from o2td.arguments import answer_of, function
from o2td.sources import LogRows, Source


class Starts:
    """The start states of a log, in its order.

    At most `MEMORY` bytes of them are kept; if there are more, the log is read again.
    """

    MEMORY = 16 << 20

    def __init__(self, source: Source) -> None:
        self._source = source
        self._noted: list[Any] | None = None

    @contextmanager
    def noting(self, progress: Callable[[int], None] | None = None) -> Iterator[None]:
        """Collect start states from the source inside this block, and count its rows."""
        if progress is not None:
            function("progress", progress)
        parts: list[Any] | None = []
        size = 0

        def watch(rows: LogRows | None) -> None:
            nonlocal parts, size
            if rows is None:
                self._noted = parts
                return
            if progress is not None:
                answer_of("progress", progress, len(rows))
            if rows.episode[0] == 0 and rows.step[0] == 0:  # another pass begins
                parts, size = [], 0
            if parts is not None:
                parts.append(rows.starts())
                size += sum(one.nbytes for one in parts[-1] if one is not None)
                parts = parts if size <= self.MEMORY else None

        with self._source.watched(watch):
            yield

    def __iter__(self) -> Iterator[Any]:
        """Inputs and the target's probabilities where episodes start, in parts."""
        if self._noted is not None:
            yield from self._noted
            return
        for chunk in self._source.chunks():
            yield chunk.starts()
