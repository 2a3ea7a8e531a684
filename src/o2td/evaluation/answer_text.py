"""An evaluation in the terminal: the log as it was read, estimates, verdict, diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from o2td import terminal
from o2td.documents import fixed, places

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"trust": "green", "caution": "yellow", "cannot answer": "red"}
_ROLE = 30  # at most this many characters before a colon
_SHOWN = (
    ("effective_sample_size", "effective sample size", "of {episodes} episodes, whole histories"),
    ("max_rho", "largest ratio of an action", ""),
    ("max_weight_share", "heaviest episode", "of all weight"),
    ("pareto_shape", "Pareto shape of the weights", "0.5 is heavy, 0.7 hopeless"),
    ("support", "target's visits that the log covers", ""),
    ("unlogged_share", "visits beyond the log's reach", "in or beyond states that no row leaves"),
    ("condition", "condition of the equations", ""),
)
_IF_ANY = ("unlogged_share",)
_SEGMENT = ("segment", "starts")
_RETURN = ("name", "level", "logged")
_FILES = 5  # of which digests are shown
_DIGEST = 16  # of its digits


def show_log(lines: Iterable[str]) -> None:
    """Print the mapping found and what was read, one role per line."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("role", style="dim", no_wrap=True)
    table.add_column("column")
    remarks = []
    for line in lines:
        role, colon, rest = line.partition(": ")
        if colon and len(role) < _ROLE:
            table.add_row(Text(role), Text(rest))
        else:
            remarks.append(Text(line, "dim"))
    console = terminal.console()
    console.print(table)
    for remark in remarks:
        console.print(remark)
    console.print()


