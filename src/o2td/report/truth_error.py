"""How well the truth behind an error is known: the standard error of values from roll-outs.

An RMSE against such values is `sqrt(RMSE^2 + e^2)` on average, e their standard error (root mean
square over states): it cannot be judged below e. Exact values have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from o2td.report.statistics import number

if TYPE_CHECKING:
    import polars as pl


def noise(table: pl.DataFrame, metric: str | None = None) -> float | None:
    """The largest standard error of true values in these records, or None if there is none."""
    if "truth_error" not in table.columns:
        return None
    rows = table if metric is None else table.filter(metric=metric)
    found = rows["truth_error"].max()
    return float(found) if isinstance(found, (int, float)) else None


def sentence(table: pl.DataFrame, truth: Mapping[str, Any] | None = None) -> str:
    """What a reader must know to judge an RMSE in this table; empty if V is exact.

    `truth` says how true values were sampled: the number of `states`, and of `rollouts` from each.
    """
    error = noise(table, "rmse")
    if error is None:
        return ""
    drawn = f" ({truth['states']} states, {truth['rollouts']} roll-outs each)" if truth else ""
    lead = f"RMSE is against true values from roll-outs{drawn}"
    if error == 0.0:
        return (
            f"{lead}. All roll-outs from a state give the same return here, so these values have no"
            " standard error."
        )
    return (
        f"{lead}, whose standard error is {number(error)} (root mean square over states): an RMSE"
        " near or below that cannot be told from zero."
    )
