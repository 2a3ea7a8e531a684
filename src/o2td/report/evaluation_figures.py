"""Figures of an evaluation from logs, each from plain numbers, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.errors import InputError, import_extra
from o2td.report.drawing import WIDTH, figure, svg, tidy
from o2td.report.style import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TONES = {"trust": "#0b6b4b", "caution": "#b07800", "cannot answer": "#9c2a10"}
_MARKS = {"trust": "o", "caution": "D", "cannot answer": "X"}
_WIDE = 8.0  # an interval this many times wider than the narrowest is cut at the edge
_END = 20  # characters shown of either end of a long name
_LINE = 26  # characters of a name on one line
_VALUE = "value of the target policy from the start states"
Row = Mapping[str, Any]


def draw_estimates(rows: Sequence[Row], x: str = _VALUE, line: float | None = None) -> bytes:
    """`estimates_figure` as SVG."""
    return svg(estimates_figure(rows, x, line))


def estimates_figure(rows: Sequence[Row], x: str = _VALUE, line: float | None = None) -> Figure:
    """One line per estimate: value, interval, and around it the approximation error.

    `line` is the reference value; by default the first estimate.
    """
    rows = [row for row in rows if row["value"] is not None]
    if not rows:
        raise InputError("plot: no estimate has a value; print the answer to see why")
    names = [plain_title(row) for row in rows]
    made = figure(WIDTH, 1.0 + 0.24 * (len(rows) + sum("\n" in name for name in names) / 3))
    axes: Axes = made.subplots()
    tidy(axes, x=x)
    low, high = _range(rows)
    if line is not None:
        margin = 0.03 * (high - low)
        low, high = min(low, line - margin), max(high, line + margin)
    for place, row in enumerate(rows):
        colour = _TONES.get(row["verdict"], "#4d4d4d")
        left, right = _ends(row)
        extra = row["approximation_error"] or 0.0
        reach = [left - extra, right + extra]
        # Round ends would widen the interval.
        drawn: dict[str, Any] = {"color": colour, "solid_capstyle": "butt"}
        axes.plot(reach, [place] * 2, linewidth=6.0, alpha=0.25, zorder=1, **drawn)
        axes.plot([left, right], [place] * 2, linewidth=2.0, zorder=2, **drawn)
        inside = min(max(row["value"], low), high)
        mark = _MARKS.get(row["verdict"], "o")
        if inside != row["value"]:
            mark = ">" if row["value"] > high else "<"
        axes.plot(inside, place, marker=mark, color=colour, ms=6, clip_on=False)
    for verdict, colour in _TONES.items():
        if any(row["verdict"] == verdict for row in rows):
            mark = _MARKS[verdict]
            axes.plot([], [], color=colour, marker=mark, linestyle="none", label=verdict)
    by = rows[0]["value"] if line is None else line
    axes.axvline(by, color="#8a939c", linewidth=0.8, zorder=0)
    axes.set_xlim(low, high)
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    return made


def _ends(row: Row) -> tuple[float, float]:
    low, high = row["low"], row["high"]
    return (
        -np.inf if low is None else float(low),
        np.inf if high is None else float(high),
    )


def _range(rows: Sequence[Row]) -> tuple[float, float]:
    """Limits of the axis: intervals of usable estimates, except far wider and unbounded ones."""
    able = [row for row in rows if row["verdict"] != "cannot answer"] or rows
    spans = [(*_ends(row), row["approximation_error"] or 0.0) for row in able]
    widths = [high - low for low, high, _ in spans if 0.0 < high - low < np.inf]
    limit = _WIDE * min(widths) if widths else 0.0
    shown = [span for span in spans if span[1] - span[0] <= limit] or [
        (float(row["value"]), float(row["value"]), 0.0) for row in able
    ]
    low = min(left - extra for left, _, extra in shown)
    high = max(right + extra for _, right, extra in shown)
    margin = 0.05 * (high - low) or 0.05 * max(abs(high), 1e-9)
    return low - margin, high + margin


def draw_horizon(step: Sequence[int], size: Sequence[float], episodes: int) -> bytes:
    """Effective number of episodes against the length of the history that is weighted."""
    made = figure(WIDTH, 2.9)
    axes: Axes = made.subplots()
    tidy(axes, x="step of the episode", y="effective episodes")
    floor = 0.5
    axes.plot(step, np.maximum(size, floor), color="#0072b2")
    axes.axhline(episodes, color="#4d4d4d", linestyle="--", linewidth=0.9)
    _beside(axes, f"{episodes} logged", episodes, "#4d4d4d")
    axes.axhline(10, color="#9c2a10", linestyle=":", linewidth=0.9)
    _beside(axes, "10: too few", 10, "#9c2a10")
    axes.set_yscale("log")
    axes.set_ylim(floor, 2.5 * max(episodes, 10))
    _steps(axes, len(step))
    return svg(made)


def draw_earned(step: Sequence[int], value: Sequence[float], whole: float | None) -> bytes:
    """What the target earns over the first steps; dashed: the estimate over all of them."""
    made = figure(WIDTH, 2.9)
    axes: Axes = made.subplots()
    tidy(axes, x="number of steps", y="value over the first steps")
    axes.plot(step, value, color="#0072b2", marker="." if len(step) < 20 else "")
    if whole is not None:
        axes.axhline(whole, color="#4d4d4d", linestyle="--", linewidth=0.9)
    _steps(axes, len(step))
    return svg(made)


def _steps(axes: Axes, count: int) -> None:
    """An axis of steps: whole numbers, or a logarithmic scale if there are many."""
    if count > 50:
        axes.set_xscale("log")
    else:
        ticker = import_extra("matplotlib.ticker", extra="plot")
        axes.xaxis.set_major_locator(ticker.MaxNLocator("auto", integer=True))


def _beside(axes: Axes, text: str, level: float, colour: str) -> None:
    """Label a level at its right end, since curves start on the left."""
    place = ("axes fraction", "data")
    axes.annotate(
        text, (0.99, level), xycoords=place, fontsize=8, va="bottom", ha="right", color=colour
    )


def draw_weights(weights: Sequence[float], shape: float | None) -> bytes:
    """The largest weights of whole episodes by rank, as shares of the sum of all."""
    made = figure(WIDTH, 2.9)
    axes: Axes = made.subplots()
    tidy(axes, x="rank of the episode, heaviest first", y="share of all weight")
    rank = np.arange(1, len(weights) + 1)
    axes.plot(rank, np.maximum(weights, 1e-12), color="#d55e00", marker=".", markersize=3)
    if shape is not None:
        axes.annotate(
            f"Pareto shape of the tail {shape:.2f}",
            (0.97, 0.92),
            xycoords="axes fraction",
            ha="right",
            fontsize=8,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    return svg(made)


def draw_curves(
    curves: Mapping[str, Row], reference: float | None, titles: Mapping[str, str]
) -> bytes:
    """The online learners' estimates by rows seen, with the recommended one as a line."""
    made = figure(WIDTH, 2.9)
    axes: Axes = made.subplots()
    tidy(axes, x="rows seen", y="estimate")
    every: list[float] = []
    for method, curve in curves.items():
        style = look(method.upper())
        values = np.array([np.nan if v is None else v for v in curve["value"]], dtype=float)
        axes.plot(
            curve["rows"],
            values,
            color=style.colour,
            linestyle=style.dash,
            label=titles.get(method, method),
        )
        every += values[len(values) // 4 :][np.isfinite(values[len(values) // 4 :])].tolist()
    if reference is not None:
        axes.axhline(reference, color="#4d4d4d", linestyle="--", linewidth=0.9)
        every.append(reference)
    if every:
        axes.set_ylim(*_body(np.array(every), every[-1]))
    axes.legend(frameon=False)
    return svg(made)


def _body(values: Any, center: float) -> tuple[float, float]:
    """The range of the values without diverged ones."""
    apart = np.abs(values - center)
    near = values[apart <= 20.0 * np.median(apart) + 1e-12]
    low, high = float(near.min()), float(near.max())
    margin = 0.1 * (high - low) or 0.1 * max(abs(high), 1e-9)
    return low - margin, high + margin


def draw_calibration(predicted: Sequence[float], observed: Sequence[float], count: Any) -> bytes:
    """Observed against predicted frequency of the logged actions, area by rows."""
    made = figure(0.8 * WIDTH, 2.9)
    axes: Axes = made.subplots()
    tidy(axes, x="predicted probability of the action", y="observed frequency")
    axes.plot([0, 1], [0, 1], color="#8a939c", linewidth=0.8)
    share = np.asarray(count, dtype=float) / max(1.0, float(np.sum(count)))
    axes.scatter(predicted, observed, s=20.0 + 300.0 * share, color="#0072b2", alpha=0.75)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    return svg(made)


def plain_title(row: Row) -> str:
    """A method's name as readers write it; a dollar sign in it does not start mathematics.

    A long name is on two lines, a very long one is also cut in the middle.
    """
    name = str(row.get("title") or row["method"])
    if len(name) > 2 * _END + 3:
        name = f"{name[:_END]} … {name[-_END:]}"
    if len(name) > _LINE:
        name = fill(name, max(_LINE, len(name) // 2 + 3), max_lines=2)
    return name.replace("$", r"\$")
