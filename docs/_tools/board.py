"""The leaderboard, stored from a reproduction: docs/data/leaderboard.json.

`python -m docs._tools.board FOLDER` reads it from the folder that `o2td reproduce` has filled.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from docs._tools.measure import ROOT
from docs._tools.values import number

BOARD = ROOT / "docs" / "data" / "leaderboard.json"


def take(folder: str) -> dict[str, Any]:
    """Median errors by method and domain, and the mean ratio to the lowest of each domain."""
    from o2td.paper import load
    from o2td.paper.board import relative, standings
    from o2td.report.style import pretty

    results = load(folder)
    found = standings(results)
    methods = {}
    for name, ratios in relative(found).items():
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        methods[name] = {
            "shown": pretty(name),
            "solver": not any(board[name].sizes for board in found.values() if name in board),
            "ratio": round(mean, 4) if math.isfinite(mean) else None,
            "median": {d: _kept(board[name].value) for d, board in found.items() if name in board},
        }
    runs = results.record["experiments"]["board-garnet"]["runs"]
    order = sorted(methods, key=lambda m: methods[m]["ratio"] or math.inf)
    return {
        "profile": results.record["profile"],
        "runs": runs,
        "domains": list(found),
        "methods": {name: methods[name] for name in order},
    }


def _kept(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None


def kept() -> dict[str, Any]:
    """What is in the file."""
    found: dict[str, Any] = json.loads(BOARD.read_text(encoding="utf-8"))
    return found


def rows() -> tuple[list[str], list[list[str]]]:
    """Head and rows of the table, lowest ratio first."""
    found = kept()
    lines = []
    for name, one in found["methods"].items():
        page = f"[{one['shown']}](../methods/{name.split()[0]}.md)"
        cells = [number(one["median"][d]) if d in one["median"] else "–" for d in found["domains"]]
        lines.append([page, "batch" if one["solver"] else "online", number(one["ratio"]), *cells])
    return ["method", "kind", "ratio", *found["domains"]], lines


if __name__ == "__main__":
    text = json.dumps(take(sys.argv[1]), indent=1, ensure_ascii=False)
    BOARD.write_text(text + "\n", encoding="utf-8")
    print(BOARD)
