"""Work that becomes ready bit by bit: done once, by whoever comes first, also after a fork."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import weakref
from time import sleep

import pytest

from o2td.learners import metrics_thread
from o2td.learners.metrics_thread import MetricsThread


class Work:
    """Items done so far and by whom; `ready` are as many as it is told."""

    def __init__(self):
        self.ready = 0
        self.pieces = []
        self.changed = threading.Condition()

    def __call__(self, low, high):
        here = threading.current_thread() is threading.main_thread()
        with self.changed:
            self.pieces.append((low, high, here))
            self.changed.notify_all()

    def done_by(self, here):
        return sorted(
            item for low, high, where in self.pieces if where == here for item in range(low, high)
        )

    def wait(self, count):
        """Until the thread beside has done so many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.done_by(False)) >= count, 30)


def test_alone_it_does_what_it_waits_for_in_pieces():
    work = Work()
    with MetricsThread(work, lambda: work.ready, 20, 8, 4) as alone:
        alone.finish(-3)
        assert work.pieces == []
        work.ready = 13
        alone.finish(11)
        assert work.pieces == [(0, 8, True), (8, 11, True)]
        work.ready = 20
        alone.finish(20)
        alone.finish(20)
    assert work.pieces[2:] == [(11, 19, True), (19, 20, True)]


def test_a_step_is_at_least_a_unit():
    work = Work()
    work.ready = 9
    MetricsThread(work, lambda: work.ready, 9, 0, 4).finish(9)
    assert [piece[:2] for piece in work.pieces] == [(0, 4), (4, 8), (8, 9)]


def test_the_thread_beside_does_what_is_ready_in_whole_units():
    work = Work()
    with MetricsThread(work, lambda: work.ready, 23, 8, 4) as beside:
        beside.start()
        work.ready = 10
        work.wait(8)
        assert work.done_by(False) == list(range(8))
        work.ready = 23
        work.wait(23)  # at the end also what is less than a unit
        beside.finish(23)
    assert work.done_by(False) == list(range(23))
    assert work.done_by(True) == []


def test_both_share_what_is_left_and_each_item_is_done_once():
    begun, go_on = threading.Event(), threading.Event()
    work = Work()

    def slow(low, high):
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            assert go_on.wait(30)
        work(low, high)
        if high == 6:
            go_on.set()

    work.ready = 6
    with MetricsThread(slow, lambda: work.ready, 6, 1) as shared:
        shared.start()
        assert begun.wait(30)
        shared.finish(6)  # it waits for the one that the thread has
    assert work.done_by(False)[0] == 0
    assert work.done_by(True)[-1] == 5
    assert sorted([*work.done_by(False), *work.done_by(True)]) == list(range(6))


def test_it_waits_only_for_what_comes_before():
    begun, go_on = threading.Event(), threading.Event()
    work = Work()

    def slow(low, high):
        if low == 2:
            begun.set()
            assert go_on.wait(30)
        work(low, high)

    with MetricsThread(slow, lambda: work.ready, 4, 2) as beside:
        work.ready = 2
        beside.finish(2)
        beside.start()
        work.ready = 4
        assert begun.wait(30)
        beside.finish(2)
        assert work.done_by(False) == []
        go_on.set()
        beside.finish(4)
    assert work.done_by(False) == [2, 3]


@pytest.mark.parametrize("there", [True, False])
def test_an_error_is_raised_here_wherever_it_happened(there):
    failed = threading.Event()

    def fails(low, high):
        failed.set()
        raise ZeroDivisionError

    with MetricsThread(fails, lambda: 1, 3, 1) as beside:
        if there:
            beside.start()
            assert failed.wait(30)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                beside.finish(1)


def test_what_is_left_is_not_followed_for_ever():
    """As after an error elsewhere: the thread is free for others."""
    work, other = Work(), Work()
    with MetricsThread(work, lambda: 0, 5, 1) as left:
        for _ in range(max(1, metrics_thread.spare())):
            left.start()
    other.ready = 1
    with MetricsThread(other, lambda: other.ready, 1, 1) as after:
        after.start()
        other.wait(1)
    assert work.pieces == []


