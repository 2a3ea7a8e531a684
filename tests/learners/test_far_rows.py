"""Rows too large for the processor's cache are learned from in two passes each: the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import Transitions

LEARNERS = {
    "TD": o2td.TD(0.01),
    "ETD": o2td.ETD(0.001),
    "O2TD": o2td.O2TD(0.01),
    "GTD": o2td.GTD(0.01),
    "GTD2": o2td.GTD2(0.01),
    "GTD2 expanded": o2td.GTD2(0.01, form="expanded"),
    "TDC": o2td.TDC(0.01, second_step_size=0.02),
    "TDRC": o2td.TDRC(0.01),
    "HTD": o2td.HTD(0.01),
    "GTD2MP": o2td.GTD2MP(0.01),
    "TDCMP": o2td.TDCMP(0.01),
}


@pytest.fixture(scope="module")
def rows() -> Transitions:
    """More numbers than any cache is taken to hold, with ends, starts and ratios of 0."""
    n, d = 84_000, 201
    rng = np.random.default_rng(20)
    phi, next_phi = rng.standard_normal((2, n, d)) / np.sqrt(d)
    discount = np.where(rng.random(n) < 0.1, 0.0, 0.9)
    rho = np.where(rng.random(n) < 0.2, 0.0, 2.0 * rng.random(n))
    next_phi[discount == 0.0] = np.nan  # ignored
    start = np.concatenate([[True], discount[:-1] == 0.0])
    return Transitions(phi, rng.standard_normal(n), next_phi, discount, rho=rho, start=start)


@pytest.mark.parametrize("name", LEARNERS)
def test_all_at_once_is_the_same_as_in_parts_that_the_cache_holds(
    name: str, rows: Transitions
) -> None:
    whole, parts = LEARNERS[name].clone().partial_fit(rows), LEARNERS[name].clone()
    for part in rows.chunks(500):
        parts.partial_fit(part)
    assert whole.status == parts.status
    np.testing.assert_allclose(whole.theta, parts.theta, rtol=1e-10, atol=1e-13)
    if hasattr(whole, "w"):
        np.testing.assert_allclose(whole.w, parts.w, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ["TD", "GTD2", "TDRC", "GTD2MP"])
def test_divergence_is_reported_at_the_same_row(name: str, rows: Transitions) -> None:
    whole, parts = (LEARNERS[name].clone(step_size=300.0) for _ in range(2))
    whole.partial_fit(rows)
    for part in rows.chunks(500):
        parts.partial_fit(part)
    assert whole.status.kind == "diverged"
    assert whole.status == parts.status
    assert np.isfinite(whole.theta).all()
