"""The page of an evaluation from logs, from the answer that `o2td evaluate --json` prints.

Reads only plain values: the answer, and the series behind its figures. Verdict and reasons come
first, then the estimates, the diagnostics behind the verdict, and how the log was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from o2td.report.drawing import styled
from o2td.report.evaluation_figures import (
    draw_calibration,
    draw_curves,
    draw_estimates,
    draw_horizon,
    draw_weights,
)
from o2td.report.evaluation_sections import (
    LINES,
    badge,
    earned_picture,
    interval,
    more_episodes,
    own_values_section,
    segments_section,
    sentence,
    shown,
    verdict_section,
)
from o2td.report.page import (
    Block,
    Callout,
    Details,
    Items,
    Page,
    Picture,
    Section,
    SideBySide,
    Table,
    Text,
)
from o2td.report.statistics import number

_SAID = {
    "trust": "Trust: the log can answer this question, and the interval is what it says.",
    "caution": "Caution: there is an answer, but it may be less certain than its interval suggests.",
    "cannot answer": "Cannot answer: this log cannot tell what the target policy is worth.",
}
# the diagnostics shown first, with their meaning
_MEANING = {
    "rows": "transitions used",
    "episodes": "independent pieces of evidence; intervals resample these",
    "effective_sample_size": "effective number of episodes after weighting whole histories",
    "max_rho": "largest probability ratio of one action, target over behaviour",
    "max_weight": "largest weight of a whole history",
    "max_weight_share": "share of all weight: near 1, a single episode decides the answer",
    "pareto_shape": "tail of the weights; above 0.5 their variance is infinite, above 0.7"
    " no sample is large enough",
    "support": "share of the target's visits that the log covers",
    "unlogged_share": "share of the target's visits in or beyond states from which no usable row"
    " starts, about which nothing is known",
    "condition": "of the equations: its logarithm is the number of digits lost, out of sixteen",
    "zero_ratio_share": "share of rows whose action the target would never take",
}
# headings of the table of candidates; shorter ones keep it on a screen
_CHOICE = {
    "count": "number",
    "trace": "λ",
    "kernel_bellman_loss": "Bellman loss",
    "kernel_bellman_noise": "its error",
    "returns_error": "returns error",
}
Answer = Mapping[str, Any]


def logs_page(answer: Answer, series: Mapping[str, Any]) -> Page:
    """The page of one evaluation.

    Parameters
    ----------
    answer
        What `o2td evaluate --json` prints.
    series
        Numbers behind the figures, each optional: `horizon` {step, size, value}, `weights` (shares,
        heaviest first), `curves` {method: {rows, value}}, `calibration` {predicted, observed, count,
        log_loss, marginal_log_loss}, `choice` {columns, rows, why}, `log` (lines about the log).
    """
    best = answer["estimates"][0] if answer["estimates"] else None
    conclusions = [] if best is None else [conclusion(answer)]
    with styled():
        sections = [
            verdict_section(answer, _SAID, *conclusions),
            _estimates(answer),
            *evidence_sections(answer, series),
        ]
    more = [*segments_section(answer), *own_values_section(answer), *more_episodes(answer)]
    sections[2:2] = [*more, *tests_section(answer)]
    sections += [*_choice(series), log_section(answer, series), audit_section(answer)]
    said = "no estimate" if best is None else f"{_value(best)} by {estimate_name(best)}"
    return Page(
        "What would this policy be worth?",
        f"Value of the target policy from the start states, estimated from logs of another policy:"
        f" {said}.",
        sections,
        "Made by o2td evaluate. Intervals resample episodes, never rows; they do not include the"
        " approximation error.",
    )


def estimate_name(row: Mapping[str, Any]) -> str:
    """A method's full name."""
    return str(row.get("title") or row["method"])


def _value(row: Mapping[str, Any]) -> str:
    return f"{shown(row)} {interval(row)}"


def conclusion(answer: Answer) -> str:
    """The value of the target policy and of the policy that made the log, in a sentence or two."""
    best, logged = answer["estimates"][0], answer.get("logged")
    said = f"From its start states the target policy is worth {_value(best)}"
    said += f" by {estimate_name(best)}"
    if best["approximation_error"]:
        extra = number(best["approximation_error"], 2)
        said += f", plus or minus {extra} of approximation error"
    if answer["verdict"] == "cannot answer" or best["value"] is None:
        said = "This log cannot tell what the target policy is worth"
    if logged and logged["value"] is not None:
        said += f". The policy that made the log is worth {_value(logged)}"
        said += lift_words(answer)
    return f"{said}."


