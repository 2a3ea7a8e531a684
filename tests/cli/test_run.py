"""``o2td run``: what it prints, and what its exit codes mean."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from o2td.cli import main

SPEC = """
name = "walk"
steps = 60
runs = 4
every = 20
metrics = ["rmse"]
domain.name = "random_walk"
algorithms = [
  { name = "TD", grid = { step_size = [0.1, 1e200] } },
  { name = "LSTD" },
  { name = "TD", label = "TD slower", parameters = { step_size = { power = [1.0, 0.5] } } },
]

[tuning]
seed = 9
runs = 2
grid = { step_size = [0.05, 0.1] }

[profiles]
full = { runs = 6 }
"""


@pytest.fixture
def spec(tmp_path: Path) -> str:
    (tmp_path / "walk.toml").write_text(SPEC)
    return str(tmp_path / "walk.toml")


def test_json_is_one_object(spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert main(["run", spec, "--out", out, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["complete"] is True
    assert first["parts"][0]["computed"] == first["parts"][0]["shards"] > 0
    lost = next(row for row in first["final"] if row["parameters"] == {"step_size": 1e200})
    assert (lost["mean"], lost["diverged_share"], lost["runs"]) == (None, 1.0, 4)
    assert main(["run", spec, "--out", out, "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["parts"][0]["computed"] == 0
    assert second["final"] == first["final"]


def test_text_has_a_line_a_setting(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["run", spec, "--out", str(tmp_path / "out"), "--tune", "--profile", "full"]) == 0
    text = capsys.readouterr().out
    assert "TD(step_size=1e+200)" in text
    assert "100% of 6" in text
    assert "TD slower(step_size=1·t^-0.5)" in text
    assert "walk:tuned" in text


@pytest.mark.parametrize(
    ("table", "said"),
    [("", "walk has no such table"), ("[tuning]\nseed = 9\ngrid = { trace = [2.0] }\n", "trace")],
)
def test_a_spec_that_cannot_be_tuned_is_refused_before_anything_is_computed(
    table: str, said: str, spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(spec).write_text(SPEC[: SPEC.index("[tuning]")] + table)
    assert main(["run", spec, "--out", str(tmp_path / "out"), "--tune"]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_results_go_to_a_folder_of_the_specs_name(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", spec]) == 0
    assert (tmp_path / "results" / "walk" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("steps = 60", "stepz = 60"), "walk.toml: stepz: unknown key, did you mean 'steps'?"),
        (("runs = 4", "runs = 1000000000000"), "walk.toml: runs: expected int <= 1000000"),
        (("random_walk", "random_wlak"), "domain.name: no 'random_wlak', did you mean"),
    ],
)
def test_a_wrong_spec_is_one_sentence_and_code_2(
    change: tuple[str, str],
    sentence: str,
    spec: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path(spec).write_text(SPEC.replace(*change))
    assert main(["run", spec, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert len(said.err.splitlines()) == 1
    assert said.out == ""
    assert not (tmp_path / "out").exists()


def test_other_mistakes_are_one_sentence_and_code_2(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    (tmp_path / "file").write_text("")
    for arguments, sentence in (
        ([str(tmp_path / "none.toml")], "none.toml: No such file"),
        ([spec, "--out", str(tmp_path / "file")], "cannot be written"),
        ([spec, "--out", out, "--profile", "huge"], "profiles: no 'huge' in walk; it has full"),
        (
            [spec, "--out", out, "--workers", "0"],
            "workers must be a whole number from 1 to 10000, got 0",
        ),
        ([spec, "--out", out, "--dask", "tcp://127.0.0.1:1"], "no scheduler answers there"),
    ):
        assert main(["run", *arguments]) == 2
        said = capsys.readouterr().err
        assert sentence in said
        assert "Traceback" not in said


def test_runs_that_fail_are_told_and_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("o2td.experiments.running.try_out", lambda key, problem: None)
    text = SPEC.replace('{ name = "LSTD" }', '{ name = "SOTD" }')
    text = text.replace('"random_walk"', '"mountain_car"') + "[truth]\nstates = 5\nrollouts = 2\n"
    (tmp_path / "bad.toml").write_text(text)
    assert main(["run", str(tmp_path / "bad.toml"), "--out", str(tmp_path / "out")]) == 1
    assert "failed three times" in capsys.readouterr().err


def test_a_damaged_file_is_told(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["run", spec, "--out", str(out)]) == 0
    file = next((out / "runs").iterdir())
    file.write_bytes(file.read_bytes()[:-1])
    capsys.readouterr()
    assert main(["run", spec, "--out", str(out)]) == 0
    assert f"{file.name}: damaged" in capsys.readouterr().err


def test_a_bar_is_shown_when_asked_for(spec: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "o2td", "run", spec, "--out", str(tmp_path), "--progress"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "walk" in done.stderr
    quiet = subprocess.run(command[:-1], capture_output=True, text=True, check=True)
    assert quiet.stderr == ""


def test_help_is_quick() -> None:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "o2td", "run", "--help"], capture_output=True, text=True, check=True
    )
    assert "SPEC.toml" in done.stdout
    assert time.perf_counter() - began < 5.0
