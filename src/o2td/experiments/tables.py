"""Records of a store as tables: all values, one score per run, means with intervals.

A run that diverged has infinite values from that step on, and `diverged` gives the step. Means and
intervals are over the runs that are finite at that step, reported with the share of the others:
nothing is dropped silently.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.arguments import choice, instance, listed, text
from o2td.errors import InputError, LateModule
from o2td.experiments.files import File
from o2td.experiments.planning import plan
from o2td.experiments.spec import Spec
from o2td.experiments.store import Store

if TYPE_CHECKING:
    import polars as pl

polars = LateModule("polars", "experiments")

CELL = ("experiment", "series", "domain", "scheme", "algorithm", "parameters")


def results(
    store: Store | str | os.PathLike[str],
    experiment: str | None = None,
    spec: Spec | None = None,
    ids: Sequence[str] | None = None,
) -> pl.DataFrame:
    """All stored values: one row per run, setting, metric and recorded step.

    Parameters
    ----------
    store
        A store or its folder.
    experiment
        Only this experiment. :func:`tune` adds `NAME:tuning` and `NAME:tuned`.
    spec
        Only the runs of this spec in its current form; a store may also hold those of earlier
        forms, which differ in `series`.
    ids
        Only these shards, in this order, such as `RunReport.ids`.

    Returns
    -------
    polars.DataFrame
        Columns `experiment`, `series`, `domain`, `scheme`, `algorithm`, `parameters` (JSON), `run`,
        `metric`, `step`, `value`, `diverged` (the step, or null) and `truth_error`: the standard
        error of the true values behind `value`, root mean square over states, if they come from
        roll-outs; null if they are exact, or the store is older than this column.
    """
    opened = store if isinstance(store, Store) else Store(store)
    stored = opened.ids()
    if spec is not None:
        ids, experiment = [shard.id for shard in plan(spec)], spec.name
    elif experiment is not None:
        text("experiment", experiment)
    if ids is None:
        files = opened.files("runs", experiment)
    else:
        names = [text("ids", name) for name in listed("ids", ids, "names")]
        files = (opened.read(name) for name in names if name in stored)
    frames = [rows_of(file) for file in files]
    if not frames:
        what = f"of {experiment} " if experiment else ""
        raise InputError(f"{opened.path}: holds no results {what}yet; run the experiment first")
    table: pl.DataFrame = polars.concat(frames)
    return table


def rows_of(file: File) -> pl.DataFrame:
    """The rows of a file of runs, with its `series`; a column that older files lack is null."""
    table = file.frame().with_columns(series=polars.lit(file.series))
    if "truth_error" not in table.columns:
        table = table.with_columns(truth_error=polars.lit(None))
    return table.select(
        *CELL,
        *("run", "metric", "step", "value", "diverged"),
        polars.col("truth_error").cast(polars.Float64),
    )


def sensitivity(
    store: Store | str | os.PathLike[str], experiment: str | None = None
) -> pl.DataFrame:
    """What tuning found in a `store`: the score of every setting tried, with the chosen one marked.

    Columns `experiment`, `series`, `domain`, `scheme`, `algorithm`, `parameters`, `metric`, `score`
    (`final` or `area`), `runs`, `mean`, `low`, `high`, `diverged_share`, `chosen`.
    """
    opened = store if isinstance(store, Store) else Store(store)
    frames = [
        file.frame().with_columns(series=polars.lit(file.series))
        for file in opened.files("tuning", experiment)
    ]
    if not frames:
        raise InputError(f"{opened.path}: nothing was tuned there yet; run with --tune")
    joined: pl.DataFrame = polars.concat(frames)
    return joined.select(*CELL, polars.exclude(*CELL))


def study(store: Store | str | os.PathLike[str], ids: Sequence[str]) -> pl.DataFrame:
    """The numbers of parts of a study in `store`, in the order of `ids`.

    Columns `study`, `domain`, `method`, `quantity`, `index` (of the problem or run), `x` (the
    setting, such as lambda) and `value`.
    """
    opened = store if isinstance(store, Store) else Store(store)
    names = [text("ids", name) for name in listed("ids", ids, "names")]
    if not names:
        raise InputError("ids must name at least one part of a study")
    joined: pl.DataFrame = polars.concat([opened.read(name, "studies").frame() for name in names])
    return joined


def scores(table: pl.DataFrame, how: str = "final") -> pl.DataFrame:
    """One number per run, setting and metric, by `how`: `"final"`, the last, or `"area"`, the mean."""
    choice("how", how, ("final", "area"))
    table = _of_runs(table, "step", "run", "diverged")
    value = polars.col("value")
    best = value.sort_by("step").last() if how == "final" else value.mean()
    keys = [*CELL, "metric", "run"]
    grouped: pl.DataFrame = table.group_by(keys, maintain_order=True).agg(
        value=best,
        diverged=polars.col("diverged").first(),
        truth_error=polars.col("truth_error").first(),
    )
    return grouped


def summary(table: pl.DataFrame) -> pl.DataFrame:
    """Mean over runs with a 95 % interval, at every step (of `results`) or in all (of `scores`).

    The interval is Student's t: `mean ± t(0.975, n-1) s / sqrt(n)` over the n finite runs.

    Returns
    -------
    polars.DataFrame
        A row per setting, metric (and step): `runs`, `finite`, `mean`, `low`, `high`, `median`
        (over all runs, a diverged one counting as infinite), `diverged_share` and `truth_error`
        (root mean square over runs; null if the truth is exact). If no run is finite, all of them
        are infinite; with only one run, the interval is infinite too.
    """
    table = _of_runs(table)
    keys = [*CELL, "metric", *(["step"] if "step" in table.columns else [])]
    value = polars.col("value")
    finite = value.filter(value.is_finite())
    grouped = table.group_by(keys, maintain_order=True).agg(
        runs=polars.len().cast(polars.Int64),
        finite=finite.len().cast(polars.Int64),
        mean=finite.mean(),
        spread=finite.std(ddof=1),
        median=value.median(),
        truth_error=(polars.col("truth_error") ** 2).mean().sqrt(),
    )
    mean = grouped["mean"].fill_null(np.inf).to_numpy()
    half = _half_width(grouped["spread"].to_numpy(), grouped["finite"].to_numpy())
    known = np.isfinite(half)
    low = np.where(known, mean, np.where(np.isfinite(mean), -np.inf, np.inf))
    width = np.where(known, half, 0.0)
    full: pl.DataFrame = grouped.with_columns(
        mean=polars.Series(mean),
        low=polars.Series(low - width),
        high=polars.Series(np.where(known, mean, np.inf) + width),
        diverged_share=1.0 - polars.col("finite") / polars.col("runs"),
    )
    last = ("median", "diverged_share", "truth_error")
    return full.select(*keys, "runs", "finite", "mean", "low", "high", *last)


def _of_runs(table: Any, *more: str) -> pl.DataFrame:
    """`table`, which must have the columns of `results`."""
    wanted = "a table of results, such as o2td.experiments.results gives"
    missing = {*CELL, "metric", "value", "truth_error", *more}
    found: pl.DataFrame = instance("table", table, polars.DataFrame, wanted)
    missing -= set(found.columns)
    if missing:
        raise InputError(f"table must be {wanted}; it has no column {min(missing)!r}")
    return found


def _half_width(spread: Any, n: Any) -> Any:
    from scipy.special import stdtrit

    with np.errstate(divide="ignore", invalid="ignore"):
        half = stdtrit(np.maximum(n - 1, 1), 0.975) * spread / np.sqrt(n)
    return np.where(n >= 2, half, np.inf)
