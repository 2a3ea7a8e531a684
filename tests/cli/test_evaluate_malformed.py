"""Files that cannot be evaluated: one sentence with file, place and remedy, and nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from o2td.cli import main

Change = Callable[[pl.DataFrame], pl.DataFrame]


def log(episodes: int = 30, steps: int = 4) -> pl.DataFrame:
    n = episodes * steps
    step = [t % steps for t in range(n)]
    return pl.DataFrame(
        {
            "episode": [t // steps for t in range(n)],
            "step": step,
            "obs_0": [0.1 * (t % 7) for t in range(n)],
            "action": [t % 2 for t in range(n)],
            "reward": [float(t % 3) for t in range(n)],
            "terminated": [s == steps - 1 for s in step],
            "truncated": [False] * n,
            "behavior_prob": [0.5] * n,
            "target_prob": [0.25 + 0.5 * (t % 2) for t in range(n)],
        }
    )


def put(column: str, row: int, value: object) -> Change:
    """Change one cell; rows count from 1."""

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        values = frame[column].to_list()
        values[row - 1] = value
        return frame.with_columns(pl.Series(column, values, strict=False))

    return change


FRAMES: dict[str, tuple[Change, list[str]]] = {
    "no reward": (lambda f: f.drop("reward"), ["no column for reward", "--columns reward="]),
    "no end": (lambda f: f.drop("terminated", "truncated"), ["terminated", "terminated=never"]),
    "no policy": (lambda f: f.drop("target_prob"), ["target_prob", "--on-policy"]),
    "missing reward": (put("reward", 6, None), ["column reward, row 6", "missing"]),
    "infinite observation": (put("obs_0", 9, float("inf")), ["column obs_0, row 9", "inf"]),
    "duplicated step": (put("step", 7, 1), ["column step, row 7", "twice"]),
    "gap": (lambda f: f.filter(pl.int_range(pl.len()) != 5), ["column step, row 6", "missing"]),
    "episode comes back": (lambda f: pl.concat([f[4:], f[:4], f[4:8]]), ["episode", "--sort"]),
    "row after the end": (put("terminated", 2, True), ["terminated, row 3", "remove the rows"]),
    "impossible action": (put("behavior_prob", 3, 0.0), ["column behavior_prob, row 3"]),
    "probability above one": (put("target_prob", 4, 1.5), ["column target_prob, row 4", "1.5"]),
    "nothing in it": (lambda f: f.clear(), ["no rows"]),
}


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str], out: Path) -> str:
    before = sorted(out.parent.rglob("*"))
    code = main(["evaluate", *arguments, "--features", "fourier:1", "--out", str(out)])
    shown = capsys.readouterr()
    assert code == 2
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("o2td: ")
    assert "Traceback" not in shown.err
    assert sorted(out.parent.rglob("*")) == before
    return shown.err


@pytest.mark.parametrize("kind", FRAMES)
def test_a_malformed_log_is_refused_in_one_sentence(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, said = FRAMES[kind]
    file = tmp_path / "bad log.parquet"
    change(log()).write_parquet(file)
    sentence = refused([str(file), "--discount", "0.9"], capsys, tmp_path / "answer")
    assert str(file) in sentence
    for words in said:
        assert words in sentence


def test_damaged_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "answer"
    log().write_csv(tmp_path / "good.csv")
    lines = (tmp_path / "good.csv").read_text().splitlines()
    (tmp_path / "word.csv").write_text("\n".join([*lines[:5], lines[5].replace("0.5", "half")]))
    (tmp_path / "ragged.csv").write_text("\n".join([*lines[:8], lines[8] + ",9"]))
    log().write_ndjson(tmp_path / "good.ndjson")
    text = (tmp_path / "good.ndjson").read_text()
    (tmp_path / "cut.ndjson").write_text(text[: len(text) - 40])
    log().write_parquet(tmp_path / "good.parquet")
    data = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(data[: len(data) // 2])
    (tmp_path / "text.parquet").write_text("not parquet at all")
    for name, said in (
        ("word.csv", "row 5"),
        ("ragged.csv", "row 8"),
        ("cut.ndjson", "row 120"),
        ("cut.parquet", "restore it from a copy"),
        ("text.parquet", "not parquet"),
        ("absent.parquet", "absent.parquet"),
    ):
        sentence = refused([str(tmp_path / name), "--discount", "0.9"], capsys, out)
        assert name in sentence
        assert said in sentence


def test_two_files_that_do_not_fit_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log().write_parquet(tmp_path / "a.parquet")
    log().drop("obs_0").write_parquet(tmp_path / "b.parquet")
    sentence = refused([str(tmp_path), "--discount", "0.9"], capsys, tmp_path / "answer")
    assert "b.parquet: column obs_0 is missing" in sentence


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--discount 0.99"),
        (["--discount", "1.5"], "1.5"),
        (["--discount", "0.9", "--columns", "rewrad=reward"], "the roles are"),
        (["--discount", "0.9", "--columns", "reward="], "missing"),
        (["--discount", "0.9", "--columns", "reward=profit"], "no column 'profit'"),
        (["--discount", "0.9", "--columns", "none.toml"], "none.toml"),
        (["--discount", "0.9", "--features", "wavelet:3"], "wavelet"),
        (["--discount", "0.9", "--methods", "lstd,psychic"], "psychic"),
        (["--discount", "0.9", "--confidence", "95"], "confidence"),
        (["--discount", "0.9", "--states", "none.csv"], "none.csv"),
    ],
)
def test_options_that_cannot_be_used(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "good.parquet"
    log().write_parquet(file)
    assert main(["evaluate", str(file), *arguments, "--out", str(tmp_path / "answer")]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["good.parquet"]
