"""What the report recommends if nothing is tuned, and that the book recommends the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from o2td.paper.near import ErrorLine, advice

ROOT = Path(__file__).resolve().parents[2]
LINES = ("arctd", "default", "one", "family", "everywhere", "lstd", "fixed")


def kept() -> list[ErrorLine]:
    found = json.loads((ROOT / "docs" / "data" / "near_optimal.json").read_text("utf-8"))
    return [
        ErrorLine(one["what"], np.array(one["error"]), one["by_family"])
        for one in (found[name] for name in LINES)
    ]


def test_the_report_and_the_book_recommend_the_same() -> None:
    stream, batch = advice(kept())
    page = (ROOT / "docs" / "book" / "which-method.md").read_text("utf-8")
    assert stream.startswith("If nothing is tuned, use ARCTD for a stream")
    assert "| a stream, on-policy or off-policy | [ARCTD]" in page
    assert batch.startswith('For a batch with features only, use LSTD(trace="auto")')
    assert '| a batch, features only | [LSTD](../methods/LSTD.md) with `trace="auto"`' in page


def test_advice_follows_the_errors() -> None:
    lines = kept()
    worse = lines[0]._replace(error=3.0 * lines[1].error)
    stream, _ = advice([worse, *lines[1:]])
    name = lines[1].what.rpartition(": ")[2]
    assert stream.startswith(f"If nothing is tuned, use {name.split()[0]}")
    assert "it has 0.333 times the error of ARCTD" in stream
