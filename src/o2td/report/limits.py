"""Where methods land on one problem: one line per limit, the nearest to the best on top."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Protocol

import numpy as np

from o2td.report.drawing import WIDTH, figure, log_ticks, tidy
from o2td.report.style import look, plain, pretty

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LETTERS = 62  # of a line of names
_ZERO = 1e-9  # smaller errors are rounding
_UNSTABLE = "#b3261e"


class Limit(Protocol):
    """What is drawn for a method: `exact.analyze` returns such rows."""

    @property
    def method(self) -> str:
        """Its name with its settings."""

    @property
    def rmse(self) -> float | None:
        """The error of its limit."""

    @property
    def suboptimality(self) -> float | None:
        """That error over the least possible."""

    @property
    def stable(self) -> bool | None:
        """Whether a learner converges there; None for a solver."""


def limits_figure(rows: Sequence[Limit], title: str = "", absolute: bool = False) -> Figure:
    """A figure of the methods' limits in the given order, with equal limits on one line.

    The distance is the RMSE over the best possible, on a log axis, or with `absolute` the RMSE
    itself, for features that can express V. Unstable methods are hollow and have a red name.
    """
    groups = _groups(rows, absolute)
    names = [_names(group) for _, group in groups]
    room = [
        0.8 + 0.6 * (name.count("\n") + 1) for name in names
    ]  # of each line of names, and between
    places = np.cumsum(room) - 0.5 * np.array(room)
    made = figure(1.6 * WIDTH, 0.8 + 0.18 * sum(room))
    axes: Axes = made.subplots()
    tidy(
        axes,
        x="RMSE of the limit (the best is 0)" if absolute else "RMSE of the limit / best",
        title=title,
    )
    for place, (distance, group) in zip(places, groups, strict=True):
        shortest = min((row.method for row in group), key=len)
        style, stable = look(plain(shortest)), group[0].stable is not False
        axes.plot(
            distance,
            place,
            linestyle="none",
            marker=style.marker,
            color=style.colour,
            markerfacecolor=style.colour if stable else "none",
            markersize=6,
            clip_on=False,
        )
    axes.set_yticks(places, names)
    for (_, group), name in zip(groups, axes.get_yticklabels(), strict=True):
        if group[0].stable is False:
            name.set_color(_UNSTABLE)
    axes.set_ylim(sum(room), 0.0)
    far = max((distance for distance, _ in groups), default=1.0)
    if absolute:
        axes.set_xlim(0.0, 1.05 * far if far > _ZERO else 1.0)
    else:
        axes.set_xscale("log")
        axes.set_xlim(1.0, max(1.05 * far, 1.1))
        log_ticks(axes.xaxis, 1.0, max(1.05 * far, 1.1))
    if any(row.stable is False for row in rows):
        axes.plot([], [], "o", color=_UNSTABLE, markerfacecolor="none", label="unstable")
        axes.legend(frameon=False, loc="upper right")
    return made


def _groups(rows: Sequence[Limit], absolute: bool) -> list[tuple[float, list[Limit]]]:
    """Neighbours with the same limit and the same stability, with their distance."""
    found: list[tuple[float, list[Limit]]] = []
    for row in rows:
        distance = row.rmse if absolute else row.suboptimality
        if distance is None:
            continue
        last, group = found[-1] if found else (-1.0, [])
        alike = abs(distance - last) <= max(1e-6 * last, _ZERO if absolute else 0.0)
        if group and alike and (row.stable is False) == (group[0].stable is False):
            group.append(row)
        else:
            found.append((float(distance), [row]))
    return found


def _names(group: Sequence[Limit]) -> str:
    """All methods of a line, with line breaks only between methods."""
    names = [pretty(plain(row.method)).replace(" ", "\u00a0") for row in group]
    return fill(", ".join(names), _LETTERS, break_long_words=False)
