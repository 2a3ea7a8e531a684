"""What code published by others finds on one short stream; `published.json` names it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import o2td

PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text())
DISCOUNT, LAMBDA = 0.9, 0.6
GIVEN = {"second_step_size": 0.02, "trace": LAMBDA}
USED = {"usage": 3.0, "recency": 0.1}
LEARNERS = {
    "TrueOnlineTD": (o2td.TrueOnlineTD(0.05, trace=LAMBDA), "on-policy"),
    "TrueOnlineGTD": (o2td.TrueOnlineGTD(0.05, **GIVEN), "off-policy"),
    "TrueOnlineETD": (o2td.TrueOnlineETD(0.05, trace=LAMBDA), "off-policy"),
    "WISTD": (o2td.WISTD(trace=LAMBDA, **USED), "off-policy"),
    "WISGTD": (o2td.WISGTD(**GIVEN, **USED), "off-policy"),
    "SwiftBound": (
        o2td.TrueOnlineTD(o2td.learners.SwiftBound(0.4, eta=0.5), trace=LAMBDA),
        "on-policy",
    ),
}


def stream(kind: str, layout: str) -> o2td.Transitions:
    """Sixty rows of one trajectory, as the published code was given them."""
    rng = np.random.default_rng(16)
    n, d = 60, 5
    features = rng.random((n + 1, d)) - 0.2
    features[rng.random((n + 1, d)) < 0.3] = 0.0
    reward = rng.random(n) - 0.5
    rho = np.array([0.0, 0.5, 1.0, 2.0])[(4 * rng.random(n)).astype(int)]
    made = {
        "dense": lambda rows: rows,
        "csr": scipy.sparse.csr_array,
    }[layout]
    return o2td.Transitions(
        made(features[:-1]),
        reward,
        made(features[1:]),
        DISCOUNT,
        rho=rho if kind == "off-policy" else np.ones(n),
        start=np.arange(n) == 0,
    )


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_code_finds_the_same(name: str, layout: str) -> None:
    learner, kind = LEARNERS[name]
    theta = learner.clone().partial_fit(stream(kind, layout)).theta
    np.testing.assert_allclose(theta, PUBLISHED[name]["theta"], rtol=0.0, atol=1e-13)
