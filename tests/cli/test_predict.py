from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from o2td.cli import main
from o2td.evaluation import ValueModel, load_model
from o2td.features import Fourier, Tabular

BOUNDS = [(-1.0, 1.0), (0.0, 5.0)]


@pytest.fixture
def model(tmp_path: Path) -> ValueModel:
    theta = np.random.default_rng(0).normal(size=16)
    made = ValueModel(theta, Fourier(3, bounds=BOUNDS).fit(), ("x", "y"), False, "LSTD", 0.9)
    made.save(tmp_path / "model.npz")
    return made


@pytest.fixture
def frame() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame({"y": rng.uniform(0, 5, 30), "more": "a", "x": rng.uniform(-1, 1, 30)})


def by_hand(model: ValueModel, frame: pl.DataFrame) -> np.ndarray:
    """cos(pi c.u) written out, apart from the feature map's own code."""
    u = np.column_stack([(frame["x"].to_numpy() + 1.0) / 2.0, frame["y"].to_numpy() / 5.0])
    grid = np.array([(i, j) for i in range(4) for j in range(4)])
    assert (model.features.transform([[1.0, 0.0]]) == np.cos(np.pi * grid @ [1.0, 0.0])).all()
    return np.cos(np.pi * u @ grid.T) @ model.theta


@pytest.mark.parametrize("ending", ["parquet", "csv", "ndjson", "arrow"])
def test_values_of_every_format_and_by_both_outputs(
    ending: str,
    model: ValueModel,
    frame: pl.DataFrame,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / f"rows.{ending}"
    writers = {"parquet": "parquet", "csv": "csv", "ndjson": "ndjson", "arrow": "ipc"}
    getattr(frame, f"write_{writers[ending]}")(file)
    out = tmp_path / "values.parquet"
    given = ["predict", str(tmp_path / "model.npz"), str(file), "--out", str(out), "--json"]
    assert main(given) == 0
    answer = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(answer["values"], by_hand(model, frame), atol=1e-12)
    written = pl.read_parquet(out)
    assert written.columns == ["x", "y", "value"]
    assert written["value"].to_list() == answer["values"]
    assert written["x"].to_list() == pytest.approx(frame["x"].to_list(), abs=0)


def test_the_table_shows_the_first_rows_and_says_where_the_rest_is(
    model: ValueModel, frame: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame.write_csv(tmp_path / "rows.csv")
    assert main(["predict", str(tmp_path / "model.npz"), str(tmp_path / "rows.csv")]) == 0
    shown = capsys.readouterr()
    assert f"{by_hand(model, frame)[0]:.6g}" in shown.out
    assert "30 rows, mean value" in shown.out
    assert "--out FILE has all" in shown.err


def test_states_and_action_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theta = np.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]])
    made = ValueModel(theta, Tabular(3).fit(), ("s",), True, "LSTDQ")
    made.save(tmp_path / "q.npz")
    rows = pl.DataFrame({"s": [2, 0], "target_prob_0": [0.25, 1.0], "target_prob_1": [0.75, 0.0]})
    rows.write_parquet(tmp_path / "rows.parquet")
    assert main(["predict", str(tmp_path / "q.npz"), str(tmp_path / "rows.parquet"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["values"] == [0.25 * 3 + 0.75 * 1, 1.0]
    assert answer["values_1"] == [1.0, -1.0]
    rows.select("s").write_parquet(tmp_path / "rows.parquet")
    assert main(["predict", str(tmp_path / "q.npz"), str(tmp_path / "rows.parquet"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "values" not in answer
    assert answer["values_0"] == [3.0, 1.0]
    with pytest.raises(ValueError, match="probabilities of 2 actions"):
        load_model(tmp_path / "q.npz").predict([0])


def test_a_model_comes_back_as_it_was(model: ValueModel, tmp_path: Path) -> None:
    again = load_model(tmp_path / "model.npz")
    rows = np.random.default_rng(2).uniform(0, 1, (50, 2))
    assert (again.predict(rows) == model.predict(rows)).all()
    assert (again.inputs, again.method, again.discount) == (("x", "y"), "LSTD", 0.9)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.drop("x"), "column x is missing, which"),
        (lambda f: f.with_columns(x=pl.lit("warm")), "warm"),
        (lambda f: f.with_columns(x=pl.when(pl.col("y") > 0).then(None)), "row 1"),
        (lambda f: f.clear(), "has no rows"),
    ],
)
def test_rows_that_cannot_be_used_are_refused_in_a_sentence_and_nothing_is_written(
    change: object,
    said: str,
    model: ValueModel,
    frame: pl.DataFrame,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(frame).write_csv(tmp_path / "rows.csv")  # type: ignore[operator]
    out = tmp_path / "values.parquet"
    given = [str(tmp_path / "model.npz"), str(tmp_path / "rows.csv"), "--out", str(out)]
    assert main(["predict", *given]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.count("\n") == 1
    assert "rows.csv" in shown.err
    assert not out.exists()


def test_a_model_that_is_no_model_is_refused(
    model: ValueModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray((tmp_path / "model.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "flipped.npz").write_bytes(data)
    np.savez(tmp_path / "foreign.npz", theta=np.ones(3))
    for name, said in (("flipped", "digest"), ("foreign", "not"), ("missing", "no such file")):
        assert main(["predict", str(tmp_path / f"{name}.npz"), "rows.csv"]) == 2
        assert said in capsys.readouterr().err


def test_unknown_states_name_the_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ValueModel(np.ones(3), Tabular(3).fit(), ("s",), True, "LSTD").save(tmp_path / "m.npz")
    pl.DataFrame({"s": [0, 2, 1, 7, 0, -1]}).write_csv(tmp_path / "rows.csv")
    assert main(["predict", str(tmp_path / "m.npz"), str(tmp_path / "rows.csv")]) == 2
    assert "rows.csv: column s, row 4 (rows of data count from 1) is 7" in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "m.npz"), str(tmp_path / "rows.csv"), "--out", "v.txt"])


def test_a_map_that_cannot_be_written_is_refused_before_anything_is(tmp_path: Path) -> None:
    made = ValueModel(np.ones(3), lambda x: x, ("s",), True, "LSTD")
    with pytest.raises(ValueError, match="no state_dict"):
        made.save(tmp_path / "m.npz")
    assert not (tmp_path / "m.npz").exists()
