"""Rows out of order: what a test of alignment compares."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation.log_tests.alignment import _explained


def test_the_explained_share_is_the_adjusted_coefficient_of_determination():
    rng = np.random.default_rng(4)
    code = np.arange(24) % 4
    values = code + rng.normal(size=24)
    fitted = np.array([values[code == k].mean() for k in range(4)])[code]
    r2 = 1.0 - np.square(values - fitted).sum() / np.square(values - values.mean()).sum()
    adjusted = 1.0 - (1.0 - r2) * 23 / 20
    assert _explained(values, code) == pytest.approx(adjusted, rel=1e-12)
    assert _explained(np.ones(24), code) == 0.0
    assert _explained(values, np.arange(24)) == 0.0
