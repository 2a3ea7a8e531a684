"""What the test of memory takes for the past of a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.honesty.tables import marked, random_table
from o2td.evaluation.log_tests import memory
from o2td.evaluation.log_tests.memory import Seen, _columns, seen
from tests.evaluation.episodes import block_of
from tests.evaluation.study import studied


def test_earlier_rewards_are_those_of_the_same_episode() -> None:
    task = random_table(np.random.default_rng(0))
    log = marked(task.sample(60, np.random.default_rng(1)), "truncated")
    view = seen(studied(log, task.discount))
    past, causes, _, _ = _columns(view)
    here = np.flatnonzero(view.follows)
    first = view.first[view.unit[here]]
    before = [view.surprise[low:row].sum() for low, row in zip(first, here, strict=True)]
    earlier = past[:, causes.index("earlier rewards")]
    np.testing.assert_allclose(earlier, before / np.sqrt(view.step[here]), atol=1e-12)


def _view(seed: int = 1, episodes: int = 60) -> Any:
    task = random_table(np.random.default_rng(0))
    log = marked(task.sample(episodes, np.random.default_rng(seed)), "truncated")
    return seen(studied(log, task.discount))


def test_next_states_are_compared_with_what_follows_the_row_before_row_by_row() -> None:
    """The sum of products written out: half of the episodes say what is usual for the other half."""
    view = _view()
    here, size = np.flatnonzero(view.follows), view.states + 1
    ahead = np.where(view.rows.terminated, view.states, view.ahead)
    odd = view.unit % 2 == 1
    usual = np.zeros((len(here), size))
    for k, row in enumerate(here):
        others = odd != odd[row]
        share = np.bincount(ahead[others], minlength=size) / others.sum()
        count = np.bincount(ahead[others & (view.pair == view.pair[row - 1])], minlength=size)
        usual[k] = (count + share) / (count.sum() + 1.0)
    comes = np.eye(size)[ahead[here]]
    weight = 1.0 / np.maximum(comes.mean(axis=0), memory._RARE)
    each = np.zeros(len(here))
    for stratum in np.unique(view.pair[here]):
        own = view.pair[here] == stratum
        x, y = usual[own] - usual[own].mean(axis=0), comes[own] - comes[own].mean(axis=0)
        each[own] = (x * y * weight).sum(axis=1)
    z = each.sum() / np.sqrt((each**2).sum())
    found = memory._follows_before(view, here, view.pair, 4)
    assert (found.x, found.y) == (4, 1)
    assert found.z == pytest.approx(z, rel=1e-9)


def test_errors_on_held_out_rows_are_those_of_ridge_regression() -> None:
    rng = np.random.default_rng(0)
    x, y, held = rng.normal(size=(50, 3)), rng.normal(size=(50, 2)), np.arange(50) % 3 == 0
    gram = x[~held].T @ x[~held]
    ridge = 1e-6 * np.trace(gram) / 3 * np.eye(3)
    theta = np.linalg.solve(gram + ridge, x[~held].T @ y[~held])
    wanted = ((y[held] - x[held] @ theta) ** 2).mean(axis=0)
    np.testing.assert_allclose(memory._held_out(x, y, held), wanted, rtol=1e-12)


def test_of_several_dependences_the_strongest_counts_by_bonferronis_rule() -> None:
    view = _view()
    found, causes, effects = memory.own_dependence(view)
    here = np.flatnonzero(view.follows)
    x, named, y, _ = _columns(view)
    assert causes == [
        *named,
        "the previous state and action",
        "what usually follows the row before",
    ]
    tried = [
        memory.strongest(x, y, view.pair[here]),
        memory._follows_before(view, here, view.pair, len(named) + 1),
        *memory._foretold(view, here, view.pair, y, len(named)),
    ]
    best = min(tried, key=lambda one: one.chance)
    assert found.chance == pytest.approx(min(1.0, len(tried) * best.chance), rel=1e-12)
    assert (found.x, found.y, found.z) == (best.x, best.y, best.z)
    assert effects[0] == "the reward"
    assert set(effects[1:]) == {"the next state"}


def _drifting(
    seed: int, episodes: int = 60, actions: int = 2, hidden: float = 0.9, noise: float = 0.3
) -> Any:
    """Observations in two columns with a velocity that is not seen, and rewards of the change."""
    rng, rows = np.random.default_rng(seed), []
    for episode in range(episodes):
        place, speed = rng.normal(size=2), np.zeros(2)
        for step in range(int(rng.integers(5, 11))):
            action = int(rng.integers(actions))
            speed = hidden * speed + 0.3 * (action - 0.5) + noise * rng.normal(size=2)
            ahead = place + speed
            row = {"episode": episode, "step": step, "action": action, "rho": 1.0}
            row |= {"obs_0": place[0], "obs_1": place[1]}
            row |= {"next_obs_0": ahead[0], "next_obs_1": ahead[1]}
            rows.append(row | {"reward": float(speed[0]) + 0.1 * rng.normal()})
            place = ahead
    log = pd.DataFrame(rows)
    last = ~log.duplicated("episode", keep="last")
    log["terminated"] = last & (log.episode % 3 == 0)
    return log.assign(truncated=last & ~log.terminated)


def _left_over(x: np.ndarray, y: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Squared errors of a regression on the rows that are not held out, column by column."""
    theta = np.linalg.lstsq(x[~held], y[~held], rcond=None)[0]
    return np.asarray(np.square(y[held] - x[held] @ theta).mean(axis=0))


