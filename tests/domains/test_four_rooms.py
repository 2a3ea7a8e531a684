from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2td import domains, exact
from o2td.domains.four_rooms import HALLWAYS, MOVES, TARGETS, _cells

WALLS = (
    ".....#.....",
    ".....#.....",
    ".....H.....",
    ".....#.....",
    ".....#.....",
    "#H####.....",
    ".....###H##",
    ".....#.....",
    ".....#.....",
    ".....H.....",
    ".....#.....",
)


def test_the_map() -> None:
    """104 cells, as drawn, row by row from the bottom."""
    drawn = {(x, 10 - row) for row, line in enumerate(WALLS) for x in range(11) if line[x] in ".H"}
    assert set(_cells()) == drawn
    assert len(_cells()) == 104
    assert {c for c in drawn if WALLS[10 - c[1]][c[0]] == "H"} == set(HALLWAYS)


@pytest.mark.parametrize("k", range(8))
def test_targets_take_shortest_paths_and_stay_active(k: int) -> None:
    problem, cells = domains.four_rooms(target=k), _cells()
    room, own, other = TARGETS[k]
    goal, entrance = cells.index(HALLWAYS[own]), cells.index(HALLWAYS[other])
    assert int(problem.active.sum()) == {0: 26, 1: 26, 2: 31, 3: 21}[room]
    assert problem.active[entrance]
    assert not problem.active[goal]
    assert (problem.target[~problem.active] == 0.0).all()
    # Inside a room Manhattan distance is the length of a shortest path, so v = gamma^(steps - 1).
    value = exact.value(problem)
    for s in np.flatnonzero(problem.active):
        (x, y), (gx, gy) = cells[s], HALLWAYS[own]
        steps = abs(x - gx) + abs(y - gy)
        assert value[s] == pytest.approx(0.9 ** (steps - 1))
        for a in np.flatnonzero(problem.target[s]):
            after = (x + MOVES[a][0], y + MOVES[a][1])
            t = cells.index(after)
            assert problem.active[t] or t == goal
    # Ties are even.
    shares = problem.target[problem.active]
    assert set(np.unique(shares)) <= {0.0, 0.5, 1.0}


def test_rewards_and_discounts_are_those_of_the_prediction() -> None:
    problem, cells = domains.four_rooms(target=4), _cells()
    goal, pairs = cells.index(HALLWAYS[2]), problem.pairs
    paid = (pairs.next_state == goal) & problem.active[pairs.state]
    np.testing.assert_array_equal(pairs.reward, paid.astype(float))
    np.testing.assert_array_equal(pairs.discount, 0.9 * problem.active[pairs.next_state])


def test_the_walk_is_uniform_over_states() -> None:
    """Every move has its opposite, so the uniform walk's chain is symmetric."""
    np.testing.assert_allclose(domains.four_rooms().visits, 1 / 104)


def test_features_are_three_ones_a_state() -> None:
    phi = domains.four_rooms().features
    assert set(np.unique(phi)) == {0.0, 1.0}
    assert (phi.sum(axis=1) == 3).all()
    assert phi.any(axis=0).all()


def test_high_variance_behavior() -> None:
    behavior, cells = domains.four_rooms(variance="high").behavior, _cells()
    for cell, left, right in (((1, 1), 0.97, 0.01), ((1, 8), 0.97, 0.01), ((8, 1), 0.01, 0.97)):
        np.testing.assert_allclose(behavior[cells.index(cell)], [0.01, 0.01, right, left])
    assert (behavior == 0.25).all(axis=1).sum() == 100


@pytest.mark.parametrize("variance", ["low", "high"])
@pytest.mark.parametrize("scheme", ["sequential", "iid"])
def test_eight_lanes_are_the_eight_problems(variance: str, scheme: Any) -> None:
    lanes = domains.four_rooms_lanes(3000, seed=5, variance=variance, scheme=scheme)
    for k in range(8):
        own = domains.four_rooms(k, variance).sample(3000, seed=5, scheme=scheme)
        for batch in (lanes, lanes.batch(k)):
            np.testing.assert_array_equal(batch.state, own.state)
            np.testing.assert_array_equal(batch.next_state, own.next_state)
            np.testing.assert_array_equal(batch.start, own.start)
        for name in ("rho", "reward", "discount"):
            np.testing.assert_array_equal(getattr(lanes, name)[k], getattr(own, name))
            np.testing.assert_array_equal(getattr(lanes.batch(k), name), getattr(own, name))
    # A state in a room serves two targets, a hallway two of other rooms.
    assert ((lanes.rho > 0).sum(axis=0) <= 2).all()
    assert (lanes.rho > 0).any(axis=1).all()


def test_published_features_are_three_tilings_of_two_by_two() -> None:
    found, place = domains.four_rooms(features="published").features, np.array(_cells())
    assert found.shape == (104, 12)
    assert np.linalg.matrix_rank(found) == 10
    for k, cut in enumerate((10, 7, 4)):
        right, above = place[:, 0] >= cut, place[:, 1] >= cut
        for tile, inside in enumerate(
            (~right & ~above, ~right & above, right & ~above, right & above)
        ):
            np.testing.assert_array_equal(found[:, 4 * k + tile], inside)


def test_batches_of_lanes_have_probabilities() -> None:
    batch = domains.four_rooms_lanes(200, seed=6).batch(3)
    assert batch.target_prob is not None
    assert batch.behavior_prob is not None
    np.testing.assert_allclose(batch.rho, batch.target_prob / batch.behavior_prob, rtol=1e-15)
