from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from o2td.cli import main
from o2td.registry import ESTIMATORS, FEATURES, FORMATS, LEARNERS, LOG_TESTS, SOLVERS

KINDS = {
    "learner": LEARNERS,
    "solver": SOLVERS,
    "features": FEATURES,
    "estimator": ESTIMATORS,
    "test": LOG_TESTS,
    "format": FORMATS,
}


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package of somebody else's: one algorithm that loads and one that does not."""
    (tmp_path / "o2td_listed.py").write_text(
        "class Steady:\n    'TD with a [steady] hand.'\n    def __init__(self, grip, pace=0.5): ...\n"
    )
    info = tmp_path / "o2td_listed-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: o2td-listed\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[o2td.learners]\nSteady = o2td_listed:Steady\nBroken = o2td_listed_missing:Broken\n"
    )
    LEARNERS.names()  # found before the package is there, so that it leaves with the patch
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(LEARNERS, "_members", dict(LEARNERS._members))
    monkeypatch.setattr(LEARNERS, "_found", False)
    yield
    sys.modules.pop("o2td_listed", None)


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["algorithms", "--json", *arguments]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["algorithms"]
    return rows


def test_json_has_every_registered_name_with_its_parameters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = listed(capsys)
    names = {kind: [r["name"] for r in rows if r["kind"] == kind] for kind in KINDS}
    assert names == {kind: registry.names() for kind, registry in KINDS.items()}
    assert len(rows) == sum(map(len, KINDS.values()))
    lstd = next(row for row in rows if row["name"] == "LSTD")
    assert lstd["parameters"] == {"trace": 0.0, "ridge": 0.0, "rho_on": "difference"}
    assert lstd["package"] == "o2td"
    assert all(row["summary"] and row["needs"] is None for row in rows)


def test_one_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert {row["kind"] for row in listed(capsys, "--kind", "solver")} == {"solver"}
    assert main(["algorithms", "--kind", "teapot"]) == 2
    assert "learner, solver, features" in capsys.readouterr().err


def test_table_shows_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algorithms"]) == 0
    shown = capsys.readouterr().out
    firsts = [line.split()[0] for line in shown.splitlines() if line[:1].strip()]
    assert {name for registry in KINDS.values() for name in registry.names()} <= set(firsts)
    assert "descent on the projected Bellman error" in " ".join(shown.split())


@pytest.mark.usefixtures("plugin")
def test_plug_ins_are_listed_also_where_they_cannot_be_loaded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = {row["name"]: row for row in listed(capsys)}
    assert rows["Steady"]["parameters"] == {"grip": "needed", "pace": 0.5}
    assert rows["Steady"]["package"] == "o2td_listed"
    assert "cannot be loaded" in rows["Broken"]["needs"]
    assert main(["algorithms"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "TD with a [steady] hand. (o2td_listed)" in shown
    assert "the package o2td-listed cannot be loaded" in shown
