from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array, issparse

from o2td import Problem
from o2td.errors import InputError, NoAnswerError
from o2td.simulated import Rollout, SimulatedProblem

Floats = npt.NDArray[np.float64]


def begin(rng: np.random.Generator) -> Floats:
    return np.array([0.0, rng.random()])


def advance(x: Floats, action: int, rng: np.random.Generator) -> tuple[Floats, float, bool]:
    """A counter that action 1 moves on; four ends it."""
    after = np.array([x[0] + action, rng.random()])
    return after, float(action), bool(after[0] >= 4)


def behavior(x: Floats) -> Floats:
    return np.array([0.5, 0.5])


def target(x: Floats) -> Floats:
    return np.array([0.25, 0.75])


def polynomial(X: Floats) -> Floats:
    return np.column_stack([np.ones(len(X)), X])


def counter(**options: Any) -> SimulatedProblem:
    parts: dict[str, Any] = {
        "reset": begin,
        "step": advance,
        "behavior": behavior,
        "target": target,
        "features": polynomial,
        "discount": 0.9,
    }
    made = Problem.simulated(**(parts | options))
    assert isinstance(made, SimulatedProblem)
    return made


def test_rows() -> None:
    problem = counter()
    rows = problem.rollout(500, seed=1)
    batch = problem.sample(500, seed=1)
    assert (batch.layout, batch.d, problem.d, problem.n_actions) == ("dense", 3, 3, 2)
    np.testing.assert_array_equal(batch.phi[:, 1:], rows.observation)
    np.testing.assert_array_equal(batch.next_phi[:, 1:], rows.next_observation)
    np.testing.assert_array_equal(batch.rho, np.where(rows.action == 1, 1.5, 0.5))
    np.testing.assert_array_equal(batch.discount, np.where(rows.terminated, 0.0, 0.9))
    np.testing.assert_array_equal(batch.start[1:], rows.terminated[:-1])
    np.testing.assert_array_equal(rows.terminated, rows.next_observation[:, 0] == 4)
    on = ~rows.start[1:]
    np.testing.assert_array_equal(rows.observation[1:][on], rows.next_observation[:-1][on])


