"""The notebooks run from the first cell to the last, and are stored with outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs._tools import notebooks

PATHS = sorted(notebooks.NOTEBOOKS.glob("*.ipynb"))


def test_there_are_three() -> None:
    assert len(PATHS) == 3


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_runs(path: Path) -> None:
    made = notebooks.run(path)
    code = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    assert any(cell["outputs"] for cell in code)
    kept = json.loads(path.read_text("utf-8"))
    stored = [bool(cell["outputs"]) for cell in kept["cells"] if cell["cell_type"] == "code"]
    assert stored == [bool(cell["outputs"]) for cell in code]


def test_a_failing_cell_is_noticed(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": ["1 / 0"], "outputs": [], "metadata": {}}
    path = tmp_path / "bad.ipynb"
    path.write_text(json.dumps({"cells": [cell]}))
    with pytest.raises(ZeroDivisionError):
        notebooks.run(path)
