"""A small experiment that runs in milliseconds, and ways to look at a store's bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

SMALL = """
name = "small"
title = "quick to run, with a lane that diverges"
steps = 60
runs = {runs}
runs_per_shard = {each}
every = 20
seed = 3
metrics = ["rmse"]
domain.name = "random_walk"

[[algorithms]]
name = "TD"
grid = {{ step_size = [0.01, 0.1] }}

[[algorithms]]
name = "TD"
label = "TD too fast"
parameters = {{ step_size = 1e200 }}
"""


@pytest.fixture
def small_text() -> Callable[..., str]:
    def text(runs: int = 6, each: int = 2) -> str:
        return SMALL.format(runs=runs, each=each)

    return text


@pytest.fixture
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Every file below a folder, by name, hidden and temporary ones included."""

    def read(folder: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    return read