def test_what_is_forgotten_is_neither_followed_nor_kept():
    """As after a second interrupt, which comes before it is closed."""
    work, other = Work(), Work()
    left = [MetricsThread(work, lambda: 0, 5, 1) for _ in range(max(1, metrics_thread.spare()) + 1)]
    for one in left:
        one.start()
    kept = [weakref.ref(one) for one in left]
    del one, left
    other.ready = 1
    with MetricsThread(other, lambda: other.ready, 1, 1) as after:
        after.start()
        other.wait(1)
    for _ in range(30_000):
        if not any(one() for one in kept):
            break
        sleep(1e-3)  # another thread may just be looking at one
    assert [one() for one in kept] == [None] * len(kept)


class Interrupt:
    """Raises KeyboardInterrupt here at the n-th line or return of a follower's code."""

    def __init__(self, n):
        self.left = n

    def __call__(self, frame, event, arg):
        if frame.f_code.co_filename not in (metrics_thread.__file__, threading.__file__):
            return None
        self.left -= event != "call"
        if self.left == 0:
            raise KeyboardInterrupt
        return self


def interrupted(n):
    """Whether the n-th place was reached by a follower of twelve items."""
    ready, before = [4], sys.gettrace()
    sys.settrace(Interrupt(n))
    try:
        with MetricsThread(lambda low, high: sleep(2e-4), lambda: ready[0], 12, 2) as both:
            both.start()
            both.finish(2)
            ready[0] = 12
            both.finish(12)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_at_any_place_leaves_the_thread_beside_free():
    """It must not wait for what the interrupted thread holds."""
    interrupted(0)  # the threads are there
    n = 1
    while interrupted(n):
        work = Work()
        work.ready = 1
        with MetricsThread(work, lambda done=work: done.ready, 1, 1) as after:
            after.start()
            work.wait(1)
        n += 1
    assert n > 30


def test_processors_beside_this_one(monkeypatch):
    assert 0 <= metrics_thread.spare() < (os.cpu_count() or 1)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert metrics_thread.spare() == 0


FORKING = """
import multiprocessing, threading, warnings
from o2td.learners.metrics_thread import MetricsThread

def done_by_another(_):
    done = threading.Event()
    with MetricsThread(lambda low, high: done.set(), lambda: 1, 1, 1) as beside:
        beside.start()
        return done.wait(20)

warnings.simplefilter("ignore")  # that there are threads
print(done_by_another(0))
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map_async(done_by_another, [0]).get(60)[0])
"""


def said(script):
    """What a process of its own prints; it must end by itself and complain of nothing."""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert ended.stderr == ""
    return ended.stdout


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="has no fork")
def test_a_forked_process_starts_threads_of_its_own():
    """Its parent's are not in it: what they are given would stay undone, and in memory."""
    assert said(FORKING) == "True\nTrue\n"


ENDING = """
import atexit, threading
from o2td.learners.metrics_thread import MetricsThread

done = []
atexit.register(lambda: print(*done))

def do(word):
    with MetricsThread(lambda low, high: done.append(word), lambda: 1, 1, 1) as beside:
        beside.start()
        beside.finish(1)

def late():
    threading.main_thread().join()
    do("in a thread that outlives the script")

if EARLY:
    do("while it runs")
atexit.register(do, "at its end")
threading.Thread(target=late).start()
"""


@pytest.mark.parametrize("early", [True, False])
def test_it_works_also_when_the_interpreter_ends(early):
    words = ["while it runs"] * early + ["in a thread that outlives the script", "at its end"]
    assert said(ENDING.replace("EARLY", str(early))) == " ".join(words) + "\n"


LEAVING = """
import threading
from o2td.learners.metrics_thread import MetricsThread

def for_ever():
    with MetricsThread(lambda low, high: None, lambda: 0, 1, 1) as beside:
        beside.start()
        started.set()
        threading.Event().wait()

started = threading.Event()
threading.Thread(target=for_ever, daemon=True).start()
started.wait()
print("left")
"""


def test_a_sweep_in_a_daemon_thread_does_not_keep_the_process():
    assert said(LEAVING) == "left\n"
