"""Which bases are kept for the fits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from o2td.evaluation.select import CARRYING, Choice, Spread, _reject, panel


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
