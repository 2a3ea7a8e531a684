"""An evaluation in a notebook: verdict, picture and table, with styles of their own.

A notebook has neither the page's style sheet nor a known background: text keeps the notebook's
colour, and only badges and the picture bring their own.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from o2td.errors import O2TDError
from o2td.report.drawing import styled
from o2td.report.evaluation import conclusion, estimate_name
from o2td.report.evaluation_figures import draw_estimates
from o2td.report.evaluation_sections import TONES, earned_picture, interval, shown
from o2td.report.statistics import number

_COLOURS = {"good": "#0b6b4b", "mixed": "#8a5d00", "bad": "#9c2a10"}
_HEADS = ("value", "low", "high", "approximation error", "verdict")
_CELL = "padding:.2em .8em .2em 0;text-align:{};border:none"


def notebook_html(answer: Mapping[str, Any], series: Mapping[str, Any]) -> str:
    """The answer as an HTML fragment; `series` are the numbers behind the page's figures."""
    rows, said = answer["estimates"], "Estimates with their intervals, one line per method"
    more = _first_steps(rows, series)
    return notebook_block(answer, conclusion(answer), "method", rows, said, more=more)


def notebook_block(
    answer: Mapping[str, Any],
    conclusion: str,
    kind: str,
    rows: Sequence[Mapping[str, Any]],
    said: str,
    line: float | None = None,
    more: str = "",
) -> str:
    """Verdict and reasons, rows of a `kind` as picture and table, `more`, and how all was computed."""
    parts = [f"<p>{_badge(str(answer['verdict']))} {escape(str(conclusion))}</p>"]
    if answer["reasons"]:
        items = "".join(f"<li>{escape(str(reason))}</li>" for reason in answer["reasons"])
        parts.append(f"<ul>{items}</ul>")
    parts += [_picture(rows, said, kind, line), _table(rows, kind), more]
    parts.append(_audit(answer["audit"], answer["logged"]))
    return f'<div style="max-width:60em">{"".join(parts)}</div>'


def _audit(audit: Mapping[str, Any], logged: Mapping[str, Any] | None) -> str:
    """What was computed, when and how; files and columns are folded."""
    said = f"discount {audit['discount']}, {audit['confidence']:.0%} intervals of episodes,"
    said += f" {audit['episodes']:,} episodes, seed {audit['seed']}, o2td {audit['version']},"
    said += f" {audit['date']}"
    if logged and logged.get("value") is not None:
        value = f"{shown(logged)} {interval(logged)}"
        said += f"; the policy that made the log is worth {value}"
    facts = [
        f"{one['name']}: {one['rows']} rows, SHA-256 {one['sha256']}" for one in audit["files"]
    ]
    facts += [
        f"{role}: {names if isinstance(names, str) else ', '.join(names)}"
        for role, names in audit["columns"].items()
    ]
    items = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
    more = f"<details><summary>Files and columns</summary><ul>{items}</ul></details>"
    return f'<div style="opacity:.7"><p>{escape(said)}</p>{more}</div>'


def _badge(verdict: str) -> str:
    """A verdict on its colour."""
    colour = _COLOURS.get(TONES.get(verdict, ""), "#4d4d4d")
    style = f"background:{colour};color:#fff;border-radius:4px;padding:.1em .5em;white-space:nowrap"
    return f'<span style="{style}">{escape(verdict)}</span>'


def _picture(rows: Sequence[Mapping[str, Any]], said: str, kind: str, line: float | None) -> str:
    """Estimates or differences as a picture; empty if there are none."""
    if not any(row["value"] is not None for row in rows):
        return ""
    try:
        with styled():
            picture = draw_estimates(rows) if line is None else draw_estimates(rows, kind, line)
    except O2TDError:  # matplotlib is not installed: the table says the same
        return ""
    return _image(picture, said)


def _first_steps(rows: Sequence[Mapping[str, Any]], series: Mapping[str, Any]) -> str:
    """What the target earns over the first steps, folded."""
    try:
        with styled():
            made = earned_picture(series, rows[0]["value"] if rows else None)
    except O2TDError:
        return ""
    if made is None:
        return ""
    shown = f"{_image(made.data, made.alt)}<p>{escape(made.caption)}</p>"
    return f"<details><summary>{made.alt}</summary>{shown}</details>"


def _image(picture: bytes, said: str) -> str:
    data = base64.b64encode(picture).decode()
    style = "background:#fff;max-width:100%;width:36em;border-radius:6px"
    return f'<img alt="{said}" style="{style}" src="data:image/svg+xml;base64,{data}">'


def _table(rows: Sequence[Mapping[str, Any]], kind: str) -> str:
    """Estimates or differences as a table."""
    sides = ["left", *["right"] * 4, "left"]
    heads = "".join(
        f'<th style="{_CELL.format(side)}">{head}</th>'
        for head, side in zip((kind, *_HEADS), sides, strict=True)
    )
    body = []
    for row in rows:
        cells = [escape(estimate_name(row))]
        cells += [shown(row, name) for name in ("value", "low", "high")]
        cells += [number(row["approximation_error"], 2), _badge(str(row["verdict"]))]
        made = zip(cells, sides, strict=True)
        body.append("".join(f'<td style="{_CELL.format(side)}">{cell}</td>' for cell, side in made))
    lines = "".join(f'<tr style="background:none">{cells}</tr>' for cells in body)
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums"
    return f'<table style="{style}"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>'
