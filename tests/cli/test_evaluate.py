from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from o2td import evaluation
from o2td.cli import main
from o2td.errors import InputError
from o2td.evaluation import load_model
from o2td.sources import open_logs

QUICK = ["--discount", "0.9", "--methods", "lstd,wpdis,o2td"]


def walk_log(episodes: int = 120, seed: int = 1) -> pl.DataFrame:
    """A walk on 0 … 4 that ends beyond either side, right pays 1; the target leans right."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for episode in range(episodes):
        state, step, ended = 2, 0, False
        while not ended:
            right = rng.random() < 0.5
            after = state + (1 if right else -1)
            ended = not 0 <= after <= 4
            chance = (0.3, 0.7)[right]
            rows.append(
                (episode, step, state, int(right), float(after == 5), ended, False, 0.5, chance)
            )
            state, step = after, step + 1
    names = ["episode", "step", "state", "action", "reward", "terminated", "truncated"]
    return pl.DataFrame(rows, schema=[*names, "behavior_prob", "target_prob"], orient="row")


def true_value(discount: float = 0.9) -> float:
    """Of the middle, by solving the five equations."""
    P = np.zeros((5, 5))
    for s in range(5):
        for after, chance in ((s + 1, 0.7), (s - 1, 0.3)):
            if 0 <= after <= 4:
                P[s, after] = chance
    return float(np.linalg.solve(np.eye(5) - discount * P, [0, 0, 0, 0, 0.7])[2])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "walk.parquet"
    walk_log().write_parquet(path)
    return path


def answered(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert main(["evaluate", *map(str, arguments), "--json"]) == 0
    shown = capsys.readouterr().out

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    found: dict[str, Any] = json.loads(shown, parse_constant=refuse)
    return found


def test_json_is_the_documented_object_and_near_the_truth(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = answered(capsys, file, *QUICK)
    names = {
        "verdict",
        "reasons",
        "estimates",
        "policies",
        "differences",
        "logged",
        "lift",
        "tests",
    }
    names |= {"diagnostics", "audit", "segments"}
    assert set(answer) == names
    assert answer["verdict"] == "trust"
    best = answer["estimates"][0]
    keys = {"method", "value", "low", "high", "interval", "approximation_error", "verdict"}
    assert keys <= set(best)
    assert best["method"] == "lstd"
    assert best["low"] < true_value() < best["high"]
    assert {row["method"] for row in answer["estimates"]} == {"lstd", "wpdis", "o2td"}
    found = answer["diagnostics"]
    assert found["rows"] == walk_log().height
    assert (found["episodes"], found["dropped"]) == (120, 0)
    assert found["max_rho"] == pytest.approx(1.4)


def test_command_and_library_give_the_same(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = answered(capsys, file, *QUICK, "--seed", 3, "--bootstrap", 50, "--confidence", 0.8)
    direct = evaluation.evaluate(
        str(file), 0.9, methods="lstd,wpdis,o2td", seed=3, lanes=50, confidence=0.8
    )
    assert answer["estimates"] == [one.as_dict() for one in direct.estimates]


def test_the_terminal_says_mapping_estimates_verdict_and_grounds(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(file), *QUICK]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"behavior_prob +behavior_prob", shown)
    assert re.search(r"ratio +column target_prob / column behavior_prob", shown)
    assert re.search(r"lstd +0\.\d+ +0\.\d+ +0\.\d+ +0\.0+ +trust", shown)
    assert "Verdict: trust" in shown
    assert "with 95% confidence" in " ".join(shown.split())
    assert re.search(r"transitions used +[\d,]+ +in 120 episodes", shown)
    assert "nan" not in shown.lower()


def test_out_has_page_answer_values_and_model_that_agree(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "answer"
    answer = answered(capsys, file, *QUICK, "--out", out)
    assert {p.name for p in out.iterdir()} == {
        *("report.html", "evaluation.json", "values.parquet", "model.npz")
    }
    assert json.loads((out / "evaluation.json").read_text()) == answer
    values = pl.read_parquet(out / "values.parquet")
    assert values.columns == ["state", "value"]
    assert values.height == 120
    assert values["value"].mean() == pytest.approx(answer["estimates"][0]["value"], abs=1e-9)
    model = load_model(out / "model.npz")
    assert (model.predict(values["state"].to_numpy()) == values["value"].to_numpy()).all()
    page = (out / "report.html").read_text()
    assert page.count("<img") == 5
    assert "Trust: the log can answer" in page
    assert "<script" not in page
    assert main(["predict", str(out / "model.npz"), str(file), "--json"]) == 0
    predicted = json.loads(capsys.readouterr().out)["values"]
    assert predicted == model.predict(walk_log()["state"].to_numpy()).tolist()


def test_what_was_asked_for_is_what_is_saved(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = walk_log().with_columns(target_prob_0=pl.lit(0.3), target_prob_1=pl.lit(0.7))
    log.drop("target_prob").write_parquet(file)
    out = tmp_path / "answer"
    given = ["evaluate", str(file), "--discount", "0.9", "--out", str(out), "--force"]
    for methods, method in (("lstdq", "lstdq"), ("wis,lsetd", "lsetd"), ("wis", "lstd")):
        assert main([*given, "--methods", methods]) == 0
        assert f"values of states by {method}, in" in capsys.readouterr().out
        answer = json.loads((out / "evaluation.json").read_text())
        assert answer["diagnostics"]["model"] == load_model(out / "model.npz").method == method
        values = pl.read_parquet(out / "values.parquet")
        assert ("value_1" in values.columns) is (method == "lstdq")
        if method != "lstd":
            told = {row["method"]: row["value"] for row in answer["estimates"]}[method]
            assert values["value"].mean() == pytest.approx(told, abs=1e-9)


def test_states_of_a_file_have_values_of_actions_without_probabilities(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = walk_log().with_columns(target_prob_0=pl.lit(0.3), target_prob_1=pl.lit(0.7))
    log.drop("target_prob").write_parquet(file)
    out, asked = tmp_path / "answer", tmp_path / "asked.csv"
    pl.DataFrame({"state": [0, 4]}).write_csv(asked)
    given = ["evaluate", str(file), "--discount", "0.9", "--methods", "lstdq", "--force"]
    assert main([*given, "--states", str(asked), "--out", str(out)]) == 0
    assert pl.read_parquet(out / "values.parquet").columns == ["state", "value_0", "value_1"]
    chances = {"target_prob_0": [0.3, 0.3], "target_prob_1": [0.7, 0.7]}
    pl.DataFrame({"state": [0, 4], **chances}).write_csv(asked)
    assert main([*given, "--states", str(asked), "--out", str(out)]) == 0
    values = pl.read_parquet(out / "values.parquet")
    mixed = 0.3 * values["value_0"] + 0.7 * values["value_1"]
    assert values["value"].to_list() == pytest.approx(mixed.to_list())


def test_a_folder_is_replaced_only_by_force(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "answer"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    assert main(["evaluate", str(file), *QUICK, "--out", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert [p.name for p in out.iterdir()] == ["notes.txt"]
    assert main(["evaluate", str(file), *QUICK, "--out", str(out), "--force"]) == 0
    assert (out / "notes.txt").read_text() == "mine"
    assert (out / "report.html").exists()


def test_names_by_flags_and_by_file_give_what_the_usual_names_give(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = answered(capsys, file, *QUICK)
    names = {
        "episode": "trip",
        "step": "hop",
        "state": "place",
        "reward": "coins",
        "terminated": "over",
        "target_prob": "wanted",
        "behavior_prob": "seen",
    }
    renamed = tmp_path / "renamed.csv"
    walk_log().rename(names).drop("truncated").write_csv(renamed)
    flags = [part for role, name in names.items() for part in ("-c", f"{role}={name}")]
    assert answered(capsys, renamed, *QUICK, *flags)["estimates"] == plain["estimates"]
    lines = [f'{role} = "{name}"' for role, name in names.items()]
    (tmp_path / "names.toml").write_text("\n".join(lines))
    by_file = answered(capsys, renamed, *QUICK, "--columns", tmp_path / "names.toml")
    assert by_file["estimates"] == plain["estimates"]


def test_shuffled_rows_are_sorted_if_asked(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shuffled = tmp_path / "shuffled.parquet"
    walk_log().sample(fraction=1.0, shuffle=True, seed=1).write_parquet(shuffled)
    assert main(["evaluate", str(shuffled), *QUICK]) == 2
    assert "--sort" in capsys.readouterr().err
    plain, again = answered(capsys, file, *QUICK), answered(capsys, shuffled, *QUICK, "--sort")
    one, two = (answer["estimates"][0]["value"] for answer in (plain, again))
    assert one == pytest.approx(two, abs=1e-12)


def test_the_policy_that_made_the_log(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = answered(capsys, file, *QUICK, "--on-policy")
    assert answer["diagnostics"]["max_rho"] == 1.0
    assert answer["estimates"][0]["value"] < true_value()


def test_a_discount_is_given_once(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = pl.read_parquet(file).with_columns(g=pl.lit(0.5))
    log.write_parquet(file)
    assert main(["evaluate", str(file), "-c", "discount=g", "--discount", "0.9"]) == 2
    said = capsys.readouterr().err
    assert "discount: 0.9 and column g both give it; leave out --discount or the column" in said
    source = open_logs(file, {"discount": "g"})
    with pytest.raises(InputError, match=r"discount: 0.9, but the source was opened with column g"):
        evaluation.evaluate(source, discount=0.9)


def test_values_of_given_states(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.DataFrame({"state": [4, 0], "more": ["a", "b"]}).write_csv(tmp_path / "ask.csv")
    out = tmp_path / "answer"
    answered(capsys, file, *QUICK, "--states", tmp_path / "ask.csv", "--out", out)
    values = pl.read_parquet(out / "values.parquet")
    assert values["state"].to_list() == [4, 0]
    assert values["value"][0] > 2 * values["value"][1]


def test_logs_without_overlap_cannot_answer_and_a_script_can_notice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    never = walk_log().with_columns(target_prob=pl.lit(0.0))
    never.write_parquet(tmp_path / "never.parquet")
    answer = answered(capsys, tmp_path / "never.parquet", *QUICK, "--out", tmp_path / "answer")
    assert answer["verdict"] == "cannot answer"
    assert answer["reasons"]
    assert "Cannot answer" in (tmp_path / "answer" / "report.html").read_text()
    arguments = ["evaluate", str(tmp_path / "never.parquet"), *QUICK]
    assert main([*arguments, "--check"]) == 1
    shown = capsys.readouterr().out
    assert "These logs cannot tell" in shown
    assert "nan" not in shown.lower()


def test_a_column_s_name_is_never_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "<script>alert(1)</script>[bold]`x`"
    log = walk_log().rename({"state": evil, "reward": "r\"'<img src=x onerror=alert(2)>$x^2$"})
    log.write_parquet(tmp_path / "evil.parquet")
    out = tmp_path / "answer"
    reward = log.columns[4]
    (tmp_path / "evil.toml").write_text(
        f"state = {json.dumps(evil)}\nreward = {json.dumps(reward)}"
    )
    given = [str(tmp_path / "evil.parquet"), *QUICK, "--columns", str(tmp_path / "evil.toml")]
    assert main(["evaluate", *given, "--out", str(out)]) == 0
    assert "[bold]" in capsys.readouterr().out
    page = (out / "report.html").read_text()
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert pl.read_parquet(out / "values.parquet").columns == [evil, "value"]
    assert load_model(out / "model.npz").inputs == (evil,)


def test_observations_and_truncation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = walk_log().with_columns(obs_0=pl.col("state") / 4).drop("state")
    cut = log.filter(pl.col("step") < 6).with_columns(
        truncated=(pl.col("step") == 5) & ~pl.col("terminated")
    )
    cut.write_parquet(tmp_path / "cut.parquet")
    answer = answered(capsys, tmp_path / "cut.parquet", *QUICK, "--features", "fourier:4")
    lost = cut["truncated"].sum()
    assert answer["diagnostics"]["dropped"] == lost > 0
    assert answer["diagnostics"]["dropped_by_reason"] == {"no final observation": lost}
    assert answer["estimates"][0]["value"] == pytest.approx(true_value(), abs=0.15)


@pytest.mark.parametrize("ends", [True, False])
def test_what_no_row_leaves_is_told_where_there_is_some(
    ends: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = np.tile(np.arange(3), 100)
    table = {"episode": np.repeat(np.arange(100), 3), "state": steps, "next_state": steps + 1}
    table |= {"reward": 1.0 + 0.1 * np.random.default_rng(0).normal(size=300), "rho": 1.0}
    last = steps == 2
    log = pl.DataFrame(table | {"terminated": last & ends, "truncated": last & (not ends)})
    log.write_parquet(tmp_path / "log.parquet")
    given = ["evaluate", str(tmp_path / "log.parquet"), "--discount", "0.9", "--methods", "lstd"]
    assert main([*given, "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert ("visits beyond the log's reach" in shown) is not ends
    page = (tmp_path / "out" / "report.html").read_text()
    assert "no usable row starts, about which nothing is known" in " ".join(page.split())


def test_help_names_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Exit code 0" in shown
    assert "--dask" in shown
