"""`o2td bench`: the speed benchmark of the source tree, not part of the installed library."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from o2td.errors import O2TDError

_ROOT = Path(__file__).resolve().parents[3]  # of the source tree, if o2td is used from one


def _elsewhere(
    as_json: Annotated[bool, typer.Option("--json", hidden=True)] = False,
    quick: Annotated[bool, typer.Option("--quick", hidden=True)] = False,
    save: Annotated[Path | None, typer.Option(hidden=True)] = None,
    against: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Measure every update against the same in C and as a NumPy loop (in a source tree only)."""
    raise O2TDError(
        "the benchmark is not part of the installed package: get o2td's source tree and run make"
        " bench in it"
    )


def _find(root: Path) -> Callable[..., Any]:
    """The command of the source tree at `root`, or one that says where to get it."""
    if not (root / "benchmarks" / "speed_command.py").is_file():
        return _elsewhere
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    found: Callable[..., Any] = import_module("benchmarks.speed_command").command
    return found


command = _find(_ROOT)
