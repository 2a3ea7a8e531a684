"""What pages about logs share: verdicts, intervals and sentences, and their optional sections."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np

from o2td.documents import fixed, places
from o2td.report.evaluation_figures import draw_earned
from o2td.report.page import Badge, Callout, Items, Picture, Section, Table, Text
from o2td.report.statistics import number

_DECIMALS = 6  # smaller widths need an exponent
LINES = "Line: the interval. Pale: plus the approximation error. Arrows point to values beyond the edge."
TONES = {"trust": "good", "caution": "mixed", "cannot answer": "bad"}


def badge(verdict: str) -> Badge:
    """A verdict on its colour."""
    return Badge(verdict, TONES.get(verdict, "plain"))


def shown(row: Mapping[str, Any], name: str = "value") -> str:
    """A number of a row, with the decimals that the width of its interval needs.

    >>> shown({"value": 0.03583, "low": -0.006178, "high": 0.07163}, "low")
    '−0.0062'
    """
    value, decimals = row[name], places(row)
    if value is None or abs(value) >= 1e6 or decimals > _DECIMALS:
        return number(value, 4)
    return fixed(value, decimals).replace("-", "−")


def interval(row: Mapping[str, Any], low: str = "low", high: str = "high") -> str:
    """The ends of an interval in brackets."""
    return f"[{shown(row, low)}, {shown(row, high)}]"


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    end = "" if text.endswith((".", "?", "!")) else "."
    return text[:1].upper() + text[1:] + end


def verdict_section(
    answer: Mapping[str, Any], said: Mapping[str, str], *conclusions: str
) -> Section:
    """The verdict in the words of `said`, the conclusions from it, and its reasons."""
    verdict = str(answer["verdict"])
    made = Section("verdict", "Verdict")
    made.add(Callout(said.get(verdict, verdict), TONES.get(verdict, "plain")))
    sentences = [*conclusions, *map(sentence, answer["reasons"])]
    return made.add(Items(sentences)) if sentences else made


def segments_section(answer: Mapping[str, Any]) -> list[Section]:
    """The value by segment of start states."""
    rows = answer.get("segments") or ()
    if not rows:
        return []
    made = Section("segments", "By segment of start states")
    made.add(Text("All rows of the log count for each segment; only the start states are its own."))
    columns = ["segment", "starts", "value", "interval", "approximation error", "verdict", "why"]
    body = [
        (
            str(row["segment"]).replace("`", "'"),
            f"{row['starts']:,}",
            shown(row),
            interval(row),
            number(row["approximation_error"], 2),
            badge(row["verdict"]),
            "; ".join(row["reasons"]) or "–",
        )
        for row in rows
    ]
    return [made.add(Table(columns, body, numbers=columns[1:5], stack=True, caption="Segments"))]


def earned_picture(series: Mapping[str, Any], whole: float | None) -> Picture | None:
    """What the target earns over the first steps, if weights reach beyond the first."""
    horizon = series.get("horizon") or {}
    value = np.asarray(horizon.get("value", ()), dtype=np.float64)
    told = np.isfinite(value)
    if np.count_nonzero(told) < 2:
        return None
    step = np.asarray(horizon["step"])[told]
    return Picture(
        draw_earned(step.tolist(), value[told].tolist(), whole),
        "Value over the first steps",
        "What the target earns over the first steps, by weighted histories, while they keep ten"
        " effective episodes; dashed: the recommended estimate over all steps.",
    )


def own_values_section(answer: Mapping[str, Any]) -> list[Section]:
    """A value model that was given, by itself and corrected."""
    found = answer["diagnostics"].get("value_model")
    if not found:
        return []
    return [Section("value-model", "The value model given").add(Text(found["said"]))]


def more_episodes(answer: Mapping[str, Any]) -> list[Section]:
    """How many more episodes would narrow the interval, from the measured influence of episodes."""
    best = answer["estimates"][0] if answer["estimates"] else None
    if best is None or best["low"] is None or best["high"] is None:
        return []
    half, count = (best["high"] - best["low"]) / 2.0, int(answer["diagnostics"]["episodes"])
    if not half > 0.0 or answer["verdict"] == "cannot answer":
        return []
    rows = [
        (f"the value to ±{number(half / by, 2)}", f"{count * (by * by - 1):,}") for by in (2, 4)
    ]
    lift = answer.get("lift")
    if lift and lift["value"] and lift["low"] is not None and lift["low"] < 0.0 < lift["high"]:
        by = (lift["high"] - lift["low"]) / 2.0 / abs(lift["value"])
        rows.append(("whether the lift is above 0", f"{ceil(count * (by * by - 1.0)):,}"))
    said = "Intervals shrink with the root of the number of episodes. What features get wrong does not."
    heads = ["to tell", "more episodes (about)"]
    made = Section("more", "How many more episodes?")
    return [made.add(Text(said), Table(heads, rows, numbers=heads[1:]))]