def lift_words(answer: Answer) -> str:
    """The difference between the target and the logged policy, from the same episodes."""
    lift = answer.get("lift")
    if not lift or lift["value"] is None or lift["verdict"] == "cannot answer":
        return ""
    said = f"; the difference, from the same episodes, is {_value(lift)}"
    if lift["approximation_error"]:
        said += f" ± {number(lift['approximation_error'], 2)}"
    own = str(lift["method"]).partition(" ")[0]
    return said if own == answer["estimates"][0]["method"] else f"{said} by {own}"


def _estimates(answer: Answer) -> Section:
    rows = answer["estimates"]
    made = Section("estimates", "Estimates")
    if not rows:
        return made.add(Text("No method gave an estimate."))
    made.add(Text("The recommended one first. The same colour and mark mean the same verdict."))
    if any(row["value"] is not None for row in rows):
        made.add(
            Picture(
                draw_estimates(rows),
                "Estimates with their intervals, one line per method",
                f"{LINES} Intervals far wider than the narrowest are cut there.",
                width="narrow",
            )
        )
    columns = ["method", "value", "interval", "approximation error", "verdict", "how, and why"]
    body = [
        (
            estimate_name(row),
            shown(row),
            interval(row),
            number(row["approximation_error"], 2),
            badge(row["verdict"]),
            _how(row),
        )
        for row in rows
    ]
    made.add(Table(columns, body, numbers=columns[1:4], stack=True, caption="All estimates"))
    return made


def _how(row: Mapping[str, Any]) -> str:
    """How an estimate and its interval were computed, and the doubts about it."""
    parts = [str(row.get("about") or ""), str(row["interval"]), *row.get("reasons", ())]
    return sentence("; ".join(part for part in parts if part))


def evidence_sections(answer: Answer, series: Mapping[str, Any]) -> list[Section]:
    """The diagnostics behind a verdict, in numbers and pictures."""
    made = Section("evidence", "What the verdict rests on")
    found = answer["diagnostics"]
    table = [
        (name.replace("_", " "), _cell(found[name]), meaning)
        for name, meaning in _MEANING.items()
        if name in found and not isinstance(found[name], (Mapping, list))
    ]
    made.add(Table(["diagnostic", "value", "meaning"], table, numbers=["value"], stack=True))
    pictures = _pictures(answer, series)
    for k in range(0, len(pictures), 2):
        made.add(SideBySide(pictures[k : k + 2]))
    rest = [
        (name.replace("_", " "), _cell(value))
        for name, value in found.items()
        if name not in _MEANING and not isinstance(value, (Mapping, list))
    ]
    blocks: list[Block] = [Table(["diagnostic", "value"], rest)] if rest else []
    for name, value in found.items():
        if isinstance(value, (Mapping, list)) and value:
            blocks.append(_nested(name.replace("_", " "), value))
    if blocks:
        made.add(Details("All diagnostics", blocks))
    return [made]


def tests_section(answer: Answer) -> list[Section]:
    """The tests of the log, failed ones first."""
    found = sorted(answer.get("tests") or (), key=lambda one: one["verdict"] == "trust")
    if not found:
        return []
    made = Section("tests", "Is the log what it says?")
    made.add(Text("The figure is what a test measured, on a scale of its own."))
    columns = ["test", "figure", "verdict", "what was found", "remedy"]
    body = [
        (
            one["name"].replace("_", " "),
            _cell(one["figure"]),
            badge(one["verdict"]),
            sentence(one["sentence"]),
            sentence(one["remedy"]) if one["remedy"] else "–",
        )
        for one in found
    ]
    return [made.add(Table(columns, body, numbers=["figure"], stack=True, caption="All tests"))]


def _pictures(answer: Answer, series: Mapping[str, Any]) -> list[Picture]:
    found = answer["diagnostics"]
    best = answer["estimates"][0]["value"] if answer["estimates"] else None
    made = []
    if horizon := series.get("horizon"):
        made.append(
            Picture(
                draw_horizon(horizon["step"], horizon["size"], int(found["episodes"])),
                "Effective number of episodes by step",
                "How many episodes effectively remain when histories are weighted up to a step.",
            )
        )
    if weights := series.get("weights"):
        made.append(
            Picture(
                draw_weights(weights, found.get("pareto_shape")),
                "Weights of episodes by rank",
                "The heaviest episodes. Flat: weight is spread evenly; steep: a few episodes carry it.",
            )
        )
    if (earned := earned_picture(series, best)) is not None:
        made.append(earned)
    if curves := series.get("curves"):
        titles = {row["method"]: estimate_name(row) for row in answer["estimates"]}
        made.append(
            Picture(
                draw_curves(curves, best, titles),
                "Learning curves of the online methods",
                "Online learners row by row; dashed: the recommended estimate.",
            )
        )
    if calibration := series.get("calibration"):
        parts = (calibration[name] for name in ("predicted", "observed", "count"))
        gain = ""
        if calibration.get("log_loss") is not None:
            gain = (
                f" Log loss {calibration['log_loss']:.3f}, without inputs"
                f" {calibration['marginal_log_loss']:.3f}."
            )
        made.append(
            Picture(
                draw_calibration(*parts),
                "Calibration of the estimated behaviour",
                f"The behaviour, estimated from the log, on episodes unseen by the model.{gain}",
            )
        )
    return made


