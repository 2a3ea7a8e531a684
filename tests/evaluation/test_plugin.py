"""An estimator of another package: one file, no private import, found everywhere."""

from __future__ import annotations

import ast
import json
import shutil
import sys
from collections.abc import Iterator
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from o2td import evaluation
from o2td.cli import main
from o2td.errors import InputError
from o2td.registry import ESTIMATORS

from . import golden
from .episodes import SmallChunks

FILE = Path(__file__).with_name("outside") / "per_horizon.py"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package as an installer lays it out, found by its entry point."""
    ESTIMATORS.names()
    folder = tmp_path / "site"
    info = folder / "per_horizon-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(FILE, folder)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: per-horizon\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[o2td.estimators]\nphwdr = per_horizon:PerHorizonWDR\n")
    invalidate_caches()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(ESTIMATORS, "_members", dict(ESTIMATORS._members))
    monkeypatch.setattr(ESTIMATORS, "_found", False)
    yield
    sys.modules.pop("per_horizon", None)


def test_it_imports_nothing_private() -> None:
    modules = []
    for node in ast.walk(ast.parse(FILE.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("o2td"):
            modules.append(node.module)
            assert all(alias.name in evaluation.__all__ for alias in node.names)
    assert modules == ["o2td.evaluation"]


def test_it_is_in_table_page_json_and_methods(
    installed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "log.parquet", tmp_path / "out"
    golden.table(3, ending=0.3, steps=6)[golden.RATIO].to_parquet(file)
    given = ["evaluate", str(file), "--discount", "0.9"]
    assert main([*given, "--json", "--out", str(out)]) == 0
    rows = json.loads(capsys.readouterr().out)["estimates"]
    row = next(row for row in rows if row["method"] == "phwdr")
    assert (row["title"], row["kind"]) == ("per-horizon weighted doubly robust", "hybrid")
    assert row["title"] in (out / "report.html").read_text("utf-8")
    assert main([*given, "--methods", "phwdr,lstd"]) == 0
    assert "phwdr" in capsys.readouterr().out
    assert evaluation.METHODS[-1] == "phwdr"
    assert main(["algorithms", "--kind", "estimator"]) == 0
    assert "(per_horizon)" in capsys.readouterr().out
    with pytest.raises(InputError, match="phwdr"):
        evaluation.evaluate(file, 0.9, methods="nothing")


def test_episodes_of_one_length_make_it_weighted_doubly_robust(installed: None) -> None:
    log = golden.table(5, ending=0.0, steps=4)[golden.RATIO]
    answer = evaluation.evaluate(log, 0.9, methods="wdr,phwdr")
    one, two = answer["wdr"], answer["phwdr"]
    np.testing.assert_allclose([two.value, two.low, two.high], [one.value, one.low, one.high])


def test_it_is_near_the_truth_and_the_same_in_any_chunks(installed: None) -> None:
    log = golden.table(9, episodes=400, ending=0.3, steps=6)[golden.RATIO]
    whole = evaluation.evaluate(log, 0.9, methods="lstd,phwdr")["phwdr"]
    again = evaluation.evaluate(SmallChunks(log, 0.9, 50, 10**9), methods="phwdr")["phwdr"]
    assert again.value == pytest.approx(whole.value)
    assert again.standard_error == pytest.approx(whole.standard_error)
    reference: Any = evaluation.evaluate(log, 0.9, methods="lstd")["lstd"]
    apart = abs(whole.value - reference.value)
    assert apart < 4 * np.hypot(whole.standard_error, reference.standard_error)


def _asked(node: ast.AST) -> list[ast.expr]:
    """What is compared, looked up in a dict, or matched in this node."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    return [node.value] if isinstance(node, ast.MatchValue) else []


def test_nothing_asks_for_estimators_by_name() -> None:
    package = Path(evaluation.__file__).parents[1]
    names = set(ESTIMATORS.names()) - {"o2td"}  # which is the package's own name, too
    for room in ("evaluation", "report", "cli"):
        for file in (package / room).rglob("*.py"):
            if file.parent.name == "estimators":
                continue
            asked = [
                one for node in ast.walk(ast.parse(file.read_text("utf-8"))) for one in _asked(node)
            ]
            words = {w.value for one in asked for w in ast.walk(one) if isinstance(w, ast.Constant)}
            assert not words & names, file
