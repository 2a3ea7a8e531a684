"""Tasks that fail, workers that die, backends of joblib that come from elsewhere."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import joblib
import pytest
from joblib._parallel_backends import ThreadingBackend

from o2td.errors import O2TDError
from o2td.experiments.pool import TaskOutcome, compute
from tests.dask_cluster import Cluster
from tests.experiments import deadly


def _unsteady(argument: str) -> bytes:
    """Fails, or kills its process, as long as its counter file says so."""
    name, action, path, limit = argument.split("|")
    with Path(path).open("a") as file:
        file.write("x")
    if len(Path(path).read_text()) <= int(limit):
        if action == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError(f"{name} is not ready")
    return name.encode()


@pytest.mark.filterwarnings("ignore:A worker stopped while some jobs")
@pytest.mark.parametrize("action", ["raise", "die"])
def test_a_task_that_always_fails_is_reported_after_three_tries(
    action: str, tmp_path: Path
) -> None:
    def task(name: str, limit: int) -> str:
        return f"{name}|{action}|{tmp_path / name}|{limit}"

    tasks = {f"good{k}": task(f"good{k}", 0) for k in range(8)}
    tasks["late"] = task("late", 1)
    tasks["bad"] = task("bad", 99)
    found = {outcome.name: outcome for outcome in compute(_unsteady, tasks, workers=2)}
    assert found.keys() == tasks.keys()
    assert {name for name, outcome in found.items() if outcome.data is None} == {"bad"}
    expected = "ValueError: bad is not ready" if action == "raise" else "its worker died"
    assert expected in str(found["bad"].error)
    tried = len((tmp_path / "bad").read_text())
    assert tried == 3 if action == "raise" else 3 <= tried <= 4
    assert found["late"] == TaskOutcome("late", b"late")


def _echo(argument: str) -> bytes:
    return argument.encode()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("workers", [1, 2])
def test_tasks_that_are_left_undone_are_left_without_a_word(workers: int) -> None:
    outcomes = compute(_echo, {str(k): str(k) for k in range(50)}, workers=workers)
    first = next(outcomes)
    assert first.data == first.name.encode()
    outcomes.close()


class Elsewhere(ThreadingBackend):
    """Threads, and like Ray's backend it hands over nothing before all is done."""

    supports_return_generator = False


def thread(_: str) -> bytes:
    return threading.current_thread().name.encode()


@pytest.fixture
def elsewhere() -> Iterator[None]:
    joblib.register_parallel_backend("elsewhere", Elsewhere)
    with joblib.parallel_config(backend="elsewhere"):
        yield


@pytest.mark.usefixtures("elsewhere")
def test_a_backend_that_was_set_is_used() -> None:
    tasks = {str(k): "" for k in range(100)}
    found = list(compute(thread, tasks, workers=1))
    assert {outcome.name for outcome in found} == set(tasks)
    assert threading.current_thread().name.encode() not in {outcome.data for outcome in found}


@pytest.mark.usefixtures("elsewhere")
def test_a_task_that_fails_there_is_reported() -> None:
    first, second = sorted(compute(bytes.fromhex, {"a": "00", "b": "no"}, workers=1))
    assert first.data == b"\0"
    assert second.error is not None
    assert "non-hexadecimal" in second.error


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_task_that_kills_every_worker_is_reported_and_the_rest_finished() -> None:
    """The workers have nannies here, which start a killed one again."""
    pytest.importorskip("distributed")
    with Cluster(workers=0) as cluster:
        cluster.workers = [cluster.add_worker("--nanny") for _ in range(2)]
        try:
            cluster.ready(2)
            tasks = {f"good{k}": f"good{k}" for k in range(20)} | {"d": "deadly", "w": "wrong"}
            found = {o.name: o for o in compute(deadly.task, tasks, 1, dask=cluster.address)}
        finally:
            for process in cluster.workers:
                process.terminate()  # so that a nanny ends what it started
                process.wait()
    assert found.keys() == tasks.keys()
    assert {name for name, outcome in found.items() if outcome.data is None} == {"d", "w"}
    assert "its worker died" in str(found["d"].error)
    assert found["w"].error == "ValueError: always wrong"


def test_no_scheduler_is_one_sentence() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(O2TDError, match="no scheduler answers there"):
        list(compute(str.encode, {"a": "a"}, 1, dask="tcp://127.0.0.1:1"))


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_task_that_always_fails_on_a_cluster_is_reported_too() -> None:
    pytest.importorskip("distributed")
    tasks = {f"good{k}": f"good{k}" for k in range(12)} | {"w": "wrong"}
    with Cluster() as made:
        found = {one.name: one for one in compute(deadly.task, tasks, 1, dask=made.address)}
    assert found.keys() == tasks.keys()
    assert {name for name, one in found.items() if one.data is None} == {"w"}
    assert found["w"].error == "ValueError: always wrong"
