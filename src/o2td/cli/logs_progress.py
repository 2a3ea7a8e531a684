"""A progress bar on stderr for work that takes longer than two seconds, on a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

from o2td import terminal

_PATIENCE = 2.0  # seconds


class Progress:
    """Counts rows; after two seconds shows a bar (of unknown length: passes differ).

    >>> with Progress() as progress:
    ...     progress.add(5)
    >>> progress.rows
    5
    """

    def __init__(self) -> None:
        self.rows = 0
        self._began = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def add(self, rows: int) -> None:
        """Count more rows."""
        self.rows += rows
        if self._bar is None:
            if time.monotonic() - self._began < _PATIENCE or not sys.stderr.isatty():
                return
            self._start()
        self._bar.update(self._task, rows=f"{self.rows:,}")

    def _start(self) -> None:
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("reading the log"),
            BarColumn(),
            TextColumn("{task.fields[rows]} rows"),
            TimeElapsedColumn(),
            console=terminal.console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("read", total=None, rows="0")
        self._bar.start()
