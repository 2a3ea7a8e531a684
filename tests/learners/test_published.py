"""What code published by others finds on one short stream; `published.json` names it.

Where published code updates in another order, rows are repeated and step sizes of 0 bring our
updates into that order.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse

import o2td
from o2td.learners import Learner, SwiftBound
from o2td.learners.step_sizes import Gauge, Rule

PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text())
ROWS, RANK = 60, 2
DISCOUNT, LAMBDA = 0.9, 0.6
STEP, SECOND = 0.05, 0.02
LARGE, LARGE_SECOND = 0.2, 0.5
HELD = [0.1, 0.2, -0.1, 0.3, -0.2]

Floats = npt.NDArray[np.float64]


class OneOf(Rule):
    """A step size for row number `place` of every `count` rows, and 0 for the others."""

    def __init__(self, size: float, place: int, count: int) -> None:
        self.size, self.place, self.count = size, place, count

    def fill(self, gauge: Gauge, out: Floats) -> None:
        rows = gauge.first + np.arange(len(out))
        out[:] = np.where(rows % self.count == self.place, self.size, 0.0)


GIVEN = {"second_step_size": SECOND, "trace": LAMBDA}
USED = {"usage": 3.0, "recency": 0.1}
HYBRID = {"second_step_size": LARGE_SECOND}
LEARNERS: dict[str, tuple[str, list[Learner]]] = {
    "TrueOnlineTD": (
        "on-policy",
        [
            o2td.TrueOnlineTD(STEP, trace=LAMBDA),
            o2td.TrueOnlineHTD(STEP, **GIVEN),
        ],
    ),
    "TrueOnlineGTD": ("off-policy", [o2td.TrueOnlineGTD(STEP, **GIVEN)]),
    "TrueOnlineETD": ("off-policy", [o2td.TrueOnlineETD(STEP, trace=LAMBDA)]),
    "WISTD": ("off-policy", [o2td.WISTD(trace=LAMBDA, **USED)]),
    "WISGTD": ("off-policy", [o2td.WISGTD(**GIVEN, **USED)]),
    "SwiftBound": ("on-policy", [o2td.TrueOnlineTD(SwiftBound(0.4, eta=0.5), trace=LAMBDA)]),
    "HTD": ("off-policy", [o2td.HTD(LARGE, **HYBRID), o2td.TrueOnlineHTD(LARGE, **HYBRID)]),
    "GTD2MP": (
        "off-policy",
        [
            o2td.GTD2MP(LARGE, **HYBRID),
            o2td.ProximalGTD2MP(LARGE, l1=0.0, average=False, **HYBRID),
        ],
    ),
    "TDCMP": ("off-policy", [o2td.TDCMP(LARGE, **HYBRID)]),
    "TIDBD": ("on-policy", [o2td.TD(o2td.learners.TIDBD(0.5, rate=5.0), trace=LAMBDA)]),
    "TruncatedETD": ("off-policy", [o2td.TruncatedETD(STEP, length=3)]),
    "PERETD": ("off-policy", [o2td.PERETD(STEP, period=4)]),
    "GEMETD": (
        "emphasis first",
        [o2td.GEMETD(OneOf(STEP, 2, 3), second_step_size=OneOf(LARGE, 1, 3))],
    ),
    "DifferentialTD": ("undiscounted off-policy", [o2td.DifferentialTD(STEP, rate=0.5)]),
    "DifferentialTD traced": (
        "undiscounted on-policy",
        [o2td.DifferentialTD(STEP, rate=0.5, trace=LAMBDA)],
    ),
    "VarianceTD direct": ("off-policy", [o2td.VarianceTD(STEP, **GIVEN)]),
    "VarianceTD moment": (
        "mean first",
        [o2td.VarianceTD(OneOf(STEP, 0, 2), second_step_size=OneOf(SECOND, 1, 2), form="moment")],
    ),
    "VarianceTD moment traced": (
        "off-policy",
        [o2td.VarianceTD(OneOf(0.0, 0, 1), **GIVEN, form="moment", initial_theta=HELD)],
    ),
    "ATD": ("on-policy", [o2td.ATD(STEP, rank=RANK, trace=LAMBDA)]),
}
CASES = [(name, learner) for name, (_, learners) in LEARNERS.items() for learner in learners]


def rows_of(kind: str, layout: str) -> o2td.Transitions:
    """Sixty rows of one trajectory, as the published code was given them, in our order."""
    rng = np.random.default_rng(16)
    n, d = ROWS, 5
    features = rng.random((n + 1, d)) - 0.2
    features[rng.random((n + 1, d)) < 0.3] = 0.0
    reward = rng.random(n) - 0.5
    rho = np.array([0.0, 0.5, 1.0, 2.0])[(4 * rng.random(n)).astype(int)]
    t, start = np.arange(n), np.arange(n) == 0
    here = t
    if kind == "mean first":  # theta moves in the first of two equal rows, w in the second
        t = here = np.repeat(t, 2)
        start = np.zeros(len(t), dtype=bool)
    elif kind == "emphasis first":  # the row, the emphasis of the next one, theta
        t = np.repeat(t, 3)
        here = t + np.tile([0, 1, 0], n)
        start = np.tile([True, False, False], n)
    made: Callable[[Floats], Floats | scipy.sparse.csr_array] = {
        "dense": np.asarray,
        "csr": scipy.sparse.csr_array,
    }[layout]
    return o2td.Transitions(
        made(features[here]),
        reward[t],
        made(features[t + 1]),
        1.0 if kind.startswith("undiscounted") else DISCOUNT,
        rho=np.ones(len(t)) if kind.endswith("on-policy") else rho[t],
        start=start,
    )


def found(learner: Learner, what: str) -> Floats:
    """A number or vector of a learner by its name; `estimate` is ATD's matrix of low rank."""
    if what == "estimate":
        lefts, rights = (learner.vector(name).reshape(-1, 5)[:RANK] for name in ("lefts", "rights"))
        return np.asarray(lefts.T @ rights)
    return np.asarray(getattr(learner, what))


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize(
    ("name", "learner"), CASES, ids=[f"{name}-{type(learner).__name__}" for name, learner in CASES]
)
def test_published_code_finds_the_same(name: str, learner: Learner, layout: str) -> None:
    learned = learner.clone().partial_fit(rows_of(LEARNERS[name][0], layout))
    numbers = {what: number for what, number in PUBLISHED[name].items() if what != "source"}
    assert numbers
    for what, number in numbers.items():
        near = 1e-12 if what == "estimate" else 1e-13
        np.testing.assert_allclose(found(learned, what), number, rtol=0.0, atol=near, err_msg=what)


def test_all_that_is_published_is_compared() -> None:
    assert set(LEARNERS) == set(PUBLISHED)
