"""Names from outside on a terminal: no control character and no markup of theirs takes effect."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.table import Table
from rich.text import Text

from o2td import terminal
from o2td.cli import main
from o2td.errors import InputError, O2TDError

TITLE = "\x1b]0;canary\x07"  # a terminal that obeys has another title
CLEAR = "\x1b[2Jcanary\x1b[1A"
EIGHT_BIT = "\x9b31mcanary"
REVERSED = "\u202ecanary"
MARKUP = "[red]canary[/red][link=http://canary]x[/link]:smile:"
HOSTILE = [TITLE, CLEAR, EIGHT_BIT, REVERSED, "\rcanary\b\b", "\x00\x7f\x85canary"]
OBEYED = [*HOSTILE, "\x1b]0;", "\x1b[2J", "\x9b", "\u202e", "\x07", "\x00", "\x7f", "\x85"]


def obeyed(output: str) -> list[str]:
    """What a terminal would act on, beside rich's own colours."""
    return [one for one in OBEYED if one in output]


def test_the_canary_sings_where_nothing_is_escaped() -> None:
    for text in HOSTILE:
        assert obeyed(f"a column {text}"), text
    out = io.StringIO()
    from rich.console import Console

    Console(file=out, force_terminal=True).print(Text(CLEAR), MARKUP)
    assert obeyed(out.getvalue())
    assert "[red]" not in out.getvalue()


@pytest.mark.parametrize("text", [*HOSTILE, MARKUP])
@pytest.mark.parametrize("forced", [False, True])
def test_whatever_is_shown_in_a_table_is_text(text: str, forced: bool) -> None:
    console = terminal.console(width=200)
    console.file, console._force_terminal = io.StringIO(), forced
    table = Table(title=text)
    table.add_column(text)
    table.add_row(text)
    table.add_row(Text(text, "bold"))
    console.print(table)
    console.print(text, Text(text))
    shown = console.file.getvalue()
    assert obeyed(shown) == []
    assert shown.count("can") >= 6  # a cell may lose as many characters as had no width
    if text == MARKUP:
        assert shown.count(MARKUP) == 6


@pytest.mark.parametrize("text", HOSTILE)
def test_errors_show_names_from_outside_as_text(text: str) -> None:
    error = InputError(f"column {text} is missing")
    assert obeyed(str(error)) == []
    assert isinstance(error, O2TDError)
    assert "canary" in str(error)


@pytest.mark.parametrize("text", [*HOSTILE, MARKUP, "é ö 漢字 ∑ \t tab"])
def test_json_stays_the_same_document(text: str) -> None:
    document = terminal.printable_json(json.dumps({text: text}, ensure_ascii=False))
    assert obeyed(document) == []
    assert json.loads(document) == {text: text}


def log(folder: Path, name: str = "log", **more: Any) -> tuple[Path, Path]:
    """A log whose columns are called by hostile names, and the mapping that names them."""
    rng = np.random.default_rng(0)
    roles = ("episode", "step", "reward", "terminated", "rho", "state")
    names = {role: f"{role} {text}" for role, text in zip(roles, [*HOSTILE, MARKUP], strict=False)}
    names["reward"] = f"reward {MARKUP}"
    columns: dict[str, Any] = {
        names["episode"]: np.repeat(np.arange(60), 5),
        names["step"]: np.tile(np.arange(5), 60),
        names["reward"]: rng.normal(size=300),
        names["terminated"]: np.tile(np.arange(5) == 4, 60),
        names["rho"]: rng.uniform(0.5, 1.5, 300),
        names["state"]: rng.integers(0, 3, 300),
    }
    file = folder / f"{name}.parquet"
    pl.DataFrame(columns | {names[key]: value for key, value in more.items()}).write_parquet(file)
    mapping = folder / "columns.toml"
    mapping.write_text("\n".join(f"{role} = {json.dumps(one)}" for role, one in names.items()))
    return file, mapping


