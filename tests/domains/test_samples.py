"""10^5 sampled rows of every finite domain against its own tables.

Each comparison has a false-alarm rate of 1e-6 (conftest.FALSE_ALARM).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from o2td import Problem, Transitions, domains

ROWS = 100_000

FINITE: dict[str, Callable[[], Any]] = {
    "baird star": domains.baird,
    "baird survey": lambda: domains.baird("survey"),
    "random_mdp": lambda: domains.random_mdp(states=20, actions=3, features=5, seed=4),
    "random_mdp action_next": lambda: domains.random_mdp(
        states=12, actions=3, features=5, reward="action_next"
    ),
    "boyan_chain": domains.boyan_chain,
    "collision": domains.collision,
    "four_rooms low": lambda: domains.four_rooms(target=2),
    "four_rooms high": lambda: domains.four_rooms(target=7, variance="high"),
    "random_walk": lambda: domains.random_walk("dependent"),
    "garnet": domains.garnet,
    "garnet on-policy": lambda: domains.garnet(on_policy=True, seed=2),
    "frozen lake": domains.from_gymnasium,
}


@pytest.fixture(params=FINITE, scope="module")
def problem(request: pytest.FixtureRequest) -> Problem:
    made = FINITE[request.param]()
    assert isinstance(made, Problem)
    return made


def test_sequential_rows(problem: Problem, rows_fit: Any, fits: Any) -> None:
    batch = problem.sample(ROWS, seed=11)
    rows_fit(problem, batch)
    ended = problem.terminal[batch.next_state]
    assert batch.start[0]
    assert (batch.start[1:] == ended[:-1]).all()
    assert (batch.state[1:] == batch.next_state[:-1])[~ended[:-1]].all()
    assert (batch.discount[ended] == 0.0).all()
    begun = np.bincount(batch.state[batch.start], minlength=problem.n_states).astype(float)
    fits(begun, problem.start * begun.sum())


def test_independent_rows(problem: Problem, rows_fit: Any, fits: Any) -> None:
    batch = problem.sample(ROWS, seed=12, scheme="iid", double=True)
    rows_fit(problem, batch)
    rows_fit(problem, batch, second=True)
    assert batch.start.all()
    visits = np.bincount(batch.state, minlength=problem.n_states).astype(float)
    fits(visits, problem.visits * ROWS)


def test_a_sampler_that_disagrees_is_found(rows_fit: Any) -> None:
    """The comparison itself can fail: on another behaviour, another table, other rewards."""
    right = domains.random_walk()
    skewed = np.tile([0.48, 0.52], (7, 1))
    parts = {"discount": 1.0, "features": right.features, "terminal": [5, 6], "start": right.start}
    chances = [right.transition_matrix(np.tile(one, (7, 1))) for one in np.eye(2)]
    transition = np.stack(chances, axis=1)
    reward = np.zeros((7, 2))
    reward[0, 0], reward[4, 1] = -1.0, 1.0
    other = Problem(transition, reward, behavior=skewed, target=right.target, **parts)
    batch = other.sample(ROWS, seed=1)
    rows_fit(other, batch)
    with pytest.raises(KeyError):
        rows_fit(right, batch)
    shown = Transitions.from_table(
        right.features,
        batch.state,
        batch.reward,
        batch.next_state,
        batch.discount,
        rho=np.where(batch.behavior_prob > 0.5, 1.2, 0.8),
        target_prob=batch.target_prob,
        behavior_prob=np.full(ROWS, 0.5),
    )
    with pytest.raises(AssertionError):
        rows_fit(right, shown)


def test_the_same_seed_gives_the_same_rows(problem: Problem) -> None:
    one, two = problem.sample(500, seed=(3, 1)), problem.sample(800, seed=(3, 1))
    other, zero = problem.sample(500, seed=(3, 2)), problem.sample(500, seed=3)
    assert (one.state == two.state[:500]).all()
    assert (one.reward == two.reward[:500]).all()
    assert (one.rho == two.rho[:500]).all()
    if problem.name != "boyan_chain":
        assert (one.state != other.state).any()
        assert (one.state != zero.state).any()


def test_a_seed_object_is_not_used_up() -> None:
    problem, seed = domains.baird(), np.random.SeedSequence(5)
    assert (problem.sample(50, seed).state == problem.sample(50, seed).state).all()


def test_seeds_of_different_length_are_different_streams() -> None:
    problem = domains.random_mdp(states=50, actions=2, features=3)
    streams = [problem.sample(20, seed=s).state.tolist() for s in (0, (0, 0), (0, 0, 0), (0, 1), 1)]
    assert len({tuple(s) for s in streams}) == len(streams)


@pytest.fixture(scope="module")
def large() -> Problem:
    return domains.random_mdp()


def test_all_400_states_are_used(large: Problem, fits: Any) -> None:
    """Indices kept in 8 bits made 256 states out of 400 in public code."""
    batch = large.sample(ROWS, seed=5)
    visits = np.bincount(batch.state, minlength=400).astype(float)
    assert (visits > 0).all()
    assert batch.state.max() == 399
    # Given the states visited, successors are independent draws from the behaviour's rows.
    expected = visits @ large.transition_matrix(large.behavior)
    fits(np.bincount(batch.next_state, minlength=400).astype(float), expected)


def test_rows_of_the_400_states_are_entries_of_the_tables(large: Problem) -> None:
    batch = large.sample(40, seed=6)
    pairs = large.pairs
    at = {}
    for k in np.flatnonzero(np.isin(pairs.state, batch.state[:40])):
        s, a = pairs.state[k], pairs.action[k]
        at.setdefault((s, pairs.next_state[k], large.behavior[s, a]), []).append(k)
    for t in range(40):
        (k,) = at[batch.state[t], batch.next_state[t], batch.behavior_prob[t]]
        s, a = pairs.state[k], pairs.action[k]
        assert batch.reward[t] == pairs.reward[k]
        assert batch.discount[t] == pairs.discount[k] == 0.95
        assert batch.rho[t] == large.target[s, a] / large.behavior[s, a]
