"""What the study of comparisons found: docs/data/compare.json, as tables."""

from __future__ import annotations

import json
from typing import Any

from docs._tools.measure import ROOT

KEPT = ROOT / "docs" / "data" / "compare.json"


def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(KEPT.read_text("utf-8"))
    return found


def sizes() -> str:
    """The study in one sentence."""
    found = kept()["problems"]
    sets = {one["sets"] for one in found.values()}
    return f"{max(sets)} logs each of {len(found)} problems with three policies:"


def shown() -> str:
    """Coverage and width by problem."""
    from docs._tools.blocks import table

    rows = [
        [
            name,
            *(f"{one[key]:.1%}" for key in ("covers", "covers_logged", "widened", "joint")),
            *(f"{one[key]:.2f}" for key in ("width", "width_logged")),
        ]
        for name, one in kept()["problems"].items()
    ]
    heads = ["problem", "covers", "against logged", "widened", "all at once, joint"]
    return table([*heads, "width", "against logged"], rows)


def best() -> str:
    """Whether the probability of being best is what it says."""
    from docs._tools.blocks import table

    rows = [
        [
            f"{one['low']:.0%} to {one['high']:.0%}",
            f"{one['said']:.1%}",
            f"{one['true']:.1%}",
            str(one["count"]),
        ]
        for one in kept()["best"]
    ]
    return table(["said", "on average", "was the best", "times"], rows)
