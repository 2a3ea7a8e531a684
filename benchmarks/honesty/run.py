"""Run cells of the honesty study and keep every answer, one line of JSON each.

    python -m benchmarks.honesty.run --purpose report --sets 20

Answers already in the file are not computed again, so a run can be stopped and resumed at any time.
Answers belong to the code that gave them: use another `--out` after a change.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.honesty.cells import CELLS, PURPOSES, Cell
from o2td import evaluation


def main() -> None:
    given = arguments()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    done = {
        (row["cell"], row["number"]) for row in read(given.out) if row["purpose"] == given.purpose
    }
    with given.out.open("a", encoding="utf-8") as file:
        for number in range(given.first, given.first + given.sets):
            for cell in CELLS.values():
                left_out = given.only not in cell.name + cell.kind or not wanted(cell, given)
                if not left_out and (cell.name, number) not in done:
                    file.write(json.dumps(answer(cell, given, number)) + "\n")
                    file.flush()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--purpose", choices=PURPOSES, default="settle")
    parser.add_argument("--sets", type=int, default=5, help="logs of each cell")
    parser.add_argument("--first", type=int, default=0, help="number of the first log")
    parser.add_argument("--only", default="", help="a part of the name or kind of what to run")
    parser.add_argument("--continuous", action="store_true", help="continuous tasks too (minutes)")
    parser.add_argument("--methods", help="names, such as lstd,wdr; those offered if left out")
    parser.add_argument("--out", type=Path, default=Path("build/honesty.jsonl"))
    return parser.parse_args()


def wanted(cell: Cell, given: argparse.Namespace) -> bool:
    """Whether this cell belongs to the run."""
    if "continuous" in cell.kind and "linear" not in cell.name and not given.continuous:
        return False
    return cell.settles or given.purpose != "settle"


def read(path: Path) -> list[dict[str, Any]]:
    """The answers stored so far."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answer(cell: Cell, given: argparse.Namespace, number: int) -> dict[str, Any]:
    """Evaluate one log: verdicts, values and interval ends beside the truth."""
    log, discount, truth = cell.log(given.purpose, number)
    begun = time.process_time()
    asked = {} if cell.horizon is None else {"horizon": cell.horizon(log)}
    found = evaluation.evaluate(log, discount=discount, methods=given.methods, seed=number, **asked)
    seconds = time.process_time() - begun
    best = found.recommended
    return {
        "cell": cell.name,
        "purpose": given.purpose,
        "number": number,
        "truth": truth,
        "rows": len(log),
        "verdict": found.verdict,
        "method": best.method,
        "value": best.value,
        "covers": covers(best, truth),
        "values": {each.method: each.value for each in found.estimates},
        "failed": [test.name for test in getattr(found, "tests", []) if not test.passed],
        "reasons": found.reasons,
        "seconds": round(seconds, 3),
    }


def covers(best: Any, truth: float) -> bool:
    """Whether the interval, widened by the stated approximation error, covers the truth."""
    if best.value is None or best.low is None or best.high is None:
        return False
    error = best.approximation_error or 0.0
    slack = 1e-9 * (1.0 + abs(truth))
    return bool(best.low - error - slack <= truth <= best.high + error + slack)


if __name__ == "__main__":
    main()
