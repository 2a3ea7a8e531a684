"""An evaluation in the terminal: the log as it was read, estimates, verdict, what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["show_answer", "show_log"]

_STYLES = {"trust": "green", "caution": "yellow", "cannot answer": "red"}
_SHOWN = (
    ("effective_sample_size", "effective sample size", "of {episodes} episodes, whole histories"),
    ("max_rho", "largest ratio of an action", ""),
    ("max_weight_share", "heaviest episode", "of all weight"),
    ("pareto_shape", "Pareto shape of the weights", "0.5 is heavy, 0.7 hopeless"),
    ("support", "target's visits that the log covers", ""),
    ("condition", "condition of the equations", ""),
)


def show_log(lines: Iterable[str]) -> None:
    """The mapping found and what was read."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for line in lines:
        role, colon, rest = line.partition(": ")
        text = Text(f"{role}{colon}", style="dim") + Text(rest) if colon else Text(line, "dim")
        console.print(text, soft_wrap=True)
    console.print()


def show_answer(answer: Mapping[str, Any]) -> None:
    """The table of estimates, the verdict in words, and the diagnostics that matter."""
    from rich.console import Console
    from rich.text import Text

    console = Console()
    if answer["estimates"]:
        console.print(_table(answer["estimates"]))
        console.print()
    verdict = str(answer["verdict"])
    console.print(Text("Verdict: ", "bold") + Text(verdict, f"bold {_STYLES.get(verdict, '')}"))
    for reason in answer["reasons"]:
        console.print(Text(f"  · {reason}"))
    console.print()
    _diagnostics(console, answer["diagnostics"])


def _table(rows: Iterable[Mapping[str, Any]]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    table.add_column("method")
    for name in ("value", "low", "high", "approx. error"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for place, row in enumerate(rows):
        verdict = str(row["verdict"])
        table.add_row(
            Text(str(row["method"])),
            *(_number(row[name]) for name in ("value", "low", "high")),
            _number(row["approximation_error"], 2),
            Text(verdict, _STYLES.get(verdict, "")),
            style="bold" if place == 0 else "",
        )
    return table


def _diagnostics(console: Any, found: Mapping[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("what", style="dim")
    table.add_column("value", justify="right")
    table.add_column("of", style="dim")
    table.add_row("transitions used", f"{found['rows']:,}", f"in {found['episodes']:,} episodes")
    for name, title, note in _SHOWN:
        value = found.get(name)
        if isinstance(value, (int, float)):
            table.add_row(title, _number(value, 3), note.format(**found))
    dropped = found.get("dropped")
    if isinstance(dropped, Mapping):
        for reason, count in dropped.items():
            table.add_row("dropped", f"{count:,}", Text(f"rows: {reason}"))
    console.print(table)


def _number(value: Any, digits: int = 4) -> str:
    if value is None:
        return "–"
    return f"{float(value):.{digits}g}"
