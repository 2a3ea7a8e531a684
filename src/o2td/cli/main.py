"""The ``o2td`` command: finds the requested command and imports only that one.

A command is one row of :data:`COMMANDS` and one module with a function ``command``, whose
annotated arguments are typer's options and whose docstring is its help. ``o2td --help`` reads the
table alone, so it stays fast however heavy the commands become.

Exit codes: 0 done, 1 done and the answer is no (a command says when), 2 the input or the usage is
wrong (one sentence on stderr), 130 interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from o2td._version import __version__
from o2td.errors import InputError, O2TDError, spoken_to_the_command_line

# name -> (module, one line of help)
COMMANDS = {
    "reproduce": ("o2td.paper.command", "Reproduce the paper's figures and judge its claims."),
    "run": ("o2td.cli.run", "Run the experiment that a TOML file describes."),
    "evaluate": ("o2td.cli.evaluate", "Estimate from logs what another policy is worth."),
    "predict": ("o2td.cli.predict", "Predict values of rows with a saved model."),
    "analyze": ("o2td.cli.analyze", "Show where each method lands on a domain, and how well."),
    "algorithms": ("o2td.cli.algorithms", "List all algorithms."),
    "domains": ("o2td.cli.domains", "List all domains."),
    "bench": ("o2td.cli.bench", "Measure speed against C and a NumPy loop."),
}


_HELP = {"help_option_names": ["-h", "--help"]}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EPIPE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``o2td`` with ``argv`` (the process's own arguments by default); return the exit code.

    >>> main(["--version"])
    o2td ...
    0
    """
    code = _run(list(sys.argv[1:] if argv is None else argv))
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return _unwritable(error)
    return code


def _run(arguments: list[str]) -> int:
    known = arguments and arguments[0] in COMMANDS and find_spec(COMMANDS[arguments[0]][0])
    try:
        with spoken_to_the_command_line():
            _refuse_empty(arguments)
            if known:
                _single(arguments[0])(args=arguments[1:], prog_name=f"o2td {arguments[0]}")
            else:
                _app(arguments)(args=arguments or ["--help"], prog_name="o2td")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except O2TDError as error:
        _complain(str(error))
        return 2
    except OSError as error:
        if error.filename is None and error.errno in _FULL:
            return _unwritable(error)
        if error.filename is None:
            raise
        _complain(f"{error.filename}: {error.strerror}")
        return 2
    return 0


def _refuse_empty(arguments: Sequence[str]) -> None:
    """Refuse an empty word, often an unset variable of a script: as a path it is this folder."""
    for place, word in enumerate(arguments):
        before = arguments[place - 1] if place else ""
        if not word:
            named = f"argument {place}" if place else "the command"
            name = before if before.startswith("-") else named
        elif word.startswith("--") and word.find("=") == len(word) - 1:
            name = word[:-1]
        else:
            continue
        raise InputError(f"{name}: is empty; write what it should be, or leave it out")


def _empty(**options: Any) -> typer.Typer:
    return typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **options
    )


def _single(name: str) -> typer.Typer:
    """An app with one command: without a group, typer shows its help in half the time."""
    app = _empty()
    app.command(name, context_settings=_HELP)(import_module(COMMANDS[name][0]).command)
    return app


def _app(arguments: Sequence[str]) -> typer.Typer:
    """Build an app in which only the requested command is real; others are names with help."""
    about = "Value prediction for one policy from the data of another, with linear features."
    app = _empty(help=about, context_settings=_HELP)
    app.callback()(_options)
    asked = next((word for word in arguments if not word.startswith("-")), None)
    for name, (module, line) in COMMANDS.items():
        if find_spec(module) is None:
            continue
        if name == asked:
            function: Callable[..., Any] = import_module(module).command
            app.command(name, short_help=line)(function)
        else:
            app.command(name, help=line)(_not_asked)
    return app


def _not_asked() -> None:
    raise AssertionError("typer ran a command that is not the first word of the arguments")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"o2td {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Options before the command."""


def _unwritable(error: OSError) -> int:
    """Report truncated output, unless its reader has gone, and write nothing more."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return 1
    _complain(f"the output cannot be written ({error.strerror}); make room, or write it elsewhere")
    return 2


def _complain(sentence: str) -> None:
    print(f"o2td: {' '.join(sentence.split())}", file=sys.stderr)
