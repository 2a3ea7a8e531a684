"""Figures drawn from measured numbers: SVG for the book, PNG for the read-me, in docs/images.

`make docs` redraws them if the numbers or this file have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from docs._tools.measure import ROOT, family
from o2td.report.style import Look, look, plain

INK, FAINT, BLUE = "#1f2933", "#9aa5b1", "#1f5fa8"
SHADES = (BLUE, "#2e7d4f", "#b7791f")  # for curves that are not methods: numbers of rows
WIDTH = 3.75  # inches per panel: 360 pixels, so that text keeps its size on a phone
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text instead of outlines: a third of the size, and searchable
    "svg.hashsalt": "o2td",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def _figure(width: float, height: float, columns: int = 1, **grid: Any) -> tuple[Any, list[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, columns, squeeze=False, gridspec_kw=grid)[0]
    return figure, list(axes)


def draw_geometry(axes: Any, data: dict[str, Any]) -> None:
    """V above the plane of the features, and the slanted line to where each method lands.

    Coordinates are scaled by the square root of xi, so right angles on paper are those of the
    weighted norm; the origin is the best approximation, the foot of the perpendicular from V.
    """
    root = np.sqrt(np.array(data["visits"]))
    points = {name: root * np.array(point) for name, point in data["points"].items()}
    basis, _ = np.linalg.qr(np.column_stack([points["feature 1"], points["feature 2"]]))
    foot, top = points["v* (best)"], points["V"]
    towards = basis.T @ (points["O2TD (state)"] - foot)
    turn = towards / np.linalg.norm(towards)
    plane = basis @ np.column_stack([turn, [-turn[1], turn[0]]])
    height = float(np.linalg.norm(top - foot))

    def seen(along: float, across: float, up: float = 0.0) -> tuple[float, float]:
        return along + 0.45 * across, 0.55 * across + up

    landed = {
        name: (plane.T @ (point - foot))
        for name, point in points.items()
        if name not in ("V", "feature 1", "feature 2")
    }
    reach = max(float(place[0]) for place in landed.values())
    low, high, side = -0.25 * reach, 1.15 * reach, 0.3 * reach
    edge = [seen(low, -side), seen(high, -side), seen(high, side), seen(low, side)]
    axes.fill(*zip(*edge, strict=True), color="#e8eff7", ec=BLUE, lw=0.8, zorder=0)
    axes.annotate(
        "span Φ", seen(high, side), (-20, -5), textcoords="offset points", ha="right", va="top"
    )
    peak = seen(0.0, 0.0, height)
    names = sorted(landed, key=lambda name: float(landed[name][0]))
    bottom = seen(low, -side)[1] - 0.07 * reach
    slots = np.linspace(seen(low, -side)[0] + 0.04 * reach, seen(high, -side)[0], len(names))
    for k, name in enumerate(names):
        place, best = seen(*landed[name]), name.startswith("v*")
        colour = INK if best else look(name).colour
        axes.plot(*zip(peak, place, strict=True), "-" if best else "--", color=colour, lw=1.1)
        axes.plot(*place, look(name).marker, color=colour, ms=5, zorder=2)
        axes.plot(*zip(place, (slots[k], bottom), strict=True), color=colour, lw=0.5, alpha=0.6)
        told = name.replace(" (", "\n(")
        label = "v*\nbest" if best else f"{told}\n{data['ratio'][name]:.2f} ×"
        axes.annotate(
            *(label, (slots[k], bottom), (0, -3)),
            textcoords="offset points",
            ha="center",
            va="top",
            color=colour,
        )
    axes.plot(*peak, "o", color=INK, ms=6, zorder=3)
    axes.annotate(
        "V", peak, (-7, 0), textcoords="offset points", ha="right", va="center", fontsize=11
    )
    size = 0.05 * reach
    axes.plot([size, size, 0], [0, size, size], color=INK, lw=0.7)
    axes.set_aspect("equal")
    axes.margins(0.06)
    axes.axis("off")


def _as_line(seen: Look, mark: bool = True) -> dict[str, Any]:
    """A method's line style, the same in every figure of the project."""
    return {"color": seen.colour, "ls": seen.dash, "marker": seen.marker if mark else None}


