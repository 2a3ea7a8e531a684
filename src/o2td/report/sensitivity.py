"""Error against a parameter, and above it the share of runs that diverged at each value."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.report.curves import METRICS, covered
from o2td.report.drawing import WIDTH, figure, log_ticks, tidy
from o2td.report.ranking import shares
from o2td.report.style import looks, pretty, setting, symbol

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Titled = tuple[str, "pl.DataFrame", str]  # a title, scores, and the parameter that varies
Lines = dict[str, dict[float, dict[str, Any]]]  # by method and value of the parameter
Limits = tuple[float, float] | None


def varied(table: pl.DataFrame) -> list[str]:
    """The numeric parameters with several values for some method in a table, step sizes first."""
    found = []
    texts = table["parameters"].unique(maintain_order=True).to_list()
    names = dict.fromkeys(name for text in texts for name in json.loads(text))
    for name in names:
        for algorithm in table["algorithm"].unique().to_list():
            own = table.filter(algorithm=algorithm)["parameters"].unique().to_list()
            values = {setting(text, name) for text in own} - {None}
            if len(values) > 1:
                found.append(name)
                break
    return sorted(found, key=lambda name: name != "step_size")


def sensitivity_figure(panels: Sequence[Titled]) -> Figure:
    """Titles, tables of scores and the parameter of each, side by side.

    A line is a method with its other parameters at their best. A crowded panel is split into
    several with the same axis.
    """
    found = _split(panels)
    rows = _rows(found)
    made = figure(WIDTH * len(found), 4.2 + 0.19 * rows)
    parts: Any = made.subfigures(1, len(found), squeeze=False, wspace=0.03)
    for holder, (panel, lines, limits) in zip(parts[0], found, strict=True):
        _panel(holder, *panel, lines, limits, 0.19 * rows)
    return made


def sensitivity_panels(panels: Sequence[Titled]) -> list[Figure]:
    """The panels of :func:`sensitivity_figure`, each as a figure of its own."""
    found = _split(panels)
    rows = _rows(found)
    alone = []
    for panel, lines, limits in found:
        alone.append(figure(WIDTH, 4.2 + 0.19 * rows))
        _panel(alone[-1], *panel, lines, limits, 0.19 * rows)
    return alone


def _split(panels: Sequence[Titled]) -> list[tuple[Titled, Lines, Limits]]:
    return [
        (panel, lines, _limits(_lines(*panel[1:])))
        for panel in panels
        for lines in _shared(_lines(*panel[1:]))
    ]


def _rows(found: list[tuple[Titled, Lines, Limits]]) -> float:
    """The rows of the longest legend."""
    return float(np.ceil(max(len(lines) for _, lines, _ in found) / 2))


def _lines(table: pl.DataFrame, parameter: str) -> Lines:
    least = 0 if parameter == "step_size" else 1
    return {
        name: own
        for name in table["algorithm"].unique(maintain_order=True).to_list()
        if len(own := best_by(table.filter(algorithm=name), parameter)) > least
    }


def _shared(lines: Lines) -> list[Lines]:
    """The lines of each panel."""
    names = list(lines)
    return [{name: lines[name] for name in names[first:last]} for first, last in shares(len(names))]


def _panel(
    holder: Any,
    title: str,
    table: pl.DataFrame,
    parameter: str,
    lines: Lines,
    limits: Limits,
    height: float,
) -> None:
    grid = holder.add_gridspec(3, 1, height_ratios=[0.9, 2.6, height])
    share: Axes = holder.add_subplot(grid[0, 0])
    error: Axes = holder.add_subplot(grid[1, 0], sharex=share)
    metric = METRICS.get(table["metric"][0], table["metric"][0])
    how = "mean over the run" if table["score"][0] == "area" else "at the end"
    tidy(share, y="diverged", title=title)
    what = "step size α" if parameter == "step_size" else symbol(parameter)
    tidy(error, x=f"{what} (other parameters at their best)", y=f"{metric}, {how}")
    share.set_yticks([0.0, 0.5, 1.0], ["0 %", "50 %", "100 %"])
    share.set_ylim(-0.08, 1.08)
    share.tick_params(labelbottom=False)
    values = sorted(value for own in lines.values() for value in own)
    if values and values[0] > 0 and values[-1] >= 10 * values[0]:
        error.set_xscale("log")
        log_ticks(error.xaxis, values[0], values[-1])
    error.set_yscale("log")
    _draw(share, error, lines, np.inf if limits is None else limits[1])
    if limits is not None:
        error.set_ylim(*limits)
        log_ticks(error.yaxis, *limits)
    legend: Axes = holder.add_subplot(grid[2, 0])
    legend.axis("off")
    legend.legend(
        *error.get_legend_handles_labels(),
        loc="upper center",
        ncols=2,
        frameon=False,
        borderaxespad=0.0,
        labelspacing=0.3,
    )


def _draw(share: Axes, error: Axes, lines: Lines, top: float) -> None:
    """Draw every method's line, and say which one covers another below the top."""
    styles, names = looks(lines), [*lines]
    above = covered([np.minimum(_errors(own), top) for own in lines.values()])
    for k, (algorithm, own) in enumerate(lines.items()):
        style = styles[algorithm]
        line: dict[str, Any] = {
            "color": style.colour,
            "linestyle": style.dash,
            "marker": style.marker,
        }
        under = f" (under {pretty(names[above[k]])})" if k in above else ""
        share.plot([*own], [row["diverged_share"] for row in own.values()], **line)
        error.plot([*own], _errors(own), label=pretty(algorithm) + under, **line)


def _errors(own: dict[float, dict[str, Any]]) -> list[float]:
    """The error at every value; none if a run diverged."""
    return [row["mean"] if row["diverged_share"] == 0 else np.nan for row in own.values()]


def _limits(lines: Lines) -> Limits:
    """Limits of the error axis; what diverges leaves the view."""
    finite = [[v for v in _errors(own) if np.isfinite(v)] for own in lines.values()]
    seen = [value for own in finite for value in own]
    if not seen or min(seen) <= 0:
        return None
    first = float(np.median([own[0] for own in finite if own]))
    return min(seen) / 1.3, 1.3 * min(max(seen), 10.0 * first)


def best_by(rows: pl.DataFrame, parameter: str = "step_size") -> dict[float, dict[str, Any]]:
    """One row per value of `parameter`, with the other settings that have the fewest diverged runs.

    Among equals the least error decides.
    """
    found: dict[float, dict[str, Any]] = {}
    for row in rows.iter_rows(named=True):
        value = setting(row["parameters"], parameter)
        if value is None:
            continue
        rank = (row["diverged_share"], row["mean"])
        if value not in found or rank < (found[value]["diverged_share"], found[value]["mean"]):
            found[value] = row
    return {value: found[value] for value in sorted(found)}


def at_the_edge(tried: pl.DataFrame) -> set[str]:
    """The chosen settings whose step size is the least or the largest that was tried."""
    found = set()
    for algorithm in tried["algorithm"].unique().to_list():
        own = tried.filter(algorithm=algorithm)
        sizes = [setting(text) for text in own["parameters"].to_list()]
        known = [value for value in sizes if value is not None]
        for text in own.filter(chosen=True)["parameters"].to_list():
            if len(set(known)) > 1 and setting(text) in (min(known), max(known)):
                found.add(f"{algorithm} {text}")
    return found
