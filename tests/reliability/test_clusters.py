"""A Dask cluster that loses workers again and again, and a scheduler that dies."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from o2td.experiments import Store, load_spec, run

pytest.importorskip("distributed")
from tests.dask_cluster import Cluster

from .test_writes import SMALL

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


def start(text: str, out: Path, address: str) -> subprocess.Popen[str]:
    spec = out.with_suffix(".toml")
    spec.write_text(text)
    command = [
        sys.executable,
        "-m",
        "o2td",
        "run",
        str(spec),
        "--no-page",
        "--json",
        "--out",
        str(out),
    ]
    return subprocess.Popen(
        [*command, "--dask", address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def stored(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_a_worker_killed_every_few_seconds(tmp_path: Path) -> None:
    """Workers are killed one after the other, others join: the bytes are those of one machine."""
    from distributed import Client

    text = SMALL.replace("steps = 100", "steps = 60000").replace("every = 5", "every = 6000")
    text = text.replace("runs = 12", "runs = 240")
    draw = random.Random(0)  # noqa: S311
    with Cluster() as made, Client(made.address, timeout=60, set_as_default=False) as client:
        process = start(text, tmp_path / "store", made.address)
        for files in range(40, 240, 40):
            until = time.monotonic() + 200
            while len(Store(tmp_path / "store").ids()) < files and time.monotonic() < until:
                time.sleep(0.02)
            client.wait_for_workers(2, timeout=120)
            victim = made.workers.pop(draw.randrange(2))
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            made.workers.append(made.add_worker())
        assert process.poll() is None
        said, complained = process.communicate(timeout=300)
    assert process.returncode == 0, complained
    part = json.loads(said)["parts"][0]
    assert (part["computed"], part["failed"]) == (240, [])
    run(load_spec(text), tmp_path / "whole", workers=1)
    assert stored(tmp_path / "store") == stored(tmp_path / "whole")


@pytest.mark.slow
def test_a_scheduler_lost_and_started_again(tmp_path: Path) -> None:
    """The command ends with a sentence; the same command on a new cluster computes the rest only."""
    text = SMALL.replace("runs = 12", "runs = 400")
    out = tmp_path / "store"
    with Cluster() as made:
        process = start(text, out, made.address)
        until = time.monotonic() + 200
        while len(Store(out).ids()) < 30 and time.monotonic() < until:
            time.sleep(0.01)
        made.scheduler.kill()
        _, said = process.communicate(timeout=200)
        assert process.returncode == 2
        assert "the scheduler is gone; what is finished is kept" in said
        assert len(said.splitlines()) == 1
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").iterdir()}
    assert 30 <= len(before) < 400
    with Cluster() as made:
        process = start(text, out, made.address)
        said, complained = process.communicate(timeout=200)
    assert process.returncode == 0, complained
    part = json.loads(said)["parts"][0]
    assert (part["found"], part["computed"]) == (len(before), 400 - len(before))
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())
    run(load_spec(text), tmp_path / "whole", workers=1)
    assert stored(out) == stored(tmp_path / "whole")
