"""A real Dask scheduler and real workers, as processes of their own on the loopback interface."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from o2td.experiments import Store, load_spec, run
from tests.dask_cluster import Cluster

pytest.importorskip("distributed")
Contents = Callable[[Path], dict[str, bytes]]

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


def test_workers_and_scheduler_killed_half_way(
    small_text: Callable[..., str], tmp_path: Path, contents: Contents
) -> None:
    """A lost worker changes nothing; a lost scheduler is one sentence, and the store goes on."""
    with Cluster() as cluster:
        process = _o2td_run(small_text(runs=60, each=1), tmp_path / "store", cluster.address)
        _wait_for(20, tmp_path / "store")
        cluster.workers[0].send_signal(signal.SIGKILL)
        text, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        part = json.loads(text)["parts"][0]
        assert (part["computed"], part["failed"]) == (60, [])

        process = _o2td_run(small_text(runs=2000, each=1), tmp_path / "lost", cluster.address)
        _wait_for(10, tmp_path / "lost")
        cluster.scheduler.kill()
        _, said = process.communicate(timeout=120)
        assert process.returncode == 2
        assert "the scheduler is gone; what is finished is kept" in said
        assert len(said.splitlines()) == 1
    spec = load_spec(small_text(runs=60, each=1))
    run(spec, tmp_path / "whole", workers=1)
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")
    few = load_spec(small_text(runs=10, each=1))
    assert run(few, tmp_path / "lost", workers=1).found > 0


def _o2td_run(text: str, out: Path, address: str) -> subprocess.Popen[str]:
    spec_file = out.with_suffix(".toml")
    spec_file.write_text(text)
    command = [
        *(sys.executable, "-m", "o2td", "run", str(spec_file), "--no-page", "--json"),
        *("--out", str(out), "--dask", address),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _wait_for(files: int, store: Path) -> None:
    until = time.monotonic() + 120
    while len(Store(store).ids()) < files and time.monotonic() < until:
        time.sleep(0.01)
