"""Every solver on a wide table of sparse features: what the same rows in CSR form give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td import Transitions
from o2td.registry import SOLVERS

STATES, D, N = 400, 100, 900


def both() -> tuple[Transitions, Transitions]:
    """A table of three entries per state, and the rows themselves."""
    rng = np.random.default_rng(0)
    table = np.zeros((STATES, D))
    where = np.argsort(rng.random((STATES, D)))[:, :3]
    np.put_along_axis(table, where, 1.0 / 3.0, axis=1)
    sparse = csr_array(table)
    state = rng.integers(STATES, size=N + 1)
    ends = rng.random(N) < 0.05
    given = {
        "reward": rng.normal(size=N),
        "discount": np.where(ends, 0.0, 0.9),
        "rho": rng.choice([0.0, 0.5, 1.5], N),
        "start": np.append(True, ends[:-1]),
    }
    tabled = Transitions.from_table(sparse, state[:-1], next_state=state[1:], **given)
    states = {"state": state[:-1], "next_state": state[1:]}
    return tabled, Transitions(sparse[state[:-1]], next_phi=sparse[state[1:]], **given, **states)


TABLED, ROWS = both()
CASES = [
    *(SOLVERS[name]() for name in sorted(set(SOLVERS) - {"LSTDQ"})),
    o2td.LSTD(trace=0.7),
    o2td.LSTD(trace="auto"),
    o2td.LSETD(trace=0.7),
    o2td.BellmanResidual(),
]


@pytest.mark.parametrize("solver", CASES, ids=str)
def test_a_sparse_table_is_its_rows(solver):
    table, rows = solver.clone().fit(TABLED), solver.clone().fit(ROWS)
    assert table.solution.status == rows.solution.status
    np.testing.assert_allclose(
        table.predict(ROWS.phi), rows.predict(ROWS.phi), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("trace", [0.7, "auto"])
def test_parts_of_a_sparse_table_are_the_whole(trace):
    whole, parts = (o2td.LSTD(trace=trace) for _ in range(2))
    whole.fit(TABLED)
    for lo, hi in ((0, 1), (1, 400), (400, N)):
        parts.update(TABLED[lo:hi])
    parts.solve()
    np.testing.assert_allclose(parts.theta, whole.theta, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("n", [4, 12, 40])
def test_a_choice_among_few_rows_says_so(n):
    """As many rows as features fit exactly, and leave nothing that would show an error."""
    found = o2td.LSTD(trace="auto").fit(o2td.domains.garnet(seed=1).sample(n, seed=3))
    said = "make far too small" in found.solution.message
    assert said == (n < 16)  # eight features