def _order(rows: dict[str, Any]) -> list[str]:
    return sorted(rows, key=lambda name: (rows[name]["median"], name))


def draw_nearness(axes: Any, rows: dict[str, Any], names: list[str], marked: set[str]) -> None:
    """One line per method on a log axis from the 10 % to the 90 % quantile, marked at the median."""
    for y, name in enumerate(reversed(names)):
        colour = look(name).colour if name in marked or not marked else FAINT
        row, mark = rows[name], look(name).marker
        axes.plot([row["low"], row["high"]], [y, y], color=colour, lw=2.2, alpha=0.45)
        axes.plot([row["median"]], [y], mark, color=colour, ms=6)
    axes.set_xscale("log")
    axes.set_xlim(left=0.93)
    axes.axvline(1.0, color=INK, lw=0.8)
    axes.set_yticks(range(len(names)), list(reversed(names)), fontsize=8)
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.set_xlabel("RMSE of the limit / RMSE of the best")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.xaxis.set_minor_formatter(lambda x, _: "")
    axes.grid(axis="x", alpha=0.25, which="both")


def short(label: str) -> str:
    """A method's label for readers; O2TD's default reading is named like the others.

    >>> short("TD"), short("TD(trace=0.9)"), short("O2TD(trace=0.9, omega=state)"), short("O2TD")
    ('TD', 'TD, λ = 0.9', 'O2TD state, λ = 0.9', 'O2TD sample')
    """
    name, _, inside = label.rstrip(")").partition("(")
    settings = dict(item.split("=") for item in inside.split(", ") if item)
    trace = settings.pop("trace", None)
    if name == "O2TD":
        settings.setdefault("omega", "sample")
    words = [name, *(f"from {v}" if k == "start" else v for k, v in settings.items())]
    return " ".join(words) + (f", λ = {trace}" if trace else "")


def groups(rows: dict[str, Any]) -> list[list[str]]:
    """Methods grouped by equal limits on all problems, nearest to the best first.

    >>> same = {"median": 2.0, "all": [1.0, 3.0]}
    >>> groups({"TD": same, "best": {"median": 1.0, "all": [1.0, 1.0]}, "GTD": same})
    [['best'], ['TD', 'GTD']]
    """
    found: dict[tuple[float, ...], list[str]] = {}
    for name in rows:
        key = tuple(float(f"{float(v):.6g}") for v in rows[name]["all"])
        found.setdefault(key, []).append(name)
    return sorted(found.values(), key=lambda names: (rows[names[0]]["median"], names[0]))


