"""A comparison in the terminal: policies, differences, verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from o2td import terminal
from o2td.evaluation.answer_text import (
    STYLES,
    fixed,
    places,
    show_audit,
    show_diagnostics,
    show_sentences,
    text_of,
)

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["comparison_text", "show_comparison"]

Answer = Mapping[str, Any]


def comparison_text(answer: Answer) -> str:
    """The output of `show_comparison` without colours."""
    return text_of(answer, show_comparison)


def show_comparison(answer: Answer, console: Console | None = None) -> None:
    """Print tables of policies and differences, the verdict on the best, and its basis."""
    from rich.text import Text

    console = terminal.console() if console is None else console
    console.print(_policies(answer))
    console.print()
    console.print(_differences(answer))
    console.print()
    said: dict[str, list[str]] = {}
    for one in answer["differences"]:
        if one["verdict"] != "trust" and one["reasons"] != answer["reasons"]:
            name = f"{one['of']} - {one['over']}"
            said.setdefault("; ".join(one["reasons"]), []).append(name)
    for reason, names in said.items():
        console.print(Text(f"{', '.join(names)}: {reason}", "dim"))
    if said:
        console.print()
    verdict = str(answer["verdict"])
    console.print(Text("Verdict: ", "bold") + Text(verdict, f"bold {STYLES.get(verdict, '')}"))
    show_sentences(console, [answer["conclusion"], *_how(answer), *answer["reasons"]])
    show_diagnostics(console, answer["diagnostics"])
    console.print()
    show_audit(console, answer["audit"])


def _how(answer: Answer) -> list[str]:
    audit = answer["audit"]
    said = [
        f"All differences are by {answer['method']}, paired: both sides come from the same"
        f" {audit['episodes']:,} episodes, with {audit['confidence']:.0%} confidence each."
    ]
    if len(answer["differences"]) > 1:
        said[0] += " The joint intervals hold together (largest deviation over the same lanes)."
    return said


def _policies(answer: Answer) -> Any:
    from rich.table import Table
    from rich.text import Text

    level = f"{answer['audit']['confidence']:.0%} low"
    table = Table(box=None, pad_edge=False)
    table.add_column("policy")
    for name in ("value", level, "high", "approx. error", "best with"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    rows = [*answer["policies"], {"name": "logged", "verdict": "", **answer["logged"]}]
    shown = places(rows[0])
    for row in rows:
        chance, verdict = row.get("probability_best"), str(row["verdict"])
        table.add_row(
            Text(str(row["name"])),
            *(fixed(row[name], shown) for name in ("value", "low", "high")),
            fixed(row.get("approximation_error"), shown) if verdict else "",
            "–" if chance is None else f"{chance:.0%}",
            Text(verdict, STYLES.get(verdict, "")),
            style="bold" if row["name"] == answer["best"] else "",
        )
    return table


def _differences(answer: Answer) -> Any:
    from rich.table import Table
    from rich.text import Text

    rows = answer["differences"]
    several, doubted = len(rows) > 1, any(row["approximation_error"] for row in rows)
    table = Table(box=None, pad_edge=False)
    table.add_column("difference")
    heads = ["value", f"{answer['audit']['confidence']:.0%} interval"]
    heads += ["joint interval"] * several + ["approx. error"] * doubted + ["above 0"]
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in rows:
        shown, verdict, chance = places(row), str(row["verdict"]), row["probability"]
        table.add_row(
            Text(f"{row['of']} - {row['over']}"),
            fixed(row["value"], shown),
            f"[{fixed(row['low'], shown)}, {fixed(row['high'], shown)}]",
            *[f"[{fixed(row['joint_low'], shown)}, {fixed(row['joint_high'], shown)}]"] * several,
            *[fixed(row["approximation_error"], shown)] * doubted,
            "–" if chance is None else f"{chance:.1%}",
            Text(verdict, STYLES.get(verdict, "")),
        )
    return table
