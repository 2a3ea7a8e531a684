"""The command line: :mod:`o2td.cli.main` finds a command, and its module runs it."""

from __future__ import annotations

from o2td.cli.main import COMMANDS, main

__all__ = ["COMMANDS", "main"]
