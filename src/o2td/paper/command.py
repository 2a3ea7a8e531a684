"""``o2td reproduce``: run the paper's experiments, judge its claims, and make the report."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2td import terminal

if TYPE_CHECKING:
    from o2td.paper.report import ReproductionReport

INTERRUPTED = 130


def command(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE ...]", help="Only these, such as fig-baird. [default: all]"
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(help="quick (20 runs, minutes) or full (200 runs, within an hour).")
    ] = "quick",
    out: Annotated[Path, typer.Option(help="Folder for the results and the report.")] = Path(
        "reproduction"
    ),
    workers: Annotated[
        int | None, typer.Option(help="Number of processes. [default: all cores]")
    ] = None,
    progress: Annotated[
        bool | None, typer.Option(help="Show progress bars, on a terminal by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Reproduce the paper's figures and judge its claims.

    What is finished is kept: after an interruption the same command continues. The report is
    DIR/report.html, with the figures and their numbers in DIR/figures.
    """
    from o2td.paper.reproduction import reproduce

    began = time.perf_counter()
    try:
        done = reproduce(figures, profile, out, workers=workers, progress=progress)
        if progress or (progress is None and sys.stderr.isatty()):
            print("drawing the figures and writing the report", file=sys.stderr)
        from o2td.paper.report import build

        report = build(out)
    except KeyboardInterrupt:
        print(
            f"o2td: interrupted; run the same command again to continue in {out}", file=sys.stderr
        )
        raise typer.Exit(INTERRUPTED) from None
    seconds = time.perf_counter() - began
    if as_json:
        print(
            terminal.printable_json(
                json.dumps(_document(report, seconds), indent=2, ensure_ascii=False)
            )
        )
    else:
        _show(report, done.figures, seconds)


def _document(report: ReproductionReport, seconds: float) -> dict[str, Any]:
    return {"claims": report.claims, "figures": report.figures, "seconds": round(seconds, 1)}


def _show(report: ReproductionReport, asked: list[str], seconds: float) -> None:
    """The claims as a table, then where the report is."""
    from rich.table import Table
    from rich.text import Text

    console = terminal.console()
    if report.claims:
        table = Table(title="The paper's claims", show_lines=False)
        table.add_column("", justify="right")
        for name in ("claim", "verdict", "measured [95 %]"):
            table.add_column(name, overflow="fold")
        for row in report.claims:
            colour = {"reproduced": "green", "not reproduced": "red"}.get(row["verdict"], "yellow")
            verdict = Text(row["verdict"], colour)
            table.add_row(str(row["id"]), row["claim"], verdict, _interval(row))
        console.print(table)
    else:
        console.print(f"No claim of the paper rests on {', '.join(asked)} alone.")
    console.print(f"{len(report.figures)} figures, {seconds:.0f} s")
    print(f"report in {report.path}")


def _interval(row: dict[str, Any]) -> str:
    values = ("∞" if row[k] is None else f"{row[k]:.3g}" for k in ("measured", "low", "high"))
    return "{} [{}, {}]".format(*values)
