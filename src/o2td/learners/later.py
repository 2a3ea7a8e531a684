"""Work for a thread beside this one, which takes it back where the other has not begun."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from typing import Any

__all__ = ["Later", "spare"]


def spare() -> int:
    """Processors that this process may use, beside the one that runs this."""
    allowed = getattr(os, "sched_getaffinity", None)
    return (len(allowed(0)) if allowed else os.cpu_count() or 1) - 1


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads that stay: to start one takes as long as some hundred errors."""
    return ThreadPoolExecutor(max_workers=max(1, spare()), thread_name_prefix="o2td-later")


if hasattr(os, "register_at_fork"):  # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_threads.cache_clear)


class Later:
    """A call made in another thread, or by `finish` if that comes first; at once if not `beside`."""

    def __init__(self, beside: bool, function: Callable[..., None], *arguments: Any) -> None:
        self._call = partial(function, *arguments)
        self._future: Future[None] | None = None
        if beside:
            with suppress(RuntimeError):  # the interpreter is about to end: no more threads
                self._future = _threads().submit(self._call)
        if self._future is None:
            self._call()

    def finish(self) -> None:
        """Return when it is done, and raise what it raised."""
        future, self._future = self._future, None
        if future is None:
            return
        if future.cancel():
            self._call()
        else:
            future.result()
