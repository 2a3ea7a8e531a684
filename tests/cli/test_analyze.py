from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from o2td import domains, exact
from o2td.cli import main
from o2td.registry import LEARNERS, SOLVERS


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["analyze", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_table_has_every_method(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "collision", "--trace", "0")
    assert code == 0
    assert "collision: 9 states, 6 features" in out
    first_words = {line.split()[0].split("(")[0] for line in out.splitlines() if line.strip()}
    assert {*LEARNERS.names(), *SOLVERS.names()} <= first_words


def test_json_is_one_object_of_finite_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "garnet", "-p", "seed=4", "-p", "states=12", "--json")

    def refuse(text: str) -> Any:
        raise AssertionError(text)

    report = json.loads(out, parse_constant=refuse)
    assert code == 0
    assert (report["states"], report["features"]) == (12, 8)
    problem = domains.garnet(states=12, seed=4)
    assert report["best_rmse"] == pytest.approx(
        exact.rmse(problem, exact.best_approximation(problem)), abs=1e-12
    )
    names = [row["method"] for row in report["methods"]]
    assert {"TD", "TD(trace=0.9)", "O2TD(omega=state)", "LSTD"} <= set(names)


def test_unstable_methods_come_last(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "baird", "--trace", "0")
    lines = out.splitlines()
    stable = {line.split()[0]: k for k, line in enumerate(lines) if line.strip()}
    assert stable["ETD"] < stable["TD"]
    assert " no " in lines[stable["TD"]]


def test_a_terminal_sees_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    code, out, err = run(capsys, "collision", "--trace", "0", "--json")
    total = len(json.loads(out)["methods"])
    assert code == 0
    assert f"/{total}" in err


@pytest.mark.parametrize("domain", ["collision", "baird"])
def test_the_plot_is_a_picture(
    domain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "where.png"
    code, out, _ = run(capsys, domain, "--trace", "0", "--plot", str(path))
    assert code == 0
    assert str(path) in out.replace("\n", "")
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 10_000


def test_a_picture_without_an_ending_gets_one_and_is_named_as_it_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "collision", "--trace", "0", "--plot", str(tmp_path / "where"))
    assert code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["where.png"]
    assert f"picture: {tmp_path / 'where.png'}" in out


def test_neither_picture_nor_page_is_left_where_one_of_them_cannot_be_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ["--trace", "0", "--interactive", str(tmp_path / "page.html")]
    assert run(capsys, "collision", *page, "--plot", str(tmp_path / "a.nothing"))[0] == 2
    assert run(capsys, "four_rooms", *page, "--plot", str(tmp_path / "a.png"))[0] == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--plot", "--interactive"])
def test_a_folder_is_no_picture_and_no_page(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").mkdir()
    code, out, err = run(capsys, "collision", option, str(tmp_path / "there"))
    assert (code, out) == (2, "")
    assert f"{option} {tmp_path / 'there'}: is a folder; name a file in it" in err
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nowhere",), "no 'nowhere'"),
        (("baird", "-p", "form"), "write KEY=VALUE, with a key of baird: form"),
        (("baird", "-p", "wings=2"), "with a key of baird"),
        (("baird", "-p", "form=moon"), "moon"),
        (("mountain_car",), "analyze needs a finite domain"),
        (("baird", "--trace", "1.5"), "--trace must be in [0, 1]"),
        (("collision", "--trace", "0", "--plot", "where.nothing"), "where.nothing"),
    ],
)
def test_mistakes_get_one_sentence(
    arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err
