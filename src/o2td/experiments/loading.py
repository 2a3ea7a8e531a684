"""The results in a folder: its experiments as tables, figures and a report.

A :class:`Results` reads only what a record lists; it runs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from o2td.arguments import file_path, instance, some_path
from o2td.errors import InputError, LateModule
from o2td.experiments.record import RECORD, from_files, read_record
from o2td.experiments.store import Store
from o2td.experiments.tables import results, scores, study, summary
from o2td.experiments.validate import suggestion
from o2td.report.style import plain

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from o2td.report.experiment import Experiment

polars = LateModule("polars", "experiments")


def load(folder: str | os.PathLike[str]) -> Results:
    """Load the results that :func:`run` or `o2td run` has written to a folder.

    Parameters
    ----------
    folder : str or path
        The folder of the store.

    Examples
    --------
    >>> import tempfile
    >>> from o2td import experiments
    >>> spec = experiments.load_spec('''
    ... name = "walk"
    ... steps = 200
    ... runs = 3
    ... metrics = ["rmse"]
    ... domain.name = "random_walk"
    ... algorithms = [{ name = "TD", grid = { step_size = [0.03, 0.1] } }]
    ... ''')
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = experiments.run(spec, folder.name)
    >>> results = experiments.load(folder.name)
    >>> results
    Results(...: walk)
    >>> results.frame().height
    600
    >>> results.report(f"{folder.name}/page.html").name
    'page.html'
    >>> folder.cleanup()
    """
    store = Store(folder)
    path = store.path / RECORD
    record = read_record(path) if path.exists() else from_files(store)
    if not record["experiments"]:
        raise InputError(f"{store.path}: holds no results yet; run the experiment first")
    return Results(store, record)


class Results:
    """The experiments and studies of a store that a record lists. Made by :func:`load`.

    `way` is `"shown"` (the settings in the experiment's file) or `"tuned"`. Each table is read
    once.

    Parameters
    ----------
    store : Store
        Where the files are.
    record : dict
        Which files belong to which experiment.
    """

    def __init__(self, store: Store, record: dict[str, Any]) -> None:
        self.path = instance("store", store, Store, "a Store").path
        self.store = store
        self.record = record
        self._tables: dict[tuple[str, ...], pl.DataFrame] = {}

    # -- for everybody -----------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"Results({self.path}: {', '.join(self.experiments)})"

    @property
    def experiments(self) -> list[str]:
        """The names of the experiments."""
        return list(self.record["experiments"])

    def frame(self) -> pl.DataFrame:
        """Every value of every run of all experiments, in the columns of :func:`results`.

        Runs at tuned settings have `NAME:tuned` in the column `experiment`.
        """
        tables = [
            self.runs(name, way)
            for name in self.experiments
            for way in ("shown", "tuned")
            if self.about(name)[way]
        ]
        joined: pl.DataFrame = polars.concat(tables)
        return joined

    def plot(self, experiment: str | None = None, kind: str = "curves") -> Figure:
        """One figure of an experiment.

        Parameters
        ----------
        experiment : str, optional
            Name of the experiment; optional if there is only one.
        kind : str
            "curves" (error along the run) or "sensitivity" (error against the varied parameters).
        """
        from o2td.report.experiment import plot

        if experiment is None and len(self.experiments) > 1:
            raise InputError(f"experiment: choose from {', '.join(self.experiments)}")
        name = self.experiments[0] if experiment is None else experiment
        if name not in self.experiments:
            raise InputError(f"experiment: no {name!r}, {suggestion(name, self.experiments)}")
        return plot(self.experiment(name), kind)

    def report(
        self, path: str | os.PathLike[str], figures: str | os.PathLike[str] | None = None
    ) -> Path:
        """Write a self-contained report on all experiments, and return its path.

        Parameters
        ----------
        path : str or path
            Path of the report.
        figures : str or path, optional
            A folder next to it for the figures as PNG and SVG, with their numbers as CSV; the
            report then links to them.
        """
        from o2td.report.experiment import write_page

        found = [self.experiment(name) for name in self.experiments]
        folder = None if figures is None else some_path("figures", figures)
        return write_page(file_path(path), found, folder)

    def experiment(self, name: str) -> Experiment:
        """All tables of an experiment, in the form that a report needs."""
        from o2td.report.experiment import Experiment

        about = self.about(name)
        curves = {way: self.curves(name, way) for way in ("shown", "tuned") if about[way]}
        rolled_out = any(table["truth_error"].is_not_null().any() for table in curves.values())
        return Experiment(
            name,
            about,
            curves,
            self.sensitivity(name) if about["sensitivity"] else None,
            self.truth(name) if rolled_out else None,
        )

    # -- tables by name ----------------------------------------------------------------------------

    def has(self, *names: str, way: str | None = None) -> bool:
        """Whether all these experiments (in this way) and studies exist."""
        studies = self.record.get("studies", {})
        return all(name in studies or self._ran(name, way) for name in names)

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
                    f"{self.path}: {len(gone)} files of {name} are gone; run the same command again"
                )
            return results(self.store, name, ids=ids)

        return self._once(("runs", name, way), read)

    def curves(self, name: str, way: str = "shown") -> pl.DataFrame:
        """Mean and interval at every recorded step, with the first step of a divergence."""

        def make() -> pl.DataFrame:
            table = self.runs(name, way)
            keys = ["domain", "scheme", "algorithm", "parameters"]
            first = table.group_by(keys).agg(
                first_diverged=polars.col("diverged").min(),
                diverged_runs=polars.col("run").filter(polars.col("diverged") >= 0).n_unique(),
            )
            return summary(table).join(first, on=keys, how="left", maintain_order="left")

        return self._once(("curves", name, way), make)

    def truth(self, name: str) -> dict[str, Any] | None:
        """How the truth of a simulated experiment was sampled, from a file's key."""
        about = self.about(name)
        ids = [*about["shown"], *about["tuned"]]
        found = self.store.read(ids[0]).key.get("truth") if ids else None
        return found if isinstance(found, dict) else None

    def scores(self, name: str, way: str = "shown", how: str = "final") -> pl.DataFrame:
        """One number per run: its last error (`final`) or the mean of all (`area`)."""
        return self._once(("scores", name, way, how), lambda: scores(self.runs(name, way), how))

    def totals(self, name: str, way: str = "shown", how: str = "final") -> pl.DataFrame:
        """The scores' mean and interval over runs."""
        return self._once(("totals", name, way, how), lambda: summary(self.scores(name, way, how)))

    def sensitivity(self, name: str) -> pl.DataFrame:
        """What tuning tried, with scores, shares of diverged runs, and the choice."""

        def read() -> pl.DataFrame:
            ids = self.about(name)["sensitivity"]
            table: pl.DataFrame = polars.concat(
                [self.store.read(record, "tuning").frame() for record in ids]
            )
            return table

        return self._once(("sensitivity", name), read)

    def study(self, name: str) -> pl.DataFrame:
        """All records of a study, methods named as the experiments name them."""

        def read() -> pl.DataFrame:
            table = study(self.store, self.record["studies"][name])
            found = {method: plain(method) for method in table["method"].unique().to_list()}
            named = polars.col("method").cast(polars.String).replace(found)
            return table.with_columns(method=named)

        return self._once(("study", name), read)

    def _once(self, key: tuple[str, ...], make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        if key not in self._tables:
            self._tables[key] = make()
        return self._tables[key]
