"""Figures from tables: drawn without a window, saved as PNG and SVG with their CSV."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.atomic import write_bytes, writing
from o2td.errors import import_extra

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RC = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 9.0,
    "legend.fontsize": 8.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.0,
    "svg.fonttype": "path",
    "svg.hashsalt": "o2td",
    "figure.constrained_layout.use": True,
}
WIDTH = 5.0  # inches of one column
_TITLE = 48  # characters of a title that fit into it


@contextmanager
def styled() -> Iterator[None]:
    """Matplotlib with the report's settings instead of the user's."""
    matplotlib = import_extra("matplotlib", extra="plot")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield


def figure(width: float, height: float) -> Figure:
    """An empty figure that needs no window."""
    module = import_extra("matplotlib.figure", extra="plot")
    made: Figure = module.Figure(figsize=(width, height), layout="constrained")
    return made


def tidy(axes: Axes, x: str = "", y: str = "", title: str = "") -> None:
    """Labels and a title to the left."""
    if x:
        axes.set_xlabel(x)
    if y:
        axes.set_ylabel(y)
    if title:
        axes.set_title(fill(title, _TITLE), loc="left", fontweight="bold")


def log_ticks(axis: Any, low: float, high: float) -> None:
    """Plain numbers on a log axis: every decade, and 2 and 5 if it spans only a few."""
    ticker = import_extra("matplotlib.ticker", extra="plot")
    decades = float(np.log10(high / low))
    subs = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0) if decades < 0.8 else (1.0, 2.0, 5.0)
    axis.set_major_locator(ticker.LogLocator(subs=subs if decades < 2.5 else (1.0,), numticks=12))
    if decades < 4.5 and low > 1e-5:
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(ticker.NullLocator())


@dataclass
class Folder:
    """Where pictures and their numbers are saved; `names` collects what was drawn.

    Without a path nothing is saved: the pictures are only in the page.
    """

    path: Path | None
    names: list[str] = field(default_factory=list)

    def save(self, made: Figure, name: str) -> bytes:
        """Write NAME.png and NAME.svg, and return the SVG."""
        settle(made)
        data = svg(made)
        self.names.append(name)
        if self.path is not None:
            png = io.BytesIO()
            made.savefig(png, format="png", dpi=160, metadata={"Software": None})
            _write(self.path / f"{name}.png", png.getvalue())
            _write(self.path / f"{name}.svg", data)
        return data

    def table(self, frame: pl.DataFrame, name: str) -> None:
        """Write NAME.csv."""
        if self.path is not None:
            _write(self.path / f"{name}.csv", frame.write_csv().encode())

    def files(self, name: str, *kinds: str) -> list[str]:
        """The names of a figure's files as the page links to them."""
        if self.path is None:
            return []
        return [f"{os.path.basename(self.path)}/{name}.{kind}" for kind in kinds]  # noqa: PTH119


def _write(path: Path, data: bytes) -> None:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, data)


def settle(made: Figure) -> None:
    """Lay the figure out once, so that saving it twice does not repeat the layout."""
    engine = made.get_layout_engine()
    if engine is not None:
        engine.execute(made)
        made.set_layout_engine("none")


def svg(made: Figure) -> bytes:
    """The figure as SVG, without anything that depends on the time."""
    settle(made)
    stream = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None, "Creator": None}
    made.savefig(stream, format="svg", metadata=metadata)
    return stream.getvalue()
