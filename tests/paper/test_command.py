"""`o2td reproduce`: one JSON object, a table for people, a sentence for mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from o2td.cli import main
from o2td.paper.claims import DEPENDS, NOT, REPRODUCED, UNDECIDED


def test_json_is_one_object_with_exactly_these_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    asked = ["reproduce", "fig-oblique", "theory", "--out", str(out), "--workers", "1"]
    code = main([*asked, "--json"])
    printed = capsys.readouterr().out
    assert code == 0
    document = json.loads(printed)
    assert list(document) == ["claims", "figures", "seconds"]
    assert [row["id"] for row in document["claims"]] == [1, 2, 3, 4, 5, 6, 7, 13, 16]
    for row in document["claims"]:
        assert list(row) == ["id", "claim", "verdict", "measured", "low", "high", "why"]
        assert row["verdict"] in (REPRODUCED, NOT, DEPENDS, UNDECIDED)
    assert document["figures"] == ["fig-oblique"]
    assert (out / "report.html").stat().st_size > 10_000
    assert main(asked) == 0  # the same for people, from what is finished
    table = capsys.readouterr().out
    assert "[" in table
    assert "\\" not in table


def test_people_get_a_table_and_the_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["reproduce", "fig-oblique", "--out", str(out), "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "No claim of the paper rests on fig-oblique alone." in printed
    assert f"report in {out / 'report.html'}" in printed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fig-bard"], "did you mean 'fig-baird'"),
        (["fig-baird", "--profile", "huge"], "profile must be one of 'quick', 'full'"),
        (["fig-baird", "--workers", "0"], "workers must be a whole number from 1 to 10000, got 0"),
    ],
)
def test_a_mistake_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["reproduce", *arguments, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
