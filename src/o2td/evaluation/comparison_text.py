"""A comparison in the terminal: policies, differences, verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from o2td import terminal
from o2td.documents import fixed, places
from o2td.evaluation.answer_text import STYLES, show_doubts, show_verdict, table_of, text_of

if TYPE_CHECKING:
    from rich.console import Console

Answer = Mapping[str, Any]
_WIDE = 1000  # characters, more than any table has


def comparison_text(answer: Answer) -> str:
    """The output of `show_comparison` without colours."""
    return text_of(answer, show_comparison)


def show_comparison(answer: Answer, console: Console | None = None) -> None:
    """Print tables of policies and differences, the verdict on the best, and its basis."""
    console = terminal.console() if console is None else console
    console.print(_policies(answer))
    console.print()
    table = _differences(answer)
    if console.measure(table, options=console.options.update_width(_WIDE)).maximum > console.width:
        table = _differences(answer, stacked=True)
    console.print(table)
    console.print()
    told = [one for one in answer["differences"] if one["reasons"] != answer["reasons"]]
    show_doubts(console, {f"{one['of']} - {one['over']}": one for one in told})
    show_verdict(console, answer, [answer["conclusion"], *_how(answer)])


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
    from rich.text import Text

    level = f"{answer['audit']['confidence']:.0%} low"
    table = table_of("policy", ("value", level, "high", "approx. error", "best with"))
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


def _differences(answer: Answer, stacked: bool = False) -> Any:
    """One row per difference; `stacked` puts its joint interval below the plain one."""
    from rich.text import Text

    rows = answer["differences"]
    several, doubted = len(rows) > 1, any(row["approximation_error"] for row in rows)
    beside, between = several and not stacked, "\n" if several and stacked else ""
    level = f"{answer['audit']['confidence']:.0%} interval"
    heads = ["value", f"{level}{between}{'joint interval' if between else ''}"]
    heads += ["joint interval"] * beside + ["approx. error"] * doubted + ["above 0"]
    table = table_of("difference", heads)
    for row in rows:
        shown, verdict, chance = places(row), str(row["verdict"]), row["probability"]
        plain = f"[{fixed(row['low'], shown)}, {fixed(row['high'], shown)}]"
        joint = f"[{fixed(row['joint_low'], shown)}, {fixed(row['joint_high'], shown)}]"
        table.add_row(
            Text(f"{row['of']} - {row['over']}"),
            fixed(row["value"], shown),
            f"{plain}{between}{joint if between else ''}",
            *[joint] * beside,
            *[fixed(row["approximation_error"], shown)] * doubted,
            "–" if chance is None else f"{chance:.1%}",
            Text(verdict, STYLES.get(verdict, "")),
        )
    return table
