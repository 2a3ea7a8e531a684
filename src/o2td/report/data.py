"""What a report is made of: the tables of one reproduction, read from its folder and nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from o2td.errors import FormatError, InputError, import_extra
from o2td.experiments.records import results, scores, study, summary
from o2td.experiments.store import Store
from o2td.report.style import plain

if TYPE_CHECKING:
    import polars as pl

__all__ = ["RECORD", "Results"]

RECORD = "reproduction.json"
_FORMAT = 1
_MAX_BYTES = 1 << 26


class Results:
    """The experiments and studies of a folder that :func:`o2td.experiments.reproduce` has filled.

    `way` is `"shown"` (the settings in the experiment's file, such as the printed step sizes) or
    `"tuned"`. Every table is read once.

    Parameters
    ----------
    path : str or path
        The folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.store = Store(path)
        self.record = _record(self.path / RECORD)
        self._tables: dict[tuple[str, ...], pl.DataFrame] = {}

    def has(self, *names: str, way: str | None = None) -> bool:
        """Whether all these experiments and studies are there (experiments in this way)."""
        return all(name in self.record["studies"] or self._ran(name, way) for name in names)

    def _ran(self, name: str, way: str | None) -> bool:
        about = self.record["experiments"].get(name)
        return about is not None and (way is None or bool(about[way]))

    def about(self, name: str) -> dict[str, Any]:
        """Title, notes, runs, steps and seeds of an experiment."""
        found: dict[str, Any] = self.record["experiments"][name]
        return found

    def runs(self, name: str, way: str = "shown") -> pl.DataFrame:
        """Every value of every run."""

        def read() -> pl.DataFrame:
            ids = self.about(name)[way]
            gone = set(ids) - self.store.ids()
            if gone:
                raise InputError(
                    f"{self.path}: {len(gone)} files of {name} are gone; run o2td reproduce again"
                )
            return results(self.store, name, ids=ids)

        return self._once(("runs", name, way), read)

    def curves(self, name: str, way: str = "shown") -> pl.DataFrame:
        """Mean and interval at every recorded step, with the first step of a divergence."""

        def make() -> pl.DataFrame:
            polars = import_extra("polars", extra="experiments")
            table = self.runs(name, way)
            keys = ["domain", "scheme", "algorithm", "parameters"]
            first = table.group_by(keys).agg(
                first_diverged=polars.col("diverged").min(),
                diverged_runs=polars.col("run").filter(polars.col("diverged") >= 0).n_unique(),
            )
            return summary(table).join(first, on=keys, how="left", maintain_order="left")

        return self._once(("curves", name, way), make)

    def truth(self, name: str) -> dict[str, Any] | None:
        """How the truth of an experiment was sampled where it is simulated, from a file's key."""
        about = self.about(name)
        ids = [*about["shown"], *about["tuned"]]
        found = self.store.read(ids[0]).key.get("truth") if ids else None
        return found if isinstance(found, dict) else None

    def scores(self, name: str, way: str = "shown", how: str = "final") -> pl.DataFrame:
        """One number a run: its last error (`final`) or the mean of all (`area`)."""
        return self._once(("scores", name, way, how), lambda: scores(self.runs(name, way), how))

    def totals(self, name: str, way: str = "shown", how: str = "final") -> pl.DataFrame:
        """The scores' mean and interval over runs."""
        return self._once(("totals", name, way, how), lambda: summary(self.scores(name, way, how)))

    def sensitivity(self, name: str) -> pl.DataFrame:
        """What tuning tried, with scores, shares of diverged runs and the choice."""

        def read() -> pl.DataFrame:
            polars = import_extra("polars", extra="experiments")
            ids = self.about(name)["sensitivity"]
            table: pl.DataFrame = polars.concat(
                [self.store.read(record, "tuning").frame() for record in ids]
            )
            return table

        return self._once(("sensitivity", name), read)

    def study(self, name: str) -> pl.DataFrame:
        """All records of a study, methods named as the experiments name them."""

        def read() -> pl.DataFrame:
            polars = import_extra("polars", extra="experiments")
            table = study(self.store, self.record["studies"][name])
            found = {method: plain(method) for method in table["method"].unique().to_list()}
            named = polars.col("method").cast(polars.String).replace(found)
            return table.with_columns(method=named)

        return self._once(("study", name), read)

    def _once(self, key: tuple[str, ...], make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        if key not in self._tables:
            self._tables[key] = make()
        return self._tables[key]


def _record(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            record = json.loads(file.read(_MAX_BYTES))
        if record["format"] > _FORMAT:
            raise FormatError(f"{path}: written by a newer version; update o2td")
        if not all(isinstance(record[key], dict) for key in ("experiments", "studies")):
            raise TypeError
    except FileNotFoundError:
        raise InputError(
            f"{path.parent}: no reproduction there; run o2td reproduce first"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(f"{path}: damaged; run o2td reproduce again to write it anew") from None
    return dict(record)