def test_truncation_is_not_termination() -> None:
    problem = counter(horizon=3)
    rows = problem.rollout(300, seed=2)
    # Three steps cannot reach four, so every episode is cut.
    assert not rows.terminated.any()
    np.testing.assert_array_equal(rows.truncated, np.arange(300) % 3 == 2)
    np.testing.assert_array_equal(rows.start, np.arange(300) % 3 == 0)
    batch = problem.transitions_of(rows)
    assert (batch.discount == 0.9).all()
    np.testing.assert_array_equal(batch.next_phi[2, 1:], rows.next_observation[2])
    np.testing.assert_array_equal(rows.episode, np.arange(300) // 3)
    np.testing.assert_array_equal(rows.step, np.arange(300) % 3)


def test_termination_wins_over_truncation_at_the_same_step() -> None:
    rows = counter(horizon=4, behavior=lambda x: np.array([0.0, 1.0]), target=lambda x: [0.0, 1.0])
    last = rows.rollout(8).take(slice(3, None, 4))
    assert last.terminated.all()
    assert not last.truncated.any()


def test_a_step_may_say_that_it_truncates() -> None:
    problem = counter(step=lambda x, a, rng: (x + 1, 0.0, False, x[0] == 1))
    assert np.flatnonzero(problem.rollout(6).truncated).tolist() == [1, 3, 5]


def test_shuffled_rows_are_the_sequential_rows() -> None:
    problem = counter()
    rows, shuffled = problem.sample(400, seed=3), problem.sample(400, seed=3, scheme="iid")
    assert shuffled.start.all()
    order = np.argsort(rows.phi[:, 2]), np.argsort(shuffled.phi[:, 2])
    assert (order[0] != order[1]).any()
    for name in ("phi", "next_phi", "reward", "discount", "rho"):
        one, two = getattr(rows, name)[order[0]], getattr(shuffled, name)[order[1]]
        np.testing.assert_array_equal(one, two)


def test_second_successors_are_independent() -> None:
    problem, n = counter(), 8_000
    batch = problem.sample(n, seed=4, double=True)
    moved = batch.next_phi[:, 1] - batch.phi[:, 1]
    again = batch.next_phi_2[:, 1] - batch.phi[:, 1]
    np.testing.assert_array_equal(batch.rho_2, np.where(again == 1, 1.5, 0.5))
    ended = batch.next_phi_2[:, 1] == 4
    np.testing.assert_array_equal(batch.discount_2, np.where(ended, 0.0, 0.9))
    # Five standard deviations of a correlation of independent coins.
    assert abs(np.corrcoef(moved, again)[0, 1]) < 5 / np.sqrt(n)
    plain = problem.sample(n, seed=4)
    np.testing.assert_array_equal(plain.phi, batch.phi)


def test_runs_are_reproducible_and_independent() -> None:
    problem = counter()
    one, two, other = (problem.rollout(50, seed=s) for s in ((1, 0), (1, 0), (1, 1)))
    np.testing.assert_array_equal(one.observation, two.observation)
    assert (one.observation != other.observation).any()
    longer = problem.rollout(80, seed=(1, 0))
    np.testing.assert_array_equal(longer.observation[:50], one.observation)


def test_values() -> None:
    """`v(c) = 0.75 (1 + 0.9 v(c+1)) + 0.25 0.9 v(c)` and `v(4) = 0`."""
    problem = counter()
    wanted = [0.0]
    for _ in range(4):
        wanted.append(0.75 * (1 + 0.9 * wanted[-1]) / (1 - 0.25 * 0.9))
    x = np.array([[c, 0.5] for c in (3.0, 0.0)])
    value = problem.rollout_value(x, runs=2000, seed=0)
    # Five standard errors each: a false alarm in 10^6.
    assert (np.abs(value.mean - [wanted[1], wanted[4]]) < 5 * value.standard_error).all()
    assert (value.standard_error > 0).all()
    again = problem.rollout_value(x, runs=2000, seed=0)
    np.testing.assert_array_equal(value.mean, again.mean)


def test_undiscounted_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("o2td.simulated._ENDLESS", 2000)
    problem = counter(discount=1.0)
    np.testing.assert_array_equal(problem.rollout_value([[1.0, 0.0]], runs=5).mean, [3.0])
    endless = counter(discount=1.0, step=lambda x, a, rng: (x, 1.0, False))
    with pytest.raises(NoAnswerError, match="had not ended"):
        endless.rollout_value([[1.0, 0.0]], runs=2)
    cut = endless.rollout_value([[1.0, 0.0]], runs=2, steps=7)
    np.testing.assert_array_equal(cut.mean, [7.0])
    assert counter(discount=0.0).rollout_value([[3.0, 0.0]], runs=50).mean[0] < 1.0


def test_sparse_features() -> None:
    problem = counter(features=lambda X: csr_array(polynomial(X)))
    batch = problem.sample(40, seed=1)
    assert batch.layout == "csr"
    assert issparse(batch.phi)
    np.testing.assert_array_equal(batch.phi.toarray(), counter().sample(40, seed=1).phi)


def test_observations_are_spaced() -> None:
    problem = counter()
    np.testing.assert_array_equal(
        problem.observations(10, seed=2, every=3), problem.rollout(30, seed=2).observation[::3]
    )


def test_no_rows() -> None:
    problem = counter()
    assert len(problem.sample(0)) == 0
    assert len(problem.rollout(0)) == 0
    assert isinstance(problem.rollout(0), Rollout)


def test_repr() -> None:
    assert repr(counter(name="counter", description="to four")) == (
        "SimulatedProblem('counter', observation=2, actions=2, features=3, 'to four')"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"discount": 1.5}, "discount must be a number in"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1"),
        ({"behavior": lambda x: [0.5, 0.6]}, "behavior returned .* sum to 1"),
        ({"target": lambda x: [1.0]}, "target returned shape"),
        ({"target": lambda x: [1.5, -0.5]}, "not negative"),
        ({"behavior": lambda x: [1.0, 0.0]}, "behavior never takes action 1"),
        ({"step": lambda x, a, rng: (x[:1], 0.0, False)}, "step returned the observation"),
        ({"step": lambda x, a, rng: (x * np.nan, 0.0, False)}, "step returned the observation"),
        ({"step": lambda x, a, rng: (x, np.inf, False)}, "step returned the reward inf"),
        ({"reset": lambda rng: [[1.0]]}, "reset returned the observation"),
        ({"features": lambda X: X * np.nan}, "phi has a value that is not finite"),
    ],
)
def test_mistakes(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        counter(**options).sample(20)


def test_mistaken_calls() -> None:
    problem = counter()
    with pytest.raises(InputError, match="scheme"):
        problem.sample(3, scheme="shuffled")
    with pytest.raises(InputError, match="n must be a whole number from 0"):
        problem.sample(-1)
    with pytest.raises(InputError, match="runs must be a whole number from 2"):
        problem.rollout_value([[0.0, 0.0]], runs=1)
    with pytest.raises(InputError, match="observations must have shape"):
        problem.rollout_value([0.0, 0.0])
    with pytest.raises(InputError, match="every"):
        problem.observations(3, every=0)


def walk(found):
    """A problem whose step returns what it is told."""
    return Problem.simulated(
        reset=lambda rng: np.zeros(1),
        step=lambda x, action, rng: found,
        behavior=lambda x: np.full(2, 0.5),
        target=lambda x: np.full(2, 0.5, dtype=np.float32),
        features=lambda x: np.ones((len(x), 1)),
        discount=0.9,
    )


@pytest.mark.parametrize("info", [{}, {"lives": 3}])
def test_a_step_may_return_what_gymnasium_does(info):
    rows = walk((np.zeros(1), 1.0, False, False, info)).sample(5, seed=0)
    assert rows.start.tolist() == [True, False, False, False, False]
    rows = walk((np.zeros(1), 1.0, False, True, info)).sample(5, seed=0)
    assert rows.start.all()
    assert (rows.discount == 0.9).all()


@pytest.mark.parametrize(
    "found", [(np.zeros(1), 1.0), None, (np.zeros(1), np.ones(1), False), (0.0,) * 6]
)
def test_a_step_that_returns_something_else_is_refused(found):
    with pytest.raises(InputError, match="step returned"):
        walk(found).sample(3, seed=0)


def test_numbers_that_are_none_are_refused_by_name():
    problem = walk((np.zeros(1), 1.0, True))
    for wrong in (2.5, "3", True, -1):
        with pytest.raises(InputError, match="n must be a whole number"):
            problem.sample(wrong)
    for name, wrong in (("runs", 2.5), ("runs", 1), ("steps", -3), ("steps", 2.5)):
        with pytest.raises(InputError, match=f"{name} must be a whole number"):
            problem.rollout_value(np.zeros((1, 1)), **{name: wrong})
    with pytest.raises(InputError, match="observations"):
        problem.rollout_value([[np.nan]])


def test_runs_without_an_end_are_told_by_two_of_them() -> None:
    """Undiscounted and endless: not all of the runs are made to find that out."""
    asked = []

    def returns(rng: Any, first: Floats, steps: int, discount: float, out: Floats) -> int:
        asked.append(out.shape)
        out[:] = 0.0
        return out.size

    problem = counter(discount=1.0, returns=returns)
    with pytest.raises(NoAnswerError, match=r"2 undiscounted runs .* pass steps="):
        problem.rollout_value(np.zeros((50, 2)), runs=100)
    assert asked == [(1, 2)]
    assert problem.rollout_value(np.zeros((50, 2)), runs=100, steps=5).noise == 0.0
    assert asked[1:] == [(50, 100)]
