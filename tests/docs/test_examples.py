"""The scripts with pictures run from the command line and say where the picture is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .blocks import ROOT


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