def show_answer(answer: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the table of estimates, the verdict in words, and the diagnostics that matter."""
    console = terminal.console() if console is None else console
    confidence = answer["audit"]["confidence"]
    if answer["estimates"]:
        console.print(_table(answer["estimates"], confidence))
        console.print()
        show_doubts(console, {row["method"]: row for row in answer["estimates"][1:]})
    for rows, names in ((answer.get("segments"), _SEGMENT), (answer.get("returns"), _RETURN)):
        if rows:
            console.print(_more(rows, names, confidence))
            console.print()
    said = [_conclusion(answer, confidence), *_logged(answer), *_own(answer)]
    show_verdict(console, answer, said)


def show_verdict(console: Console, answer: Mapping[str, Any], said: Iterable[str]) -> None:
    """Print the verdict, what is said about it, its reasons, and what everything rests on."""
    from rich.text import Text

    verdict = str(answer["verdict"])
    console.print(Text("Verdict: ", "bold") + Text(verdict, f"bold {STYLES.get(verdict, '')}"))
    for sentence in (*said, *answer["reasons"]):
        console.print(Text(f"  · {sentence}"))
    console.print()
    _show_diagnostics(console, answer["diagnostics"])
    console.print()
    _show_audit(console, answer["audit"])


def show_doubts(console: Any, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Why some of these rows are not trusted, grouped by reason."""
    from rich.text import Text

    groups: dict[str, list[str]] = {}
    for name, row in rows.items():
        if row["verdict"] != "trust":
            groups.setdefault("; ".join(row["reasons"]), []).append(str(name))
    for reason, names in groups.items():
        console.print(Text(f"{', '.join(names)}: {reason}", "dim"))
    if groups:
        console.print()


def table_of(first: str, numbers: Iterable[str]) -> Any:
    """An empty table: a column of names, columns of numbers, and one of verdicts."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column(first)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    return table


def text_of(
    answer: Mapping[str, Any], show: Callable[[Any, Console], None] | None = None, width: int = 100
) -> str:
    """The output of `show_answer` (or another such function) without colours."""
    from rich.text import Text

    console = terminal.console(width=width)
    with console.capture() as shown:
        (show or show_answer)(answer, console)
        columns = answer["audit"]["columns"].items()
        said = ", ".join(f"{role} = {_named(names)}" for role, names in columns)
        console.print(Text(f"columns: {said}", "dim"))
    plain = Text.from_ansi(shown.get()).plain
    return "\n".join(line.rstrip() for line in plain.rstrip().splitlines())


def _logged(answer: Mapping[str, Any]) -> list[str]:
    """The value of the policy that made the log, in one sentence."""
    found = answer["logged"]
    if found is None or found["value"] is None:
        return []
    value, low, high = (fixed(found[name], places(found)) for name in ("value", "low", "high"))
    said = [f"The policy that made the log is worth {value}, [{low}, {high}]."]
    lift = answer.get("lift")
    if lift and lift["value"] is not None and lift["verdict"] != "cannot answer":
        said.append(lift_sentence(lift, answer["estimates"][0]["method"]))
    return said


def lift_sentence(lift: Mapping[str, Any], method: str) -> str:
    """The difference to the policy that made the log, in one sentence."""
    value, low, high = (fixed(lift[name], places(lift)) for name in ("value", "low", "high"))
    said = f"The lift over it, from the same episodes, is {value}, [{low}, {high}]"
    if lift["approximation_error"]:
        said += f", and ±{_number(lift['approximation_error'], 2)} of approximation error"
    own = lift["method"].partition(" ")[0]
    return f"{said}." if own == method else f"{said}, by {own}."


def _own(answer: Mapping[str, Any]) -> list[str]:
    """What a value model of the user's says by itself, and what histories make of it."""
    found = answer["diagnostics"].get("value_model")
    return [found["said"]] if found else []


def _conclusion(answer: Mapping[str, Any], confidence: float) -> str:
    """The answer to the question, in one sentence."""
    best = answer["estimates"][0]
    if answer["verdict"] == "cannot answer" or best["value"] is None:
        return "These logs cannot tell what the target policy is worth."
    value, low, high = (fixed(best[name], places(best)) for name in ("value", "low", "high"))
    said = f"From its start states the target policy is worth {value}, [{low}, {high}]"
    said += f" with {confidence:.0%} confidence"
    if best["approximation_error"]:
        said += f", and ±{_number(best['approximation_error'], 2)} of approximation error"
    return f"{said}."


def _table(rows: Sequence[Mapping[str, Any]], confidence: float) -> Any:
    from rich.text import Text

    table = table_of("method", ("value", f"{confidence:.0%} low", "high", "approx. error"))
    shown = places(rows[0])
    for place, row in enumerate(rows):
        verdict = str(row["verdict"])
        numbers = ("value", "low", "high", "approximation_error")
        table.add_row(
            Text(str(row["method"])),
            *(fixed(row[name], shown) for name in numbers),
            Text(verdict, STYLES.get(verdict, "")),
            style="bold" if place == 0 else "",
        )
    return table


def _more(rows: Sequence[Mapping[str, Any]], names: Sequence[str], confidence: float) -> Any:
    """A table of segments, or of figures about the returns."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    heads = [*names, "value", f"{confidence:.0%} low", "high", "verdict"]
    for place, name in enumerate(heads):
        left = place == 0 or name == "verdict"
        table.add_column(name, justify="left" if left else "right", no_wrap=name != "verdict")
    for row in rows:
        verdict = str(row["verdict"])
        more = "" if verdict != "cannot answer" else f": {'; '.join(row['reasons'])}"
        table.add_row(
            *(Text(_plain(row[name])) for name in names),
            *(fixed(row[name], places(row)) for name in ("value", "low", "high")),
            Text(verdict + more, STYLES.get(verdict, "")),
        )
    return table


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "–" if value is None else str(value)


def _show_diagnostics(console: Any, found: Mapping[str, Any]) -> None:
    """Print the diagnostics behind a verdict."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("what", style="dim")
    table.add_column("value", justify="right")
    table.add_column("of", style="dim")
    table.add_row("transitions used", f"{found['rows']:,}", f"in {found['episodes']:,} episodes")
    for name, title, note in _SHOWN:
        value = found.get(name)
        if isinstance(value, (int, float)) and (value or name not in _IF_ANY):
            many = name == "effective_sample_size" and value >= 1000.0
            said = f"{value:,.0f}" if many else _number(value, 3)
            table.add_row(title, said, note.format(**found))
    dropped = found.get("dropped_by_reason")
    if isinstance(dropped, Mapping):
        for reason, count in dropped.items():
            table.add_row("dropped", f"{count:,}", Text(f"rows: {reason}"))
    console.print(table)


def _show_audit(console: Any, found: Mapping[str, Any]) -> None:
    """Print what was computed, when and how, one line each."""
    from rich.text import Text

    asked = f"discount {found['discount']}, "
    asked += f"horizon {found['horizon']}, " if "horizon" in found else ""
    asked += f"seed {found['seed']}, {found['bootstrap']} lanes"
    lines = [f"{asked}; o2td {found['version']}, {found['date']}"]
    for file in found["files"][:_FILES]:
        said = "" if file["rows"] is None else f"{file['rows']:,} rows"
        said += f", SHA-256 {file['sha256'][:_DIGEST]}…" if file["sha256"] else ""
        lines.append(f"{file['name']}: {said.removeprefix(', ')}")
    if len(found["files"]) > _FILES:
        lines.append(f"and {len(found['files']) - _FILES} more files")
    for line in lines:
        console.print(Text(line, "dim"))


def _named(names: str | Sequence[str]) -> str:
    several = [names] if isinstance(names, str) else names
    return several[0] if len(several) == 1 else f"{several[0]} … {several[-1]} ({len(several)})"


def _number(value: Any, digits: int = 4) -> str:
    if value is None:
        return "–"
    return f"{float(value):.{digits}g}"
