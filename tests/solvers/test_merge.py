"""Any split of the rows, updated in order or merged from several solvers, gives one pass's answer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import o2td
from o2td import Transitions
from o2td.errors import InputError

from .reference import garnet, layouts

SOLVERS = {
    "LSTD": lambda: o2td.LSTD(),
    "LSTD ridge": lambda: o2td.LSTD(ridge=0.1),
    "LSTD traced": lambda: o2td.LSTD(trace=0.8),
    "LSTD whole": lambda: o2td.LSTD(trace=1.0),
    "LSTD auto": lambda: o2td.LSTD(trace="auto"),
    "LSETD": lambda: o2td.LSETD(),
    "LSETD traced": lambda: o2td.LSETD(trace=0.7),
    "LSETD decay": lambda: o2td.LSETD(trace=0.4, decay=0.6),
    "LSTDQ": lambda: o2td.LSTDQ(),
    "SOTD": lambda: o2td.SOTD(),
    "SOTD ordinary": lambda: o2td.SOTD("ordinary", start="td"),
    "DiagonalSOTD": lambda: o2td.DiagonalSOTD(tolerance=1e-13),
    "BellmanResidual single": lambda: o2td.BellmanResidual("single"),
    "BellmanResidual double": lambda: o2td.BellmanResidual("double"),
    "BellmanResidual": lambda: o2td.BellmanResidual("aggregated", weighted=False),
    "MonteCarlo": lambda: o2td.MonteCarlo(),
    "MonteCarlo ordinary": lambda: o2td.MonteCarlo(weighted=False),
    "MonteCarlo trajectory": lambda: o2td.MonteCarlo("trajectory"),
    "MonteCarlo trajectory ordinary": lambda: o2td.MonteCarlo("trajectory", False, "drop"),
    "PluginOptimal": lambda: o2td.PluginOptimal(),
    "Averager": lambda: o2td.Averager(),
    "DantzigTD": lambda: o2td.DantzigTD(0.02),
    "DantzigTD denoised": lambda: o2td.DantzigTD(0.02, denoise=True, ridge=0.1),
}
IN_ORDER = ("LSTD traced", "LSTD whole", "LSTD auto", "LSETD", "Monte")


def stream(seed, terminal, n=60):
    weights = np.random.default_rng(seed).dirichlet(np.ones(4), size=9)
    problem = garnet(seed, states=9, terminal=terminal, features=weights)
    batch = problem.sample(n, seed=seed, double=True)
    # a few trajectories are cut although they do not terminate
    start = batch.start | (np.random.default_rng(seed).random(n) < 0.05)
    names = ("state", "reward", "next_state", "discount", "rho", "interest", "discount_2", "rho_2")
    values = {name: getattr(batch, name) for name in names}
    return Transitions.from_table(
        batch.table, start=start, next_state_2=batch.next_state_2, **values
    )


def close(one, two):
    scale = np.abs(two).max()
    np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-10 * scale)


def same_sums(one, two):
    """Statistics to 1e-10 of their largest entry: theta may amplify, they must not."""
    arrays, others = one._sums.arrays(), two._sums.arrays()
    assert set(arrays) == set(others)
    for name, array in others.items():
        scale = np.abs(array).max(initial=0.0)
        np.testing.assert_allclose(
            arrays[name], array, rtol=1e-10, atol=1e-10 * scale, err_msg=name
        )


@pytest.mark.parametrize("name", SOLVERS)
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    terminal=st.booleans(),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    layout=st.sampled_from(["dense", "csr", "table"]),
    tree=st.booleans(),
)
def test_any_split_gives_what_one_pass_gives(name, seed, terminal, cuts, layout, tree):
    batch = layouts(stream(seed, terminal))[layout]
    whole = SOLVERS[name]().fit(batch)
    edges = [0, *sorted(cuts), batch.n]
    parts = [batch[a:b] for a, b in pairwise(edges)]
    split = SOLVERS[name]()
    for part in parts:
        split.update(part)
    same_sums(split, whole)
    merged = [SOLVERS[name]().update(part) for part in parts]
    while len(merged) > 1:
        # pairs from the right, or one after the other from the left: grouping does not matter
        k = len(merged) - 2 if tree else 0
        merged[k : k + 2] = [merged[k].merge(merged[k + 1])]
    same_sums(merged[0], whole)
    assert merged[0].rows == batch.n


@pytest.mark.parametrize("name", [name for name in SOLVERS if not name.startswith(IN_ORDER)])
def test_without_traces_the_order_does_not_matter(name):
    batch = stream(1, True)
    one, two = (SOLVERS[name]().update(part) for part in (batch[:23], batch[23:]))
    back = SOLVERS[name]().update(batch[23:]).merge(SOLVERS[name]().update(batch[:23]))
    same_sums(one.merge(two), back)
    assert back.theta == pytest.approx(one.theta, rel=1e-6, abs=1e-8)


def test_with_traces_it_does():
    batch = stream(1, False)
    one, two = (o2td.LSTD(trace=0.9).update(part) for part in (batch[:23], batch[23:]))
    back = o2td.LSTD(trace=0.9).update(batch[23:]).merge(o2td.LSTD(trace=0.9).update(batch[:23]))
    assert not np.allclose(one.merge(two).theta, back.theta)


def test_merging_uneven_parts_does_not_touch_the_other():
    batch = stream(2, False)
    other = o2td.LSETD(trace=0.5).update(batch[30:])
    before = {k: v.copy() for k, v in other._sums.arrays().items()}
    o2td.LSETD(trace=0.5).update(batch[:30]).merge(other)
    for k, v in other._sums.arrays().items():
        np.testing.assert_array_equal(v, before[k])


def test_only_like_solvers_merge():
    solver = o2td.LSTD().update(stream(3, False))
    for other in (o2td.LSTD(trace=0.5), o2td.LSTDQ()):
        with pytest.raises(InputError, match="must agree"):
            solver.merge(other)
    with pytest.raises(InputError, match="itself"):
        solver.merge(solver)
    narrow = o2td.Transitions(np.ones((1, 1)), 0.0, np.ones((1, 1)), 0.5)
    with pytest.raises(InputError, match="1 features, earlier ones had 4"):
        solver.update(narrow)
    assert solver.rows == 60
