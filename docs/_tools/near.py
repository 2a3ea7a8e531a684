"""Results of the near-optimal study: docs/data/near_optimal.json.

`python -m docs._tools.near learners [PROBLEMS]` measures learners again, on this many problems per
family, and `… solvers [PROBLEMS]` solvers. The other part of the file stays as it is.
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
LEARNERS, SOLVERS = ("arctd", "default", "one", "family", "everywhere"), ("lstd", "fixed")
SHORT = LEARNERS + SOLVERS


def take(part: str, problems: int) -> dict[str, Any]:
    """Measure learners or solvers, and conclude: the parts of the file that depend on them."""
    import polars as pl

    from o2td.paper.studies import FAMILIES, STUDIES

    plan = STUDIES[{"learners": "near_optimal", "solvers": "near_solvers"}[part]]
    table = pl.DataFrame(list(plan.run(0, problems * len(FAMILIES), plan.seed)))
    found = learned(table) if part == "learners" else solved(table)
    return {"problems": {part: problems}, "seeds": {part: plan.seed}, **found}


def learned(table: Any) -> dict[str, Any]:
    """The learners' lines by short name, with families; those of other groups separately."""
    from o2td.paper.near import LEAST, foresight, standings, there, with_trace

    groups = _groups()
    found: dict[str, Any] = {}
    for kind, least in (("ratios", LEAST), ("raw", RAW)):
        ratios: dict[str, Any] = {}
        for group, some in groups.items():
            part = _lines(LEARNERS, standings(table, some, least))
            ratios[_named("learner", group)] = _over(part, "arctd", "family")
            ratios[_named("learner_everywhere", group)] = _over(part, "arctd", "everywhere", 1)
            if kind == "ratios":
                found |= {group: part} if group else part
                chosen = [float(e) for e in foresight(table, some)[1:]]
                ratio = _mean(part["arctd"]["error"][1:]) / _mean(chosen)
                ratios[_named("learner_foresight", group)] = _rounded(ratio)
        within = there(table, least)
        for name, some in _worst("worst"):
            worst = max(some, key=lambda family: within[family].learner)
            ratio, best = _rounded(within[worst].learner), with_trace(within[worst].best)
            ratios[name] = {"family": worst, "ratio": ratio, "best": best}
        found[kind] = ratios
    within = there(table)
    found["there"] = {family: [_rounded(row.learner), row.best] for family, row in within.items()}
    return found


def solved(table: Any) -> dict[str, Any]:
    """The same for solvers, and the mean over all families."""
    from o2td.paper.near import LEAST, solver_standings, solver_there
    from o2td.paper.studies import FAMILIES, SETTLED

    groups = _groups()
    calm = [family for family in SETTLED if family not in WALKS]
    found: dict[str, Any] = {}
    for kind, least in (("ratios", LEAST), ("raw", RAW)):
        ratios: dict[str, Any] = {}
        for group, some in {**groups, "calm": calm, "all": list(FAMILIES)}.items():
            part = _lines(SOLVERS, solver_standings(table, some, least))
            ratios[_named("solver", group)] = _over(part, "lstd", "fixed")
            if kind == "ratios" and group in groups:
                found |= {group: part} if group else part
        within = solver_there(table, least)
        for name, some in _worst("worst_solver"):
            worst = max(some, key=lambda family: within[family])
            ratios[name] = {"family": worst, "ratio": _rounded(within[worst])}
        found[kind] = ratios
    found["solver_there"] = {f: _rounded(x) for f, x in solver_there(table).items()}
    return found


def _groups() -> dict[str, tuple[str, ...]]:
    """Families by group; `others` are all that ARCTD was not settled on."""
    from o2td.paper.studies import FRESH, LATER, SETTLED, TEXTBOOK

    apart = {"textbook": TEXTBOOK, "fresh": FRESH, "later": LATER}
    return {"": SETTLED, **apart, "others": TEXTBOOK + FRESH + LATER}


def _worst(name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Where to look for the weakest family: among all, and among those met last."""
    from o2td.paper.studies import FAMILIES, LATER

    return [(name, tuple(FAMILIES)), (f"{name}_later", LATER)]


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """`old` with what is in `new`, dictionaries entry by entry."""
    found = dict(old)
    for name, value in new.items():
        both = isinstance(value, dict) and isinstance(old.get(name), dict)
        found[name] = merged(old[name], value) if both and name != "by_family" else value
    return found


def _named(what: str, group: str) -> str:
    return f"{what}_{group}" if group else what


def _over(part: Any, ours: str, others: str, first: int = 0) -> float:
    return _rounded(_mean(part[ours]["error"][first:]) / _mean(part[others]["error"][first:]))


def _lines(names: tuple[str, ...], found: list[Any]) -> dict[str, Any]:
    return {
        name: {
            "what": line.what,
            "error": [_rounded(e) for e in line.error],
            "by_family": {f: [_rounded(e) for e in v] for f, v in line.by_family.items()},
        }
        for name, line in zip(names, found, strict=True)
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
    names = [name for name in SHORT if name in some]
    rows = [[said(some[name]["what"]), *map(number, some[name]["error"])] for name in names]
    return ["", *(f"{n:,}" for n in found["records"])], rows


def families() -> tuple[list[str], list[list[str]]]:
    """Head and rows by family: our error over that of the best published method tuned for it."""
    from o2td.paper.near import with_trace

    found = kept()
    rows = []
    for some in (found, found["textbook"], found["fresh"], found["later"]):
        for family, ours in some["arctd"]["by_family"].items():
            field = some["family"]["by_family"][family]
            own = [number(a / b) for a, b in zip(ours, field, strict=True)]
            whole, best = found["there"][family]
            solver = number(found["solver_there"][family])
            rows.append([family, *own, f"{number(whole)} ({with_trace(best)})", solver])
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
    found = take(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2)
    NEAR.write_text(json.dumps(merged(kept(), found), indent=1) + "\n", encoding="utf-8")
