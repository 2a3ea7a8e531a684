"""Studies: measurements that are exact or too special for a spec, stored next to the runs.

A study is a function `(first, last, seed) -> records` over problems first..last. A part of it is one
file in the store, named by the digest of the study's name, its problems, the seed and the versions,
so finished parts are kept, like those of a run. A study that measures time is run alone; its files
have digests like all others, but their bytes differ between machines and between days.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from o2td._version import __version__
from o2td.arguments import choice, instance, shown, text
from o2td.errors import InputError
from o2td.experiments.files import Labels, encode
from o2td.experiments.planning import FORMAT, Shard
from o2td.experiments.running import RunReport, run_shards
from o2td.experiments.store import Store
from o2td.experiments.work import one_thread

_SECONDS = 0.1  # a rough guess of one problem's time


@dataclass(frozen=True)
class Measurement:
    """One measured number of a study.

    `domain` says on what, `method` for which algorithm (or ""), `quantity` what was measured,
    `index` on which problem or run, `x` at which setting (lambda, n, d), `value` the number.
    """

    domain: str
    method: str
    quantity: str
    value: float
    index: int = 0
    x: float = 0.0


class StudyPlan(NamedTuple):
    """What to run, on how many problems per profile, and how many of them per part.

    Parameters
    ----------
    run : function
        `(first, last, seed) -> measurements` on problems first..last.
    quick, full : int
        Number of problems in each profile.
    part : int
        Number of problems per file.
    seed : int
        The seed passed to `run`.
    alone : bool
        Run nothing else at the same time, because it measures time.
    """

    run: Callable[[int, int, int], Iterator[Measurement]]
    quick: int
    full: int
    part: int
    seed: int
    alone: bool = False

    def problems(self, profile: str) -> int:
        """The number of problems in a profile."""
        return self.full if profile == "full" else self.quick

    def shards(self, name: str, profile: str) -> list[Shard]:
        """All parts of the study, called `name`, in a profile."""
        key = {"format": FORMAT, "version": __version__, "experiment": name, "seed": self.seed}
        last = self.problems(profile)
        return [
            Shard.of({**key, "runs": [first, min(first + self.part, last)]}, _SECONDS)
            for first in range(0, last, self.part)
        ]


def run_studies(
    studies: Mapping[str, StudyPlan],
    store: Store,
    profile: str = "quick",
    *,
    workers: int | None = None,
    progress: bool | None = None,
) -> RunReport:
    """Compute all parts of `studies` that the store does not hold yet.

    Parameters
    ----------
    studies : mapping
        Studies by name; each is a function of a module, so that a worker finds it.
    store : Store
        Where results are kept.
    profile : str
        "quick" or "full".
    workers, progress
        As for `run`.

    Examples
    --------
    >>> import tempfile
    >>> from o2td.experiments import Measurement, Store, StudyPlan, run_studies, study
    >>> def squares(first, last, seed):
    ...     for k in range(first, last):
    ...         yield Measurement("numbers", "", "square", k**2, k)
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(folder.name)
    >>> mine = {"squares": StudyPlan(squares, quick=4, full=100, part=2, seed=1)}
    >>> found = run_studies(mine, store, workers=1)
    >>> study(store, found.ids)["value"].to_list()
    [0.0, 1.0, 4.0, 9.0]
    >>> folder.cleanup()
    """
    if not isinstance(studies, Mapping):
        raise InputError(
            f"studies must be a mapping of names to a StudyPlan each, got {shown(studies)}"
        )
    for name, study in studies.items():
        text("studies", name)
        instance(f"studies: {name}", study, StudyPlan, "a StudyPlan")
    instance("store", store, Store, "a Store")
    choice("profile", profile, ("quick", "full"))
    parts = {name: study.shards(name, profile) for name, study in studies.items()}
    work = partial(execute_study, studies)
    options: dict[str, Any] = {"progress": progress, "work": work, "folder": "studies"}
    alone = [shard for name in parts if studies[name].alone for shard in parts[name]]
    others = [shard for name in parts if not studies[name].alone for shard in parts[name]]
    first = run_shards(alone, store, "timing", workers=1, **options)
    report = run_shards(others, store, "studies", workers=workers, **options)
    report.planned += first.planned
    report.found += first.found
    report.computed += first.computed
    report.damaged += first.damaged
    report.failed += first.failed
    report.seconds += first.seconds
    report.ids = [shard.id for part in parts.values() for shard in part]
    return report


def execute_study(studies: Mapping[str, StudyPlan], key_text: str) -> bytes:
    """Compute the part of a study that this key names, and return its file's bytes."""
    key = json.loads(key_text)
    name = key["experiment"]
    first, last = key["runs"]
    with one_thread():
        found = list(studies[name].run(first, last, key["seed"]))
    return encode(
        key_text,
        {
            "study": Labels.of([name] * len(found)),
            "domain": Labels.of([one.domain for one in found]),
            "method": Labels.of([one.method for one in found]),
            "quantity": Labels.of([one.quantity for one in found]),
            "index": np.array([one.index for one in found], dtype=np.int64),
            "x": np.array([one.x for one in found], dtype=np.float64),
            "value": np.array([one.value for one in found], dtype=np.float64),
        },
    )
