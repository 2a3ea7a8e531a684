"""Logs as blocks of whole episodes, by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from o2td.evaluation import Episodes
from o2td.evaluation.episodes import Log, joined, whole_episodes
from o2td.sources import open_logs


def block_of(log: pd.DataFrame, discount: float | None = 0.9, **given: Any) -> Episodes:
    return joined(list(whole_episodes(open_logs(log, discount=discount, **given).chunks())))


class SmallChunks(Log):
    """A log that is read again for every pass, so many rows at a time."""

    def __init__(self, logs: Any, discount: float, rows: int, longest: int = 10**9) -> None:
        opened = hasattr(logs, "chunks")
        super().__init__(logs if opened else open_logs(logs, discount=discount))
        self.rows, self.longest = rows, longest

    def blocks(self) -> Iterator[Episodes]:
        self.passes += 1
        return whole_episodes(self.source.chunks(self.rows), self.longest)