@pytest.mark.parametrize(
    "options", [[], ["--json"], ["--json", "--out", "answer"], ["--out", f"answer {CLEAR}"]]
)
def test_evaluate_shows_columns_and_files_as_text(
    options: list[str], tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, mapping = log(tmp_path, f"log {CLEAR.replace('/', '')} {MARKUP.replace('/', '')}")
    arguments = ["evaluate", str(file), "--discount", "0.9", "--columns", str(mapping)]
    assert main([*arguments, "--methods", "lstd,wis", *options]) == 0
    said = capfd.readouterr()
    assert obeyed(said.out + said.err) == []
    assert "canary" in said.out + said.err or options


@pytest.mark.parametrize(
    "more", [{"reward": ["x"] * 300}, {"rho": [np.nan] * 300}, {"state": [CLEAR + MARKUP] * 300}]
)
def test_a_refused_log_is_named_as_text(more: dict[str, Any], tmp_path: Path, capfd: Any) -> None:
    file, mapping = log(tmp_path, f"log {CLEAR}", **more)
    main(
        ["evaluate", str(file), "--discount", "0.9", "--columns", str(mapping), "--methods", "lstd"]
    )
    said = capfd.readouterr()
    assert obeyed(said.out + said.err) == []
    assert "canary" in said.out + said.err


def comparison(folder: Path) -> Path:
    """A log with a hostile category, and two policies in columns with hostile names."""
    rng = np.random.default_rng(0)
    colour = np.array([f"red {CLEAR}", f"blue {MARKUP}", f"green {TITLE}"])[rng.integers(0, 3, 300)]
    action = rng.integers(0, 2, 300)
    columns = {
        "episode": np.repeat(np.arange(60), 5), "step": np.tile(np.arange(5), 60),
        "obs_0": colour, "action": action, "reward": rng.normal(size=300) + action,
        "terminated": np.tile(np.arange(5) == 4, 60), "behavior_prob": np.full(300, 0.5),
        f"a {CLEAR}": np.where(action, 0.6, 0.4), f"b {MARKUP}": np.where(action, 0.4, 0.6),
    }  # fmt: skip
    file = folder / "log.parquet"
    pl.DataFrame(columns).write_parquet(file)
    return file


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_comparison_shows_policies_and_categories_as_text(
    options: list[str], tmp_path: Path, capfd: Any
) -> None:
    file = comparison(tmp_path)
    first, second = f"A {EIGHT_BIT}[red]x[/red]", f"B {REVERSED}"
    given = ["--target", f"{first}=a {CLEAR}", "--target", f"{second}=b {MARKUP}"]
    given += ["--require", f"'{first}' - '{second}' > -100"]
    assert (
        main(
            ["evaluate", str(file), "--discount", "0.9", "--methods", "lstd,wis", *given, *options]
        )
        == 0
    )
    said = capfd.readouterr()
    assert obeyed(said.out + said.err) == []
    assert "canary" in said.out
    if options:
        found = json.loads(said.out)
        assert first in [one["name"] for one in found["policies"]]
        (required,) = found["requirements"]
        assert required["holds"] is True
        assert required["requirement"].startswith(f"'{first}' - ")


@pytest.mark.parametrize(
    "given",
    [
        ["--target", f"A {CLEAR}=no {TITLE}{MARKUP}"],
        ["--target", f"A {CLEAR}=a {CLEAR}", "--require", f"'{TITLE}{MARKUP}' > 0"],
        ["--target", f"A {CLEAR}=a {CLEAR}", "--require", f"{CLEAR} > 0"],
    ],
)
def test_a_policy_that_is_not_there_is_named_as_text(
    given: list[str], tmp_path: Path, capfd: Any
) -> None:
    file = comparison(tmp_path)
    assert main(["evaluate", str(file), *given, "--discount", "0.9"]) == 2
    said = capfd.readouterr()
    assert obeyed(said.out + said.err) == []
    assert "canary" in said.err
