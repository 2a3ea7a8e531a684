"""What the literature says about each domain, met exactly or within its spread."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from o2td import Problem, domains, exact
from o2td.errors import InputError

Floats = npt.NDArray[np.float64]


def alive(problem: Problem) -> tuple[Floats, Floats, Floats, Floats]:
    """Discounted matrix, expected reward, shares of time and features of the states that occur."""
    keep = ~problem.terminal
    matrix = problem.discounted_matrix(problem.target)[np.ix_(keep, keep)]
    reward = problem.expected_reward(problem.target)[keep]
    return matrix, reward, problem.visits[keep], problem.features[keep]


# -- Baird -----------------------------------------------------------------------------------------


def test_baird_at_its_first_weights() -> None:
    problem = domains.baird()
    np.testing.assert_allclose(problem.visits, 1 / 7)
    theta = problem.initial_theta
    assert np.sqrt(exact.mse(problem, theta)) == pytest.approx(5.318432, abs=5e-7)
    assert np.sqrt(exact.mspbe(problem, theta)) == pytest.approx(8.221408, abs=5e-7)


def test_baird_etd_after_1000_sweeps() -> None:
    """Expected ETD(0) with step 0.03 and emphasis f = L^-T xi scaled as in the book."""
    problem = domains.baird()
    matrix, reward, xi, phi = alive(problem)
    emphasis = np.linalg.solve(np.eye(7) - matrix.T, xi)
    theta = np.array(problem.initial_theta)
    for _ in range(1000):
        delta = reward + matrix @ phi @ theta - phi @ theta
        theta = theta + 0.03 * phi.T @ (emphasis * delta)
    np.testing.assert_allclose(theta, [1.692308] * 6 + [6.769231, -3.384615], atol=5e-7)


def test_baird_survey_form() -> None:
    problem = domains.baird("survey")
    np.testing.assert_allclose(problem.visits, 1 / 8)
    assert problem.features.shape == (8, 9)
    assert problem.features[7].tolist() == [0.0] * 7 + [1.0, 2.0]
    assert problem.features[3].tolist() == [0, 0, 0, 2, 0, 0, 0, 0, 1]
    assert problem.initial_theta.tolist() == [1.0] * 7 + [10.0, 1.0]
    np.testing.assert_allclose(problem.behavior[0], [7 / 8, 1 / 8])
    np.testing.assert_allclose(problem.start, 1 / 8)


# -- Boyan -----------------------------------------------------------------------------------------


def test_boyan_values_and_weights() -> None:
    problem = domains.boyan_chain(states=13, discount=1.0)
    np.testing.assert_allclose(exact.value(problem), np.arange(-24.0, 1.0, 2.0), atol=1e-9)
    theta = exact.best_approximation(problem)
    np.testing.assert_allclose(theta, [-24.0, -16.0, -8.0, 0.0], atol=1e-9)


def test_boyan_default_has_14_states_and_a_discount() -> None:
    problem = domains.boyan_chain()
    assert problem.n_states == 14
    assert set(problem.pairs.discount) == {0.95, 0.0}
    np.testing.assert_allclose(problem.features.sum(axis=1), 1.0)
    assert problem.features[0, 0] == problem.features[13, 3] == 1.0


# -- Collision -------------------------------------------------------------------------------------


def test_collision_values_and_visits() -> None:
    problem = domains.collision()
    np.testing.assert_allclose(problem.visits[:8] * 35, [2, 4, 6, 8, 8, 4, 2, 1])
    np.testing.assert_allclose(exact.value(problem)[:8], 0.9 ** np.arange(7.0, -1.0, -1.0))
    assert ((problem.features[:8] == 0) | (problem.features[:8] == 1)).all()


def test_collision_errors_over_50_feature_sets() -> None:
    """Published means over 50 other sets; both means have the spread measured here."""
    published = {"best": 0.0713, "td": 0.306, "td .9": 0.0744, "etd": 0.111, "etd .9": 0.0753}
    found: dict[str, list[float]] = {name: [] for name in published}
    for seed in range(50):
        matrix, reward, xi, phi = alive(domains.collision(seed=seed))
        L = np.eye(8) - matrix
        value = np.linalg.solve(L, reward)
        follow_on = np.linalg.solve(L.T, xi)
        traced = np.linalg.inv(np.eye(8) - 0.9 * matrix.T)
        directions = {
            "best": np.linalg.solve(L.T, xi[:, None] * phi),
            "td": xi[:, None] * phi,
            "td .9": traced @ (xi[:, None] * phi),
            "etd": follow_on[:, None] * phi,
            "etd .9": traced @ ((0.9 * xi + 0.1 * follow_on)[:, None] * phi),
        }
        for name, X in directions.items():
            theta = np.linalg.lstsq(X.T @ L @ phi, X.T @ reward, rcond=1e-10)[0]
            found[name].append(float(np.sqrt(xi @ (phi @ theta - value) ** 2)))
    for name, figure in published.items():
        spread = np.std(found[name], ddof=1) * np.sqrt(2 / 50)
        assert abs(np.mean(found[name]) - figure) < 3 * spread, name
        assert spread < 0.13 * figure, name


def test_collision_features_change_with_the_seed_only() -> None:
    one, two, other = (domains.collision(seed=s).features for s in (1, 1, 2))
    assert (one == two).all()
    assert (one != other).any()


# -- random MDP ------------------------------------------------------------------------------------


def test_random_mdp_is_drawn_as_described() -> None:
    problem = domains.random_mdp(states=60, actions=4, features=11, seed=3)
    assert problem.features.shape == (60, 11)
    assert (problem.features[:, -1] == 1.0).all()
    assert 0.45 < problem.features[:, :-1].mean() < 0.55
    assert len(problem.pairs.state) == 60 * 4 * 60
    assert problem.behavior.min() > 0.0
    assert problem.target.min() > 0.0
    assert (np.abs(problem.behavior - problem.target) > 1e-3).any()
    again = domains.random_mdp(states=60, actions=4, features=11, seed=3)
    assert (again.pairs.probability == problem.pairs.probability).all()


def test_random_mdp_rewards() -> None:
    by_action = domains.random_mdp(states=15, actions=3, features=4)
    by_next = domains.random_mdp(states=15, actions=3, features=4, reward="action_next")
    for problem, columns in ((by_action, ("state", "action")), (by_next, ("action", "next_state"))):
        pairs = problem.pairs
        keys = list(zip(*(getattr(pairs, c).tolist() for c in columns), strict=True))
        assert len(set(zip(keys, pairs.reward.tolist(), strict=True))) == len(set(keys))


def test_random_mdp_tells_the_spread_of_its_values() -> None:
    """With Dann's rewards V is 9.99 +- 0.004 in the literature: all of it is one constant."""
    problem = domains.random_mdp(reward="action_next", seed=1)
    value = exact.value(problem)
    assert problem.description == f"V = {value.mean():.2f} ± {value.std():.3g}"
    assert 9.0 < value.mean() < 11.0
    assert value.std() < 0.01
    assert problem.description in repr(problem)


