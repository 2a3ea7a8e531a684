"""Score tests within strata: when a number is evidence."""

from __future__ import annotations

import numpy as np

from o2td.evaluation.log_tests.score import poisson_chance, strongest


def test_what_single_rows_carry_is_no_evidence() -> None:
    x = np.zeros((500, 1))
    x[0] = 1.0
    y = x.copy() + 1e-3 * np.random.default_rng(0).normal(size=x.shape)
    assert not strongest(x, y).alarming


def test_many_expected_copies_are_no_alarm() -> None:
    assert poisson_chance(60, 55.0) > 0.2
    assert poisson_chance(120, 55.0) < 1e-6
