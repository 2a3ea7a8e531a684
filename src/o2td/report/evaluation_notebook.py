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
from o2td.report.drawing import styled, svg
from o2td.report.evaluation import TONES, conclusion, estimate_name
from o2td.report.evaluation_figures import draw_estimates, estimates_figure
from o2td.report.evaluation_sections import earned_picture
from o2td.report.statistics import number

__all__ = ["badge_html", "notebook_block", "notebook_html", "picture_html", "table_html"]

_COLOURS = {"good": "#0b6b4b", "mixed": "#8a5d00", "bad": "#9c2a10"}
_HEADS = ("method", "value", "low", "high", "approximation error", "verdict")
_CELL = "padding:.2em .8em .2em 0;text-align:{};border:none"


def notebook_html(answer: Mapping[str, Any], series: Mapping[str, Any]) -> str:
    """The answer as an HTML fragment; `series` are the numbers behind the page's figures."""
    verdict, rows = str(answer["verdict"]), answer["estimates"]
    parts = [f"<p>{badge_html(verdict)} {escape(conclusion(answer))}</p>"]
    if answer["reasons"]:
        items = "".join(f"<li>{escape(str(reason))}</li>" for reason in answer["reasons"])
        parts.append(f"<ul>{items}</ul>")
    said = "Estimates with their intervals, one line per method"
    parts += [picture_html(rows, said), table_html(rows), _first_steps(rows, series)]
    return notebook_block(parts, answer)


def notebook_block(parts: Sequence[str], answer: Mapping[str, Any]) -> str:
    """HTML fragments, and below them how everything was computed."""
    below = _audit(answer["audit"], answer["logged"])
    return f'<div style="max-width:60em">{"".join(parts)}{below}</div>'


def _audit(audit: Mapping[str, Any], logged: Mapping[str, Any] | None) -> str:
    """What was computed, when and how; files and columns are folded."""
    said = f"discount {audit['discount']}, {audit['confidence']:.0%} intervals of episodes,"
    said += f" {audit['episodes']:,} episodes, seed {audit['seed']}, o2td {audit['version']},"
    said += f" {audit['date']}"
    if logged and logged.get("value") is not None:
        value, low, high = (number(logged[name], 4) for name in ("value", "low", "high"))
        said += f"; the policy that made the log is worth {value} [{low}, {high}]"
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


def badge_html(verdict: str) -> str:
    """A verdict on its colour."""
    colour = _COLOURS.get(TONES.get(verdict, ""), "#4d4d4d")
    style = f"background:{colour};color:#fff;border-radius:4px;padding:.1em .5em;white-space:nowrap"
    return f'<span style="{style}">{escape(verdict)}</span>'


def picture_html(
    rows: Sequence[Mapping[str, Any]], said: str, x: str | None = None, line: float | None = None
) -> str:
    """Estimates or differences as a picture; empty if there are none."""
    if not any(row["value"] is not None for row in rows):
        return ""
    try:
        with styled():
            picture = (
                draw_estimates(rows) if x is None else svg(estimates_figure(_able(rows), x, line))
            )
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


def _able(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["value"] is not None]


def table_html(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = _HEADS) -> str:
    """Estimates or differences as a table."""
    sides = ["left", *["right"] * 4, "left"]
    heads = "".join(
        f'<th style="{_CELL.format(side)}">{head}</th>'
        for head, side in zip(names, sides, strict=True)
    )
    body = []
    for row in rows:
        cells = [escape(estimate_name(row))]
        cells += [number(row[name], 4) for name in ("value", "low", "high")]
        cells += [number(row["approximation_error"], 2), badge_html(str(row["verdict"]))]
        made = zip(cells, sides, strict=True)
        body.append("".join(f'<td style="{_CELL.format(side)}">{cell}</td>' for cell, side in made))
    lines = "".join(f'<tr style="background:none">{cells}</tr>' for cells in body)
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums"
    return f'<table style="{style}"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>'
