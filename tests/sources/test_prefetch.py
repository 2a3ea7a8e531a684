"""Reading ahead, in a thread of its own."""

from __future__ import annotations

import sys
import threading

import pytest

from o2td.sources.prefetch import prefetch


def test_reading_ahead_may_be_collected_by_its_own_thread():
    """A cycle of garbage is collected wherever the collector happens to run."""
    held, left = [], threading.Event()

    def collecting():
        yield 0
        left.wait(60)
        held.clear()  # the last reference: the generator ends here, in its own thread
        yield 1

    held.append(prefetch(collecting()))
    assert next(held[0]) == 0
    seen = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda found: seen.append(found.exc_value)
    try:
        thread = next(t for t in threading.enumerate() if t.name == "o2td-prefetch")
        left.set()
        thread.join(60)
    finally:
        sys.unraisablehook = hook
    assert not thread.is_alive()
    assert seen == []


def test_reading_ahead_passes_errors_on_and_stops_when_left():
    def broken():
        yield 1
        raise ValueError("broken")

    items = prefetch(broken())
    assert next(items) == 1
    with pytest.raises(ValueError, match="broken"):
        next(items)
    before = threading.active_count()
    endless = prefetch(iter(int, 1))
    assert next(endless) == 0
    assert threading.active_count() == before + 1
    endless.close()
    assert threading.active_count() == before
