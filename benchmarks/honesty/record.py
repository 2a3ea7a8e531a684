"""Condense the answers of a run into `docs/data/honesty.json`, from which the page is made.

python -m benchmarks.honesty.record build/honesty.jsonl --before build/before.jsonl
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.honesty.cells import CELLS, COMPLETE, PURPOSES, RANDOM
from benchmarks.honesty.defects import UNSEEN
from benchmarks.honesty.run import read

KEPT = Path(__file__).resolve().parents[2] / "docs" / "data" / "honesty.json"
WORDS = ("trust", "caution", "cannot answer")
Rows = list[dict[str, Any]]


def by_kind(rows: Rows) -> dict[str, Any]:
    """How often each verdict was given for each kind, and how often its intervals covered."""
    found: dict[str, Rows] = defaultdict(list)
    for row in rows:
        found[CELLS[row["cell"]].kind].append(row)
    return {kind: {"answers": len(some), **_words(some)} for kind, some in found.items()}


def _words(rows: Rows) -> dict[str, Any]:
    said = {word: [row["covers"] for row in rows if row["verdict"] == word] for word in WORDS}
    return {word: {"of": len(hits), "covered": int(sum(hits))} for word, hits in said.items()}


def errors(rows: Rows) -> dict[str, Any]:
    """Geometric means over cells of every estimate's relative MSE, by group of the benchmark."""
    groups: dict[str, dict[str, Rows]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cell = CELLS[row["cell"]]
        if cell.group:
            groups[cell.group][cell.name].append(row)
    return {group: _errors(cells) for group, cells in groups.items()}


def _errors(cells: dict[str, Rows]) -> dict[str, float]:
    listed: dict[str, list[float]] = defaultdict(list)
    for rows in cells.values():
        listed["recommended"].append(_relative([row["value"] for row in rows], rows))
        for method in rows[0]["values"]:
            values = [row["values"].get(method) for row in rows]
            if all(value is not None for value in values):
                listed[method].append(_relative(values, rows))
    complete = {name: found for name, found in listed.items() if len(found) == len(cells)}
    means = {name: float(np.exp(np.mean(np.log(found)))) for name, found in complete.items()}
    return dict(sorted(means.items(), key=lambda item: item[1]))


def _relative(values: list[Any], rows: Rows) -> float:
    pairs = zip(values, (row["truth"] for row in rows), strict=True)
    return max(float(np.mean([(value / truth - 1.0) ** 2 for value, truth in pairs])), 1e-16)


def alarms(rows: Rows) -> dict[str, Any]:
    """How often each test fails on sound logs."""
    sound = [row for row in rows if CELLS[row["cell"]].kind in (COMPLETE, RANDOM)]
    count = Counter(name for row in sound for name in row["failed"])
    some = sum(bool(row["failed"]) for row in sound)
    return {"logs": len(sound), "any": some, "tests": dict(sorted(count.items()))}


def record(rows: Rows, before: Rows) -> dict[str, Any]:
    """Everything that the page shows."""
    return {
        "answers": len(rows),
        "sets": max(Counter(row["cell"] for row in rows).values()),
        "settled_on": sum(CELLS[name].settles for name in {row["cell"] for row in rows}),
        "cells": len({row["cell"] for row in rows}),
        "kinds": by_kind(rows),
        "before": by_kind(before),
        "unseen": [f"defect: {name}" for name in UNSEEN],
        "errors": errors(rows),
        "errors_before": errors(before),
        "alarms": alarms(rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("answers", type=Path)
    parser.add_argument("--before", type=Path, help="answers of an earlier version, beside them")
    parser.add_argument("--candidates", type=Path, help="what honesty.candidates wrote")
    given = parser.parse_args()
    reported = [row for row in read(given.answers) if row["purpose"] == PURPOSES[-1]]
    kept: dict[str, Any] = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    found = record(reported, read(given.before) if given.before else [])
    if not given.before:  # those of an earlier version stay as they are
        found |= {name: kept.get(name, {}) for name in ("before", "errors_before")}
    tried = given.candidates
    # What `honesty.fits` and `honesty.share` keep.
    found |= {name: kept.get(name, {}) for name in ("fits", "chosen", "auto", "time")}
    found["candidates"] = json.loads(tried.read_text("utf-8")) if tried else kept.get("candidates")
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
