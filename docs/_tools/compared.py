"""Results of the studies of comparisons, returns and unknown behaviours (`docs/data`) as tables."""

from __future__ import annotations

import json
from typing import Any

from docs._tools.measure import ROOT

KEPT = ROOT / "docs" / "data"


def kept(name: str = "compare") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((KEPT / f"{name}.json").read_text("utf-8"))
    return found


def sizes() -> str:
    """The study in one sentence."""
    found = kept()["problems"]
    sets = sorted({one["sets"] for one in found.values()})
    count = " to ".join(str(one) for one in (sets if len(sets) < 3 else (sets[0], sets[-1])))
    return f"{count} logs each of {len(found)} problems with three policies:"


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
    """Whether the probability of being best is calibrated."""
    from docs._tools.blocks import table

    rows = [
        [
            f"{one['low']:.0%} to {one['high']:.0%}",
            f"{one['said']:.1%}",
            f"{one['true']:.1%}",
            f"±{100.0 * one['chance']:.1f}",
            str(one["count"]),
        ]
        for one in kept()["best"]
    ]
    return table(["said", "on average", "was the best", "chance", "times"], rows)


def best_by_problem() -> str:
    """The same for each problem: how far the share is from what was said, in points."""
    from docs._tools.blocks import table

    problems = kept()["problems"]
    listed = {name: {row["low"]: row for row in one["best"]} for name, one in problems.items()}
    rows = [
        [
            f"{one['low']:.0%} to {one['high']:.0%}",
            *(_off(found.get(one["low"])) for found in listed.values()),
        ]
        for one in kept()["best"]
    ]
    return table(["said", *listed], rows)


def _off(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    return f"{100.0 * (row['true'] - row['said']):+.1f} (±{100.0 * row['chance']:.1f})"


def returns() -> str:
    """How often intervals of quantiles and of the worst tenth covered the truth, and refusals."""
    from docs._tools.blocks import table

    found = kept("returns")
    names = list(next(iter(found.values()))["covers"])
    rows = [
        [
            name,
            str(one["sets"]),
            *(f"{one['covers'][key]:.1%}" if one["refused"] < 0.5 else "–" for key in names),
            f"{one['refused']:.1%}",
        ]
        for name, one in found.items()
    ]
    return table(["log", "logs", *names, "refused"], rows)


def unknown() -> str:
    """The cost of not knowing the behaviour."""
    from docs._tools.blocks import table

    rows = [
        [f"{name}, {method}"]
        + [
            f"{one[arm][method]['rmse']:.3f}, {one[arm][method]['covers']:.0%}"
            for arm in ("known", "held out", "all rows")
        ]
        for name, one in kept("unknown_behavior").items()
        for method in ("recommended", "wpdis", "wdr")
    ]
    return table(["error, coverage", "known", "model, held out", "model of all rows"], rows)