def _legend(figure: Any, axes: Any, columns: int) -> None:
    """Below the panel, so that it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="outside lower center", ncols=columns)


def picture_geometry(data: dict[str, Any]) -> Any:
    figure, (axes,) = _figure(5.2, 2.5)
    draw_geometry(axes, data["geometry"])
    return figure


def picture_nearness(data: dict[str, Any]) -> Any:
    """All methods; methods with the same limits share a line."""
    rows = data["nearness"]
    told: dict[str, Any] = {}
    for names in groups(rows):
        more = f" + {len(names) - 1} more" if len(names) > 1 else ""
        shown = next((name for name in ("TD", "TD(trace=0.9)") if name in names), names[0])
        told[short(shown) + more] = rows[shown]
    figure, (axes,) = _figure(5.2, 0.8 + 0.21 * len(told))
    draw_nearness(axes, told, list(told), set())
    return figure


def picture_home(data: dict[str, Any]) -> Any:
    """A choice of methods, for the first page."""
    rows = {short(name): data["nearness"][name] for name in CHOICE}
    figure, (axes,) = _figure(WIDTH, 2.9)
    draw_nearness(axes, rows, _order(rows), set())
    axes.set_xlabel("RMSE of the limit / best")
    return figure


CHOICE = ("MonteCarlo", "TD(trace=0.9)", "ETD(trace=0.9)", "ETD", "SOTD", "TD")
CHOICE += ("BellmanResidual", "O2TD(omega=state)", "O2TD", "O2TD(omega=printed)")


def _lambda_panel(title: str, traces: Any, curves: dict[str, Any]) -> Any:
    figure, (axes,) = _figure(WIDTH, 3.3)
    for k, (name, values) in enumerate(curves.items()):
        seen = Look(SHADES[k]) if name.endswith("rows") else look(name)
        axes.plot(traces, values, ms=4, **_as_line(seen), label=name)
    axes.set_title(title)
    axes.set_yscale("log")
    axes.set_xlabel("λ")
    axes.set_ylabel("RMSE / RMSE of the best, median")
    axes.set_yticks([t for t in (1, 2, 3, 4, 5, 7, 10) if t < 1.1 * max(map(max, curves.values()))])
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    axes.yaxis.set_minor_formatter(lambda y, _: "")
    axes.minorticks_off()
    axes.grid(axis="y", alpha=0.25)
    _legend(figure, axes, 2)
    return figure


def picture_lambda_limits(data: dict[str, Any]) -> Any:
    found = data["by_lambda"]
    return _lambda_panel("limits (infinitely many rows)", found["traces"], found["limits"])


def picture_lambda_rows(data: dict[str, Any]) -> Any:
    found = data["by_lambda"]
    curves = {f"{int(n):,} rows": values for n, values in found["LSTD"].items()}
    return _lambda_panel("LSTD(λ) from finitely many rows", found["traces"], curves)


def _baird(data: dict[str, Any], form: str) -> Any:
    found = data["paper"]["baird"]
    figure, (axes,) = _figure(WIDTH, 3.1)
    for name, curve in found[form]["curve"].items():
        axes.plot(found["steps"], curve, **_as_line(look(name), mark=False), label=name)
    axes.set_title(f"Baird, {form} form")
    axes.set_yscale("log")
    axes.set_ylim(1e-3, 20.0)
    axes.set_xlabel("step")
    axes.set_ylabel("RMSE, mean of 20 runs")
    axes.grid(axis="y", alpha=0.25)
    _legend(figure, axes, 2)
    return figure


def _sensitivity(data: dict[str, Any], suffix: str) -> Any:
    found = data["curves"]
    figure, (axes,) = _figure(WIDTH, 3.3)
    for name in ("TD", "TDC", "TDRC", "GTD2", "ETD", "O2TD"):
        row = found["methods"][name + suffix]
        mean = [np.nan if v == "inf" else v for v in row["sensitivity"]]
        axes.plot(found["step_sizes"], mean, ms=4, **_as_line(look(name)), label=name)
    axes.set_xscale("log", base=2)
    axes.set_ylim(0.0, 0.7)
    axes.set_title("λ = 0.9" if suffix else "λ = 0")
    axes.set_xlabel("step size")
    axes.set_ylabel(f"RMSE, mean over {found['steps']:,} steps")
    axes.grid(axis="y", alpha=0.25)
    _legend(figure, axes, 3)
    return figure


def method_limits(name: str, data: dict[str, Any]) -> Any:
    """A method's limits among some others."""
    rows = {short(label): row for label, row in data["nearness"].items()}
    own = {short(label) for label in data["nearness"] if family(label) == name}
    others = {short(label) for label in ("PluginOptimal", "TD(trace=0.9)", "ETD", "TD", "O2TD")}
    names = [label for label in _order(rows) if label in own or label in others]
    figure, (axes,) = _figure(WIDTH, max(2.6, 0.9 + 0.21 * len(names)))
    draw_nearness(axes, rows, names, own)
    axes.set_xlabel("RMSE of the limit / best")
    axes.set_title(f"limits on {max(row['n'] for row in rows.values())} random problems")
    return figure


