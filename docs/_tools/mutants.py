"""What the study of mutants found: docs/data/mutation.json.

`python docs/_tools/mutants.py RECORD [EARLIER ...]` takes it from the record of a study, and of earlier
ones the counts. Verdicts on survivors are written there by hand, and kept where they still fit.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from _tools.measure import ROOT

MUTATION = ROOT / "docs" / "data" / "mutation.json"


def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(MUTATION.read_text("utf-8"))
    return found


def totals(study: dict[str, Any]) -> tuple[int, int]:
    """Mutants killed, and met."""
    counts = study["groups"].values()
    return sum(one["killed"] for one in counts), sum(one["met"] for one in counts)


def figure() -> str:
    """The study in one sentence.

    >>> figure().startswith(f"{totals(kept())[0]} of {totals(kept())[1]} mutants")
    True
    """
    study = kept()
    killed, met = totals(study)
    controls = study["controls"]
    return (
        f"{killed} of {met} mutants ({killed / met:.1%}) killed, drawn with seed {study['seed']} from"
        f" {study['possible']:,}; {controls['passed']} of {controls['met']} controls, forks without"
        " a change, passed"
    )


def groups() -> str:
    """A table of all studies, group by group."""
    from _tools.blocks import table

    study = kept()
    studies = [*study["earlier"], study]
    rows = []
    for group in study["groups"]:
        cells = [one["groups"].get(group) for one in studies]
        rows.append([group, *map(_share, cells)])
    rows.append(
        [
            "all",
            *(_share(dict(zip(("killed", "met"), totals(one), strict=True))) for one in studies),
        ]
    )
    return table(["group", *(f"seed {one['seed']}" for one in studies)], rows)


def _share(counts: dict[str, Any] | None) -> str:
    if counts is None:
        return "–"
    return f"{counts['killed']} of {counts['met']} ({counts['killed'] / counts['met']:.1%})"


KINDS = {
    "Same numbers": "the change gives the same numbers",
    "Same answer": "the answer is the same up to rounding, by another way or in other time",
    "Noticed compiled": "tests notice it that are too slow without compilation",
    "A gap": "no test notices it, and one should",
}


def verdicts() -> str:
    """How many survivors there are of each kind."""
    found = Counter(one["verdict"].partition(":")[0] for one in kept()["survivors"])
    told = [f"- {found[kind]}: {words} (*{kind.lower()}*)." for kind, words in KINDS.items()]
    lead = f"{len(kept()['survivors'])} mutants were noticed by no test that met them:"
    return "\n".join([lead, "", *told])


def survivors() -> str:
    """Every mutant that no test noticed, with its verdict, file by file."""
    return "\n".join(_lines(kept()["survivors"]))


def _lines(found: list[dict[str, Any]]) -> Iterator[str]:
    ordered = sorted(found, key=lambda one: (one["file"], one["function"]))
    for (file, function), ones in groupby(ordered, lambda one: (one["file"], one["function"])):
        yield f"- `{file}`, `{function}`"
        for one in ones:
            kind, _, why = one["verdict"].partition(": ")
            yield f"    - `{one['line']}`, {one['change']}. *{kind}*: {why}"


def take(record: str, *earlier: str) -> dict[str, Any]:
    """A record with the counts of earlier ones before it."""
    found, *others = (json.loads(Path(name).read_text("utf-8")) for name in (record, *earlier))
    counts = [{k: v for k, v in one.items() if k != "survivors"} for one in others]
    return {**found, "earlier": counts}


if __name__ == "__main__":
    text = json.dumps(take(*sys.argv[1:]), indent=1, ensure_ascii=False)
    MUTATION.write_text(text + "\n", encoding="utf-8")
    print(MUTATION)