# -- random walk -----------------------------------------------------------------------------------


def test_random_walk_feature_sets() -> None:
    root2, root3 = np.sqrt(2.0), np.sqrt(3.0)
    dependent = np.array(
        [
            [1, 0, 0],
            [1 / root2, 1 / root2, 0],
            [1 / root3, 1 / root3, 1 / root3],
            [0, 1 / root2, 1 / root2],
            [0, 0, 1],
        ]
    )
    np.testing.assert_allclose(domains.random_walk("dependent").features[:5], dependent)
    np.testing.assert_array_equal(domains.random_walk("tabular").features[:5], np.eye(5))
    inverted = domains.random_walk("inverted").features[:5]
    np.testing.assert_array_equal(inverted, 0.5 - 0.5 * np.eye(5))
    np.testing.assert_allclose(np.linalg.norm(inverted, axis=1), 1.0)


def test_random_walk_visits_and_values() -> None:
    """Gambler's ruin with odds 3/2: P(right end) = (1 - q^i) / (1 - q^6), q = 2/3."""
    problem = domains.random_walk()
    np.testing.assert_allclose(problem.visits[:5] * 9, [1, 2, 3, 2, 1])
    right = (1 - (2 / 3) ** np.arange(1, 6)) / (1 - (2 / 3) ** 6)
    np.testing.assert_allclose(exact.value(problem)[:5], 2 * right - 1)


# -- garnet ----------------------------------------------------------------------------------------


def test_garnet_structure() -> None:
    problem = domains.garnet(states=40, actions=3, features=6, branching=5, seed=7)
    pairs = problem.pairs
    counts = np.bincount(pairs.state * 3 + pairs.action, minlength=120)
    assert (counts == 5).all()
    assert problem.behavior.min() > 0.0199
    assert problem.visits.min() > 0.0
    assert np.abs(problem.behavior - problem.target).sum(axis=1).mean() > 0.5
    same = domains.garnet(states=40, on_policy=True)
    assert (same.target == same.behavior).all()


def test_garnet_branching_of_all_states() -> None:
    problem = domains.garnet(states=4, branching=4)
    assert len(problem.pairs.state) == 4 * 4 * 4


def test_garnet_of_100_000_states_is_sparse() -> None:
    problem = domains.garnet(states=100_000, actions=2, features=4, branching=3)
    assert len(problem.pairs.state) == 600_000
    batch = problem.sample(20_000, seed=1)
    assert batch.state.max() > 90_000


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: domains.baird("round"), "form must be one of 'star', 'survey'"),
        (lambda: domains.random_walk("x"), "form must be one of"),
        (lambda: domains.random_mdp(reward="s"), "reward must be one of"),
        (lambda: domains.random_mdp(states=0), "states must be a whole number"),
        (lambda: domains.boyan_chain(states=2.5), "states must be a whole number"),
        (lambda: domains.garnet(states=3, branching=4), "branching is 4"),
        (lambda: domains.garnet(least=0.0), "least must be above 0"),
        (lambda: domains.four_rooms(target=8), "target must be a whole number from 0 to 7, got 8"),
        (lambda: domains.four_rooms(variance="some"), "variance must be one of"),
        (lambda: domains.mountain_car(epsilon_target=0.1), "epsilon_behavior is 0"),
        (lambda: domains.mountain_car(epsilon_behavior=2), "epsilon_behavior must be a number in"),
        (
            lambda: domains.energy_storage(buy_below=2.0),
            "buy_below is 2, above sell_above, which is 1.1; swap",
        ),
        (lambda: domains.energy_storage(1, 1, 0.1, 0.0), "epsilon_behavior is 0"),
        (lambda: domains.random_mdp(states=5, seed=-1), "seed must be"),
    ],
)
def test_mistakes_get_one_sentence(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
