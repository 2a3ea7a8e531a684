"""Results of the near-optimal study: docs/data/near_optimal.json.

`python -m docs._tools.near [PROBLEMS]` measures again, on this many problems per family.
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
WALKS = ("random walk", "walk of 19 states")
RAW = 1e-12  # what errors count at least where they are shown as measured
SHORT = ("arctd", "default", "one", "family", "everywhere", "lstd", "fixed")


def take(problems: int) -> dict[str, Any]:
    """Measure, and conclude."""
    from o2td.paper.studies import STUDIES
    from o2td.paper.studies.families import FAMILIES
    from o2td.paper.studies.near_optimal import near_optimal

    last = problems * len(FAMILIES)
    return concluded(list(near_optimal(0, last, STUDIES["near_optimal"].seed)), problems)


def concluded(measured: list[Any], problems: int) -> dict[str, Any]:
    """The study's lines by short name, with families; those of other groups of families separately."""
    import polars as pl

    from o2td.paper.near import LEAST, foresight, standings, there
    from o2td.paper.studies.families import FRESH, SETTLED, TEXTBOOK
    from o2td.paper.studies.near_optimal import RECORDS

    table = pl.DataFrame(measured)
    groups = {"": SETTLED, "textbook": TEXTBOOK, "fresh": FRESH}
    parts = {name: _lines(standings(table, some)) for name, some in groups.items()}
    raw = {name: _lines(standings(table, some, RAW)) for name, some in groups.items()}
    within, as_measured = (
        {
            family: [_rounded(row.learner), row.best, _rounded(row.solver)]
            for family, row in there(table, least).items()
        }
        for least in (LEAST, RAW)
    )
    ratios = _ratios(parts, within)
    for name, some in groups.items():
        chosen = [float(e) for e in foresight(table, some)[1:]]
        ratios[_named("learner_foresight", name)] = _rounded(
            _mean(parts[name]["arctd"]["error"][1:]) / _mean(chosen)
        )
    return {
        "problems": problems,
        "records": list(RECORDS),
        **parts[""],
        "textbook": parts["textbook"],
        "fresh": parts["fresh"],
        "there": within,
        "ratios": ratios,
        "raw": _ratios(raw, as_measured),
    }


def _ratios(parts: dict[str, Any], within: dict[str, Any]) -> dict[str, Any]:
    """The ratios that the text quotes: geometric means over families and numbers of rows."""

    def calm(name: str) -> float:
        rows = parts[""][name]["by_family"].items()
        return _mean([e for family, row in rows if family not in WALKS for e in row])

    found: dict[str, Any] = {}
    for name, part in parts.items():
        found[_named("learner", name)] = _over(part, "arctd", "family")
        found[_named("learner_everywhere", name)] = _over(part, "arctd", "everywhere", 1)
        found[_named("solver", name)] = _over(part, "lstd", "fixed")
    found["solver_calm"] = _rounded(calm("lstd") / calm("fixed"))
    worst = max(within, key=lambda family: within[family][0])
    found["worst"] = {"family": worst, "ratio": within[worst][0], "best": within[worst][1]}
    worst = max(within, key=lambda family: within[family][2])
    found["worst_solver"] = {"family": worst, "ratio": within[worst][2]}
    return found


def _named(what: str, group: str) -> str:
    return f"{what}_{group}" if group else what


def _over(part: Any, ours: str, others: str, first: int = 0) -> float:
    return _rounded(_mean(part[ours]["error"][first:]) / _mean(part[others]["error"][first:]))


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


def lines(group: str = "") -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table: every line of the study, for a group of families."""
    from o2td.paper.near import said

    found = kept()
    some = found[group] if group else found
    rows = [[said(some[name]["what"]), *map(number, some[name]["error"])] for name in SHORT]
    return ["", *(f"{n:,}" for n in found["records"])], rows


def families() -> tuple[list[str], list[list[str]]]:
    """Head and rows by family: our error over that of the best published method tuned for it."""
    from o2td.paper.near import with_trace

    found = kept()
    rows = []
    for some in (found, found["textbook"], found["fresh"]):
        for family, ours in some["arctd"]["by_family"].items():
            field = some["family"]["by_family"][family]
            own = [number(a / b) for a, b in zip(ours, field, strict=True)]
            whole, best, solver = found["there"][family]
            rows.append([family, *own, f"{number(whole)} ({with_trace(best)})", number(solver)])
    columns = ["family", *(f"{n:,}" for n in found["records"]), "all / best there", "LSTD"]
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
