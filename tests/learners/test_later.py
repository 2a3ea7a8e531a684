"""Work beside this thread: done once, by whoever comes first, also after a fork."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from o2td import metrics, sweep
from o2td.domains import garnet
from o2td.learners import TD, later, sweeping
from o2td.learners.later import Later


@pytest.fixture
def one_thread(monkeypatch):
    with ThreadPoolExecutor(max_workers=1) as pool:
        monkeypatch.setattr(later, "_threads", lambda: pool)
        yield


def here():
    return threading.current_thread() is threading.main_thread()


@pytest.mark.usefixtures("one_thread")
def test_what_the_thread_has_not_begun_is_taken_back():
    begun, go_on, done = threading.Event(), threading.Event(), []

    def first():
        begun.set()
        assert go_on.wait(30)
        done.append(("first", here()))

    def second(word):
        done.append((word, here()))

    jobs = [Later(True, first), Later(True, second, "second")]
    assert begun.wait(30)
    jobs[1].finish()
    assert done == [("second", True)]
    go_on.set()
    for job in (*jobs, *jobs):
        job.finish()
    assert done == [("second", True), ("first", False)]


def test_without_another_thread_it_is_done_at_once():
    done = []
    job = Later(False, done.append, 1)
    assert done == [1]
    job.finish()
    assert done == [1]


@pytest.mark.usefixtures("one_thread")
def test_an_error_is_raised_here_wherever_it_happened():
    begun, go_on = threading.Event(), threading.Event()

    def fails(wait):
        if wait:
            begun.set()
            assert go_on.wait(30)
        raise ZeroDivisionError

    there, back = Later(True, fails, True), Later(True, fails, False)
    assert begun.wait(30)
    with pytest.raises(ZeroDivisionError):
        back.finish()
    go_on.set()
    with pytest.raises(ZeroDivisionError):
        there.finish()


def test_processors_beside_this_one(monkeypatch):
    assert 0 <= later.spare() < (os.cpu_count() or 1)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert later.spare() == 0


def curves(seed):
    problem = garnet(seed=1)
    error = {"rmse": metrics.rmse(problem)}
    return sweep([TD(0.1), TD(0.01)], problem.sample(2000, seed=seed), error, 10).values["rmse"]


def test_sweeps_in_threads_of_the_user_share_the_helpers(monkeypatch):
    alone = [curves(seed) for seed in range(6)]
    monkeypatch.setattr(sweeping, "OVERLAP", -1)
    monkeypatch.setattr(sweeping, "spare", lambda: 1)
    with ThreadPoolExecutor(max_workers=6) as pool:
        for one, other in zip(alone, pool.map(curves, range(6)), strict=True):
            np.testing.assert_array_equal(one, other)


FORKING = """
import multiprocessing, threading, warnings
from o2td.learners.later import Later

def done_by_another(_):
    done = threading.Event()
    Later(True, done.set)
    return done.wait(20)

warnings.simplefilter("ignore")  # that there are threads
print(done_by_another(0))
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map_async(done_by_another, [0]).get(60)[0])
"""


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="has no fork")
def test_a_forked_process_starts_threads_of_its_own():
    """Its parent's are not in it: what they are given would stay undone, and in memory."""
    ended = subprocess.run(
        [sys.executable, "-c", FORKING],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.stdout == "True\nTrue\n", ended.stderr


ENDING = """
import atexit, threading, time
from o2td.learners.later import Later

done = []
atexit.register(lambda: print(*done))
Later(True, done.append, "while it runs").finish()
atexit.register(lambda: Later(True, done.append, "at its end").finish())

def late():
    threading.main_thread().join()
    Later(True, done.append, "in a thread that outlives the script").finish()

threading.Thread(target=late).start()
"""


def test_what_comes_when_the_interpreter_ends_is_done_at_once():
    ended = subprocess.run(
        [sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=60
    )
    assert ended.stderr == ""
    said = "while it runs in a thread that outlives the script at its end\n"
    assert ended.stdout == said
