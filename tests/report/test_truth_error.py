"""How well true values from roll-outs are known."""

from __future__ import annotations

import polars as pl

from o2td.report.truth_error import noise, sentence


def test_exact_truth_and_older_stores_say_nothing() -> None:
    exact = pl.DataFrame({"metric": ["rmse"], "truth_error": [None]})
    for table in (exact, exact.drop("truth_error")):
        assert noise(table) is None
        assert sentence(table, {"states": 40, "rollouts": 30}) == ""


def test_the_largest_error_of_the_metric_counts() -> None:
    table = pl.DataFrame({"metric": ["rmse", "rmse", "other"], "truth_error": [0.1, 0.3, 7.0]})
    assert noise(table, "rmse") == 0.3
    assert noise(table) == 7.0
