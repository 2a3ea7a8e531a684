"""Run the whole paper: every experiment, tuned and as printed, and every study, into one store.

What the store holds is kept, so an interrupted reproduction continues, and a second one is quick.
Next to the results is `reproduction.json`: which files belong to which experiment in which profile,
with versions, seeds and time. The report is made from these files alone.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from o2td._version import __version__
from o2td.arguments import choice, listed, text, whole
from o2td.atomic import write_bytes
from o2td.errors import InputError, O2TDError, import_extra
from o2td.experiments.planning import Shard, cells, plan
from o2td.experiments.record import describe, versions
from o2td.experiments.running import MAX_WORKERS, RunReport, check_algorithms, run_shards
from o2td.experiments.spec import Spec
from o2td.experiments.store import Store
from o2td.experiments.studies import run_studies
from o2td.experiments.tuning import tuned_shards, tuning_shards
from o2td.experiments.validate import suggestion
from o2td.paper.catalogue import EXPERIMENTS, FIGURES, spec
from o2td.paper.studies import STUDIES

PROFILES = ("quick", "full")
RECORD = "reproduction.json"
RECORD_FORMAT = 1


@dataclass
class Reproduction:
    """The result of a call: its folder, its parts, and whether the store is complete."""

    path: Path
    profile: str
    figures: list[str]
    parts: list[RunReport] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether nothing failed."""
        return all(part.complete for part in self.parts)


def reproduce(
    figures: Iterable[str] | None = None,
    profile: str = "quick",
    out: str | os.PathLike[str] = "reproduction",
    *,
    workers: int | None = None,
    progress: bool | None = None,
) -> Reproduction:
    """Run the paper's experiments, or those that the named figures need, into the folder `out`.

    Parameters
    ----------
    figures
        Names in :data:`~o2td.paper.FIGURES`; all of them by default.
    profile
        `"quick"` (20 runs, minutes) or `"full"` (200 runs, within an hour).
    out
        Folder of the store; made if needed. :func:`o2td.paper.build` makes the report there.
    workers
        Processes; all cores by default.
    progress
        Show a progress bar on stderr; by default only on a terminal.

    Examples
    --------
    >>> import tempfile
    >>> from o2td.paper import reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     reproduce(["fig-oblique"], out=folder).complete
    True
    """
    began = time.perf_counter()
    wanted = _wanted(figures)
    choice("profile", profile, PROFILES)
    needed = list(dict.fromkeys(part for name in wanted for part in FIGURES[name]))
    specs = {name: spec(name, profile) for name in needed if name in EXPERIMENTS}
    studies = {name: study for name, study in STUDIES.items() if name in needed}
    store = Store(out)
    result = Reproduction(Path(out), profile, wanted)
    options: dict[str, Any] = {"workers": _workers(workers), "progress": progress}

    shown = {n: _planned(one) for n, one in specs.items() if EXPERIMENTS[n].shown}
    tried = {n: tuning_shards(one) for n, one in specs.items() if EXPERIMENTS[n].tuned}
    everything = _flat([*shown.values(), *tried.values()])
    result.parts.append(run_shards(everything, store, "experiments", **options))
    result.parts.append(run_studies(studies, store, profile, **options))
    if result.complete:
        chosen = {name: tuned_shards(specs[name], store) for name in tried}
        best = _flat([shards for shards, _ in chosen.values()])
        result.parts.append(run_shards(best, store, "tuned", **options))
    if not result.complete:
        raise O2TDError(_sentence(result))
    result.seconds = time.perf_counter() - began
    experiments = {
        name: describe(
            one,
            shown=[shard.id for shard in shown.get(name, [])],
            tuned=[shard.id for shard in chosen[name][0]] if name in chosen else [],
            sensitivity=chosen[name][1] if name in chosen else [],
        )
        for name, one in specs.items()
    }
    parts = {
        name: [shard.id for shard in study.shards(name, profile)] for name, study in studies.items()
    }
    _write_record(store, result, experiments, parts)
    return result


def _wanted(figures: Iterable[str] | None) -> list[str]:
    asked = list(FIGURES) if figures is None else listed("figures", figures, "names of figures")
    asked = asked or list(FIGURES)
    for name in asked:
        if text("figures", name) not in FIGURES:
            raise InputError(f"figures: no {name!r}, {suggestion(name, FIGURES)}")
    return [name for name in FIGURES if name in asked]


def _planned(spec: Spec) -> list[Shard]:
    check_algorithms(cells(spec), spec)
    return plan(spec)


def _flat(parts: Iterable[Sequence[Shard]]) -> list[Shard]:
    return [shard for part in parts for shard in part]


def _workers(asked: int | None) -> int:
    if asked is not None:
        return whole("workers", asked, 1, MAX_WORKERS)
    count: Callable[[], int] = import_extra("joblib", extra="experiments").cpu_count
    return max(1, int(count()))


def _sentence(result: Reproduction) -> str:
    failures = [failure for part in result.parts for failure in part.failed]
    first = failures[0].error if failures else "no reason given"
    return (
        f"{result.path}: {len(failures)} parts failed three times, the first one with: {first}; what"
        " is finished is kept: run the same command again"
    )


def _write_record(
    store: Store, result: Reproduction, experiments: dict[str, Any], studies: dict[str, Any]
) -> None:
    """Record what was run and how; earlier calls of this folder, profile and version stay."""
    path = store.path / RECORD
    before = _before(path)
    same = before.get("profile") == result.profile and before["versions"].get("o2td") == __version__
    if same:
        experiments, studies = (
            {**before["experiments"], **experiments},
            {**before["studies"], **studies},
        )
    call = {
        "profile": result.profile,
        "figures": result.figures,
        "seconds": round(result.seconds, 1),
        "computed": sum(part.computed for part in result.parts),
        "found": sum(part.found for part in result.parts),
    }
    record = {
        "format": RECORD_FORMAT,
        "profile": result.profile,
        "versions": versions(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "calls": [*before.get("calls", [])[-99:], call],
        "experiments": {name: experiments[name] for name in EXPERIMENTS if name in experiments},
        "studies": {name: studies[name] for name in STUDIES if name in studies},
        "study_seeds": {name: STUDIES[name].seed for name in STUDIES if name in studies},
    }
    write_bytes(path, (json.dumps(record, indent=1) + "\n").encode())


def _before(path: Path) -> dict[str, Any]:
    """The record of the last call in this folder, empty if it is missing or damaged."""
    try:
        record = json.loads(path.read_text())
        kinds = {"calls": list, "experiments": dict, "studies": dict, "versions": dict}
        if record["format"] == RECORD_FORMAT and all(
            isinstance(record[key], kind) for key, kind in kinds.items()
        ):
            return dict(record)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {}