def _choice(series: Mapping[str, Any]) -> list[Section]:
    choice = series.get("choice")
    if not choice:
        return []
    made = Section("features", "How the features were chosen")
    made.add(Text(sentence(choice["why"])))
    heads = [_CHOICE.get(name, name) for name in choice["columns"]]
    rows = [[_cell(cell) for cell in row] for row in choice["rows"]]
    kept = [row for row in rows if row[-1].startswith("kept")]
    if kept:
        plain = [row[:-1] for row in kept]
        made.add(Table(heads[:-1], plain, caption="Kept", numbers=heads[1:-1]))
    if rows:
        every = Table(heads, rows, caption="Candidates", numbers=heads[1:-1])
        made.add(Details(f"All {len(rows)} candidates, and why some were left out", [every]))
    return [made]


def log_section(answer: Answer, series: Mapping[str, Any]) -> Section:
    """The roles of columns, and what was dropped."""
    made = Section("log", "How the log was read")
    if answer["diagnostics"].get("verified") is False:
        made.add(Callout(_unverified(answer["diagnostics"]), "mixed"))
    dropped = answer["diagnostics"].get("dropped_by_reason")
    if isinstance(dropped, Mapping) and dropped:
        lines = [f"{count} rows dropped: {reason}." for reason, count in dropped.items()]
        made.add(Callout(" ".join(lines), "mixed"))
    said = [_quoted(line).split(": ", 1) for line in series.get("log") or ()]
    rows = [line for line in said if len(line) == 2]
    if rows:
        made.add(Table(["role", "column"], rows))
    remarks = [line[0] for line in said if len(line) == 1]
    return made.add(Items(remarks)) if remarks else made


def audit_section(answer: Answer) -> Section:
    """What was computed, when and how."""
    made = Section("audit", "For an audit")
    found = answer.get("audit") or {}
    plain = [
        (name.replace("_", " "), _quoted(str(value) if isinstance(value, str) else _cell(value)))
        for name, value in found.items()
        if not isinstance(value, (Mapping, list))
    ]
    made.add(Table(["fact", "value"], plain))
    files = [
        (_quoted(one["name"]), _cell(one["rows"]), _cell(one["bytes"]), one["sha256"] or "–")
        for one in found.get("files") or ()
    ]
    if files:
        heads = ["file", "rows", "bytes", "SHA-256"]
        made.add(Table(heads, files, numbers=heads[1:3], stack=True, caption="Files"))
    columns = [
        (role, _quoted(_cell(names))) for role, names in (found.get("columns") or {}).items()
    ]
    return made.add(Table(["role", "columns"], columns, caption="Columns as understood"))


def _unverified(found: Mapping[str, Any]) -> str:
    """The files without checksums, in which damage would go unnoticed."""
    names = [_quoted(name) for name in found.get("unverified_files") or ()]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (
        f"Read unverified: {shown or 'the log'}. No checksums, so a damaged number would be read as"
        " if it were data. Parquet written with page checksums is verified."
    )


def _quoted(line: str) -> str:
    """A line about the log, without backticks, which would pair up across column names."""
    return str(line).replace("`", "'")


def _nested(title: str, value: Any) -> Block:
    if isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
        names = list(dict.fromkeys(name for one in value for name in one))
        rows = [[_cell(one.get(name)) for name in names] for one in value]
        heads = [name.replace("_", " ") for name in names]
        return Table(heads, rows, caption=title, numbers=heads[1:])
    if isinstance(value, list):
        return Text(f"{title}: {', '.join(_cell(one) for one in value[:100])}")
    rows = [[str(name), _cell(one)] for name, one in value.items() if not _is_table(one)]
    return Table(["", "value"], rows, caption=title, numbers=["value"])


def _figure(value: float) -> str:
    """Three digits, but thousands as they are counted and settings as they were typed."""
    if 1e3 <= abs(value) < 1e6:
        return f"{value:,.0f}".replace("-", "−")
    typed = f"{value:g}"
    return typed.replace("-", "−") if "e" not in typed and float(typed) == value else number(value)


def _is_table(value: Any) -> bool:
    """Whether a value needs a table of its own, as the candidates have it."""
    return isinstance(value, list) and any(isinstance(one, Mapping) for one in value)


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return _figure(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_cell(one)}" for name, one in value.items()) or "–"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_cell(one) for one in value) or "–"
    return str(value).replace("`", "'")
