"""Which bases are kept for the fits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from o2td.evaluation.select import CARRYING, REJECT, UNSTABLE, Choice, Spread, _reject, panel

from .episodes import block_of
from .logs import line_log


def fit(value: float, trace: float) -> Any:
    return SimpleNamespace(value=value, system=SimpleNamespace(trace=trace))


def choice(d: int, bellman: float, returns: float = 1.0, trace: float = 0.0) -> Choice:
    spread = np.full(100, returns / 100.0)
    return Choice(object(), f"{d} features", d, trace, 0.0, bellman, 0.1, spread, 0.0)


def test_a_loss_above_the_best_leaves_a_basis_out():
    good, bad = choice(10, 0.0), choice(20, 1.0)
    _reject([good, bad], by_returns=False)
    assert good.verdict == ""
    assert "kernel Bellman" in bad.verdict
    assert [kept.d for kept in panel([good, bad])] == [10]


def test_returns_leave_a_basis_out_only_where_they_count():
    for by_returns in (False, True):
        near, far = choice(10, 0.0, 1.0), choice(20, 0.0, 9.0)
        far.returns[::2] *= 1.01  # a spread that a standard error can be taken of
        _reject([near, far], by_returns)
        assert ("returns" in far.verdict) == by_returns


def test_returns_of_a_few_episodes_leave_no_basis_out():
    near, far = choice(10, 0.0, 1.0), choice(20, 0.0, 9.0)
    far.returns[:] = near.returns
    far.returns[:10] *= np.linspace(9.0, 11.0, 10)
    assert Spread.of(far.returns - near.returns).carrying < CARRYING
    _reject([near, far], by_returns=True)
    assert not far.verdict


def test_all_that_pass_are_kept_the_one_with_the_least_losses_first():
    offered = [choice(d, 0.01 * d, 1.0 + d) for d in range(20, 0, -1)]
    offered[3].verdict = "left out"
    kept = panel(offered)
    assert [one.d for one in kept] == [d for d in range(1, 21) if d != 17]
    assert all("kept" in one.verdict for one in kept)


def noisy(d: int, bellman: float, noise: float) -> Choice:
    return Choice(object(), f"{d}", d, 0.0, 0.0, bellman, noise, np.full(100, 0.01), 0.0)


def test_a_loss_is_above_the_best_by_so_many_errors_of_both_and_never_below_nothing():
    """The best has the least loss plus noise; a loss below 0 counts as 0."""
    best = noisy(1, -0.5, 0.3)
    bound = REJECT * np.hypot(0.3, 0.4)
    near, far = noisy(2, bound - 1e-9, 0.4), noisy(3, bound + 1e-9, 0.4)
    low = noisy(4, -9.0, 0.45)
    _reject([best, near, far, low], by_returns=False)
    assert [bool(one.verdict) for one in (best, near, far, low)] == [False, False, True, False]


def test_what_is_unstable_from_fold_to_fold_is_left_out_and_is_not_the_best():
    steady = [noisy(k, 1.0, 0.1) for k in (1, 2)]
    wild, edge = noisy(3, 0.0, UNSTABLE * 0.1 + 1e-9), noisy(4, 1.0, UNSTABLE * 0.1 - 1e-9)
    _reject([*steady, wild, edge, noisy(5, 1.0, 0.1)], by_returns=False)
    assert wild.verdict == "left out: unstable from fold to fold"
    assert [one.verdict for one in (*steady, edge)] == ["", "", ""]


def test_where_all_are_left_out_all_are_kept_by_the_sum_of_both_ranks():
    one, two, three = choice(1, 0.3, 1.0), choice(2, 0.1, 2.0), choice(3, 0.2, 9.0)
    for each in (one, two, three):
        each.verdict = "left out"
    assert [kept.d for kept in panel([three, one, two])] == [2, 1, 3]


def test_corrected_errors_by_plain_loops():
    from o2td.evaluation.select import States, _corrected, own
    from o2td.features import Polynomial

    rows = block_of(line_log(4, 0)).rows
    basis = States(Polynomial(1, bounds=[(-4, 4)]).fit())
    theta = np.array([[0.5, 1.0, -2.0], [0.3, -1.0, 4.0]])
    found = _corrected(basis, rows, theta)
    for t in range(len(rows)):
        here, after = (basis.phi(x[t : t + 1])[0] for x in (rows.input, rows.next_input))
        delta = rows.reward[t] + rows.discount[t] * after @ theta - here @ theta
        np.testing.assert_allclose(found[t], rows.rho[t] * delta, rtol=1e-9)
    fold = np.arange(len(rows)) % 3
    assert own(found, fold).tolist() == [found[t, t % 3] for t in range(len(rows))]
