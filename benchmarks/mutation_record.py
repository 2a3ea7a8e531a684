"""The results of a mutation study: counts by group, and the table of mutants that no test noticed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

KEPT = Path(__file__).resolve().parents[1] / "docs" / "data" / "mutation.json"
LOST = ("survived", "no test", "error")
LEAST = 0.75  # share of mutants that each group's tests must notice
WHOLE = 0.9  # and those of all groups together


class Outcome(NamedTuple):
    """A mutant and how it fared."""

    group: str
    file: str
    function: str
    line: str
    change: str
    fate: str

    @property
    def name(self) -> tuple[str, str, str, str]:
        return self.file, self.function, self.line, self.change


def record(about: dict[str, Any], met: list[Outcome], controls: list[str]) -> dict[str, Any]:
    """Counts by group and survivors, with the verdicts of the stored record where it has them."""
    counts = {}
    for group in dict.fromkeys(one.group for one in met):
        fates = Counter(one.fate for one in met if one.group == group)
        lost = sum(fates[fate] for fate in LOST)
        counts[group] = {"met": fates.total(), "killed": fates.total() - lost} | {
            "of these by the time limit": fates["timeout"]
        }
    judged = verdicts()
    survivors = [
        one._asdict() | {"verdict": judged.get(one.name, "")} for one in met if one.fate in LOST
    ]
    survivors.sort(key=lambda one: (one["group"], one["file"], one["function"]))
    passed = {"met": len(controls), "passed": controls.count("survived")}
    return {**about, "groups": counts, "controls": passed, "survivors": survivors}


def verdicts() -> dict[tuple[str, str, str, str], str]:
    if not KEPT.exists():
        return {}
    kept = json.loads(KEPT.read_text("utf-8"))
    return {
        (one["file"], one["function"], one["line"], one["change"]): one["verdict"]
        for one in kept["survivors"]
    }


def table(survivors: list[dict[str, Any]]) -> str:
    """Survivors as a Markdown table."""
    lines = ["| file | function | line | change | fate | verdict |", "|---|---|---|---|---|---|"]
    for one in survivors:
        line = one["line"].replace("|", "\\|")
        cells = [one["file"], one["function"], f"`{line}`", one["change"], one["fate"]]
        lines.append(f"| {' | '.join([*cells, one['verdict']])} |")
    return "\n".join(lines) + "\n"


def write(work: Path, about: dict[str, Any], met: list[Outcome], controls: list[str]) -> int:
    """Store the record in `work`, print it, and return whether the tests are good enough."""
    met = [one for one in met if one.fate != "not met"]
    found = record(about, met, controls)
    (work / "record.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    (work / "survivors.md").write_text(table(found["survivors"]))
    print(table(found["survivors"]))
    good = found["controls"]["passed"] == found["controls"]["met"]
    killed = of = 0
    for group, counts in found["groups"].items():
        share = counts["killed"] / counts["met"]
        print(f"{group}: {counts['killed']} of {counts['met']} killed ({share:.1%})")
        good &= share >= LEAST
        killed, of = killed + counts["killed"], of + counts["met"]
    print(f"controls: {found['controls']}")
    print(f"{killed} of {of} killed: {killed / max(1, of):.1%}")
    return 0 if good and killed >= WHOLE * of else 1
