"""The page of a comparison of policies, from what `o2td evaluate --target … --json` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from o2td.report.drawing import styled, svg
from o2td.report.evaluation import (
    TONES,
    audit_section,
    evidence_sections,
    log_section,
    sentence,
    tests_section,
)
from o2td.report.evaluation_figures import estimates_figure
from o2td.report.evaluation_notebook import badge_html, notebook_block, picture_html, table_html
from o2td.report.page import Badge, Callout, Items, Page, Picture, Section, Table, Text
from o2td.report.statistics import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["comparison_page", "differences_figure", "notebook_comparison"]

Answer = Mapping[str, Any]
_SAID = {
    "trust": "Trust: the log can answer this question, and the interval is what it says.",
    "caution": "Caution: there is an answer, but it rests on less than its interval suggests.",
    "cannot answer": "Cannot answer: this log does not tell the policies apart.",
}


def comparison_page(answer: Answer, series: Mapping[str, Any]) -> Page:
    """The page of one comparison.

    Parameters
    ----------
    answer
        What `Comparison.as_dict` gives.
    series
        Numbers behind the figures of the best policy's own evaluation, see `logs_page`.
    """
    with styled():
        sections = [_verdict(answer), _policies(answer), _differences(answer)]
        sections += [*_tests(answer), *evidence_sections(answer, series)]
    sections += [log_section(answer, series), audit_section(answer)]
    best = str(answer["best"])
    named = "the policy that made the log" if best == "logged" else best
    return Page(
        "Which policy is better?",
        f"{len(answer['policies'])} policies and the one that made the log, from the same episodes."
        f" The highest value: {named}.",
        sections,
        "Made by o2td evaluate. Intervals resample episodes, the same for both sides of a difference;"
        " they do not include the approximation error.",
    )


def _verdict(answer: Answer) -> Section:
    verdict = str(answer["verdict"])
    made = Section("verdict", "Verdict")
    made.add(Callout(_SAID.get(verdict, verdict), TONES.get(verdict, "plain")))
    return made.add(Items([str(answer["conclusion"]), *map(sentence, answer["reasons"])]))


def _policies(answer: Answer) -> Section:
    made = Section("policies", "Policies")
    rows = [*answer["policies"], _logged_row(answer)]
    shown = [{**row, "title": row["name"]} for row in rows if row["value"] is not None]
    made.add(
        Text(
            f"The best first, all by {answer['method']}. How often each is the best is counted over"
            " bootstrap samples of the episodes, blurred by the approximation error."
        )
    )
    if shown:
        made.add(
            Picture(
                svg(estimates_figure(shown, "value from the start states", _baseline(answer))),
                "Values of the policies with their intervals",
                "Line: the interval. Pale: plus the approximation error. Upright: the baseline.",
            )
        )
    columns = ["policy", "value", "interval", "approximation error", "best with", "verdict", "why"]
    body = [
        (
            str(row["name"]),
            number(row["value"], 4),
            _interval(row, "low", "high"),
            number(row.get("approximation_error"), 2),
            _share(row.get("probability_best")),
            Badge(row["verdict"], TONES.get(row["verdict"], "plain")) if row["verdict"] else "–",
            sentence("; ".join(row["reasons"])) if row["reasons"] else "–",
        )
        for row in rows
    ]
    table = Table(columns, body, numbers=columns[1:5], stack=True, caption="All policies")
    return made.add(table)


def _logged_row(answer: Answer) -> dict[str, Any]:
    plain = {"name": "logged", "reasons": ["the policy that made the log"], "verdict": ""}
    return {"approximation_error": None, **plain, **answer["logged"]}


def _baseline(answer: Answer) -> float | None:
    rows = {row["name"]: row["value"] for row in answer["policies"]}
    found = rows.get(answer["baseline"], answer["logged"]["value"])
    return None if found is None else float(found)


def _differences(answer: Answer) -> Section:
    rows = answer["differences"]
    made = Section("differences", "Differences")
    made.add(
        Text(
            "Both sides of a difference come from the same episodes, so what they have in common"
            " cancels: the interval is shorter than two separate ones suggest. The joint intervals"
            " hold all together; each of the others holds for itself."
        )
    )
    figure = _figure(rows)
    if figure is not None:
        made.add(
            Picture(
                svg(figure),
                "Differences with their intervals, one line per pair of policies",
                "Line: the paired interval. Pale: plus the approximation error. Upright: no"
                " difference.",
            )
        )
    columns = ["difference", "value", "interval", "joint interval", "approximation error"]
    columns += ["above 0 with", "verdict", "how, and why"]
    body = [
        (
            _name(row),
            number(row["value"], 4),
            _interval(row, "low", "high"),
            _interval(row, "joint_low", "joint_high"),
            number(row["approximation_error"], 2),
            _share(row["probability"]),
            Badge(row["verdict"], TONES.get(row["verdict"], "plain")),
            sentence("; ".join([str(row["words"]), str(row["method"]), *row["reasons"]])),
        )
        for row in rows
    ]
    table = Table(columns, body, numbers=columns[1:6], stack=True, caption="All differences")
    return made.add(table)


def _tests(answer: Answer) -> list[Section]:
    """Tests of the log; one with the same result for all policies is shown once."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for one in answer.get("tests") or ():
        key = (one["name"], one["sentence"])
        if key in found:
            found[key]["policy"] += f", {one['policy']}"
        else:
            found[key] = dict(one)
    several = len(answer["policies"])
    rows = []
    for one in found.values():
        everybody = one["policy"].count(",") + 1 == several
        rows.append(
            {**one, "name": one["name"] if everybody else f"{one['name']} ({one['policy']})"}
        )
    return tests_section({"tests": rows})


def differences_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """One line per difference: value, paired interval, and beyond it the approximation error."""
    from o2td.errors import InputError

    made = _figure(rows)
    if made is None:
        raise InputError("plot: no difference could be computed; print the comparison to see why")
    return made


def _figure(rows: Sequence[Mapping[str, Any]]) -> Figure | None:
    shown = [{**row, "title": _name(row)} for row in rows if row["value"] is not None]
    return estimates_figure(shown, "difference", 0.0) if shown else None


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['of']} - {row['over']}"


def _interval(row: Mapping[str, Any], low: str, high: str) -> str:
    return f"[{number(row[low], 4)}, {number(row[high], 4)}]"


def _share(value: Any) -> str:
    return "–" if value is None else f"{value:.1%}"


def notebook_comparison(answer: Answer) -> str:
    """The comparison as a piece of HTML for a notebook."""
    parts = [f"<p>{badge_html(str(answer['verdict']))} {escape(str(answer['conclusion']))}</p>"]
    if answer["reasons"]:
        items = "".join(f"<li>{escape(str(reason))}</li>" for reason in answer["reasons"])
        parts.append(f"<ul>{items}</ul>")
    rows = [{**row, "title": _name(row)} for row in answer["differences"]]
    said = "Differences with their intervals, one line per pair of policies"
    parts.append(picture_html(rows, said, "difference", 0.0))
    heads = ("difference", "value", "low", "high", "approximation error", "verdict")
    parts.append(table_html(rows, heads))
    return notebook_block(parts, answer)
