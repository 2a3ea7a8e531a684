"""Fair tuning: one declared grid for every algorithm, on seeds that are used nowhere else.

For each case and algorithm, all settings of the grid are run on the tuning seeds. The best mean
score wins, with a setting that has a diverged run counting as infinite; if all have one, the
smallest share of diverged runs wins. Everything tried is recorded, including diverged settings: the
curve of error against step size says more than its lowest point.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.arguments import instance
from o2td.errors import InputError, import_extra
from o2td.experiments.files import Labels, encode
from o2td.experiments.planning import (
    Cell,
    ProblemCase,
    Shard,
    algorithm,
    canonical,
    cases,
    combinations,
    digest,
    scaled,
    shards,
)
from o2td.experiments.record import keep
from o2td.experiments.running import RunReport, check_algorithms, run_shards
from o2td.experiments.spec import Spec
from o2td.experiments.store import Store
from o2td.experiments.tables import CELL, rows_of, scores, sensitivity, summary

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Tuned:
    """The result of tuning: the runs tried, the runs shown, and each algorithm's sensitivity."""

    tried: RunReport
    shown: RunReport | None
    sensitivity: pl.DataFrame


def tune(
    spec: Spec,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: bool | None = None,
) -> Tuned:
    """Tune every algorithm of a spec, then run each at its best setting on the spec's own seeds.

    The store gets the tuning runs as experiment `NAME:tuning`, the sensitivity of each algorithm as
    a separate record, and the runs at the chosen settings as `NAME:tuned`.

    Examples
    --------
    >>> import tempfile
    >>> from o2td.experiments import load_spec, tune
    >>> spec = load_spec('''
    ... name = "walk"
    ... steps = 200
    ... runs = 2
    ... metrics = ["rmse"]
    ... domain.name = "random_walk"
    ... algorithms = [{ name = "TD" }]
    ... tuning = { seed = 1, runs = 3, grid = { step_size = [1e-9, 0.1] } }
    ... ''')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tuned = tune(spec, folder)
    >>> tuned.sensitivity.filter(chosen=True)["parameters"].to_list()
    ['{"step_size":0.1}']
    """
    instance("spec", spec, Spec, "a Spec; load_spec reads one")
    flat = tuning_shards(spec)
    store, options = Store(out), {"workers": workers, "dask": dask, "progress": progress}
    tried = run_shards(flat, store, f"{spec.name}:tuning", **options)  # type: ignore[arg-type]
    if not tried.complete:
        return Tuned(tried, None, _empty())
    shown, records = tuned_shards(spec, store)
    report = run_shards(shown, store, f"{spec.name}:tuned", **options)  # type: ignore[arg-type]
    store.write_manifest()
    keep(store, spec, tuned=report.stored, sensitivity=records)
    return Tuned(tried, report, sensitivity(store, f"{spec.name}:tuning"))


def tuning_shards(spec: Spec) -> list[Shard]:
    """All shards that a spec's tuning tries, parameters checked."""
    if spec.tuning is None:
        raise InputError(f"tuning: {spec.name} has no such table; add one with a grid and a seed")
    settings = tuning_cells(spec)
    check_algorithms(settings, spec)
    return [shard for case in cases(spec) for shard in _tuning_shards(spec, case, settings)]


def tuned_shards(spec: Spec, store: Store) -> tuple[list[Shard], list[str]]:
    """Choose from the tuning runs in `store`: the shards to show, and the ids of the records."""
    settings = tuning_cells(spec)
    shown: list[Shard] = []
    records = []
    for case in cases(spec):
        chosen, record = _choose(spec, store, settings, _tuning_shards(spec, case, settings))
        shown += shards(spec, case, chosen, f"{spec.name}:tuned", spec.runs)
        records.append(record)
    return shown, records


def tuning_cells(spec: Spec) -> list[Cell]:
    """Every algorithm at every setting of the tuning grid that applies to it."""
    found = []
    grid = {} if spec.tuning is None else spec.tuning.grid
    for k, entry in enumerate(spec.algorithms):
        kind, name, accepted = algorithm(k, entry)
        names = [p for p in grid if p in accepted and (entry.tune is None or p in entry.tune)]
        tried = {p: grid[p] for p in names}
        fixed = {p: value for p, value in entry.parameters.items() if p not in tried}
        own = {p: values for p, values in entry.grid.items() if p not in tried}
        for chosen in combinations(fixed, {**own, **tried}):
            label = entry.label or name
            found.append(Cell(kind, name, label, scaled(k, chosen), starts=entry.starts))
    return found


def _tuning_shards(spec: Spec, case: ProblemCase, settings: list[Cell]) -> list[Shard]:
    assert spec.tuning is not None  # noqa: S101 - `tune` has asked
    name = f"{spec.name}:tuning"
    return shards(spec, case, settings, name, spec.tuning.runs, seed=spec.tuning.seed)


def _choose(
    spec: Spec, store: Store, settings: list[Cell], part: list[Shard]
) -> tuple[list[Cell], str]:
    """Score the settings of one case, store the record, and return each algorithm's best."""
    assert spec.tuning is not None  # noqa: S101
    polars = import_extra("polars", extra="experiments")
    metric = spec.tuning.metric or spec.metrics[0]
    files = [store.read(shard.id) for shard in part]
    table = polars.concat([rows_of(file) for file in files])
    table = table.filter(polars.col("metric") == metric)
    scored = summary(scores(table, spec.tuning.score)).with_row_index("row")
    # Any diverged run makes a setting's score infinite; the share decides between such settings.
    ranked = scored.with_columns(
        mean=polars.when(polars.col("diverged_share") > 0).then(np.inf).otherwise("mean")
    ).sort("diverged_share", "mean", "row")
    best = set(ranked.group_by("algorithm", maintain_order=True).first()["row"].to_list())
    key = {**json.loads(part[0].key), "runs": [0, spec.tuning.runs], "rows": len(scored)}
    key["tuning"] = {"metric": metric, "score": spec.tuning.score}
    text = canonical(key)
    store.write(digest(text), encode(text, _record(scored, best, spec.tuning.score)), "tuning")
    keep = {
        (row["algorithm"], row["parameters"])
        for row in scored.iter_rows(named=True)
        if row["row"] in best
    }
    best_cells = [c for c in settings if (c.label, canonical(c.parameters)) in keep]
    return best_cells, digest(text)


def _record(scored: pl.DataFrame, best: set[int], how: str) -> dict[str, Any]:
    rows = len(scored)
    columns: dict[str, Any] = {}
    for name in CELL:
        if name != "series":
            columns[name] = Labels.of(scored[name].to_list())
    columns["metric"] = Labels.of([str(scored["metric"][0])] * rows)
    columns["score"] = Labels.of([how] * rows)
    for name in ("runs", "mean", "low", "high", "diverged_share"):
        columns[name] = scored[name].to_numpy()
    columns["chosen"] = np.array([row in best for row in scored["row"].to_list()])
    return columns


def _empty() -> pl.DataFrame:
    frame: pl.DataFrame = import_extra("polars", extra="experiments").DataFrame()
    return frame
