"""Experiments run on a backend of joblib that comes from elsewhere; on Ray where it is installed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import joblib
import pytest
from joblib._parallel_backends import ThreadingBackend

from o2td.experiments import load_spec, run
from o2td.experiments.pool import compute

from . import blocks

PAGE = blocks.ROOT / "docs" / "guides" / "cluster.md"


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


def test_only_ray_is_left_out() -> None:
    pages = (blocks.ROOT / "docs").rglob("*.md")
    left = [path for path in pages if any(map(blocks.needs_ray, blocks.blocks(path)))]
    assert left == [PAGE]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_the_page_runs_on_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not among the locked versions")
    monkeypatch.chdir(tmp_path)
    try:
        for block in blocks.blocks(PAGE):
            if block.language == "toml" or blocks.needs_ray(block):
                blocks.RUNNERS[block.language](block, {}, "cluster.md")
        run(load_spec(tmp_path / "small-walk.toml"), tmp_path / "here")
        assert runs(tmp_path / "on-ray") == runs(tmp_path / "here") != {}
        with joblib.parallel_config(backend="ray"):
            asked = dict.fromkeys(map(str, range(20)), "__import__('os').getpid()")
            found = list(compute(eval, asked, workers=1))  # there this module cannot be imported
        assert [outcome.error for outcome in found] == [None] * 20
        assert os.getpid() not in {outcome.data for outcome in found}
    finally:
        ray.shutdown()


def runs(store: Path) -> dict[str, bytes]:
    """All files of a store's runs."""
    return {path.name: path.read_bytes() for path in (store / "runs").rglob("*") if path.is_file()}
