"""What the examples with pictures share: options, a problem by name, a figure, where it went."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from o2td.problem import Problem
from o2td.registry import DOMAINS

try:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ImportError:
    raise SystemExit('the pictures need matplotlib: pip install ".[experiments]"') from None


def arguments(name: str) -> argparse.Namespace:
    """The options of every example."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--domain", default="collision", help="a finite domain: see o2td domains")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("results/examples") / f"{name}.png")
    return parser.parse_args()


def problem(name: str) -> Problem:
    """The domain with its defaults; it must be finite, for exact errors."""
    made = DOMAINS[name]()
    if not isinstance(made, Problem):
        raise SystemExit(f"{name} is simulated; choose a finite domain, such as collision")
    return made


def figure(columns: int = 1, height: float = 4.4) -> tuple[Any, Any]:
    """A figure with one or more panels beside each other."""
    made = Figure(figsize=(5.5 * columns if columns > 1 else 7.5, height), layout="constrained")
    FigureCanvasAgg(made)
    return made, made.subplots(1, columns)


def save(made: Any, axes: Any, path: Path) -> None:
    """Add the legend of `axes` below the panels, write the picture and say where."""
    handles, labels = axes.get_legend_handles_labels()
    columns = 3 if made.get_figwidth() < 8 else 5
    made.legend(handles, labels, loc="outside lower center", ncols=columns)
    path.parent.mkdir(parents=True, exist_ok=True)
    made.savefig(path, dpi=130)
    print(f"picture: {path}")
