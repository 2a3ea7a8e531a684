from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import o2td
from o2td.cli.main import COMMANDS, main

FailWith = Callable[[str], None]


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FailWith:
    """Install a command `demo` whose body is given."""

    def install(body: str) -> None:
        (tmp_path / "o2td_demo.py").write_text(
            "import typer\n"
            "from o2td.errors import InputError\n"
            "def command(count: int = 1) -> None:\n"
            "    'The full story of demo.'\n"
            f"    {body}\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setitem(COMMANDS, "demo", ("o2td_demo", "Demonstrate in one line."))
        monkeypatch.delitem(sys.modules, "o2td_demo", raising=False)

    return install


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"o2td {o2td.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_lists_a_command_without_importing_it(
    arguments: list[str], demo: FailWith, capsys: pytest.CaptureFixture[str]
) -> None:
    demo("pass")
    assert main(arguments) == 0
    assert "Demonstrate in one line." in capsys.readouterr().out
    assert "o2td_demo" not in sys.modules


def test_a_command_shows_its_own_help(demo: FailWith, capsys: pytest.CaptureFixture[str]) -> None:
    demo("pass")
    assert main(["demo", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "The full story of demo." in shown
    assert "--count" in shown


def test_a_command_runs_with_its_options(
    demo: FailWith, capsys: pytest.CaptureFixture[str]
) -> None:
    demo("print('count', count)")
    assert main(["demo", "--count", "3"]) == 0
    assert capsys.readouterr().out == "count 3\n"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("raise InputError('rho: row 3 is\\n negative')", "o2td: rho: row 3 is negative\n"),
        ("open('no-such-file')", "o2td: no-such-file: No such file or directory\n"),
    ],
)
def test_a_user_s_mistake_is_one_sentence_and_code_2(
    body: str, sentence: str, demo: FailWith, capsys: pytest.CaptureFixture[str]
) -> None:
    demo(body)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == sentence


def test_a_bug_keeps_its_traceback(demo: FailWith) -> None:
    demo("1 / 0")
    with pytest.raises(ZeroDivisionError):
        main(["demo"])


@pytest.mark.parametrize(
    ("body", "arguments", "code"),
    [
        ("pass", ["nothing"], 2),
        ("pass", ["demo", "--count", "x"], 2),
        ("pass", ["demo", "--nothing"], 2),
        ("raise typer.Exit(1)", ["demo"], 1),
        ("raise KeyboardInterrupt", ["demo"], 130),
    ],
)
def test_exit_codes(body: str, arguments: list[str], code: int, demo: FailWith) -> None:
    demo(body)
    assert main(arguments) == code


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_loads_neither_numbers_nor_validators(name: str) -> None:
    heavy = ("numpy", "numba", "scipy", "polars", "pyarrow", "matplotlib", "pydantic")
    code = (
        "import sys; from o2td.cli import main\n"
        f"assert main([{name!r}, '--help']) == 0\n"
        f"print('loaded:', [one for one in {heavy} if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"Usage: o2td {name} [OPTIONS]" in done.stdout
    assert done.stdout.endswith("loaded: []\n")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["evaluate", "", "--discount", "0.9"], "argument 1"),
        (["evaluate", "log.csv", "--out", ""], "--out"),
        (["evaluate", "log.csv", "--states="], "--states"),
        (["predict", "model.npz", ""], "argument 2"),
        (["run", "", "--out", "there"], "argument 1"),
        ([""], "the command"),
    ],
)
def test_an_empty_word_is_not_this_folder(
    arguments: list[str],
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "log.csv").write_text("episode,reward\n")
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = f"o2td: {named}: is empty; write what it should be, or leave it out\n"
    assert capsys.readouterr().err == said
