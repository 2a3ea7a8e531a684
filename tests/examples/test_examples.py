"""Every example runs from its file, and its answer is next to the truth that it prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
pytest.importorskip("gymnasium")


def run(name: str, out: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), "--out", str(out), *options],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(name: str, shown: str, out: Path) -> None:
    assert f"$ o2td evaluate {out}" in shown
    assert "Verdict: " in shown
    found = re.search(r"The truth is (−?-?[\d.e+-]+).*?; (\w+) says (\S+),.*: (inside|OUT)", shown)
    assert found is not None
    answer = json.loads((out / name / "evaluation.json").read_text())
    assert answer["estimates"][0]["method"] == found[2]
    assert (out / name / "report.html").exists()
    assert abs(float(found[1]) - float(found[3])) <= 0.25 * abs(float(found[1]))


@pytest.mark.parametrize(
    ("script", "episodes"), [("logs_frozen_lake", "600"), ("logs_battery", "100")]
)
def test_quick_examples(script: str, episodes: str, tmp_path: Path) -> None:
    shown = run(script, tmp_path, "--episodes", episodes, "--runs", "4000")
    check(script.removeprefix("logs_"), shown, tmp_path)


@pytest.mark.parametrize(
    ("script", "episodes"), [("logs_mountain_car", "60"), ("logs_cart_pole", "100")]
)
def test_examples_that_choose_their_features(script: str, episodes: str, tmp_path: Path) -> None:
    shown = run(script, tmp_path, "--episodes", episodes, "--runs", "4000", "--seed", "1")
    check(script.removeprefix("logs_"), shown, tmp_path)


def test_the_list_of_examples_is_complete() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    for script in EXAMPLES.glob("logs_*.py"):
        assert script.name in listed
