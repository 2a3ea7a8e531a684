"""The page on clusters: what it shows of Ray runs where Ray is installed."""

from __future__ import annotations

import os
from pathlib import Path

import joblib
import pytest

from o2td.experiments import load_spec, run

from . import blocks

PAGE = blocks.ROOT / "docs" / "guides" / "cluster.md"


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
            asked = joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(20))
        assert os.getpid() not in asked
    finally:
        ray.shutdown()


def runs(store: Path) -> dict[str, bytes]:
    """All files of a store's runs."""
    return {path.name: path.read_bytes() for path in (store / "runs").rglob("*") if path.is_file()}
