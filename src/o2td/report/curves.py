"""Error over a run: panels side by side with one axis per metric, and final errors as rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.arrays import Floats
from o2td.report.drawing import WIDTH, Folder, figure, log_ticks, svg, tidy
from o2td.report.statistics import number, percent
from o2td.report.style import Look, looks, pretty, settings
from o2td.report.truth_error import noise

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS = {
    "rmse": "RMSE of the value",
    "rmspbe": "RMSPBE",
    "rmsbe": "RMSBE",
    "mse": "MSE of the value",
    "mspbe": "MSPBE",
    "theta_norm": "‖θ−θ*‖₂",
    "theta_max": "‖θ−θ*‖∞",
}
_LONG = 34  # with longer labels a legend has one column
_COVERED = 0.01  # curves closer than this everywhere look like one line


class Panel:
    """One column of a figure: a title and the curves of one case at one choice of settings.

    Labels show the step sizes of a method or, with `every`, all of its settings.
    """

    def __init__(
        self, title: str, table: pl.DataFrame, x: str = "step", every: bool = False
    ) -> None:
        self.title, self.table, self.x, self.every = title, table, x, every

    @property
    def metrics(self) -> list[str]:
        """The errors recorded, in the order of the records."""
        found: list[str] = self.table["metric"].unique(maintain_order=True).to_list()
        return found

    def lines(self) -> list[tuple[str, str]]:
        """Algorithms with their parameters, in the order of the records."""
        keys = self.table.select("algorithm", "parameters").unique(maintain_order=True)
        return [(row[0], row[1]) for row in keys.iter_rows()]

    def label(self, algorithm: str, parameters: str) -> str:
        """Name, settings, a curve that covers it, and how many runs diverged."""
        sizes = settings(parameters, self.every)
        text = pretty(algorithm) + (f", {sizes}" if sizes else "")
        if above := self.hidden.get((algorithm, parameters)):
            text += f" (under {pretty(above)})"
        rows = self.table.filter(algorithm=algorithm, parameters=parameters)
        if "diverged_runs" in rows.columns and rows["diverged_runs"][0]:
            runs, first = rows["diverged_runs"][0], rows["first_diverged"][0]
            text += f" ({runs} of {rows['runs'][0]} runs diverged, first at {first})"
        return text

    @cached_property
    def hidden(self) -> dict[tuple[str, str], str]:
        """Curves that another, drawn later, covers everywhere, with that algorithm."""
        lines = self.lines()
        means = [
            self.table.filter(algorithm=a, parameters=p).sort("metric", "step")["mean"].to_numpy()
            for a, p in lines
        ]
        return {lines[k]: lines[j][0] for k, j in covered(means).items()}

    def noise(self, metric: str) -> float | None:
        """The standard error of the true values behind a metric; None if they are exact."""
        return noise(self.table, metric)


def covered(curves: Sequence[Floats]) -> dict[int, int]:
    """The numbers of curves that look the same as a later one everywhere, each with the last such.

    >>> covered([np.array([1.0, 2.0]), np.array([3.0, 2.0]), np.array([1.001, 2.0])])
    {0: 2}
    """
    return {
        k: j
        for k, one in enumerate(curves)
        for j, other in enumerate(curves)
        if j > k
        and len(one) == len(other) > 1
        and np.allclose(one, other, rtol=_COVERED, equal_nan=True)
    }


def draw_columns(
    folder: Folder, name: str, panels: Sequence[Panel], log_x: bool = False
) -> list[bytes]:
    """Save all panels side by side as one figure; return each as a separate picture."""
    folder.save(columns(panels, log_x), name)
    limits = _all_limits(panels)
    pictures = []
    for panel in panels:
        alone = figure(WIDTH, _height(panel))
        _draw(alone, panel, limits, log_x)
        pictures.append(svg(alone))
    return pictures


def columns(panels: Sequence[Panel], log_x: bool = False) -> Figure:
    """All panels side by side, as one figure."""
    limits = _all_limits(panels)
    together = figure(WIDTH * len(panels), max(_height(panel) for panel in panels))
    parts: Any = together.subfigures(1, len(panels), squeeze=False, wspace=0.03)
    for holder, panel in zip(parts[0], panels, strict=True):
        _draw(holder, panel, limits, log_x)
    return together


def _all_limits(panels: Sequence[Panel]) -> dict[str, tuple[float, float]]:
    """The same axis for a metric in all panels."""
    metrics = dict.fromkeys(metric for panel in panels for metric in panel.metrics)
    return {metric: _limits(panels, metric) for metric in metrics}


def _legend_columns(panel: Panel) -> int:
    longest = max(len(panel.label(*line)) for line in panel.lines())
    return 1 if longest > _LONG else 2


def _height(panel: Panel) -> float:
    rows = _legend_rows(panel)
    return float(0.4 + _axes_height(panel) * len(panel.metrics) + 0.19 * rows)


def _legend_rows(panel: Panel) -> float:
    entries = len(panel.lines()) + any(bool(panel.noise(metric)) for metric in panel.metrics)
    return float(np.ceil(entries / _legend_columns(panel)))


def _axes_height(panel: Panel) -> float:
    return 2.8 if len(panel.metrics) == 1 else 2.0


def _draw(holder: Any, panel: Panel, limits: dict[str, Any], log_x: bool) -> None:
    """Axes for every metric, one below the other, and the legend below them."""
    metrics = panel.metrics
    heights = [*([_axes_height(panel)] * len(metrics)), 0.19 * _legend_rows(panel)]
    grid = holder.add_gridspec(len(metrics) + 1, 1, height_ratios=heights)
    styles = looks(algorithm for algorithm, _ in panel.lines())
    first: Axes | None = None
    handles: dict[str, Any] = {}
    for k, metric in enumerate(metrics):
        axes: Axes = holder.add_subplot(grid[k, 0], sharex=first)
        first = first or axes
        last = k == len(metrics) - 1
        tidy(
            axes,
            x=("rows" if panel.x == "n" else "steps") if last else "",
            y=METRICS.get(metric, metric),
            title=panel.title if k == 0 else "",
        )
        axes.tick_params(labelbottom=last)
        axes.set_yscale("log")
        if log_x:
            axes.set_xscale("log")
        else:
            axes.xaxis.set_major_formatter("{x:,.0f}")
        for position, line in enumerate(panel.lines()):
            _line(axes, panel, metric, line, position, styles[line[0]], limits[metric][1])
        low, high = limits[metric]
        if size := panel.noise(metric):
            _band(axes, size, low)
        axes.set_ylim(low, high)
        log_ticks(axes.yaxis, low, high)
        found, labels = axes.get_legend_handles_labels()
        handles = dict(zip(labels, found, strict=True)) | handles
    legend: Axes = holder.add_subplot(grid[len(metrics), 0])
    legend.axis("off")
    legend.legend(
        handles.values(),
        handles.keys(),
        loc="upper center",
        ncols=_legend_columns(panel),
        frameon=False,
        borderaxespad=0.0,
        columnspacing=1.2,
        handlelength=2.6,
        labelspacing=0.3,
    )


def _band(axes: Axes, size: float, low: float) -> None:
    """Shade errors below the standard error of the true values, which cannot be judged."""
    label = f"standard error of V, {number(size)}"
    if size <= low:
        axes.annotate(
            f"{label}: below the axis",
            (0.01, 0.02),
            xycoords="axes fraction",
            fontsize=7,
            color="#5a626b",
        )
        return
    shade: dict[str, Any] = {
        "facecolor": "#f2f2f2",
        "edgecolor": "#c4c4c4",
        "hatch": "////",
        "linewidth": 0,
    }
    axes.axhspan(low, size, label=label, **shade)
    axes.axhline(size, color="#808080", linewidth=0.8)


def _line(
    axes: Axes,
    panel: Panel,
    metric: str,
    line: tuple[str, str],
    position: int,
    style: Look,
    most: float,
) -> None:
    """The mean, and its interval where the mean is visible: at most `most`."""
    rows = panel.table.filter(metric=metric, algorithm=line[0], parameters=line[1]).sort("step")
    x, mean, low, high = (rows[c].to_numpy() for c in ("step", "mean", "low", "high"))
    mean, low, high = (np.where(np.isfinite(v), v, np.nan) for v in (mean, low, high))
    every = max(1, len(x) // 6)  # points from marker to marker
    axes.plot(
        x,
        mean,
        color=style.colour,
        linestyle=style.dash,
        marker=style.marker,
        markevery=(position * max(1, len(x) // 40) % every, every),
        label=panel.label(*line),
    )
    # A log axis cannot show an interval that reaches zero: there it is mirrored at the mean.
    with np.errstate(divide="ignore", invalid="ignore"):
        mirrored = mean * (mean / high)
    axes.fill_between(
        x,
        np.fmax(low, mirrored),
        high,
        where=mean <= most,
        color=style.colour,
        alpha=0.15,
        linewidth=0,
    )


def _limits(panels: Sequence[Panel], metric: str) -> tuple[float, float]:
    """From the least mean to ten times the typical first error; what diverges leaves the view."""
    means, firsts = [], []
    for panel in panels:
        for line in panel.lines():
            rows = panel.table.filter(metric=metric, algorithm=line[0], parameters=line[1]).sort(
                "step"
            )
            values = rows["mean"].to_numpy()
            values = values[np.isfinite(values) & (values > 0)]
            means.extend(values.tolist())
            firsts.extend(values[:1].tolist())
    if not means:
        return 1e-3, 1.0
    # Solvers peak where there are as many rows as features; that peak is worth seeing.
    most = 1000.0 if panels[0].x == "n" else 10.0
    high = min(max(means), most * float(np.median(firsts)))
    low = max(min(means), high * 1e-6)
    size = max((panel.noise(metric) or 0.0) for panel in panels)
    if low / 3.0 < size:  # near enough to the curves to matter: show some of the range below it
        low = min(low, size / 1.5)
    return low / 1.3, max(high, low) * 1.3


def final_rows(panel: Panel, edge: Collection[str] = ()) -> list[list[str]]:
    """Rows of a table: each method, its step sizes, final errors by metric, and diverged runs.

    Below them the standard error of the true values, if these are from roll-outs.
    """
    rows = []
    for algorithm, parameters in panel.lines():
        own = panel.table.filter(algorithm=algorithm, parameters=parameters)
        edge_of = " (edge of the grid)" if f"{algorithm} {parameters}" in edge else ""
        none = "defaults" if panel.every else "–"
        cells = [pretty(algorithm), (settings(parameters, panel.every) or none) + edge_of]
        for metric in panel.metrics:
            last = own.filter(metric=metric).sort("step").row(-1, named=True)
            low = max(last["low"], 0.0)  # an error is never negative, whatever the interval says
            cells.append(f"{number(last['mean'])} [{number(low)}, {number(last['high'])}]")
        runs = own["runs"][0]
        gone = own["diverged_runs"][0] if "diverged_runs" in own.columns else 0
        when = f", first at step {own['first_diverged'][0]}" if gone else ""
        cells.append(f"{percent(gone / runs)} of {runs}{when}")
        rows.append(cells)
    sizes = [panel.noise(metric) for metric in panel.metrics]
    if any(size is not None for size in sizes):
        rows.append(["standard error of V", "–", *(number(size) for size in sizes), "–"])
    return rows
