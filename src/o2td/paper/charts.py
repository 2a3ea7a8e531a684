"""Figures beyond learning curves: distributions, shares, curves over lambda, ratios, geometry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.arrays import Floats
from o2td.errors import import_extra
from o2td.report.drawing import WIDTH, Folder, figure, svg, tidy
from o2td.report.statistics import ValueInterval
from o2td.report.style import look, pretty

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_spread(
    folder: Folder,
    name: str,
    title: str,
    x: str,
    rows: Mapping[str, Floats],
    notes: Mapping[str, str],
) -> bytes:
    """Median, middle half, 5-95 % and extremes of each method, the best median on top.

    `notes` are added to the names of some methods.
    """
    order = sorted(rows, key=lambda method: float(np.median(rows[method])))
    made = figure(WIDTH, 0.9 + 0.19 * len(order))
    axes: Axes = made.subplots()
    tidy(axes, x=x, title=title)
    axes.set_xscale("log")
    top = 1.5 * max(float(np.quantile(v[np.isfinite(v)], 0.95)) for v in rows.values() if len(v))
    for place, method in enumerate(order):
        values = np.where(np.isfinite(rows[method]), rows[method], np.inf)
        low, quarter, middle, upper, high = (
            min(float(q), top)
            for q in np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95], method="lower")
        )
        style = look(method)
        axes.plot([low, high], [place, place], color=style.colour, linewidth=1.0)
        axes.plot(
            [quarter, upper],
            [place, place],
            color=style.colour,
            linewidth=5.0,
            solid_capstyle="butt",
            alpha=0.55,
        )
        axes.plot(middle, place, marker="|", markersize=10, color="#000000", markeredgewidth=1.6)
        worst = float(values.max())
        if worst <= top:
            axes.plot(worst, place, marker=".", color=style.colour)
        else:
            axes.annotate(
                "▸", (top, place), ha="right", va="center", color=style.colour, fontsize=8
            )
    axes.set_xlim(0.99, top)
    _rows(axes, order, notes)
    _plain_ticks(axes.xaxis, top)
    return folder.save(made, name)


def draw_lambda(
    folder: Folder,
    name: str,
    title: str,
    curves: Mapping[str, tuple[Floats, Floats, Floats, Floats]],
) -> bytes:
    """Median over problems against lambda, with the middle half as a band."""
    made = figure(WIDTH, 3.4)
    axes: Axes = made.subplots()
    tidy(axes, x="λ", y="RMSE of the limit / best possible", title=title)
    axes.set_yscale("log")
    top = 1.0
    for method, (x, middle, low, high) in curves.items():
        style = look(method)
        axes.plot(
            x,
            middle,
            color=style.colour,
            linestyle=style.dash,
            marker=style.marker,
            label=pretty(method),
        )
        axes.fill_between(x, low, high, color=style.colour, alpha=0.12, linewidth=0)
        top = max(top, float(np.max(high)))
    axes.set_ylim(0.97, top * 1.1)
    _plain_ticks(axes.yaxis, top * 1.1)
    axes.legend(frameon=False, ncols=2)
    return folder.save(made, name)


def draw_shares(
    folder: Folder, name: str, title: str, groups: Mapping[str, Mapping[str, ValueInterval]]
) -> bytes:
    """Shares with intervals, one row per method, one marker per group."""
    methods = list(dict.fromkeys(method for group in groups.values() for method in group))
    worst = {m: max(g[m].value for g in groups.values() if m in g) for m in methods}
    order = sorted(methods, key=lambda method: worst[method])
    made = figure(WIDTH, 1.1 + 0.24 * len(order))
    axes: Axes = made.subplots()
    tidy(axes, x="share of problems with unstable mean dynamics (%)", title=title)
    for (group, shares), (marker, fill, shift) in zip(
        groups.items(), (("o", True, 0.16), ("s", False, -0.16)), strict=False
    ):
        for place, method in enumerate(order):
            if method not in shares:
                continue
            share, colour = shares[method], look(method).colour
            axes.errorbar(
                100 * share.value,
                place + shift,
                xerr=[[100 * (share.value - share.low)], [100 * (share.high - share.value)]],
                color=colour,
                marker=marker,
                markersize=5,
                capsize=2,
                linewidth=1.1,
                markerfacecolor=colour if fill else "#ffffff",
            )
        axes.plot(
            [],
            [],
            color="#4d4d4d",
            marker=marker,
            linestyle="none",
            label=group,
            markerfacecolor="#4d4d4d" if fill else "#ffffff",
        )
    axes.set_xlim(-1.5, 100.0 * min(1.0, max(worst.values()) * 1.15 + 0.05))
    axes.legend(frameon=False, loc="upper right")
    _rows(axes, order)
    return folder.save(made, name)


def draw_dots(
    folder: Folder, name: str, title: str, x: str, rows: Mapping[str, Mapping[str, float]]
) -> bytes:
    """One row per method in the order given, one marker per domain, at the error over the least."""
    domains = list(dict.fromkeys(domain for row in rows.values() for domain in row))
    order = list(rows)
    finite = [v for row in rows.values() for v in row.values() if np.isfinite(v)]
    top = min(100.0, max(finite) * 1.3)
    made = figure(WIDTH, 1.2 + 0.2 * len(order))
    grid: Any = made.add_gridspec(2, 1, height_ratios=[0.2 * len(order), 0.25])
    axes: Axes = made.add_subplot(grid[0, 0])
    tidy(axes, x=x, title=title)
    axes.set_xscale("log")
    shades = ("#0072b2", "#d55e00", "#009e73", "#aa4499")
    for (marker, colour), domain in zip(zip("osD^", shades, strict=True), domains, strict=False):
        inside = [(rows[m][domain], k) for k, m in enumerate(order) if domain in rows[m]]
        axes.plot(
            [min(v, top) for v, _ in inside],
            [k for _, k in inside],
            linestyle="none",
            marker=marker,
            color=colour,
            alpha=0.85,
            markersize=5,
            label=domain,
        )
    axes.set_xlim(0.93, top * 1.1)
    _rows(axes, order)
    _plain_ticks(axes.xaxis, top)
    below: Axes = made.add_subplot(grid[1, 0])
    below.axis("off")
    below.legend(
        *axes.get_legend_handles_labels(),
        ncols=4,
        frameon=False,
        loc="upper center",
        columnspacing=0.9,
        handletextpad=0.2,
    )
    return folder.save(made, name)


def draw_oblique(
    folder: Folder, name: str, points: Mapping[str, Floats], basis: Floats, visits: Floats
) -> list[bytes]:
    """The three-state problem: V above the features' plane, and where each method lands on it.

    First in space, then in the plane's own coordinates, where distance is RMSE and the best
    approximation is the origin. Saved side by side, returned as two pictures.
    """
    drawn = (_space, _plane)
    together = figure(2 * WIDTH, 4.9)
    parts: Any = together.subfigures(1, 2)
    for holder, draw in zip(parts, drawn, strict=True):
        draw(holder, points, basis, visits)
    folder.save(together, name)
    pictures = []
    for draw in drawn:
        alone = figure(WIDTH, 4.9)
        draw(alone, points, basis, visits)
        pictures.append(svg(alone))
    return pictures


def _legend(holder: Any, grid: Any, labels: Mapping[str, str]) -> None:
    below: Axes = holder.add_subplot(grid[1, 0])
    below.axis("off")
    for method, text in labels.items():
        style = look(method)
        below.plot([], [], linestyle="none", color=style.colour, marker=style.marker, label=text)
    below.legend(ncols=2, frameon=False, loc="upper center", borderaxespad=0.0, labelspacing=0.3)


def _grid(holder: Any) -> Any:
    return holder.add_gridspec(2, 1, height_ratios=[4.0, 0.75])


def _space(holder: Any, points: Mapping[str, Floats], basis: Floats, visits: Floats) -> None:
    """The weighted space turned so that the plane lies flat and V stands straight above v*."""
    grid = _grid(holder)
    space: Any = holder.add_subplot(grid[0, 0], projection="3d")
    tidy(space, title="Every method projects V onto span Φ (one scale)")
    value, best = points["V"], points["v* (best)"]
    landed = {method: point for method, point in points.items() if method != "V"}
    root = np.sqrt(visits)
    plane, _ = np.linalg.qr(root[:, None] * basis)
    height = root * (value - best)
    least = float(np.linalg.norm(height))
    frame = np.column_stack([plane, height / least])

    def place(point: Floats) -> Floats:
        return np.asarray(frame.T @ (root * (point - best)))

    spots = {method: place(point) for method, point in landed.items()}
    plan = np.array([spot[:2] for spot in spots.values()])
    room = 0.15 * float(np.ptp(plan, axis=0).max())
    (left, near), (right, far) = plan.min(axis=0) - room, plan.max(axis=0) + room
    x, y = np.meshgrid([left, right], [near, far])
    space.plot_surface(x, y, np.zeros_like(x), color="#cfdfec", alpha=0.6, shade=False)
    top = place(value)
    for method, spot in spots.items():
        style = look(method)
        space.plot(*np.array([top, spot]).T, color=style.colour, linewidth=1.2, linestyle=":")
        space.plot(*spot[:, None], color=style.colour, marker=style.marker, markersize=8)
    space.plot(*top[:, None], color="#000000", marker="*", markersize=12)
    space.text(0.0, 0.0, 1.12 * least, "V", fontsize=12, fontweight="bold", ha="center")
    space.text(left, near, 0.02 * least, "span Φ", fontsize=9, color="#3d5a73")
    space.set_xlim(left, right)
    space.set_ylim(near, far)
    space.set_zlim(0.0, 1.3 * least)
    # One scale for all three axes: a slant of 76 degrees must look like one.
    space.set_box_aspect((right - left, far - near, 1.3 * least), zoom=1.0)
    space.view_init(elev=24.0, azim=-62.0)
    space.set_xlabel("first direction", labelpad=2)
    space.set_ylabel("second direction", labelpad=-1)
    space.tick_params(labelsize=7, pad=-2)
    for axis, most in ((space.xaxis, 5), (space.yaxis, 3), (space.zaxis, 3)):
        axis.set_major_locator(import_extra("matplotlib.ticker", "plot").MaxNLocator(most))
    _legend(holder, grid, {method: pretty(method) for method in landed})


def _plane(holder: Any, points: Mapping[str, Floats], basis: Floats, visits: Floats) -> None:
    grid = _grid(holder)
    plane: Axes = holder.add_subplot(grid[0, 0])
    tidy(
        plane,
        x="first direction in the plane (RMSE)",
        y="second direction (RMSE)",
        title="The plane span Φ, seen from V",
    )
    value, best = points["V"], points["v* (best)"]
    landed = {method: point for method, point in points.items() if method != "V"}
    root = np.sqrt(visits)
    directions, _ = np.linalg.qr(root[:, None] * basis)
    least = float(np.sqrt(visits @ (value - best) ** 2))
    reach = 0.0
    labels: dict[str, str] = {}
    for method, point in landed.items():
        at = directions.T @ (root * (point - best))
        style, error = look(method), float(np.sqrt(visits @ (value - point) ** 2))
        reach = max(reach, float(np.abs(at).max()))
        plane.plot(
            *at[:, None],
            linestyle="none",
            color=style.colour,
            marker=style.marker,
            markersize=8,
        )
        labels[method] = f"{pretty(method)}: RMSE {error:.3f}"
    circle = np.linspace(0.0, 2.0 * np.pi, 200)
    for factor in (1.25, 1.5, 2.0, 3.0, 4.0):
        radius = least * float(np.sqrt(factor**2 - 1.0))
        if radius < 1.2 * reach:
            plane.plot(
                radius * np.cos(circle), radius * np.sin(circle), color="#b3bcc5", linewidth=0.7
            )
            plane.annotate(
                f"{factor:g}×",
                (0.0, -radius),
                fontsize=7,
                color="#5a626b",
                ha="center",
                va="center",
                bbox={"facecolor": "#ffffff", "edgecolor": "none", "pad": 0.5},
            )
    plane.set_xlim(-1.25 * reach, 1.25 * reach)
    plane.set_ylim(-1.25 * reach, 1.25 * reach)
    plane.set_aspect("equal")
    _legend(holder, grid, labels)


def _rows(axes: Axes, methods: Sequence[str], notes: Mapping[str, str] | None = None) -> None:
    names = [pretty(method) + (notes or {}).get(method, "") for method in methods]
    axes.set_yticks(range(len(methods)), names)
    axes.set_ylim(len(methods) - 0.4, -0.6)


def _plain_ticks(axis: Any, high: float) -> None:
    """Round numbers on a log axis from 1, no powers of ten, none nearer than a tenth of its length."""
    least = 0.1 * np.log(high)
    inside: list[float] = []
    for value in (1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000):
        if value <= high and (not inside or np.log(value / inside[-1]) > least):
            inside.append(value)
    axis.set_ticks(inside, [f"{value:g}" for value in inside])
    axis.set_minor_formatter(lambda *_: "")
    axis.set_ticks([], minor=True)