def _parts_of_gain(log: pd.DataFrame, paid: bool) -> tuple[np.ndarray, ...]:
    """Of rows with a row before: features, what the past adds, targets, and the test half."""
    n, action = len(log), log.action.to_numpy()
    x, ahead = log[["obs_0", "obs_1"]].to_numpy(), log[["next_obs_0", "next_obs_1"]].to_numpy()
    here = np.flatnonzero(log.duplicated("episode") & ~log.terminated)
    low, high = np.quantile(log.reward, [0.001, 0.999])
    reward = log.reward.clip(low, high).to_numpy()
    y = np.column_stack([ahead - x, reward])[here]
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    phi = np.column_stack([np.ones(n), z, z[:, 0] ** 2, z[:, 0] * z[:, 1], z[:, 1] ** 2])
    now = np.column_stack([phi * (action == a)[:, None] for a in range(action.max() + 1)])[here]
    past = x[here] - x[here - 1]
    past = (past - past.mean(axis=0)) / past.std(axis=0)
    more = [past, past**2]
    if paid:
        more.append((reward[here - 1] - reward[here - 1].mean())[:, None])
    before = np.eye(action.max() + 1)[action[here - 1]]
    return now, np.column_stack(more), before, y, log.episode.to_numpy()[here] % 2 == 1, here


@pytest.mark.parametrize("paid", [True, False])
@pytest.mark.parametrize(("hidden", "noise"), [(0.1, 0.3), (0.9, 0.3), (0.6, 0.02)])
def test_the_row_before_removes_that_share_of_the_error_on_held_out_episodes(
    monkeypatch: pytest.MonkeyPatch, paid: bool, hidden: float, noise: float
) -> None:
    log = _drifting(3, hidden=hidden, noise=noise)
    asked: list[Any] = []
    monkeypatch.setattr(
        memory, "_gain_of_neighbours", lambda *given: asked.append(given) or 0.9 * wanted
    )
    now, more, before, y, held, here = _parts_of_gain(log, paid)
    left = _left_over(now, y, held)
    fewer = _left_over(np.column_stack([now, more, before]), y, held)
    large = left > memory._LEFT
    wanted = float(np.max(1.0 - fewer[large] / left[large], initial=0.0))
    found = memory._gain(Seen(block_of(log)), paid)
    if wanted < memory._GAIN:
        assert not asked
        assert found == pytest.approx(wanted, rel=1e-3, abs=1e-5)
        return
    assert found == pytest.approx(0.9 * wanted, rel=1e-3)
    x, action, past, targets, half = asked[0]
    np.testing.assert_array_equal(x, log[["obs_0", "obs_1"]].to_numpy()[here])
    np.testing.assert_array_equal(action, log.action.to_numpy()[here])
    np.testing.assert_array_equal(half, held)
    np.testing.assert_allclose(targets, y[:, large], atol=1e-9)
    by_action = [more[:, j] * before[:, a] for j in range(more.shape[1]) for a in range(2)]
    np.testing.assert_allclose(past, np.column_stack([before, *by_action]), atol=1e-9)


def test_gains_are_asked_of_two_hundred_rows_with_observations_and_past() -> None:
    log = _drifting(1, 80)
    view = Seen(block_of(log))
    follows = np.flatnonzero(view.follows & ~view.rows.terminated)
    for rows, some in ((199, False), (200, True)):
        short = Seen(block_of(log.iloc[: follows[rows - 1] + 1]))
        assert (memory._gain(short) > 0.0) == some
    assert memory.gains_from_past(view)
    view.kept |= {"gain True": memory._GAIN, "gain False": memory._GAIN - 1e-9}
    assert memory.gains_from_past(view)
    assert not memory.gains_from_past(view, paid=False)
    few = Seen(block_of(log[log.episode < 3]))
    few.kept["gain True"] = 1.0
    assert not memory.gains_from_past(few)
    states = _view()
    states.kept["gain True"] = 1.0
    assert not memory.gains_from_past(states)


