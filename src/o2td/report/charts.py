"""Figures beyond learning curves: distributions, shares, curves over lambda, ratios, geometry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from o2td.report.drawing import WIDTH, Folder, figure, tidy
from o2td.report.statistics import Interval
from o2td.report.style import look, pretty

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_dots", "draw_lambda", "draw_oblique", "draw_shares", "draw_spread"]

Floats = npt.NDArray[np.float64]


def draw_spread(folder: Folder, name: str, title: str, x: str, rows: Mapping[str, Floats]) -> bytes:
    """Median, middle half, 5-95 % and extremes of each method, the best median on top."""
    order = sorted(rows, key=lambda method: float(np.median(rows[method])))
    made = figure(1.5 * WIDTH, 0.9 + 0.19 * len(order))
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
    _rows(axes, order)
    _plain_ticks(axes.xaxis, 1.0, top)
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
    _plain_ticks(axes.yaxis, 1.0, top * 1.1)
    axes.legend(frameon=False, ncols=2)
    return folder.save(made, name)


def draw_shares(
    folder: Folder, name: str, title: str, groups: Mapping[str, Mapping[str, Interval]]
) -> bytes:
    """Shares with intervals, one row a method, one marker a group."""
    methods = list(dict.fromkeys(method for group in groups.values() for method in group))
    worst = {m: max(g[m].value for g in groups.values() if m in g) for m in methods}
    order = sorted(methods, key=lambda method: worst[method])
    made = figure(1.5 * WIDTH, 1.1 + 0.24 * len(order))
    axes: Axes = made.subplots()
    tidy(axes, x="share of problems on which the mean dynamics is unstable (%)", title=title)
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
    """One row a method, one marker a domain, at the error over that domain's least."""
    domains = list(dict.fromkeys(domain for row in rows.values() for domain in row))
    order = sorted(rows, key=lambda method: float(np.mean(np.log(list(rows[method].values())))))
    finite = [v for row in rows.values() for v in row.values() if np.isfinite(v)]
    top = min(100.0, max(finite) * 1.3)
    made = figure(1.5 * WIDTH, 1.2 + 0.2 * len(order))
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
    _plain_ticks(axes.xaxis, 1.0, top)
    below: Axes = made.add_subplot(grid[1, 0])
    below.axis("off")
    below.legend(*axes.get_legend_handles_labels(), ncols=4, frameon=False, loc="upper center")
    return folder.save(made, name)


def draw_oblique(
    folder: Folder, name: str, points: Mapping[str, Floats], basis: Floats, visits: Floats
) -> bytes:
    """The three-state problem: V above the features' plane, and where each method lands on it.

    Left in space, right in the plane's own coordinates, where distance is RMSE and the best
    approximation is the origin.
    """
    made = figure(2 * WIDTH, 4.6)
    grid: Any = made.add_gridspec(2, 2, height_ratios=[4.0, 0.55], width_ratios=[1.0, 1.0])
    space: Any = made.add_subplot(grid[0, 0], projection="3d")
    value, best = points["V"], points["v* (best)"]
    landed = {m: p for m, p in points.items() if m != "V"}
    _space(space, value, best, landed, basis)
    plane: Axes = made.add_subplot(grid[0, 1])
    tidy(
        plane,
        x="in the plane, first direction (RMSE)",
        y="second direction (RMSE)",
        title="The plane span Φ, seen from V",
    )
    _plane(plane, value, best, landed, basis, visits)
    below: Axes = made.add_subplot(grid[1, :])
    below.axis("off")
    handles, labels = plane.get_legend_handles_labels()
    below.legend(handles, labels, ncols=4, frameon=False, loc="upper center")
    return folder.save(made, name)


def _space(
    space: Any, value: Floats, best: Floats, landed: Mapping[str, Floats], basis: Floats
) -> None:
    centre = np.mean([value, *landed.values()], axis=0)
    foot = basis @ np.linalg.lstsq(basis, centre, rcond=None)[0]
    directions, _ = np.linalg.qr(basis)
    reach = 1.25 * max(float(np.linalg.norm(p - foot)) for p in landed.values())
    corners = np.array(
        [
            foot + reach * (a * directions[:, 0] + b * directions[:, 1])
            for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))
        ]
    )
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

    space.add_collection3d(Poly3DCollection([corners], facecolor="#d7e3ee", alpha=0.55))
    space.plot(*corners.T, color="#8aa2b8", linewidth=0.8)
    for method, point in landed.items():
        style = look(method)
        space.plot(*np.array([value, point]).T, color=style.colour, linewidth=1.0, linestyle=":")
        space.plot(*point[:, None], color=style.colour, marker=style.marker, markersize=7)
    space.plot(*value[:, None], color="#000000", marker="*", markersize=11)
    space.text(*(value + 0.06 * reach), "V", fontsize=11, fontweight="bold")
    normal = np.cross(directions[:, 0], directions[:, 1])
    normal = normal if normal @ (value - best) > 0 else -normal
    sideways = directions[:, 0] + 0.35 * normal
    space.view_init(
        elev=float(np.degrees(np.arcsin(np.clip(sideways[2] / np.linalg.norm(sideways), -1, 1)))),
        azim=float(np.degrees(np.arctan2(sideways[1], sideways[0]))),
    )
    space.set_box_aspect((1, 1, 1), zoom=1.05)
    every = np.vstack([corners, value])
    span = float((every.max(axis=0) - every.min(axis=0)).max()) / 2
    for axis, middle in zip("xyz", (every.max(axis=0) + every.min(axis=0)) / 2, strict=True):
        getattr(space, f"set_{axis}lim")(middle - span, middle + span)
        getattr(space, f"set_{axis}label")(f"state {'xyz'.index(axis) + 1}", labelpad=-6)
        space.tick_params(axis=axis, labelsize=6, pad=-3)
    space.set_title(
        "In space: every method projects V onto the plane", loc="left", fontweight="bold"
    )


def _plane(
    plane: Axes,
    value: Floats,
    best: Floats,
    landed: Mapping[str, Floats],
    basis: Floats,
    visits: Floats,
) -> None:
    root = np.sqrt(visits)
    directions, _ = np.linalg.qr(root[:, None] * basis)
    least = float(np.sqrt(visits @ (value - best) ** 2))
    reach = 0.0
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
            label=f"{pretty(method)}: RMSE {error:.3f}",
        )
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


def _rows(axes: Axes, methods: Sequence[str]) -> None:
    axes.set_yticks(range(len(methods)), [pretty(method) for method in methods])
    axes.set_ylim(len(methods) - 0.4, -0.6)


def _plain_ticks(axis: Any, low: float, high: float) -> None:
    """A few round numbers on a log axis, without powers of ten."""
    choices = [1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]
    inside = [value for value in choices if low <= value <= high]
    while len(inside) > 9:
        inside = inside[::2]
    axis.set_ticks(inside, [f"{value:g}" for value in inside])
    axis.set_minor_formatter(lambda *_: "")
    axis.set_ticks([], minor=True)
