"""Tasks that fail, and workers that die."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from o2td.experiments.pool import TaskOutcome, compute


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
