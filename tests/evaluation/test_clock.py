"""Ends by the clock."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.coverage_common import mountain_car
from benchmarks.honesty.tables import gridworld, marked
from o2td.evaluation.log_tests.clock import Seen, clock_step, seen

from .episodes import block_of
from .study import studied


def test_a_clock_is_found_with_its_step_and_not_where_it_is_marked() -> None:
    task = gridworld(0.6)
    log = task.sample(256, np.random.default_rng(0))
    said = {mark: studied(marked(log, mark), 0.98) for mark in ("terminated", "truncated")}
    assert clock_step(seen(said["terminated"]))[0] == 25
    assert clock_step(seen(said["truncated"]))[0] is None


def test_a_clock_of_observations_is_told_from_ends_that_happen_to_coincide() -> None:
    """Episodes of mountain car end at the goal, and the longest two may be equally long."""
    log = mountain_car(60, [3, 54])
    step = log.groupby("episode").cumcount()
    length = step.groupby(log.episode).max()
    second = length.drop(length.idxmax()).idxmax()
    late = length.max() - length[second]
    begin = np.flatnonzero(log.episode == second)[0]
    tied = pd.concat([log.iloc[:begin], log.iloc[[begin] * late], log.iloc[begin:]])
    steps, chance = clock_step(seen(studied(tied, 0.99)))
    assert steps is None
    assert chance > 0.1
    cut = log[step < 150].copy()
    cut["terminated"] |= ~cut.duplicated("episode", keep="last")
    assert clock_step(seen(studied(cut, 0.99)))[0] == 150


def lengths(seed: int, *long: int, states: int = 3, seen: bool = False) -> pd.DataFrame:
    """Episodes of up to eight rows that end, and some of given lengths that end too."""
    rng = np.random.default_rng(seed)
    rows = []
    for e, length in enumerate([*rng.integers(1, 9, 40), *long]):
        for t in range(length):
            row = {"episode": e, "action": int(rng.integers(2)), "reward": 0.0, "rho": 1.0}
            row |= {"terminated": t == length - 1, "state": int(rng.integers(states))}
            rows.append(row | {"obs_0": rng.normal(), "obs_1": 9.0 * rng.normal()})
    log = pd.DataFrame(rows)
    return log.drop(columns="state" if seen else ["obs_0", "obs_1"])


@pytest.mark.parametrize(("seed", "long"), [(0, (12, 12)), (1, (12, 12, 12)), (2, (9, 9, 9, 9))])
def test_how_often_the_same_pair_ended_earlier_by_plain_loops(seed, long) -> None:
    """The largest of these chances is left out: someone has to be the longest."""
    log, steps = lengths(seed, *long), max(long)
    step = log.groupby("episode").cumcount()
    early = log[step < steps - 1]
    each = []
    for row in log[step == steps - 1].itertuples():
        alike = early[(early.state == row.state) & (early.action == row.action)]
        each.append((alike.terminated.sum() + 1.0) / (len(alike) + 1.0))
    chance = np.prod(np.sort(each)[:-1])
    found = clock_step(Seen(block_of(log)))
    assert found[1] == pytest.approx(chance, rel=1e-9)
    assert found[0] == (steps if chance < 1e-3 else None)


@pytest.mark.parametrize("seed", range(3))
def test_and_of_the_nearest_observations_with_the_same_action(seed) -> None:
    log, steps = lengths(seed, 12, 12, 12, seen=True), 12
    step = log.groupby("episode").cumcount()
    x = log[["obs_0", "obs_1"]] / log[["obs_0", "obs_1"]].std(ddof=0)
    each = []
    for at in np.flatnonzero(step == steps - 1):
        alike = np.flatnonzero((step < steps - 1) & (log.action == log.action[at]))
        apart = ((x.iloc[alike] - x.iloc[at]) ** 2).sum(axis=1).to_numpy()
        near = alike[np.argsort(apart)[:20]]
        each.append((log.terminated.to_numpy()[near].sum() + 1.0) / 21.0)
    found = clock_step(Seen(block_of(log)))
    assert found[1] == pytest.approx(np.prod(np.sort(each)[:-1]), rel=1e-9)


@pytest.mark.parametrize(("long", "unit"), [(50, 50), (110, 10), (61, 1), (1000, 1000), (35, 5)])
def test_a_longest_episode_alone_is_judged_by_its_round_length_and_where_it_ends(
    long, unit
) -> None:
    log = lengths(4, long)
    last = log.iloc[-1]
    rate = log.groupby(["state", "action"]).terminated.agg(["sum", "mean"])
    seldom = (
        rate["sum"][rate["mean"] <= rate["mean"][last.state, last.action]].sum() / rate["sum"].sum()
    )
    both = seldom / unit
    found = clock_step(Seen(block_of(log)))
    assert found[1] == pytest.approx(both * (1.0 - np.log(both)), rel=1e-9)
    assert clock_step(Seen(block_of(lengths(4, long, seen=True)))) == (None, 1.0)


def test_no_clock_without_whole_episodes_or_with_one_step_or_where_the_longest_are_cut() -> None:
    log = lengths(5, 12, 12)
    assert clock_step(Seen(block_of(log), whole=False)) == (None, 1.0)
    cut = log.assign(terminated=log.terminated & (log.episode != 40), truncated=False)
    cut.loc[cut[cut.episode == 40].index[-1], "truncated"] = True
    cut["next_state"] = 0
    assert clock_step(Seen(block_of(cut))) == (None, 1.0)
    one = log[~log.duplicated("episode")].assign(terminated=True)
    assert clock_step(Seen(block_of(one))) == (None, 1.0)
