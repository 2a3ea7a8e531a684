"""What the report recommends if nothing is tuned, and that the book recommends the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from o2td.paper.near import (
    CHOSEN,
    FIXED,
    RECORDS,
    ErrorLine,
    advice,
    foresight,
    solver_standings,
    solver_there,
    standings,
    there,
)
from o2td.paper.studies import FAMILIES, FRESH, LATER, SETTLED, TEXTBOOK

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


def test_errors_below_the_floor_count_alike() -> None:
    """A tuned step size that ends at rounding error is not ahead of what nobody can tell from it."""
    import polars as pl

    rows = []
    for family in FAMILIES:
        for n in RECORDS:
            for method, quantity, value in (
                ("ARCTD", "default", 0.5),
                ("TD 0.5", "default", 3.0),
                ("TD 0.5", "step 2^-1", 1e-9),
                ("TD 0.5", "step 2^-2", 2.0),
                *((name, "solver", 2.0) for name in (*FIXED, CHOSEN)),
            ):
                row = {"domain": family, "method": method, "quantity": quantity, "x": float(n)}
                rows.append({**row, "value": value, "index": 0})
    table = pl.DataFrame(rows)
    for some in (SETTLED, TEXTBOOK, FRESH):
        ours, _, one, each, everywhere = standings(table, some)
        assert set(ours.by_family) == set(some)
        for line in (ours, one, each, everywhere):
            np.testing.assert_allclose(line.error, 1.0)
        raw = standings(table, some, 1e-12)
        np.testing.assert_allclose(raw[0].error, 0.5)
        np.testing.assert_allclose(raw[4].error, 1e-9)
    assert there(table)["Dyna maze"].learner == 1.0
    np.testing.assert_allclose(foresight(table, FRESH), 1.0)


def test_solvers_are_compared_with_the_best_fixed_trace() -> None:
    """That of all families for the average, that of each family for the family."""
    import polars as pl

    values = {
        "LSTD 0.0": (2.0, 9.0),
        "LSTD 0.5": (8.0, 3.0),
        "LSTD 0.9": (9.0, 9.0),
        CHOSEN: (4, 3),
    }
    table = pl.DataFrame(
        [
            {
                "domain": family,
                "method": method,
                "quantity": "solver",
                "x": float(n),
                "value": value,
            }
            for n in RECORDS
            for method, both in values.items()
            for family, value in zip(LATER, both, strict=False)
        ]
    )
    ours, fixed = solver_standings(table, LATER)
    assert fixed.what == "best fixed trace: LSTD 0.0"
    np.testing.assert_allclose(ours.error, np.sqrt(12.0))
    np.testing.assert_allclose(fixed.error, np.sqrt(18.0))
    assert {f: round(x, 9) for f, x in solver_there(table).items()} == {
        LATER[0]: 2.0,
        LATER[1]: 1.0,
    }