def _curves_of(name: str, data: dict[str, Any]) -> list[str]:
    """The labels of a method's curves on the collision problem."""
    landed = data["landings"]["collision"]["methods"]
    return [
        label
        for label in (*data["curves"]["methods"], *data["batch"]["methods"])
        if family(label) == name and landed.get(label, {}).get("rmse") is not None
    ]


def method_data(name: str, data: dict[str, Any]) -> Any:
    """A method's error on the collision problem against the amount of data."""
    online, batch = data["curves"]["methods"], data["batch"]["methods"]
    landed = data["landings"]["collision"]["methods"]
    curves = _curves_of(name, data)
    figure, (axes,) = _figure(WIDTH, 2.6 + 0.16 * len(curves))
    for label in curves:
        seen = look(plain(label))
        colour = seen.colour
        if label in online:
            row = online[label]
            mean = [np.nan if v == "inf" else v for v in row["mean"]]
            told = f"{short(label)}, α = {row['step_size']:.2g}"
            axes.plot(row["steps"], mean, **_as_line(seen, mark=False), label=told)
        else:
            told = short(label)
            axes.plot(data["batch"]["rows"], batch[label], ms=4, **_as_line(seen), label=told)
            axes.set_xscale("log")
        axes.axhline(landed[label]["rmse"], color=colour, lw=0.8, ls="--")
    best = data["landings"]["collision"]["about"]["best"]
    axes.axhline(best, color=INK, lw=1.4, ls=":", label="best approximation")
    axes.plot([], [], color=FAINT, lw=0.8, ls="--", label="limits")
    axes.set_title("collision problem")
    axes.set_xlabel("step" if curves[0] in online else "rows")
    axes.set_ylabel("RMSE")
    axes.set_ylim(0.0, 1.1 * axes.get_ylim()[1])
    _legend(figure, axes, 1 if len(curves) > 2 else 2)
    return figure


def paper_figure(number: str, data: dict[str, Any]) -> Any:
    """One of the paper's figures, laid out as there: RMSPBE above RMSE."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = data["printed"]["figures"][number]
    figure = Figure(figsize=(5.2, 5.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, (metric, curves) in zip(panels, found["curves"].items(), strict=True):
        for name, curve in curves.items():
            if number == "3" and name == "ETD":
                continue  # the paper's figure has none
            mean, low, high = (
                np.array([np.nan if v is None else v for v in curve[k]], dtype=float)
                for k in ("mean", "low", "high")
            )
            line = _as_line(look(name), mark=number == "2")
            told = shown_in_paper(name) + (" (median)" if curve.get("median") else "")
            axes.plot(curve["step"], mean, ms=4, **line, label=told)
            # An interval may reach zero, which a log axis cannot show: mirror it about the mean.
            floor = np.maximum(low, mean * (mean / high))
            axes.fill_between(curve["step"], floor, high, color=line["color"], alpha=0.15, lw=0)
        axes.set_yscale("log")
        axes.set_ylabel(metric.upper())
        axes.grid(axis="y", alpha=0.25)
    panels[1].set_xlabel("rows" if number == "2" else "step")
    if number == "2":
        panels[1].set_xscale("log")
    _legend(figure, panels[0], 3)
    return figure


def shown_in_paper(name: str) -> str:
    """A method's name, and the paper's name for it if that differs."""
    names = {
        "O2TD printed": "O²TD as printed",
        "O2TD sample": "O²TD, ratio kept",
        "SOTD ordinary": "SOTD as printed",
        "SOTD normalized": "SOTD, sums normalised",
    }
    return names.get(name, name)


PICTURES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "geometry": picture_geometry,
    "nearness": picture_nearness,
    "home": picture_home,
    "lambda-limits": picture_lambda_limits,
    "lambda-rows": picture_lambda_rows,
    "baird-star": lambda data: _baird(data, "star"),
    "baird-survey": lambda data: _baird(data, "survey"),
    "sensitivity": lambda data: _sensitivity(data, ""),
    "sensitivity-traces": lambda data: _sensitivity(data, "(trace=0.9)"),
    **{f"paper-{k}": partial(paper_figure, k) for k in "234567"},
}


IMAGES = ROOT / "docs" / "images"
_MADE = IMAGES / "made.txt"


def names(data: dict[str, Any]) -> set[str]:
    """Every figure of the book by its name."""
    return {*PICTURES, *(name for name, _ in _of_methods(data))}


def _of_methods(data: dict[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The figures of every method that has them, by name, drawn on demand."""
    from o2td.registry import LEARNERS, SOLVERS

    for name in (*LEARNERS.names(), *SOLVERS.names()):
        if any(family(label) == name for label in data["nearness"]):
            yield f"method-{name}-limits", partial(method_limits, name, data)
        if _curves_of(name, data):
            yield f"method-{name}-data", partial(method_data, name, data)


