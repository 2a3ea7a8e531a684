"""`o2td evaluate --target … --against … --require …`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from o2td.cli import main

from .test_evaluate import walk_log

QUICK = ["--discount", "0.9", "--methods", "lstd", "--bootstrap", "50"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    frame = walk_log()
    frame = frame.with_columns(
        frame["target_prob"].alias("B"), (1.0 - frame["target_prob"]).alias("A")
    )
    path = tmp_path_factory.mktemp("compare") / "walk.parquet"
    frame.drop("target_prob").write_parquet(path)
    return str(path)


def test_it_prints_policies_differences_and_a_verdict(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", log, *QUICK, "--target", "A", "--target", "new=B"]) == 0
    said = capsys.readouterr().out
    for part in ("new - logged", "A - logged", "new - A", "joint interval", "Verdict: trust"):
        assert part in said


def test_names_of_differences_stay_readable_in_a_narrow_terminal(
    log: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    given = ["--target", "considerate=A", "--target", "enterprising=B"]
    assert main(["evaluate", log, *QUICK, *given]) == 0
    said = capsys.readouterr().out
    above, table = said[: said.index("Verdict")].split("difference")
    assert above.splitlines()[-1].strip() == "95% interval"
    assert "joint interval" in table.splitlines()[0]
    assert "…" not in table
    assert all(table.count(name) == 2 for name in ("considerate", "enterprising", "logged"))


def test_a_function_as_target_is_told_that_it_needs_python(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", log, *QUICK, "--target", "A=policies.py:greedy"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "a policy that is a function needs Python: evaluation.compare" in said


def test_json_has_policies_and_differences(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--target", "A=A", "--target", "B=B", "--against", "A", "--json"]
    assert main(["evaluate", log, *QUICK, *given, "--require", "B > A"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["policies"]] == ["B", "A"]
    assert (found["differences"][0]["of"], found["differences"][0]["over"]) == ("B", "A")
    assert found["baseline"] == "A"
    assert found["requirements"][0]["holds"] is True


@pytest.mark.parametrize(
    ("required", "code"),
    [
        (["B > A"], 0),
        (["A - B > 0"], 3),
        (["B > 0.58"], 4),
        (["B > A", "B > 0.58", "A > B"], 3),
    ],
)
def test_exit_codes_of_requirements(
    log: str, required: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [part for text in required for part in ("--require", text)]
    assert main(["evaluate", log, *QUICK, "--target", "A", "--target", "B", *given]) == code
    assert f"requirement {required[0]}:" in capsys.readouterr().out


def test_one_policy_has_a_lift_to_require(log: str) -> None:
    one = ["evaluate", log, *QUICK, "-c", "target_prob=B"]
    assert main([*one, "--require", "lift > 0"]) == 0
    assert main([*one, "--require", "lift > 100"]) == 3
    assert main(["evaluate", log, *QUICK, "--target", "B", "--require", "lift > 0"]) == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--target", "B=nothing"], "--target B=nothing"),
        (["--target", "=B"], "write NAME=COLUMN"),
        (["--target", "B=A", "--target", "B"], "is used twice"),
        (["--against", "B"], "name the policies"),
        (["--target", "B", "--against", "C"], "no such policy"),
        (["--target", "B", "--on-policy"], "cannot be combined with --on-policy"),
        (["--target", "B", "--require", "C > 0"], "'C': no such policy"),
        (["--target", "A", "--target", "B", "--require", "lift > 0"], "which policy's?"),
        (["--target", "B", "--require", "B >"], "missing at its end"),
        (["--target", "logged=B"], "cannot be a policy's name"),
    ],
)
def test_mistakes_are_named_before_anything_is_computed(
    log: str, given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", log, *QUICK, *given]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--cvar", "nan"], "--cvar nan: write a share between 0 and 1"),
        (["--cvar", "1"], "--cvar 1.0: write a share between 0 and 1"),
        (["--require", "cvar(9) > 0"], "cvar(9) has no share between 0 and 1"),
        (["--require", "quantile(0) > 0"], "quantile(0) has no share between 0 and 1"),
        (["--require", "cvar(1.2.3) > 0"], "cvar(1.2.3) has no share between 0 and 1"),
        (["--require", "value > cvar(0.1)"], "value - cvar(0.1) is not known here"),
        (["--on-policy", "--require", "lift > 0"], "'lift' is not known here"),
        (["--on-policy", "--require", "value > logged"], "value - logged is not known here"),
        (["--require", "lift - value > 0"], "lift - value is not known here"),
    ],
)
def test_nothing_is_read_or_written_where_figures_of_returns_cannot_be_asked_for(
    given: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.csv").write_text("not a log")
    out = tmp_path / "out"
    assert main(["evaluate", str(tmp_path / "log.csv"), *QUICK, *given, "--out", str(out)]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


def test_a_folder_has_page_and_object(log: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["evaluate", log, *QUICK, "--target", "B", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["evaluation.json", "report.html"]


def test_requirements_on_returns_of_one_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "walk.parquet")
    walk_log().write_parquet(path)
    assert main(["evaluate", path, *QUICK, "--require", "quantile(0.5) > -100"]) == 0
    assert main(["evaluate", path, *QUICK, "--require", "cvar(0.2) > 100"]) in (3, 4)
    capsys.readouterr()
    assert main(["evaluate", path, *QUICK, "--require", "variance(0.2) > 1"]) == 2
    assert "'variance(0.2)' is not known" in " ".join(capsys.readouterr().err.split())
