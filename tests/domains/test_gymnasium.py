from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2td import Problem, domains, exact
from o2td.errors import InputError
from o2td.simulated import SimulatedProblem

gymnasium = pytest.importorskip("gymnasium")


def newest(name: str) -> str:
    """The newest version of an environment that this Gymnasium has."""
    found = [key for key in gymnasium.registry if key.rpartition("-v")[0] == name]
    return str(max(found, key=lambda key: int(key.rpartition("-v")[2])))


def value_by_sweeps(P: Any, policy: Any, n: int, m: int, discount: float) -> Any:
    """Policy evaluation straight from the table, with its termination flags."""
    value = np.zeros(n)
    for _ in range(5000):
        new = np.array(
            [
                sum(
                    policy[s, a] * p * (r + (0.0 if ended else discount * value[t]))
                    for a in range(m)
                    for p, t, r, ended in P[s][a]
                )
                for s in range(n)
            ]
        )
        if np.abs(new - value).max() < 1e-13 * (1 + np.abs(new).max()):
            break
        value = new
    return value


@pytest.mark.parametrize(
    ("name", "options", "discount"),
    [
        ("FrozenLake", {}, 0.9),
        ("FrozenLake", {"map_name": "8x8", "is_slippery": False}, 0.9),
        ("CliffWalking", {}, 0.9),
        ("CliffWalking", {"is_slippery": True}, 0.8),
        ("Taxi", {}, 0.7),
    ],
)
def test_tables_give_the_values_of_the_tables(name: str, options: Any, discount: float) -> None:
    env = gymnasium.make(newest(name), **options)
    n, m = int(env.observation_space.n), int(env.action_space.n)
    rng = np.random.default_rng(0)
    policy = rng.random((n, m))
    policy /= policy.sum(axis=1, keepdims=True)
    problem = domains.from_gymnasium(newest(name), "uniform", policy, discount, **options)
    assert isinstance(problem, Problem)
    wanted = value_by_sweeps(env.unwrapped.P, policy, n, m, discount)
    ended = problem.terminal[:n]
    np.testing.assert_allclose(
        exact.value(problem)[:n][~ended], wanted[~ended], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(problem.start[:n], env.unwrapped.initial_state_distrib)
    # One feature for each state that can occur, so nothing is singular.
    seen = problem.visits > 0
    assert (problem.features[seen].sum(axis=1) == 1).all()
    assert problem.d == seen.sum()


def test_holes_and_goal_of_the_lake_are_terminal() -> None:
    problem = domains.from_gymnasium("FrozenLake-v1")
    assert np.flatnonzero(problem.terminal).tolist() == [5, 7, 11, 12, 15]
    assert problem.n_states == 16


def test_the_cliff_sends_back_without_ending() -> None:
    problem = domains.from_gymnasium(newest("CliffWalking"), target="uniform")
    assert problem.n_states == 48
    assert np.flatnonzero(problem.terminal).tolist() == [47]
    fall = problem.pairs.reward == -100
    assert (problem.pairs.next_state[fall] == 36).all()
    assert (problem.pairs.discount[fall] == 0.99).all()


class BothWays:
    """State 1 is entered alive by action 0 and by ending with action 1."""

    def __init__(self) -> None:
        self.unwrapped = self
        self.spec = None
        self.observation_space = gymnasium.spaces.Discrete(2)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.initial_state_distrib = np.array([1.0, 0.0])
        self.P = {
            0: {0: [(1.0, 1, 0.0, False)], 1: [(0.5, 1, 4.0, True), (0.5, 1, 2.0, True)]},
            1: {0: [(1.0, 0, 1.0, False)], 1: [(1.0, 1, 0.0, True)]},
        }


def test_a_state_entered_alive_and_by_ending_gets_a_terminal_twin() -> None:
    problem = domains.from_gymnasium(BothWays(), "uniform", "uniform", 0.5)
    assert problem.terminal.tolist() == [False, False, True]
    # v0 = (v1/2 + 3) / 2, v1 = (1 + v0/2) / 2; the two rewards of an ending are averaged
    v0 = (0.125 + 1.5) / (1 - 0.0625)
    np.testing.assert_allclose(exact.value(problem), [v0, 0.5 + v0 / 4, 0.0])


def test_optimal_policy_of_the_lake() -> None:
    """Not slippery, 4x4: the goal is six steps away."""
    problem = domains.from_gymnasium("FrozenLake-v1", discount=0.9, is_slippery=False)
    assert exact.value(problem)[0] == pytest.approx(0.9**5)


def test_policies_can_be_functions_of_the_state() -> None:
    problem = domains.from_gymnasium("FrozenLake-v1", target=lambda s: np.eye(4)[s % 4])
    assert problem.target[6].tolist() == [0.0, 0.0, 1.0, 0.0]


# -- roll-outs -------------------------------------------------------------------------------------


def lean(x: Any) -> Any:
    return np.array([0.2, 0.8]) if x[2] > 0 else np.array([0.8, 0.2])


def pole(**options: Any) -> SimulatedProblem:
    made = domains.from_gymnasium(
        "CartPole-v1", "uniform", lean, 0.95, lambda X: np.hstack([X, X**2]), **options
    )
    assert isinstance(made, SimulatedProblem)
    return made


def test_cart_pole_by_rollouts() -> None:
    problem = pole()
    assert problem.horizon == 500
    assert problem.d == 8
    rows = problem.rollout(2000, seed=3)
    env = gymnasium.make("CartPole-v1").unwrapped
    env.reset(seed=0)
    for t in range(300):
        env.state, env.steps_beyond_terminated = rows.observation[t], None
        after, reward, terminated, *_ = env.step(int(rows.action[t]))
        np.testing.assert_allclose(rows.next_observation[t], after, rtol=1e-6)
        assert (rows.reward[t], rows.terminated[t]) == (reward, terminated)
    batch = problem.transitions_of(rows)
    assert set(np.unique(batch.rho.round(9))) == {0.4, 1.6}
    assert (batch.discount[rows.terminated] == 0.0).all()
    again = problem.rollout(2000, seed=3)
    np.testing.assert_array_equal(again.observation, rows.observation)


def test_cart_pole_value_and_double_sampling() -> None:
    problem = pole()
    value = problem.rollout_value(np.zeros((1, 4)), runs=20, seed=1)
    assert 0 < value.mean[0] < 1 / (1 - 0.95)
    assert value.standard_error[0] > 0
    assert problem.sample(50, seed=1, double=True).next_phi_2.shape == (50, 8)


def test_an_environment_without_a_settable_state_only_rolls_out() -> None:
    problem = domains.from_gymnasium("Acrobot-v1", "uniform", "uniform")
    assert isinstance(problem, SimulatedProblem)
    assert problem.d == 4**6
    rows = problem.rollout(1100, seed=1)
    # An episode cannot end by chance here, so the limit of 500 cuts it: not a termination.
    assert np.flatnonzero(rows.truncated).tolist() == [499, 999]
    assert np.flatnonzero(rows.start).tolist() == [0, 500, 1000]
    np.testing.assert_array_equal(problem.rollout(1100, seed=1).observation, rows.observation)
    with pytest.raises(InputError, match="cannot be put into a given state"):
        problem.sample(5, double=True)
    with pytest.raises(InputError, match="cannot be put into a given state"):
        problem.rollout_value(rows.observation[:1])


def test_an_environment_object_keeps_its_wrappers() -> None:
    env = gymnasium.wrappers.TimeLimit(gymnasium.make("MountainCar-v0").unwrapped, 7)
    problem = domains.from_gymnasium(env, "uniform", "uniform")
    rows = problem.rollout(30, seed=2)
    assert np.flatnonzero(rows.truncated).tolist() == [6, 13, 20, 27]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("NoSuchLake-v7",), "cannot make 'NoSuchLake-v7'"),
        (("Pendulum-v1",), "discrete ones are needed"),
        (("CartPole-v1", "uniform", "uniform"), "pass features="),
        (("CartPole-v1", "uniform", "optimal", 0.9, lambda X: X), "target must be"),
        (("FrozenLake-v1", "greedy"), "behavior must be"),
        (("FrozenLake-v1", np.ones((3, 4))), "expected"),
        (("Blackjack-v1", "uniform", "uniform", 0.9, lambda X: X), "one array of numbers"),
        (("FrozenLake-v1", lambda s: np.eye(4)[0], "uniform"), "behavior never takes action"),
    ],
)
def test_mistakes(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        domains.from_gymnasium(*arguments)