def refresh(data: dict[str, Any]) -> list[Path]:
    """Redraw all figures if the numbers or this file have changed; returns what was drawn."""
    import matplotlib as mpl

    if not stale(data):
        return []
    drawn = []
    with mpl.rc_context(STYLE):
        for name, draw in PICTURES.items():
            drawn.append(_save(draw(data), IMAGES / f"{name}.svg"))
        for name, draw_one in _of_methods(data):
            drawn.append(_save(draw_one(), IMAGES / f"{name}.svg"))
    drawn.append(read_me_picture(data))
    for path in IMAGES.glob("method-*.svg"):
        if path.stem not in names(data):
            path.unlink()
    _MADE.write_text(_digest(data) + "\n", encoding="utf-8")
    return drawn


def stale(data: dict[str, Any]) -> bool:
    """Whether figures were drawn from other numbers, or by other code."""
    gone = any(not (IMAGES / f"{name}.svg").exists() for name in names(data))
    return gone or not _MADE.exists() or _MADE.read_text("utf-8").strip() != _digest(data)


def _digest(data: dict[str, Any]) -> str:
    import hashlib
    import json

    style = ROOT / "src" / "o2td" / "report" / "style.py"
    digest = hashlib.sha256(Path(__file__).read_bytes() + style.read_bytes())
    drawn = ("nearness", "geometry", "by_lambda", "curves", "batch", "landings", "paper", "printed")
    digest.update(json.dumps({k: data[k] for k in drawn}, sort_keys=True).encode())
    return digest.hexdigest()[:16]


def _save(figure: Any, path: Path) -> Path:
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    lines = path.read_text("utf-8").split("\n")
    path.write_text("\n".join(line.rstrip() for line in lines), encoding="utf-8")
    return path


def read_me_picture(data: dict[str, Any]) -> Path:
    """The geometry and the nearness side by side, as the PNG that README.md shows."""
    import matplotlib as mpl

    path = IMAGES / "where-methods-land.png"
    rows = {short(name): data["nearness"][name] for name in CHOICE}
    with mpl.rc_context(STYLE):
        figure, (left, right) = _figure(9.6, 3.5, 2, width_ratios=[1.3, 1.0])
        draw_geometry(left, data["geometry"])
        left.set_title("three states, two features: every method projects V", pad=10)
        draw_nearness(right, rows, _order(rows), set())
        right.set_title(f"limits on {data['nearness']['TD']['n']} random problems")
        figure.savefig(path, dpi=170, facecolor="white", metadata={"Software": None})
    darkened(path)
    return path


def darkened(path: Path) -> Path:
    """The picture for dark pages: light on dark, hues kept, as assets/book.css does in the site."""
    from matplotlib import image

    light = image.imread(path)[..., :3]
    inverted = 0.9 - 0.8 * light
    # Rotate all hues by 180 degrees, as CSS's hue-rotate filter does.
    grey = np.array([0.213, 0.715, 0.072])
    turned = np.clip(2.0 * (inverted @ grey)[..., None] - inverted, 0.0, 1.0)
    dark = path.with_name(f"{path.stem}-dark.png")
    image.imsave(dark, turned, metadata={"Software": None})
    return dark
