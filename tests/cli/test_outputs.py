"""Where answers go: full devices, files that are there already, names that are taken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from o2td.cli import main
from o2td.evaluation import ValueModel
from o2td.features import Polynomial

Captured = pytest.CaptureFixture[str]


def log(episodes: int = 30, steps: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    n = episodes * steps
    return pl.DataFrame(
        {
            "episode": np.arange(n) // steps,
            "state": rng.integers(0, 3, n),
            "reward": rng.normal(size=n),
            "terminated": np.arange(n) % steps == steps - 1,
            "rho": 1.0,
        }
    )


def refused(capsys: Captured, *arguments: object) -> str:
    assert main([str(one) for one in arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    return shown.err


def save(path: Path, *inputs: str, actions: int = 0) -> ValueModel:
    features = Polynomial(1, bounds=[(-1, 1)] * len(inputs)).fit()
    width = features.n_features_out_
    theta = np.arange(1.0, 1.0 + width * max(actions, 1))
    theta = theta.reshape(actions, width) if actions else theta
    made = ValueModel(theta, features, inputs, False, "LSTD", 0.9)
    made.save(path)
    return made


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["algorithms", "--json"], ["domains"]])
def test_a_full_device(arguments: list[str]) -> None:
    code = f"import sys; from o2td.cli import main; sys.exit(main({arguments!r}))"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    said = "o2td: the output cannot be written (No space left on device); make room, or write it"
    assert (done.returncode, done.stderr) == (2, f"{said} elsewhere\n")


def test_predictions_replace_files_only_when_told_and_never_what_is_read(
    tmp_path: Path, capsys: Captured
) -> None:
    save(tmp_path / "model.npz", "x")
    rows, there = tmp_path / "rows.csv", tmp_path / "there.csv"
    pl.DataFrame({"x": [0.5]}).write_csv(rows)
    there.write_text("mine\n")
    given = ["predict", tmp_path / "model.npz", rows, "--out"]
    assert "already exists" in refused(capsys, *given, there)
    assert there.read_text() == "mine\n"
    assert main([str(one) for one in [*given, there, "--force"]]) == 0
    assert pl.read_csv(there).columns == ["x", "value"]
    capsys.readouterr()
    (tmp_path / "link.csv").symlink_to(rows)
    for out in (rows, tmp_path / "link.csv"):
        assert "is read by this command" in refused(capsys, *given, out, "--force")
    assert rows.read_text() == "x\n0.5\n"


@pytest.mark.parametrize("name", ["value", "value_0", "value_x"])
@pytest.mark.parametrize("actions", [0, 2])
def test_inputs_called_like_predictions_keep_their_name(
    name: str, actions: int, tmp_path: Path, capsys: Captured
) -> None:
    model = save(tmp_path / "model.npz", name, actions=actions)
    pl.DataFrame({name: [0.5, -0.5]}).write_csv(tmp_path / "rows.csv")
    given = ["predict", str(tmp_path / "model.npz"), str(tmp_path / "rows.csv")]
    assert main([*given, "--json", "--out", str(tmp_path / "out.csv")]) == 0
    answer = json.loads(capsys.readouterr().out)
    written = pl.read_csv(tmp_path / "out.csv")
    assert written[name].to_list() == [0.5, -0.5]
    rows = np.array([[0.5], [-0.5]])
    if actions:
        expected = model.action_values(rows)
        columns = [f"predicted_value_{a}" for a in range(actions)]
        assert [answer["values_0"], answer["values_1"]] == expected.T.tolist()
        np.testing.assert_allclose(written.select(columns).to_numpy(), expected)
    else:
        assert answer["values"] == model.predict(rows).tolist()
        np.testing.assert_allclose(written["predicted_value"], model.predict(rows))
    assert main(given) == 0
    assert "mean predicted_value" in capsys.readouterr().out


BAD = {
    "text": (pl.Series(["a", "b"]), "holds large_string instead of"),
    "date": (pl.Series([1, 2]).cast(pl.Date), "holds date32"),
    "list": (pl.Series([[1.0], [2.0]]), "not one value per row"),
    "category": (pl.Series(["a", "b"]).cast(pl.Categorical), "holds dictionary"),
    "large": (pl.Series([0.5, 1e300]), "row 2"),
}


@pytest.mark.parametrize("kind", BAD)
def test_inputs_of_other_types(kind: str, tmp_path: Path, capsys: Captured) -> None:
    save(tmp_path / "model.npz", "x")
    values, said = BAD[kind]
    pl.DataFrame({"x": values}).write_parquet(tmp_path / "rows.parquet")
    told = refused(capsys, "predict", tmp_path / "model.npz", tmp_path / "rows.parquet")
    assert "rows.parquet: column x" in told
    assert said in told


@pytest.mark.parametrize("kind", ["text", "date", "list", "category", "large"])
def test_given_states_of_other_types(kind: str, tmp_path: Path, capsys: Captured) -> None:
    log().write_parquet(tmp_path / "log.parquet")
    pl.DataFrame({"state": BAD[kind][0]}).write_parquet(tmp_path / "ask.parquet")
    given = ["evaluate", tmp_path / "log.parquet", "--discount", "0.9", "--methods", "lstd"]
    more = ["--states", tmp_path / "ask.parquet"]
    assert "ask.parquet: column state" in refused(capsys, *given, *more, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_given_states_need_a_place_and_must_be_known(tmp_path: Path, capsys: Captured) -> None:
    log().write_parquet(tmp_path / "log.parquet")
    pl.DataFrame({"state": [2, 0, 9]}).write_csv(tmp_path / "ask.csv")
    given = ["evaluate", tmp_path / "log.parquet", "--discount", "0.9", "--methods", "lstd"]
    given += ["--bootstrap", "0", "--states", tmp_path / "ask.csv"]
    assert "add --out DIR" in refused(capsys, *given)
    told = refused(capsys, *given, "--out", tmp_path / "out")
    assert "ask.csv: column state, row 3" in told
    assert "is 9, a state that the model does not know" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seed", "-1"], "--seed -1: a seed is"),
        (["--bootstrap", "5"], "--bootstrap: 5; pass 0"),
        (
            ["--features", "fourier:3"],
            "--features fourier:3: fourier needs columns of observations",
        ),
        (["--features", "tiles:8x8"], "--features tiles:8x8: tiles needs columns of observations"),
        (["--features", "fourier:x"], "--features fourier:x: a number is missing; write it as in"),
    ],
)
def test_options_are_named_as_they_were_typed(
    options: list[str], said: str, tmp_path: Path, capsys: Captured
) -> None:
    log().write_parquet(tmp_path / "log.parquet")
    told = refused(capsys, "evaluate", tmp_path / "log.parquet", "--discount", "0.9", *options)
    assert told.startswith(f"o2td: {said}")


def test_large_states_are_names(tmp_path: Path, capsys: Captured) -> None:
    found = []
    for factor in (1, 10**12):
        log().with_columns(pl.col("state") * factor).write_parquet(tmp_path / "log.parquet")
        assert main(["evaluate", str(tmp_path / "log.parquet"), "--discount", "0.9", "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["estimates"])
    assert found[0] == found[1]


def test_a_state_too_large_for_a_table(tmp_path: Path, capsys: Captured) -> None:
    """Names are told from numbers by the first rows; one large number long after is refused."""
    late = pl.int_range(pl.len()) == pl.len() - 1
    rows = log(22_000).with_columns(state=pl.when(late).then(2 * 10**12).otherwise("state"))
    rows.write_parquet(tmp_path / "log.parquet")
    told = refused(capsys, "evaluate", tmp_path / "log.parquet", "--discount", "0.9")
    assert "state: 2000000000000 is too large" in told
    assert "number them from 0" in told


def test_a_picture_needs_a_folder(tmp_path: Path, capsys: Captured) -> None:
    told = refused(capsys, "analyze", "boyan_chain", "--plot", tmp_path / "none" / "a.png")
    assert f"--plot {tmp_path / 'none' / 'a.png'}: there is no folder" in told