@pytest.mark.parametrize("seed", range(3))
def test_gains_between_neighbours_by_plain_loops(seed: int) -> None:
    """Differences between each row and the nearest with its action, in its half of the episodes."""
    rng = np.random.default_rng(seed)
    n = 240
    x, past = rng.normal(size=(n, 2)) * [1.0, 5.0], rng.normal(size=(n, 3))
    action, held = rng.choice(3, n, p=[0.6, 0.36, 0.04]), rng.random(n) < 0.4
    y = np.column_stack([past @ [1.0, 0.5, 0.0], x[:, 0], np.zeros(n)])
    y += [0.3, 1.0, 0.0] * rng.normal(size=(n, 3))
    z = x / x.std(axis=0)
    left, fewer = np.zeros(3), np.zeros(3)
    judged = []
    for one in range(3):
        near, known, apart, half = [], [], [], []
        for side in (held, ~held):
            own = np.flatnonzero(side & (action == one))
            for i in own:
                others = own[own != i]
                if len(others):
                    j = others[np.square(z[others] - z[i]).sum(axis=1).argmin()]
                    near.append([*(z[i] - z[j]), 1.0])
                    known.append([*(z[i] - z[j]), 1.0, *(past[i] - past[j])])
                    apart.append(y[i] - y[j])
                    half.append(held[i])
        here, enough = np.array(half), 4 * past.shape[1]
        if min(here.sum(), (~here).sum()) > enough:
            judged.append(one)
            left += here.sum() * _left_over(np.array(near), np.array(apart), here)
            fewer += here.sum() * _left_over(np.array(known), np.array(apart), here)
    assert judged == [0, 1]
    wanted = max(1.0 - fewer[0] / left[0], 1.0 - fewer[1] / left[1], 0.0)
    found = memory._gain_of_neighbours(x, action, past, y, held)
    assert found == pytest.approx(wanted, rel=1e-3)
    assert memory._gain_of_neighbours(x[:20], action[:20], past[:20], y[:20], held[:20]) == 0.0


def _foretelling(seed: int, clock: bool, share: float) -> Any:
    """Two states and actions; rewards are foretold by the row before, all episodes have eight rows."""
    rng = np.random.default_rng(seed)
    n = 1200
    log = pd.DataFrame({"episode": np.arange(n) // 8, "step": np.arange(n) % 8})
    log = log.assign(state=rng.integers(0, 2, n), action=rng.integers(0, 2, n), rho=1.0)
    log["next_state"] = np.where(log.step == 7, 0, np.roll(log.state, -1))
    sign = np.where((np.roll(log.state + log.action, 1) + log.state) % 2, 1.0, -1.0)
    log["reward"] = share * sign * (log.step > 0) + rng.normal(size=n)
    last = log.step == 7
    return Seen(block_of(log.assign(terminated=last & clock, truncated=last & (not clock))))


@pytest.mark.parametrize("clock", [True, False])
@pytest.mark.parametrize("share", [0.5, 0.0])
def test_where_a_clock_ends_episodes_last_rows_count_for_rewards_alone(
    clock: bool, share: float
) -> None:
    view = _foretelling(5, clock, share)
    here = np.flatnonzero(view.follows)
    x, named, y, _ = _columns(view)
    inner = view.step[here] < (7 if clock else 8)
    at = here[inner]
    paid, moved = memory._foretold(view, at, view.pair, y[inner], len(named))
    tried = [memory.strongest(x[inner], y[inner], view.pair[at]), moved]
    tried.append(memory._follows_before(view, at, view.pair, len(named) + 1))
    if clock:
        tried.append(memory.strongest(x, y[:, :1], view.pair[here]))
        paid = memory._foretold(view, here, view.pair, y[:, :1], len(named))[0]
    tried.append(paid)
    best = min(tried, key=lambda one: one.chance)
    found, causes, effects = memory.dependence(view, view.pair)
    assert found.chance == pytest.approx(min(1.0, len(tried) * best.chance), rel=1e-9)
    assert (found.x, found.y, found.z) == (best.x, best.y, best.z)
    if share:
        assert found.alarming
        assert causes[found.x] == "the previous state and action"
        assert effects[found.y] == "the reward"


def test_what_the_row_before_foretells_is_judged_on_the_other_half_of_the_episodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = _foretelling(5, False, 0.5)
    here = np.flatnonzero(view.follows)
    _, _, y, _ = _columns(view)
    paid, moved = memory._foretold(view, here, view.pair, y, 3)
    each = memory.foretold(y, view.pair[here - 1], view.pair[here], view.unit[here] % 2 == 0)
    assert (paid.x, paid.y, moved.x, moved.y) == (3, 0, 3, 1)
    wanted = each[:, 0].sum() / np.sqrt(np.square(each[:, 0]).sum())
    assert paid.z == pytest.approx(wanted, rel=1e-9)
    total = each[:, 1:].sum(axis=1)
    assert moved.z == pytest.approx(total.sum() / np.sqrt(np.square(total).sum()), rel=1e-9)
    monkeypatch.setattr(memory, "rising", lambda each, *_: len(each))
    for few, rows in ((2, None), (15, None), (16, 56)):  # episodes: fifty rows in either half
        some = here[view.unit[here] < few]
        both = memory._foretold(view, some, view.pair, y[: len(some)], 3)
        assert both == ((memory.NOTHING,) * 2 if rows is None else (rows, rows))
