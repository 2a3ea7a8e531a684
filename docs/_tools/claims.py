"""The verdicts on the paper's claims, stored from a reproduction: docs/data/claims.json.

`python -m docs._tools.claims FOLDER` reads them from the folder that `o2td reproduce` has filled.
Nothing is run: the numbers are judged again from the store, as `o2td reproduce --json` does, and the
name of each measured quantity is stored with them.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

from docs._tools.measure import ROOT
from docs._tools.values import number, typeset

CLAIMS = ROOT / "docs" / "data" / "claims.json"
_WORDS = {
    "reproduced": "are reproduced",
    "not reproduced": "are not",
    "depends on the reading": "depend on how the paper is read",
    "undecided": "are undecided",
}
_MARKS = {"reproduced": "yes", "not reproduced": "no"}


def take(results: Any) -> dict[str, Any]:
    """The claims of a reproduction, and how many runs they rest on."""
    from o2td.paper.claims import judge_all
    from o2td.paper.claims.sotd import ratios_by_size

    rows = [
        {**c.row(v), "quantity": v.quantity, "numbers": v.numbers and asdict(v.numbers)}
        for c, v in judge_all(results)
    ]
    runs = {name: about["runs"] for name, about in results.record["experiments"].items()}
    sotd = {
        weighting: {str(n): list(found) for n, found in row.items()}
        for weighting, row in ratios_by_size(results, "fig-sotd").items()
    }
    return {"profile": results.record["profile"], "runs": runs, "claims": rows, "sotd": sotd}


def kept() -> dict[str, Any]:
    """What is in the file."""
    found: dict[str, Any] = json.loads(CLAIMS.read_text(encoding="utf-8"))
    return found


def by_id() -> dict[str, Any]:
    """Measured values for sentences that quote them: `claims.13.measured`, `claims.count.undecided`."""
    found = kept()
    counts = Counter(claim["verdict"] for claim in found["claims"])
    words = {"undecided": "undecided", "reproduced": "yes", "not reproduced": "no"}
    words["depends on the reading"] = "depends"
    return {
        **{str(claim["id"]): claim for claim in found["claims"]},
        "sotd": found["sotd"],
        "profile": found["profile"],
        "told": told(counts),
        "count": {"all": len(found["claims"]), **{words[v]: counts[v] for v in words}},
    }


def told(counts: Counter[str]) -> str:
    """How many claims have each verdict, in words.

    >>> told(Counter({"reproduced": 3, "undecided": 1}))
    '3 are reproduced, and 1 is undecided'
    """
    parts = [
        f"{counts[verdict]} {words if counts[verdict] != 1 else words.replace('are', 'is')}"
        for verdict, words in _WORDS.items()
        if counts[verdict]
    ]
    return ", ".join([*parts[:-1], f"and {parts[-1]}"])


def shown() -> str:
    """The claims as a list, one item per claim: text, verdict, reason, and what was measured."""
    found = kept()
    counts = Counter(claim["verdict"] for claim in found["claims"])
    runs = Counter(found["runs"].values()).most_common(1)[0][0]
    lead = (
        f"Of {len(found['claims'])} claims, {told(counts)}, in a stored run of"
        f" `o2td reproduce --profile {found['profile']}` ({runs} runs per experiment), with 95 %"
        " intervals. A claim is *undecided* if the runs do not settle a reading that could change the"
        " answer."
    )
    return "\n".join([lead, "", *(_item(claim) for claim in found["claims"])])


def verdict(number: int) -> str:
    """One claim with its verdict, linked to the list."""
    claim = by_id()[str(number)]
    mark = _MARKS.get(claim["verdict"], "depends")
    badge = f'<span class="verdict {mark}">{claim["verdict"]}</span>'
    return f"claim {number}, {plain(claim['claim'])}: {badge} ([why](paper.md#the-claims-measured))"


def _item(claim: dict[str, Any]) -> str:
    mark = _MARKS.get(claim["verdict"], "depends")
    verdict = f'<span class="verdict {mark}">{claim["verdict"]}</span>'
    values = [_brief(claim[k]) for k in ("measured", "low", "high")]
    span = values[0] if len(set(values)) == 1 else "{} [{}, {}]".format(*values)
    quantity = f"<br><small>Measured: {plain(claim['quantity'])}, {span}</small>"
    item = (
        f"- **{claim['id']}. {plain(claim['claim'])}** {verdict}<br>{plain(claim['why'])}{quantity}"
    )
    return item + _numbers(claim["numbers"]) if claim["numbers"] else item


def _numbers(found: dict[str, Any]) -> str:
    """The table behind a verdict, as a part of the list's item."""
    from docs._tools.blocks import table

    rows = [[plain(cell) for cell in row] for row in found["rows"]]
    lines = ["", f"{plain(found['caption'])}:", "", *table(found["columns"], rows).splitlines(), ""]
    return "\n".join(["", *(f"    {line}" if line else "" for line in lines)])


def _brief(value: float | None) -> str:
    if value is None:
        return "∞"
    return typeset(f"{value:.2e}") if 0.0 < abs(value) < 1e-9 else number(value)


def plain(text: str) -> str:
    """Text with its markup characters escaped."""
    text = " ".join(text.split())
    for mark in "\\|*_<>[]$`":
        text = text.replace(mark, {"<": "&lt;", ">": "&gt;"}.get(mark, "\\" + mark))
    return text


def main(folder: str) -> None:
    """Store what pages show of a reproduction."""
    from docs._tools import curves
    from o2td.paper import load

    results = load(folder)
    for path, found in ((CLAIMS, take(results)), (curves.CURVES, curves.take(results))):
        compact = path is curves.CURVES
        text = json.dumps(found, indent=None if compact else 1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main(sys.argv[1])
