"""Run a plan: keep what the store already holds, and compute what is missing or damaged.

Workers compute; only this process writes. So a shard is either in the store or will be computed
again, and the same command resumes after any interruption.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from o2td import terminal
from o2td.arguments import switch, text, whole
from o2td.errors import InputError, import_extra
from o2td.experiments.planning import Cell, Shard, cells, plan
from o2td.experiments.pool import compute
from o2td.experiments.record import keep
from o2td.experiments.spec import Spec
from o2td.experiments.store import Store
from o2td.experiments.work import (
    KeyedError,
    build_problem,
    execute,
    make_algorithm,
    told,
    try_out,
)
from o2td.registry import SOLVERS

_QUICK = 5.0  # seconds of work below which starting other processes costs more than it saves
MAX_WORKERS = 10_000
_MAX_CHECKED = 8  # cases whose problem is built beforehand, so that a mistake shows at once


@dataclass(frozen=True)
class Failure:
    """A shard that failed three times."""

    id: str
    error: str


@dataclass
class RunReport:
    """What a call to :func:`run` did, in numbers of shards."""

    experiment: str
    store: str
    planned: int = 0
    found: int = 0
    computed: int = 0
    damaged: list[str] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    seconds: float = 0.0
    ids: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the store now holds everything that was planned."""
        return self.found + self.computed == self.planned

    @property
    def stored(self) -> list[str]:
        """The ids of the planned shards that the store now holds."""
        failed = {failure.id for failure in self.failed}
        return [name for name in self.ids if name not in failed]


def run(
    spec: Spec,
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: bool | None = None,
) -> RunReport:
    """Compute all runs of a spec that `out` does not hold yet.

    Parameters
    ----------
    spec
        From :func:`~o2td.experiments.spec.load_spec`.
    out
        Folder of the store, created if needed.
    workers
        Number of processes; all cores by default, or only this process if there is little to do. It
        does not affect the results.
    dask
        Address of a Dask scheduler to compute on instead.
    progress
        Show a progress bar on stderr; by default only on a terminal.

    Examples
    --------
    >>> import tempfile
    >>> from o2td.experiments import load_spec, run
    >>> spec = load_spec('''
    ... name = "walk"
    ... steps = 100
    ... runs = 2
    ... metrics = ["rmse"]
    ... domain.name = "random_walk"
    ... algorithms = [{ name = "TD", parameters = { step_size = 0.1 } }]
    ... ''')
    >>> folder = tempfile.TemporaryDirectory()
    >>> run(spec, folder.name).computed, run(spec, folder.name).computed
    (1, 0)
    >>> folder.cleanup()
    """
    if progress is not None:
        switch("progress", progress)
    shards = plan(spec)
    if dask is not None:
        text("dask", dask)
    check_algorithms(cells(spec), spec)
    store = Store(out)
    report = run_shards(shards, store, spec.name, workers=workers, dask=dask, progress=progress)
    keep(store, spec, shown=report.stored)
    return report


def run_shards(
    shards: Sequence[Shard],
    store: Store,
    name: str,
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: bool | None = None,
    work: Callable[[str], bytes] = execute,
    folder: str = "runs",
) -> RunReport:
    """Compute those of `shards` that `folder` of `store` does not hold, by `work(key)`."""
    if progress is not None:
        switch("progress", progress)
    began = time.perf_counter()
    store.create()
    good, broken = store.check([shard.id for shard in shards], folder)
    missing = [shard for shard in shards if shard.id not in good]
    report = RunReport(name, str(store.path), len(shards), len(good), damaged=[*broken.values()])
    report.ids = [shard.id for shard in shards]
    if folder == "runs":
        _check_problems(missing)
    tasks = {shard.id: shard.key for shard in missing}
    processes = _workers(missing, workers)
    try:
        with warnings.catch_warnings(), _bar(name, len(shards), len(good), progress) as advance:
            # Loky replaces a worker whose memory has grown; the user need not know.
            warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
            for outcome in compute(work, tasks, processes, dask):
                if outcome.data is not None:
                    store.write(outcome.name, outcome.data, folder)
                    report.computed += 1
                else:
                    report.failed.append(Failure(outcome.name, str(outcome.error)))
                advance()
    finally:
        if report.computed or not (store.path / "manifest.json").exists():
            store.write_manifest()
        report.seconds = time.perf_counter() - began
    return report


def check_algorithms(settings: Sequence[Cell], spec: Spec) -> None:
    """Construct every algorithm once, so that a wrong value is refused before any work."""
    position = {entry.label or entry.name: k for k, entry in enumerate(spec.algorithms)}
    for cell in settings:
        if cell.kind == "learner" and "theta_max" in spec.metrics:
            raise InputError("metrics: theta_max is recorded for solvers only; use theta_norm")
        if cell.kind == "solver" and getattr(SOLVERS[cell.name], "of_actions", False):
            raise InputError(
                f"algorithms: {cell.name} learns values of actions, errors are those of states;"
                " leave it out"
            )
        try:
            make_algorithm(vars(cell))
        except (TypeError, ValueError, AttributeError) as error:
            where = position.get(cell.label, position.get(cell.name, 0))
            raise InputError(f"algorithms[{where}].parameters: {error}") from None


def _check_problems(shards: Sequence[Shard]) -> None:
    seen: set[tuple[str, str]] = set()
    for shard in shards:
        key = json.loads(shard.key)
        case = (str(key["domain"]), str(key["features"]))
        if case not in seen and len(seen) < _MAX_CHECKED:
            seen.add(case)
            try:
                problem = build_problem(key, key["runs"][0])
            except KeyedError:
                raise
            except (TypeError, ValueError, MemoryError, OverflowError) as error:
                raise InputError(f"domain.parameters: {told(error)}") from None
            try_out(key, problem)


def _workers(missing: Sequence[Shard], workers: int | None) -> int:
    if workers is not None:
        return whole("workers", workers, 1, MAX_WORKERS)
    if sum(shard.seconds for shard in missing) < _QUICK:
        return 1
    joblib = import_extra("joblib", extra="experiments")
    return max(1, min(int(joblib.cpu_count()), len(missing)))


@contextmanager
def _bar(name: str, total: int, done: int, wanted: bool | None) -> Iterator[Any]:
    """A progress bar with the time left, on stderr."""
    if not (sys.stderr.isatty() if wanted is None else wanted) or done == total:
        yield lambda: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=terminal.console(stderr=True)) as progress:
        task = progress.add_task(name, total=total, completed=done)
        yield partial(progress.advance, task)
