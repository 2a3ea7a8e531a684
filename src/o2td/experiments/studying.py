"""Studies into the store: one file a part, named by the digest of what determines it.

A part is some problems of one study. Its key holds the study's name, the problems, the seed and the
versions, so finished parts are kept, as those of a run are. One study measures time (`cost`): its
files prove themselves like all others, but no two machines, nor two days, give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401 - its BLAS must be loaded before the threads are limited

from o2td._version import __version__
from o2td.errors import InputError, import_extra
from o2td.experiments.files import Labels, encode
from o2td.experiments.planning import FORMAT, Shard
from o2td.experiments.running import RunReport, run_shards
from o2td.experiments.store import Store
from o2td.experiments.studies import STUDIES, Record
from o2td.experiments.validate import suggestion

__all__ = ["execute_study", "run_studies", "study_shards"]

_SECONDS = 0.1  # a rough guess of one problem's time
_ALONE = ("cost",)  # studies of time, which other work beside them would disturb


def study_shards(name: str, profile: str = "quick") -> list[Shard]:
    """All parts of a study in a profile.

    >>> len(study_shards("nearness"))
    10
    """
    if name not in STUDIES:
        raise InputError(f"no study {name!r}, {suggestion(name, STUDIES)}")
    study = STUDIES[name]
    problems = study.problems(profile)
    key = {"format": FORMAT, "version": __version__, "experiment": name, "seed": study.seed}
    return [
        Shard.of({**key, "runs": [first, min(first + study.part, problems)]}, _SECONDS)
        for first in range(0, problems, study.part)
    ]


def run_studies(
    names: Iterable[str],
    store: Store,
    profile: str = "quick",
    *,
    workers: int | None = None,
    progress: bool | None = None,
) -> RunReport:
    """Compute all parts of the named studies that the store does not hold yet.

    Parameters
    ----------
    names : iterable of str
        Names of studies.
    store : Store
        Where results are kept.
    profile : str
        "quick" or "full".
    workers, progress
        As for `run`.
    """
    parts = {name: study_shards(name, profile) for name in names}
    options: dict[str, Any] = {"progress": progress, "work": execute_study, "folder": "studies"}
    alone = [shard for name in parts if name in _ALONE for shard in parts[name]]
    others = [shard for name in parts if name not in _ALONE for shard in parts[name]]
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


def execute_study(key_text: str) -> bytes:
    """Compute the part of a study that this key names, and return its file's bytes."""
    limits = import_extra("threadpoolctl", extra="experiments")
    key = json.loads(key_text)
    with limits.threadpool_limits(1):
        first, last = key["runs"]
        records = list(STUDIES[key["experiment"]].run(first, last, key["seed"]))
    return encode(key_text, _columns(key["experiment"], records))


def _columns(name: str, records: list[Record]) -> dict[str, Any]:
    def words(found: list[str]) -> Labels:
        distinct = list(dict.fromkeys(found))
        place = {word: k for k, word in enumerate(distinct)}
        return Labels(np.array([place[word] for word in found], dtype=np.int32), distinct)

    return {
        "study": words([name] * len(records)),
        "domain": words([record.domain for record in records]),
        "method": words([record.method for record in records]),
        "quantity": words([record.quantity for record in records]),
        "index": np.array([record.index for record in records], dtype=np.int64),
        "x": np.array([record.x for record in records], dtype=np.float64),
        "value": np.array([record.value for record in records], dtype=np.float64),
    }
