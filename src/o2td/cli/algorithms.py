"""`o2td algorithms`: everything that can be named, including other packages' entries."""

from __future__ import annotations

import inspect
import json
import sys
from typing import Annotated, Any

import typer

from o2td import terminal
from o2td._version import __version__
from o2td.documents import literal
from o2td.errors import O2TDError
from o2td.registry import ESTIMATORS, FEATURES, FORMATS, LEARNERS, LOG_TESTS, SOLVERS, Registry

_KINDS = {
    "learner": (LEARNERS, "Online learners, one pass, O(d) per step"),
    "solver": (SOLVERS, "Batch solvers, statistics that merge"),
    "features": (FEATURES, "Feature maps"),
    "estimator": (ESTIMATORS, "Estimators from logs, for o2td evaluate --methods"),
    "test": (LOG_TESTS, "Tests of a log, part of o2td evaluate"),
    "format": (FORMATS, "Formats of logs"),
}
_A_FILE_EACH = ("learner", "solver", "estimator")


def command(
    kind: Annotated[
        str | None,
        typer.Option(help="Only one kind: learner, solver, features, estimator, test or format."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List all algorithms, feature maps, estimators and formats, one line each.

    Another package adds its own by an entry point in the group o2td.learners, o2td.solvers,
    o2td.features, o2td.estimators or o2td.formats; they are listed with the package they come from.
    """
    if kind is not None and kind not in _KINDS:
        raise typer.BadParameter(f"choose from {', '.join(_KINDS)}", param_hint="--kind")
    chosen = [kind] if kind is not None else list(_KINDS)
    rows = [_row(one, _KINDS[one][0], name) for one in chosen for name in _KINDS[one][0].names()]
    if as_json:
        typer.echo(
            terminal.printable_json(
                json.dumps({"version": __version__, "algorithms": rows}, ensure_ascii=False)
            )
        )
    else:
        _show(rows)


def _row(kind: str, registry: Registry, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "kind": kind, "summary": "", "parameters": {}}
    row |= {"package": None, "needs": None}
    try:
        factory = registry[name]
    except O2TDError as error:  # its package cannot be loaded
        return row | {"needs": str(error)}
    row["summary"] = _summary(kind, factory)
    row["package"] = _package(factory)
    try:
        parameters = inspect.signature(factory).parameters.values()
    except ValueError:
        return row
    row["parameters"] = {p.name: _default(p) for p in parameters if p.kind != p.VAR_KEYWORD}
    return row


def _package(factory: Any) -> str:
    return (getattr(factory, "__module__", None) or "").split(".")[0]


def _summary(kind: str, factory: Any) -> str:
    """One line about it; for an algorithm with its own file, the file's first line."""
    text = inspect.getdoc(factory)
    if _package(factory) == "o2td" and kind in _A_FILE_EACH:
        text = sys.modules[factory.__module__].__doc__ or text
    return (text or "").split("\n")[0]


def _default(parameter: inspect.Parameter) -> Any:
    value = parameter.default
    if value is parameter.empty:
        return "needed"
    return literal(value)


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = terminal.console()
    for kind, (_, title) in _KINDS.items():
        members = [row for row in rows if row["kind"] == kind]
        if not members:
            continue
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column("name", no_wrap=True, min_width=17)
        table.add_column("what it is")
        for row in members:
            said = row["summary"] if row["needs"] is None else row["needs"]
            foreign = row["package"] not in (None, "o2td")
            table.add_row(row["name"], Text(f"{said} ({row['package']})" if foreign else said))
        console.print(Text(title, style="bold"))
        console.print(table)
        console.print()
