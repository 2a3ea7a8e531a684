"""Work that becomes ready in pieces, done by a second thread or by the thread that waits for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread
from time import sleep
from typing import Any
from weakref import ref

__all__ = ["MetricsThread", "spare"]

PAUSE = 1e-3  # seconds between checks for work that has become ready


def spare() -> int:
    """Number of processors that this process may use, besides the current one."""
    allowed = getattr(os, "sched_getaffinity", None)
    return (len(allowed(0)) if allowed else os.cpu_count() or 1) - 1


@cache
def _jobs() -> SimpleQueue[ref[MetricsThread]]:
    """Queue of jobs for persistent helper threads: starting one costs as much as a hundred errors.

    Helpers hold only weak references, because an interrupt may abandon a job before it is closed.
    """
    jobs: SimpleQueue[ref[MetricsThread]] = SimpleQueue()

    def serve() -> None:
        while True:
            job = jobs.get()
            with suppress(BaseException):  # the waiting thread raises it
                while _help(job):
                    pass

    for k in range(max(1, spare())):
        Thread(target=serve, name=f"o2td-follower-{k}", daemon=True).start()
    return jobs


def _help(job: ref[MetricsThread]) -> bool:
    """Do some of the work, or wait a little; False if nothing is left to do."""
    follower = job()
    return follower is not None and follower.help()


if hasattr(os, "register_at_fork"):  # a forked process has none of its parent's threads
    os.register_at_fork(after_in_child=_jobs.cache_clear)


class MetricsThread:
    """Items 0, 1, ..., total - 1 of some work, of which the first `ready()` can be done so far.

    `work(low, high)` does some of them, at most `step` at a time and in whole `unit`s if possible.
    """

    def __init__(
        self,
        work: Callable[[int, int], None],
        ready: Callable[[], int],
        total: int,
        step: int,
        unit: int = 1,
    ) -> None:
        self._work, self._ready, self._total = work, ready, total
        self._step, self._unit = max(1, step // unit) * unit, unit
        self._taken = 0
        self._open: dict[int, Lock] = {}  # locked until the items from there on are done
        self._closed = False
        self._failed: BaseException | None = None
        self._taking = Lock()

    def start(self) -> None:
        """Let a helper thread do what is ready, as soon as one is free."""
        with suppress(RuntimeError):  # the interpreter is about to end: no more threads
            _jobs().put(ref(self))

    def finish(self, limit: int) -> None:
        """Return once all items before `limit` (which are ready) are done; re-raise any error."""
        while piece := self._take(limit, 1):
            self._do(*piece)
        for low, done in list(self._open.items()):
            if low < limit:
                with done:
                    pass
        if self._failed is not None:
            raise self._failed

    def help(self) -> bool:
        """Do some of what is ready, or wait a little; False if nothing is left to do."""
        if self._taken >= self._total or self._closed:
            return False
        if piece := self._take(self._total, self._unit, patient=False):
            self._do(*piece)
        else:
            sleep(PAUSE)
        return True

    def __enter__(self) -> MetricsThread:
        return self

    def __exit__(self, *_: Any) -> None:
        self._closed = True

    def _take(self, limit: int, unit: int, patient: bool = True) -> tuple[int, int] | None:
        """The helper must not block: an interrupt may have left `_taking` locked."""
        if not self._taking.acquire(blocking=patient):
            return None
        try:
            low = self._taken
            high = min(self._ready(), limit, low + self._step)
            if high < limit:
                high -= (high - low) % unit
            if high <= low or self._failed is not None:
                return None
            self._open[low] = Lock()
            self._open[low].acquire()
            self._taken = high
            return low, high
        finally:
            self._taking.release()

    def _do(self, low: int, high: int) -> None:
        try:
            self._work(low, high)
        except BaseException as error:
            self._failed = error
            raise
        finally:
            self._open.pop(low).release()
