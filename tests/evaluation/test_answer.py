"""The answer shows itself: printed, in a notebook, as a frame, a picture, a page, a folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from o2td import _version, evaluation
from o2td.cli import main
from o2td.errors import InputError
from o2td.evaluation import load_model

from . import golden


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answer") / "log.parquet"
    log, _ = golden.CASES["states_with_per_action_probabilities"]()
    log.to_parquet(path)
    return path


@pytest.fixture(scope="module")
def answer(file: Path) -> evaluation.Evaluation:
    return evaluation.evaluate(file, 0.9, influence=True)


def test_print_is_what_the_command_prints(
    answer: evaluation.Evaluation, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = str(answer)
    assert main(["evaluate", str(file), "--discount", "0.9"]) == 0
    printed = capsys.readouterr().out
    table = [line.split() for line in shown.splitlines()[: len(answer.estimates) + 1]]
    assert all(line in [row.split() for row in printed.splitlines()] for line in table)
    for sentence in ("Verdict: trust", "The policy that made the log is worth"):
        assert sentence in shown
        assert sentence in printed
    assert len(repr(answer)) < 100
    assert len(shown) < 3000


def test_json_is_the_same_everywhere(
    answer: evaluation.Evaluation, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(file), "--discount", "0.9", "--json"]) == 0
    printed, own = json.loads(capsys.readouterr().out), answer.as_dict()
    for found in (printed, own):
        assert found["audit"].pop("date").startswith("20")
    assert printed == json.loads(json.dumps(own)) == own


def test_what_an_audit_needs_is_there(answer: evaluation.Evaluation, file: Path) -> None:
    found = answer.audit
    assert found["version"] == _version.__version__
    assert (found["discount"], found["confidence"], found["seed"]) == (0.9, 0.95, 0)
    (one,) = found["files"]
    assert one["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert (one["rows"], one["bytes"]) == (answer.diagnostics["rows"], file.stat().st_size)
    assert found["columns"]["target_probs"] == ["target_prob_0", "target_prob_1"]
    value = answer.logged["value"]
    for shown in (str(answer), answer._repr_html_()):
        for fact in (found["version"], found["date"], one["sha256"][:16], f"{one['rows']}"[-3:]):
            assert fact in shown
        for fact in ("discount 0.9", "95%", "seed 0", "target_prob_0", f"worth {value:.2f}"[:-1]):
            assert fact in shown


def test_rows_are_counted_by_file_also_where_they_are_sorted(tmp_path: Path) -> None:
    log = golden.table(3)[golden.RATIO]
    log[:100].to_parquet(tmp_path / "a.parquet")
    log[100:].to_parquet(tmp_path / "b.parquet")
    for sort in (False, True):
        answer = evaluation.evaluate(tmp_path, 0.9, methods="lstd", sort=sort)
        assert [one["rows"] for one in answer.audit["files"]] == [100, len(log) - 100]


def test_the_logged_policy_has_its_own_value() -> None:
    log = golden.table(1, ending=0.3, steps=200)[golden.RATIO]
    returns = log.assign(g=log.reward * 0.9**log.step).groupby("episode").g.sum()
    cut = log.groupby("episode").truncated.any()
    assert not cut.any()
    found = evaluation.evaluate(log, 0.9, methods="lstd").logged
    assert found["value"] == pytest.approx(returns.mean())
    error = returns.std() / np.sqrt(len(returns))
    assert found["standard_error"] == pytest.approx(error)
    assert found["low"] < found["value"] < found["high"]


@pytest.mark.parametrize("features", ["auto", "fourier:2"])
def test_where_episodes_are_cut_the_logged_value_goes_on(features: str) -> None:
    """Of the same process cut early and late: what was cut off is not lost."""
    long = golden.table(8, episodes=400, ending=0.1, steps=60)
    short = golden.table(8, episodes=400, ending=0.1, steps=4)
    columns = golden.SEEN if features != "auto" else golden.RATIO
    for log in (long, short):
        log["reward"] += 1.0
    found = [
        evaluation.evaluate(log[columns], 0.9, features, methods="lstd").logged
        for log in (long, short)
    ]
    plain = short.assign(g=short.reward * 0.9**short.step).groupby("episode").g.sum().mean()
    apart = abs(found[0]["value"] - found[1]["value"])
    assert apart < 3 * np.hypot(found[0]["standard_error"], found[1]["standard_error"])
    assert apart < 0.5 * abs(plain - found[0]["value"])


def test_frame_and_influence(answer: evaluation.Evaluation) -> None:
    frame = answer.frame()
    assert frame["method"].to_list() == [row.method for row in answer.estimates]
    assert frame.to_pandas().value[0] == answer.recommended.value
    influence = answer.influence
    assert influence.height == answer.diagnostics["episodes"]
    for row in answer.estimates:
        column = influence[row.method].to_numpy()
        assert column.mean() == pytest.approx(0.0, abs=1e-9)
        error = column.std(ddof=1) / np.sqrt(len(column))
        assert error == pytest.approx(row.standard_error)


def test_influence_has_to_be_asked_for(file: Path) -> None:
    plain = evaluation.evaluate(file, 0.9, methods="lstd")
    with pytest.raises(InputError, match="influence=True"):
        _ = plain.influence


def test_a_notebook_shows_verdict_picture_and_table(
    answer: evaluation.Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = answer._repr_html_()
    assert shown.count("<tr") == len(answer.estimates) + 1
    assert "data:image/svg+xml;base64," in shown
    assert "per-decision importance sampling" in shown
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    assert "<img" not in answer._repr_html_()


def test_plot_is_a_figure(answer: evaluation.Evaluation) -> None:
    (axes,) = answer.plot().axes
    assert len(axes.get_yticklabels()) == len(answer.estimates)


def test_page_and_folder(answer: evaluation.Evaluation, tmp_path: Path) -> None:
    page = answer.report(tmp_path / "page.html").read_text("utf-8")
    for said in ("For an audit", str(answer.audit["files"][0]["sha256"]), "SHA-256"):
        assert said in page
    folder = answer.save(tmp_path / "folder")
    names = {"evaluation.json", "report.html", "values.parquet", "model.npz"}
    assert {path.name for path in folder.iterdir()} == names
    assert json.loads((folder / "evaluation.json").read_text("utf-8")) == answer.as_dict()
    values = pl.read_parquet(folder / "values.parquet")
    model = load_model(folder / "model.npz")
    states: Any = values["state"].to_numpy()
    np.testing.assert_allclose(values["value"], model.predict(states))
    with pytest.raises(InputError, match="the folder is not empty"):
        answer.save(folder)
    answer.save(folder, force=True, states=[(np.array([0, 1]), None)])
    assert pl.read_parquet(folder / "values.parquet").height == 2


def test_progress_is_told_by_a_callback(file: Path) -> None:
    rows: list[int] = []
    answer = evaluation.evaluate(file, 0.9, methods="lstd", progress=rows.append)
    assert sum(rows) == answer.diagnostics["rows"] * answer.diagnostics["passes"]


def test_an_error_of_the_callback_is_named(file: Path) -> None:
    def broken(rows: int) -> None:
        raise RuntimeError("no bar")

    with pytest.raises(InputError, match=r"progress: it raised RuntimeError for \d+ \(no bar\)"):
        evaluation.evaluate(file, 0.9, methods="lstd", progress=broken)


def test_a_large_effective_number_of_episodes_is_printed_as_a_count():
    log = pl.DataFrame({"state": [0] * 2400, "reward": [0.0, 1.0] * 1200, "rho": [0.5, 1.5] * 1200})
    said = str(evaluation.evaluate(log, methods="lstd"))
    assert "1,920  of 2400 episodes" in said
