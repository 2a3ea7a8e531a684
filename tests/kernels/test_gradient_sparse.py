"""Gradient learners on rows with few entries, against the same rows in full."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td import Transitions
from o2td.learners import GTD2, HTD, TDC, TDCMP, TDRC

KINDS = {
    "GTD2": lambda trace: GTD2(0.1, second_step_size=0.2, trace=trace),
    "TDC": lambda trace: TDC(0.1, second_step_size=0.2, trace=trace),
    "TDCMP": lambda trace: TDCMP(0.1, second_step_size=0.2, trace=trace),
    "HTD": lambda trace: HTD(0.1, second_step_size=0.2, trace=trace),
    "TDRC": lambda trace: TDRC(0.1, regularizer=1.0, trace=trace),
    # w shrinks to a hundredth with each row, so that its scale is soon out of range.
    "shrinking": lambda trace: TDRC(0.05, second_step_size=0.99, regularizer=1.0, trace=trace),
    # And here it changes sign and grows, until the gradient of the rows that were seen stops it.
    "turning": lambda trace: TDRC(1e-6, second_step_size=0.5, regularizer=2.5, trace=trace),
}


def rows(n: int = 150, d: int = 8, seed: int = 0) -> dict[str, Transitions]:
    rng = np.random.default_rng(seed)
    phi = np.where(rng.random((n + 1, d)) < 0.25, rng.normal(size=(n + 1, d)), 0.0)
    ends = rng.random(n) < 0.1
    reward, rho = rng.normal(size=n), rng.random(n) * 2
    start = np.concatenate([[True], ends[:-1]])
    discount = np.where(ends, 0.0, 0.9)
    given = {"rho": rho, "start": start}
    return {
        "full": Transitions(phi[:-1], reward, phi[1:], discount, **given),
        "sparse": Transitions(csr_array(phi[:-1]), reward, csr_array(phi[1:]), discount, **given),
    }


@pytest.mark.parametrize("trace", [0.0, 0.7])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_few_entries_teach_what_full_rows_do(kind: str, trace: float) -> None:
    batch = rows()
    full = KINDS[kind](trace).partial_fit(batch["full"])
    assert np.abs(full.theta).max() > 0.0
    np.testing.assert_allclose(
        KINDS[kind](trace).partial_fit(batch["sparse"]).theta, full.theta, rtol=1e-9, atol=1e-12
    )
    parts = KINDS[kind](trace)
    for part in batch["sparse"].chunks(7):
        parts.partial_fit(part)
    np.testing.assert_allclose(parts.theta, full.theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(parts.w, full.w, rtol=1e-9, atol=1e-12)
