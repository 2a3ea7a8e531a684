"""Near-optimal without tuning, kept: docs/data/near_optimal.json.

`python -m docs._tools.near [PROBLEMS]` measures anew, on so many problems of each family.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from docs._tools.measure import ROOT
from docs._tools.values import number

NEAR = ROOT / "docs" / "data" / "near_optimal.json"
INTERVALS = NEAR.with_name("learner_intervals.json")
SHORT = ("arctd", "default", "one", "family", "everywhere", "lstd", "fixed")


def take(problems: int) -> dict[str, Any]:
    """Measure, and conclude."""
    from o2td.paper.studies import STUDIES
    from o2td.paper.studies.near_optimal import FAMILIES, near_optimal

    last = problems * len(FAMILIES)
    return concluded(list(near_optimal(0, last, STUDIES["near_optimal"].seed)), problems)


def concluded(measured: list[Any], problems: int) -> dict[str, Any]:
    """The study's lines by short name, with families; those of fresh families by themselves."""
    import polars as pl

    from o2td.paper.near import standings
    from o2td.paper.studies.near_optimal import RECORDS

    table = pl.DataFrame(measured)
    settled, fresh = (_lines(standings(table, fresh)) for fresh in (False, True))
    return {"problems": problems, "records": list(RECORDS), **settled, "fresh": fresh}


def _lines(found: list[Any]) -> dict[str, Any]:
    return {
        name: {
            "what": line.what,
            "error": [_rounded(e) for e in line.error],
            "by_family": {f: [_rounded(e) for e in v] for f, v in line.by_family.items()},
        }
        for name, line in zip(SHORT, found, strict=True)
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def kept() -> dict[str, Any]:
    """What is in the file."""
    found: dict[str, Any] = json.loads(NEAR.read_text(encoding="utf-8"))
    return found


def lines(fresh: bool = False) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table: every line of the study."""
    found = kept()
    some = found["fresh"] if fresh else found
    rows = [[some[name]["what"], *map(number, some[name]["error"])] for name in SHORT]
    return ["", *(f"{n:,}" for n in found["records"])], rows


def families() -> tuple[list[str], list[list[str]]]:
    """Head and rows by family: ours over the field's best with its step size chosen for that family."""
    found = kept()
    rows = []
    for some in (found, found["fresh"]):
        for family, ours in some["arctd"]["by_family"].items():
            field = some["family"]["by_family"][family]
            own = [number(a / b) for a, b in zip(ours, field, strict=True)]
            lstd, fixed = (some[name]["by_family"][family] for name in ("lstd", "fixed"))
            rows.append([family, *own, number(_mean(lstd) / _mean(fixed))])
    columns = ["family", *(f"{n:,}" for n in found["records"]), "LSTD, chosen / fixed λ"]
    return columns, rows


def intervals() -> tuple[list[str], list[list[str]]]:
    """Head and rows: how often learners' intervals covered, by problem."""
    found = json.loads(INTERVALS.read_text(encoding="utf-8"))["coverage"]
    learners = list(next(iter(found.values())))
    rows = [[name, *(f"{100 * row[x]:.0f} %" for x in learners)] for name, row in found.items()]
    return ["", *(f"`{x}`" for x in learners)], rows


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


if __name__ == "__main__":
    found = take(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    NEAR.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
