"""`o2td bench`: speed against C and a NumPy loop, and against an earlier run.

It is beside `benchmarks.speed` and not in it, so that NumPy is loaded only after the threads of
BLAS are set, and not at all for the help.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from benchmarks.speed import Change, Row


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Short streams, few repetitions: not to judge by.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="Write the rows, the machine and the date to this file.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Compare with the rows that an earlier run saved.")
    ] = None,
) -> None:
    """Measure every update against the same update in C and as a NumPy loop, in one run.

    Exits with 1 if --against is given and something is more than 30 % slower.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # one core for all competitors, before NumPy is loaded
    from benchmarks import speed

    before = None if against is None else speed.load_rows(against)
    rows: list[Row] = []
    words = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*words, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("compiling")
        for row in speed.measure(quick):
            rows.append(row)
            told = f"{len(rows)} rows; last: {row.measure}, {row.algorithm}, d = {row.d}"
            progress.update(task, description=told)
    compiler = speed.compiler()
    if save is not None:
        speed.save(save, rows, speed.machine(compiler))
    changes = [] if before is None else speed.compare(rows, before)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows]))
    else:
        console = Console(width=None if sys.stdout.isatty() else 120)
        console.print(_table(rows, changes, before is not None))
        _sum_up(console, rows, changes, compiler, quick)
    if any(change.slower for change in changes):
        raise typer.Exit(1)


def _table(rows: list[Row], changes: list[Change], compared: bool) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("measure", "algorithm", "layout"):
        table.add_column(name, no_wrap=True)
    for name in ("d", "lanes", "ns/step", "to C", "to NumPy"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("target")
    factor = {change.row.key: change for change in changes}
    if compared:
        table.add_column("since", justify="right")
    for row in rows:
        cells = [row.measure, row.algorithm, row.layout, str(row.d), str(row.lanes)]
        cells += [_number(row.ns_per_step), _number(row.ratio_to_c), _number(row.ratio_to_numpy)]
        cells.append(_verdict(row))
        if compared:
            change = factor.get(row.key)
            told = "" if change is None else f"x{change.factor:.2f}"
            cells.append(f"[red]{told}[/red]" if change is not None and change.slower else told)
        table.add_row(*cells)
    return table


def _verdict(row: Row) -> str:
    if row.met is None or row.value is None:
        return ""
    told = f"{_number(row.value)} {row.unit}".strip()
    colour, word = ("green", "met") if row.met else ("red", "missed")
    return f"[{colour}]{word}[/{colour}]: {told}, {row.target}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _sum_up(
    console: object, rows: list[Row], changes: list[Change], compiler: str | None, quick: bool
) -> None:
    from rich.console import Console

    assert isinstance(console, Console)
    judged = [row for row in rows if row.met is not None]
    console.print(f"{sum(bool(row.met) for row in judged)} of {len(judged)} targets met.")
    if compiler is None:
        console.print(
            "No C compiler was found, so the column for C is empty: install cc or set CC."
        )
    if quick:
        console.print("Quick: streams this short say that it works, not how fast it is.")
    for change in changes:
        if change.slower:
            row = change.row
            console.print(
                f"Slower: {row.measure}, {row.algorithm}, {row.layout}, d = {row.d},"
                f" {row.lanes} lanes: {change.factor:.2f} times what it took."
            )
