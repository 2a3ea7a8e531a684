"""Results of the mutation study: docs/data/mutation.json.

`python -m docs._tools.mutants RECORD ...` takes them from the records of one study, each of other
groups. Verdicts on survivors are written there by hand and kept where they still fit.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from docs._tools.measure import ROOT

MUTATION = ROOT / "docs" / "data" / "mutation.json"


def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(MUTATION.read_text("utf-8"))
    return found


def totals(study: dict[str, Any]) -> tuple[int, int]:
    """Mutants killed, and mutants tested."""
    counts = study["groups"].values()
    return sum(one["killed"] for one in counts), sum(one["met"] for one in counts)


def figure() -> str:
    """The study in one sentence."""
    study = kept()
    killed, met = totals(study)
    controls = study["controls"]
    return (
        f"{killed} of {met} mutants ({killed / met:.1%}) killed; {controls['passed']} of"
        f" {controls['met']} controls, forks without a change, passed; the code was that of"
        f" {commits(study)}"
    )


def commits(study: dict[str, Any]) -> str:
    """The commits whose code was changed, in words."""
    found = dict.fromkeys(one["commit"] for one in study["groups"].values())
    return f"commit{'s' * (len(found) > 1)} {' and '.join(found)}"


def groups() -> str:
    """A table of the groups."""
    from docs._tools.blocks import table

    study = kept()
    rows = [
        [
            group,
            f"{counts['possible']:,}",
            _share(counts),
            str(counts["of these by the time limit"]),
        ]
        for group, counts in study["groups"].items()
    ]
    killed, met = totals(study)
    whole = sum(counts["possible"] for counts in study["groups"].values())
    rows.append(["all", f"{whole:,}", _share({"killed": killed, "met": met}), ""])
    lead = f"Seed {study['seed']}, the code of {commits(study)}."
    return f"{lead}\n\n{table(['group', 'possible', 'killed', 'by the time limit'], rows)}"


def _share(counts: dict[str, Any]) -> str:
    return f"{counts['killed']} of {counts['met']} ({counts['killed'] / counts['met']:.1%})"


KINDS = {
    "Same numbers": "the change gives the same numbers",
    "Same answer": "the answer is the same up to rounding, by another way or in other time",
    "Noticed elsewhere": "other tests notice it than those that were run on it",
    "Noticed since": "a test added since then notices it",
    "A gap": "no test notices it, and one should",
}


def verdicts() -> str:
    """The number of survivors of each kind."""
    found = Counter(one["verdict"].partition(":")[0] for one in kept()["survivors"])
    told = [f"- {found[kind]}: {words} (*{kind.lower()}*)." for kind, words in KINDS.items()]
    lead = f"{len(kept()['survivors'])} mutants survived the tests that were run on them:"
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


def take(*names: str) -> dict[str, Any]:
    """Join records of one seed, keeping existing verdicts."""
    judged = (
        {_name(one): one["verdict"] for one in kept()["survivors"]} if MUTATION.exists() else {}
    )
    counts: dict[str, Any] = {}
    survivors: list[dict[str, Any]] = []
    controls = Counter[str]()
    seeds = set[int]()
    for name in names:
        record = json.loads(Path(name).read_text("utf-8"))
        seeds.add(record["seed"])
        controls.update(record["controls"])
        for group, found in record["groups"].items():
            about = {"commit": record["commit"], "possible": record["possible"][group]}
            counts[group] = {**about, **found}
        survivors += record["survivors"]
    (seed,) = seeds
    return {
        "seed": seed,
        "groups": counts,
        "controls": dict(controls),
        "survivors": [
            {**one, "verdict": judged.get(_name(one), one["verdict"])} for one in survivors
        ],
    }


def _name(one: dict[str, Any]) -> tuple[str, ...]:
    return tuple(one[key] for key in ("file", "function", "line", "change"))


if __name__ == "__main__":
    text = json.dumps(take(*sys.argv[1:]), indent=1, ensure_ascii=False)
    MUTATION.write_text(text + "\n", encoding="utf-8")
    print(MUTATION)
