"""What tests of the log look at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.honesty.tables import marked, random_table
from o2td.evaluation.log_tests.seen import (
    NO_FINAL,
    UNLIKE,
    Seen,
    _first,
    marks,
    seen,
    stratum_of,
    without_means,
)

from .episodes import block_of
from .study import studied


def test_a_long_log_is_looked_at_from_its_beginning_to_its_end() -> None:
    task = random_table(np.random.default_rng(0))
    log = marked(task.sample(6000, np.random.default_rng(1)), "truncated")
    view: Any = seen(studied(log, task.discount))
    assert isinstance(view, Seen)
    assert len(view.rows) <= 21_000
    assert view.count > 1000


def view_of(rows: int, columns: int, seed: int = 0) -> Seen:
    rng = np.random.default_rng(seed)
    log = pd.DataFrame({f"obs_{k}": rng.normal(size=rows) for k in range(columns)})
    log = log.assign(episode=np.arange(rows) // 5, action=np.arange(rows) % 2, rho=1.0)
    log = log.assign(reward=rng.normal(size=rows), terminated=np.arange(rows) % 5 == 4)
    return Seen(block_of(log))


@pytest.mark.parametrize(("rows", "columns"), [(60, 2), (60, 9), (60, 20), (60, 40)])
def test_residuals_are_those_of_least_squares_on_squares_and_products_by_action(
    rows: int, columns: int
) -> None:
    """Beyond eight variables squares alone; with more of them than rows nothing is left."""
    view = view_of(rows, columns)
    assert not view.exact
    x = np.asarray(view.rows.input)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    every = range(columns)
    pairs = [(i, j) for i in every for j in every if (i <= j if columns <= 8 else i == j)]
    phi = np.column_stack([np.ones(rows), x, *(x[:, i] * x[:, j] for i, j in pairs)])
    action = np.asarray(view.rows.action)
    phi = np.column_stack([phi * (action == 0)[:, None], phi * (action == 1)[:, None]])
    y = np.random.default_rng(1).normal(size=(rows, 3))
    left = y - phi @ np.linalg.lstsq(phi, y, rcond=None)[0]
    np.testing.assert_allclose(view.residual(y), left, atol=1e-8)
    basis = view._basis
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-6)
    assert basis.shape == (rows, np.linalg.matrix_rank(phi))


def test_codes_rewards_and_shares_by_plain_loops() -> None:
    rng = np.random.default_rng(3)
    n = 2000
    log = pd.DataFrame({"episode": np.arange(n) // 4, "state": rng.integers(3, 6, n)})
    log = log.assign(next_state=rng.integers(3, 6, n), action=rng.integers(1, 3, n), rho=1.0)
    log = log.assign(reward=rng.standard_cauchy(n), terminated=np.arange(n) % 4 == 3)
    view = Seen(block_of(log))
    assert view.exact
    assert view.states == 3
    np.testing.assert_array_equal(view.state, log.state - 3)
    np.testing.assert_array_equal(view.ahead, view.rows.next_input - 3)
    np.testing.assert_array_equal(view.step, np.arange(n) % 4)
    np.testing.assert_array_equal(view.follows, np.arange(n) % 4 > 0)
    np.testing.assert_array_equal(view.unit, log.episode)
    assert view.action is not None
    np.testing.assert_array_equal(view.action, log.action - 1)
    low, high = np.quantile(log.reward, [0.001, 0.999])
    clipped = log.reward.clip(low, high)
    np.testing.assert_allclose(view.reward, clipped)
    groups = clipped.groupby([log.state, log.action])
    np.testing.assert_allclose(view.surprise, clipped - groups.transform("mean"), atol=1e-9)
    number = rng.normal(size=n) + 3.0 * log.action.to_numpy()
    within = sum(((one - one.mean()) ** 2).sum() for _, one in pd.Series(number).groupby(log.state))
    paired = sum(
        ((one - one.mean()) ** 2).sum()
        for _, one in pd.Series(number).groupby([log.state, log.action])
    )
    assert view.varies(number) == pytest.approx(paired / within * (n - 3) / (n - 6), rel=1e-9)
    assert view.varies(log.state.to_numpy() * 2.0) == 0.0
    wide = log.assign(action=np.where(np.arange(n) == 7, 60, 0))
    assert Seen(block_of(wide)).action is None
    assert Seen(block_of(log.assign(action=np.where(np.arange(n) == 7, 49, 0)))).action is not None


class Asked:
    """As much of a study as the tests of a log ask for."""

    def __init__(self, sample: Any, rows: int, unlike: int, dropped: int, named: str) -> None:
        self.sample = sample
        self.source: Any = SimpleNamespace(
            info=SimpleNamespace(rows=rows, notes={UNLIKE: unlike}, dropped={NO_FINAL: dropped}),
            mapped=SimpleNamespace(many=lambda role: ("x",) if role == named else ()),
        )


def test_what_was_read_tells_the_tests_what_the_log_lacks() -> None:
    block = view_of(60, 1).episodes
    view = seen(Asked(block, 200, 3, 0, "next_state"))  # type: ignore[arg-type]
    assert (view.unlike, view.whole, view.chained) == (3 / 200, True, True)
    cut = Asked(block, 0, 0, 1, "observation")
    view = seen(cut)  # type: ignore[arg-type]
    assert (view.unlike, view.whole, view.chained) == (0.0, False, False)
    assert seen(cut) is view  # type: ignore[arg-type]
    view = seen(Asked(block, 1, 1, 1, "next_observation"))  # type: ignore[arg-type]
    assert (view.unlike, view.chained) == (1.0, True)


def test_every_so_many_episodes_of_a_large_sample() -> None:
    block = view_of(60, 1).episodes
    for rows, every in ((60, 1), (59, 2), (30, 2), (29, 3), (20, 3)):
        found = _first(block, rows)
        np.testing.assert_array_equal(found.key, block.key[::every])


def test_strata_marks_and_means_by_plain_loops() -> None:
    rng = np.random.default_rng(6)
    one, two = rng.integers(0, 5, 300), rng.choice([0, 3, 40], 300)
    for codes in ((one,), (one, two), (two, one, one), (two * 1000,)):
        names = sorted(set(zip(*codes, strict=True)))
        expected = [names.index(each) for each in zip(*codes, strict=True)]
        np.testing.assert_array_equal(stratum_of(*codes), expected)
    values = rng.normal(size=(300, 2))
    plain = np.array([values[k] - values[one == one[k]].mean(axis=0) for k in range(300)])
    np.testing.assert_allclose(without_means(values, one), plain, atol=1e-12)
    code = np.repeat([4, 1, 7, 2], [50, 20, 19, 30])
    found, order = marks(code, 9)
    np.testing.assert_array_equal(order, [4, 2, 1])
    np.testing.assert_array_equal(found, code[:, None] == [4, 2, 1])
    assert marks(code, 2)[1].tolist() == [4, 2]
    assert marks(code, 9, least=31)[1].tolist() == [4]


@pytest.mark.parametrize(("kinds", "exact"), [(200, True), (201, False)])
def test_few_observations_that_recur_are_states(kinds: int, exact: bool) -> None:
    n = 2000
    log = pd.DataFrame({"obs_0": np.arange(n) % kinds, "episode": np.arange(n) // 5, "rho": 1.0})
    log = log.assign(next_obs_0=log.obs_0, reward=0.0, action=0, terminated=log.index % 5 == 4)
    view = Seen(block_of(log))
    assert view.exact == exact
    np.testing.assert_array_equal(view.state, log.obs_0 if exact else np.zeros(n))
    short = Seen(block_of(log[:400]))  # 800 numbers: at most 160 kinds, five visits each
    assert not short.exact
    fewer = log.assign(obs_0=log.obs_0 % 160, next_obs_0=log.obs_0 % 160)[:400]
    assert Seen(block_of(fewer)).exact
    assert not Seen(block_of(fewer.assign(obs_0=np.arange(400) % 161))).exact
