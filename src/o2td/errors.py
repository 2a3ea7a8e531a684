"""The errors that o2td raises on purpose: one sentence each, saying what is wrong and the remedy.

All derive from :class:`O2TDError`, so ``except o2td.errors.O2TDError`` catches every mistake that
o2td recognises and nothing else. The command line prints the sentence and exits with code 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from o2td.terminal import printable

__all__ = [
    "FormatError",
    "InputError",
    "MissingExtraError",
    "NoAnswerError",
    "O2TDError",
    "ParameterError",
    "import_extra",
    "option",
    "spoken_to_the_command_line",
]

_on_the_command_line = False


@contextmanager
def spoken_to_the_command_line() -> Iterator[None]:
    """Let the errors raised inside this block name the command's options.

    >>> with spoken_to_the_command_line():
    ...     print(option("sort=True", "--sort"))
    --sort
    """
    global _on_the_command_line  # one process, one reader of its errors
    before, _on_the_command_line = _on_the_command_line, True
    try:
        yield
    finally:
        _on_the_command_line = before


def option(python: str, command: str) -> str:
    """How a remedy is written where the error will be read: in Python, or on the command line.

    >>> option("sort=True", "--sort")
    'sort=True'
    >>> with spoken_to_the_command_line():
    ...     option("sort=True", "--sort")
    '--sort'
    """
    return command if _on_the_command_line else python


class O2TDError(Exception):
    r"""Base of all errors that o2td raises on purpose; its text can be shown on any terminal.

    >>> issubclass(InputError, O2TDError) and issubclass(InputError, ValueError)
    True
    >>> str(O2TDError("column \x1b[2J: is missing"))
    'column \\x1b[2J: is missing'
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(O2TDError, ValueError):
    """An argument, column or setting that cannot be used.

    >>> raise InputError("rho: row 3 is -0.5; pass ratios that are zero or more")
    Traceback (most recent call last):
    o2td.errors.InputError: rho: row 3 is -0.5; pass ratios that are zero or more
    """


class ParameterError(InputError, TypeError):
    """A parameter that does not exist, or one given by position; a TypeError, as Python's own is.

    >>> raise ParameterError("TD has no parameter 'tracee'; it has step_size, trace")
    Traceback (most recent call last):
    o2td.errors.ParameterError: TD has no parameter 'tracee'; it has step_size, trace
    """


class NoAnswerError(O2TDError, ValueError):
    """An exact quantity that does not exist, such as a value with discount 1 and no end.

    >>> raise NoAnswerError("value: discount 1 from state 2, which never terminates")
    Traceback (most recent call last):
    o2td.errors.NoAnswerError: value: discount 1 from state 2, which never terminates
    """


class FormatError(O2TDError):
    """A file that is corrupt, hostile, or written by a newer version.

    >>> raise FormatError("model.npz: its digest does not match; restore it from a copy")
    Traceback (most recent call last):
    o2td.errors.FormatError: model.npz: its digest does not match; restore it from a copy
    """


class MissingExtraError(O2TDError, ImportError):
    """A part of o2td was used whose optional requirements are not installed.

    >>> issubclass(MissingExtraError, ImportError)
    True
    """


def import_extra(module: str, extra: str) -> ModuleType:
    """Import an optional requirement, or name the extra of o2td that installs it.

    Parameters
    ----------
    module
        The module to import, such as ``"polars"``.
    extra
        The extra in o2td's requirements that brings it, such as ``"logs"``.

    Examples
    --------
    >>> import_extra("json", extra="logs").__name__
    'json'
    >>> import_extra("no_such_module", extra="logs")
    Traceback (most recent call last):
    o2td.errors.MissingExtraError: no_such_module is not installed; run pip install ...
    """
    if not isinstance(module, str) or not all(part.isidentifier() for part in module.split(".")):
        raise InputError(f"module must be the name of a module, got {module!r}")
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # A module that is there but lacks a requirement of its own names that requirement.
        remedy = f'run pip install "o2td[{extra}]", or ".[{extra}]" in a clone'
        raise MissingExtraError(
            f"{error.name} is not installed; {remedy}", name=error.name
        ) from error


class LateModule:
    """An optional requirement, imported when an attribute of it is first asked for.

    >>> LateModule("json", extra="logs").dumps([1])
    '[1]'
    """

    def __init__(self, module: str, extra: str) -> None:
        self._module, self._extra = module, extra

    def __getattr__(self, name: str) -> Any:
        return getattr(import_extra(self._module, self._extra), name)
