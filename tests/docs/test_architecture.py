"""The page on architecture: its picture and its paths of the data are those of the source."""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

from docs._tools import architecture

PAGE = architecture.ROOT / "docs" / "architecture.md"
SPEC = """
name = "walk"
steps = 100
runs = 2
runs_per_shard = 1
metrics = ["rmse"]
domain.name = "random_walk"
algorithms = [{ name = "TD", parameters = { step_size = 0.1 } }]
"""


def test_every_room_is_on_a_floor_and_imports_go_down() -> None:
    level = {room: k for k, row in enumerate(architecture.floors().values()) for room in row}
    assert set(level) == set(architecture.rooms())
    found = architecture.imports()
    assert [(a, b) for a in found for b in found[a] if level[b] < level[a]] == []


def test_the_picture_is_that_of_the_source() -> None:
    assert architecture.PICTURE.read_text(encoding="utf-8") == architecture.draw(), (
        "draw it anew: python -m docs._tools.architecture"
    )


def test_every_room_of_the_table_exists() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## Four paths")[0]
    named = {
        n for row in re.findall(r"^\| (`.*?) \|", text, re.M) for n in re.findall(r"`(\w+)`", row)
    }
    assert named <= {*architecture.rooms(), "benchmarks"}


def table(heading: str) -> dict[str, str]:
    """Functions and how often they are crossed."""
    part = PAGE.read_text(encoding="utf-8").partition(f"### {heading}\n")[2].partition("\n#")[0]
    return dict(re.findall(r"^\| `(o2td\.[\w.]+)` \| ([^|]+?) \|", part, re.M))


def code_of(path: str) -> CodeType:
    parts = path.split(".")
    for k in range(len(parts) - 1, 0, -1):
        try:
            found: Any = import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for name in parts[k:]:
            found = inspect.getattr_static(found, name)
        return inspect.unwrap(getattr(found, "__func__", found)).__code__
    raise AssertionError(path)


def crossed(functions: list[str], way: Callable[[], Any]) -> Counter[str]:
    """How often each function was entered, in the order of the first times."""
    codes = {code_of(path): path for path in functions}
    found: Counter[str] = Counter()

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in codes:
            found[codes[frame.f_code]] += 1

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        way()
    finally:
        sys.setprofile(before)
    return found


def batch(_: Path) -> None:
    import o2td

    rng = np.random.default_rng(0)
    phi = rng.random((5000, 3))
    rows = o2td.Transitions(phi, rng.random(5000), phi[::-1].copy(), discount=0.9)
    o2td.TD(step_size=0.01).partial_fit(rows)


def logged() -> Any:
    import polars as pl

    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "episode": np.repeat(np.arange(60), 4),
            "step": np.tile(np.arange(4), 60),
            "state": rng.integers(3, size=240),
            "action": rng.integers(2, size=240),
            "reward": rng.random(240),
            "terminated": np.tile(np.arange(4) == 3, 60),
            "truncated": np.zeros(240, bool),
            "rho": rng.choice([0.5, 1.5], 240),
        }
    )


def log(_: Path) -> None:
    from o2td.evaluation import evaluate

    evaluate(logged(), discount=0.9)


def policies(_: Path) -> None:
    from o2td.evaluation import compare

    even, other = np.full((3, 2), 0.5), np.tile([0.4, 0.6], (3, 1))
    frame = logged().drop("rho").with_columns(behavior_prob=0.5)
    compare(frame, discount=0.9, policies={"even": even, "other": other})


def spec(folder: Path) -> None:
    from o2td.cli import main

    (folder / "walk.toml").write_text(SPEC)
    assert main(["run", str(folder / "walk.toml"), "--out", str(folder), "--workers", "1"]) == 0


@pytest.mark.parametrize(
    ("heading", "way"),
    [
        ("A batch through a learner", batch),
        ("A log to a verdict", log),
        ("Several policies to a comparison", policies),
        ("A spec to a page", spec),
    ],
)
def test_the_data_goes_the_way_of_the_map(
    heading: str, way: Callable[[Path], None], tmp_path: Path
) -> None:
    told = table(heading)
    found = crossed(list(told), lambda: way(tmp_path))
    assert list(found) == list(told), "functions are listed in the order in which data reaches them"
    for path, often in told.items():
        most = {"once": 1, "twice per shard": 4}.get(often)
        assert found[path] == (most or found[path]), path
