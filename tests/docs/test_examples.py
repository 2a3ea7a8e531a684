"""The scripts with pictures run from the command line and say where the picture is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .blocks import ROOT, blocks


@pytest.mark.parametrize("name", ["learning_curves", "sensitivity", "compare_methods"])
def test_draws_a_picture(name: str, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    script = ROOT / "examples" / f"{name}.py"
    options = ["--runs", "1", "--steps", "400", "--domain", "random_walk", "--out", str(picture)]
    done = subprocess.run([sys.executable, str(script), *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.rstrip().endswith(f"picture: {picture}")
    assert picture.read_bytes().startswith(b"\x89PNG")


def _numbers(line: str) -> tuple[str, list[float]]:
    """The line with `#` for each number, and the numbers."""
    found = re.findall(r"-?\d+\.\d+", line)
    return " ".join(re.sub(r"-?\d+\.\d+", "#", line).split()), [float(v) for v in found]


def test_the_read_me_shows_what_the_example_prints(tmp_path: Path) -> None:
    """Every line that README.md quotes is printed, its numbers up to rounding."""
    quoted = [block.text for block in blocks(ROOT / "README.md") if block.language == "text"]
    command, *lines = quoted[0].strip().split("\n")
    script = command.removeprefix("$ python ")
    options = [sys.executable, str(ROOT / script), "--out", str(tmp_path)]
    done = subprocess.run(options, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = dict(map(_numbers, done.stdout.split("\n")))
    for line in lines:
        words, values = _numbers(line)
        assert words in said, f"not printed: {line}"
        assert said[words] == pytest.approx(values, rel=0.0, abs=1.5e-4), line
