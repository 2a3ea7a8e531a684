"""The record of a benchmark run: rows, the machine they were measured on, and a comparison."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from o2td.atomic import write_bytes
from o2td.errors import FormatError

__all__ = ["Change", "Row", "compare", "load", "machine", "save"]

FORMAT = 1
SLOWER = 1.3  # a row that grew by more than this factor counts as slower


@dataclass(frozen=True)
class Row:
    """One measurement. `value` is what `target` limits; `met` is None if there is no target.

    `ratio_to_c` and `ratio_to_numpy` are our time over theirs, from the fastest of interleaved
    repetitions; None if there is nothing to compare with.
    """

    measure: str
    algorithm: str
    layout: str
    d: int
    lanes: int
    ns_per_step: float | None = None
    ratio_to_c: float | None = None
    ratio_to_numpy: float | None = None
    median_ns_per_step: float | None = None
    value: float | None = None
    unit: str = ""
    target: str = ""
    met: bool | None = None

    @property
    def key(self) -> tuple[str, str, str, int, int]:
        """Identifies the same measurement in two runs."""
        return self.measure, self.algorithm, self.layout, self.d, self.lanes

    def judged(self, value: float | None, unit: str, relation: str, limit: float) -> Row:
        """The row with a value and its target."""
        met = None
        if value is not None:
            met = value <= limit if relation == "<=" else value >= limit
        given = asdict(self) | {"value": value, "unit": unit, "met": met}
        return Row(**given | {"target": f"{relation} {limit:g}"})


@dataclass(frozen=True)
class Change:
    """A row beside the same row of an earlier run; `factor` above 1 is slower."""

    row: Row
    factor: float

    @property
    def slower(self) -> bool:
        """Whether it grew by more than noise explains."""
        return self.factor > SLOWER


def machine(compiler: str | None) -> dict[str, Any]:
    """The machine and versions with which the rows were measured."""
    versions = {name: _version(name) for name in ("o2td", "numpy", "scipy", "numba", "llvmlite")}
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
        "compiler": compiler,
    }


def save(path: str | os.PathLike[str], rows: Sequence[Row], about: dict[str, Any]) -> None:
    """Write the run as one JSON object, completely or not at all."""
    record = {
        "format": FORMAT,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": about,
        "rows": [asdict(row) for row in rows],
    }
    write_bytes(path, (json.dumps(record, indent=1) + "\n").encode())


def load(path: str | os.PathLike[str]) -> list[Row]:
    """The rows that `save` wrote."""
    name = os.fspath(path)
    known = {field.name for field in fields(Row)}
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
        if record["format"] > FORMAT:
            raise FormatError(f"{name} was written by a newer o2td: upgrade, or measure again")
        return [Row(**{k: v for k, v in row.items() if k in known}) for row in record["rows"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FormatError(
            f"{name} is not a saved benchmark: make one with o2td bench --save {name}"
        ) from None


def compare(rows: Sequence[Row], before: Sequence[Row]) -> list[Change]:
    """Rows that both runs have, by their ratio to C where there is one: machines differ."""
    earlier = {row.key: row for row in before}
    pairs = [(row, earlier[row.key]) for row in rows if row.key in earlier]
    return [Change(row, factor) for row, old in pairs if (factor := _factor(row, old)) is not None]


def _factor(row: Row, old: Row) -> float | None:
    for name in ("ratio_to_c", "ratio_to_numpy"):
        now, then = getattr(row, name), getattr(old, name)
        if now is not None and then:
            return float(now / then)
    if row.value is not None and old.value:
        better = row.target.startswith(">=")
        return old.value / row.value if better else row.value / old.value
    if row.ns_per_step is not None and old.ns_per_step:
        return row.ns_per_step / old.ns_per_step
    return None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
