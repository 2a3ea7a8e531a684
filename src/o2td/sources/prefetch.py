"""Reading ahead: the next batches are decoded while the current ones are used."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any, TypeVar

T = TypeVar("T")
_END = object()
_POLL = 0.05
_DEPTH = 2


def prefetch(items: Iterator[T]) -> Iterator[T]:
    """The same items, produced by a thread that is at most two ahead.

    An error of the producer is raised here in its place; leaving early stops the thread.

    >>> list(prefetch(iter(range(5))))
    [0, 1, 2, 3, 4]
    """
    ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(_DEPTH)
    left = threading.Event()

    def put(item: Any, error: BaseException | None = None) -> None:
        while not left.is_set():
            try:
                ready.put((item, error), timeout=_POLL)
                break
            except queue.Full:
                continue

    def make() -> None:
        try:
            for item in items:
                put(item)
                if left.is_set():
                    return
        except BaseException as error:  # it is raised again by the reader
            put(_END, error)
        else:
            put(_END)

    thread = threading.Thread(target=make, name="o2td-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        left.set()
        # If it is never closed, its own thread may be what garbage-collects it.
        if thread is not threading.current_thread():
            thread.join()
