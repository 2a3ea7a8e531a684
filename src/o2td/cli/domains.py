"""`o2td domains`: every registered domain with its size, discount and one line."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer

from o2td import terminal
from o2td.documents import literal
from o2td.errors import O2TDError
from o2td.registry import DOMAINS


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List all domains, built with their defaults: size, discount and one line each."""
    rows = [_row(name) for name in DOMAINS.names()]
    if as_json:
        typer.echo(terminal.printable_json(json.dumps({"domains": rows}, ensure_ascii=False)))
    else:
        _show(rows)


def _row(name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "summary": "", "parameters": {}}
    row |= dict.fromkeys(("states", "actions", "features", "discount", "needs"))
    try:
        factory = DOMAINS[name]
        row["summary"] = (inspect.getdoc(factory) or "").split("\n")[0]
        parameters = [
            p
            for p in inspect.signature(factory).parameters.values()
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        needed = [p.name for p in parameters if p.default is p.empty]
        row["parameters"] = {p.name: literal(p.default) for p in parameters if p.name not in needed}
        row |= {"needs": f"arguments: {', '.join(needed)}"} if needed else _size(factory())
    except O2TDError as error:  # an extra is missing, or another package's domain fails
        row["needs"] = str(error)
    return row


def _size(problem: Any) -> dict[str, Any]:
    finite = hasattr(problem, "n_states")
    return {
        "states": problem.n_states if finite else None,
        "actions": problem.n_actions,
        "features": problem.d,
        # The largest if it depends on the state: that is the usual one.
        "discount": float(problem.pairs.discount.max() if finite else problem.discount),
    }


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for name in ("states", "features", "discount"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what it is")
    for row in rows:
        if row["needs"] is not None:
            table.add_row(row["name"], "", "", "", f"{row['summary']} Needs {row['needs']}")
            continue
        states = "continuous" if row["states"] is None else str(row["states"])
        numbers = (states, str(row["features"]), f"{row['discount']:g}")
        table.add_row(row["name"], *numbers, row["summary"])
    terminal.console().print(table)
