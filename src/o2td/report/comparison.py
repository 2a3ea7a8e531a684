"""The page of a comparison of policies, from what `o2td evaluate --target … --json` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from o2td.report.drawing import styled, svg
from o2td.report.evaluation import audit_section, evidence_sections, log_section, tests_section
from o2td.report.evaluation_figures import estimates_figure
from o2td.report.evaluation_notebook import notebook_block
from o2td.report.evaluation_sections import LINES, badge, interval, sentence, shown, verdict_section
from o2td.report.page import Page, Picture, Section, Table, Text
from o2td.report.statistics import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        said = verdict_section(answer, _SAID, str(answer["conclusion"]))
        sections = [said, _policies(answer), _differences(answer)]
        (evidence,) = evidence_sections(answer, series)
        sections += [*_tests(answer), evidence]
    first = answer["policies"][0]["name"]
    evidence.blocks.insert(0, Text(f"For {first}, which comes first."))
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


def _policies(answer: Answer) -> Section:
    made = Section("policies", "Policies")
    why = ["the policy that made the log"]
    logged = {"name": "logged", "reasons": why, "verdict": "", **answer["logged"]}
    rows = [*answer["policies"], {"approximation_error": None, **logged}]
    drawn = [{**row, "title": row["name"]} for row in rows if row["value"] is not None]
    unknown = [row["name"] for row in rows if row.get("probability_best") is None]
    left = f" {', '.join(unknown)}: not counted, as nothing can be said." if unknown else ""
    made.add(
        Text(
            f"The best first, all by {answer['method']}. How often each is the best is counted over"
            f" bootstrap samples of the episodes, blurred by the approximation error.{left}"
        )
    )
    if drawn:
        made.add(
            Picture(
                svg(estimates_figure(drawn, "value from the start states", _baseline(answer))),
                "Values of the policies with their intervals",
                f"{LINES} Upright: the baseline.",
                width="narrow",
            )
        )
    columns = ["policy", "value", "interval", "approximation error"]
    columns += ["best with", "verdict", "why"]
    body = [
        (
            str(row["name"]),
            shown(row),
            interval(row),
            number(row.get("approximation_error"), 2),
            _share(row.get("probability_best")),
            badge(row["verdict"]) if row["verdict"] else "–",
            sentence("; ".join(row["reasons"])) if row["reasons"] else "–",
        )
        for row in rows
    ]
    table = Table(columns, body, numbers=columns[1:5], stack=True, caption="All policies")
    return made.add(table)


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
            " hold all together; each of the others holds for itself. The column above 0 has the"
            " probability that the first of the two is worth more."
        )
    )
    figure = _figure(rows)
    if figure is not None:
        made.add(
            Picture(
                svg(figure),
                "Differences with their intervals, one line per pair of policies",
                f"{LINES} Upright: no difference.",
                width="narrow",
            )
        )
    columns = ["difference", "value", "interval", "joint interval", "approximation error"]
    columns += ["above 0", "verdict", "how, and why"]
    body = [
        (
            _name(row),
            shown(row),
            interval(row),
            interval(row, "joint_low", "joint_high"),
            number(row["approximation_error"], 2),
            _share(row["probability"]),
            badge(row["verdict"]),
            "; ".join([str(row["words"]), str(row["method"]), *row["reasons"]]),
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
    drawn = [{**row, "title": _name(row)} for row in rows if row["value"] is not None]
    return estimates_figure(drawn, "difference", 0.0) if drawn else None


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['of']} - {row['over']}"


def _share(value: Any) -> str:
    return "–" if value is None else f"{value:.1%}"


def notebook_comparison(answer: Answer) -> str:
    """The comparison as a piece of HTML for a notebook."""
    rows = [{**row, "title": _name(row)} for row in answer["differences"]]
    said = "Differences with their intervals, one line per pair of policies"
    return notebook_block(answer, answer["conclusion"], "difference", rows, said, 0.0)
