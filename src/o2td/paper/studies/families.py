"""Families of problems for `near_optimal`: each gives its problem number k, for a seed.

The first eighteen settled the design of our methods (other problems of theirs, from other seeds).
The seven of `TEXTBOOK` were fresh when they were first reported. The seven of `FRESH`, published ones
as well, were defined before any learner ran on them; the rule by which `LSTD(trace="auto")` chooses
was settled on all of these since. The eight of `LATER` were defined before it ran on them; learners
ran there for the first time when their figures were drawn, long after ARCTD's rule was settled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from o2td import domains, features
from o2td.paper.studies import literature, operations, textbook
from o2td.paper.studies.puddle_world import BOUNDS, puddle_world
from o2td.problem import Problem
from o2td.simulated import SimulatedProblem

AnyProblem = Problem | SimulatedProblem


def _car(k: int, seed: int) -> SimulatedProblem:
    target, behavior = ((0.0, 0.3), (0.1, 0.5), (0.3, 0.3))[k % 3]
    return domains.mountain_car(target, behavior, order=3 + k // 3 % 2)


def _tiles(k: int, seed: int) -> SimulatedProblem:
    target, behavior = ((0.0, 0.3), (0.1, 0.5), (0.2, 0.4))[k % 3]
    bounds = ((-1.2, 0.6), (-0.07, 0.07))
    tiles = features.Tiles(4, 5, bounds=bounds, sparse=False)
    return domains.mountain_car(target, behavior, features=tiles)


def _storage(k: int, seed: int) -> SimulatedProblem:
    target, behavior = ((0.0, 0.5), (0.1, 0.7), (0.2, 0.4))[k % 3]
    return domains.energy_storage(
        epsilon_target=target, epsilon_behavior=behavior, order=3 + k // 3 % 2
    )


def _walk(k: int, seed: int) -> Problem:
    form = ("tabular", "inverted", "dependent")[k % 3]
    return domains.random_walk(form, discount=(1.0, 0.95)[k // 3 % 2])


def _chain(k: int, seed: int) -> Problem:
    return domains.boyan_chain(discount=(0.95, 0.99, 0.9, 0.8)[k % 4])


def _long_walk(k: int, seed: int) -> Problem:
    """Nineteen states, one feature each or one for every three neighbours; ends pay -1 and 1."""
    inner, n = 19, 21
    transition, reward, middle = np.zeros((n, 2, n)), np.zeros((n, 2)), np.eye(n)[10]
    for s in range(1, inner + 1):
        transition[s, 0, s - 1] = transition[s, 1, s + 1] = 1.0
    reward[1, 0], reward[inner, 1] = -1.0, 1.0
    tilt, table = (0.1, 0.0, 0.05, -0.1)[k % 4], np.eye(inner)
    if k // 4 % 2 == 1 or k % 2 == 1:
        table = (table + np.eye(inner, k=1) + np.eye(inner, k=-1)) / 3.0
    features = np.vstack([np.zeros(inner), table, np.zeros(inner)])
    target = np.tile([0.5 - tilt, 0.5 + tilt], (n, 1))
    return Problem(
        transition, reward, 1.0, np.full((n, 2), 0.5), target, features,
        start=middle, terminal=[0, n - 1],
    )  # fmt: skip


def _garnet(**settings: Any) -> Callable[[int, int], Problem]:
    return lambda k, seed: domains.garnet(seed=(seed, k), **settings)


def _chain_walk(k: int, seed: int) -> Problem:
    """The chains of Lagoudakis & Parr (2003): the better direction's value from random moves.

    Moves succeed with probability 0.9 and go the other way otherwise. Fifty states, rewards in the
    10th and the 41st, ten Gaussians and a constant; or twenty, rewards at both ends, polynomials up
    to the fourth power (of the position between 0 and 1).
    """
    n = (50, 20)[k % 2]
    s, paid = np.arange(n), (9, 40) if n == 50 else (0, 19)
    transition = np.zeros((n, 2, n))
    for move, other in ((0, 1), (1, 0)):
        transition[s, move, np.clip(s + (-1, 1)[move], 0, n - 1)] += 0.9
        transition[s, move, np.clip(s + (-1, 1)[other], 0, n - 1)] += 0.1
    right = np.where(s < n // 2, s < paid[0], s < paid[1])
    if n == 50:
        bumps = np.exp(-(((s[:, None] - np.linspace(0, n - 1, 10)) / 4.0) ** 2) / 2.0)
        table = np.hstack([np.ones((n, 1)), bumps])
    else:
        table = (s[:, None] / (n - 1.0)) ** np.arange(5)
    least = (0.0, 0.2)[k // 2 % 2] / 2.0
    target = least + (1.0 - 2.0 * least) * np.stack([~right, right], axis=1)
    return Problem(
        transition, np.isin(s, paid) * 1.0, (0.9, 0.95)[k // 4 % 2], np.full((n, 2), 0.5), target, table
    )  # fmt: skip


def _puddle(k: int, seed: int) -> SimulatedProblem:
    target, behavior = ((0.1, 0.5), (0.0, 0.8), (0.2, 1.0), (0.5, 0.5))[k % 4]
    if k // 4 % 2 == 0:
        return puddle_world(target, behavior, features.Tiles(5, 5, bounds=BOUNDS, sparse=False))
    return puddle_world(target, behavior, features.Radial(6, bounds=BOUNDS))


FAMILIES: dict[str, Callable[[int, int], AnyProblem]] = {
    "garnet": _garnet(),
    "garnet, mild": _garnet(peak=1),
    "garnet, discount 0.99": _garnet(discount=0.99),
    "garnet, 300 states": _garnet(states=300, features=40),
    "garnet, on-policy": _garnet(on_policy=True),
    "random MDP": lambda k, seed: domains.random_mdp(100, 5, 20, seed=(seed, k)),
    "Collision": lambda k, seed: domains.collision(seed=(seed, k)),
    "Four Rooms": lambda k, seed: domains.four_rooms(k % 8, ("low", "high")[k // 8 % 2]),
    "random walk": _walk,
    "mountain car": _car,
    "mountain car, tiles": _tiles,
    "energy storage": _storage,
    "Boyan chain": _chain,
    "walk of 19 states": _long_walk,
    "garnet, 60 states": _garnet(
        states=60, actions=3, features=20, branching=5, discount=0.9, peak=2
    ),
    "chain walk": _chain_walk,
    "cliff walking": textbook.cliff,
    "Puddle World": _puddle,
    "frozen lake": textbook.frozen_lake,
    "windy gridworld": textbook.windy_gridworld,
    "Dyna maze": textbook.maze,
    "taxi": textbook.taxi,
    "blackjack": textbook.blackjack,
    "car rental": textbook.car_rental,
    "gambler": textbook.gambler,
    "RiverSwim": literature.river_swim,
    "access control": literature.access_control,
    "walk of 1,000 states": literature.long_jumps,
    "Deep Sea": literature.deep_sea,
    "SysAdmin": literature.administrator,
    "Pig": literature.pig,
    "service rate": literature.service_rate,
    "SixArms": operations.six_arms,
    "double loop": operations.double_loop,
    "4 x 3 world": operations.small_world,
    "Tower of Hanoi": operations.hanoi,
    "bus engines": operations.bus_engines,
    "forest": operations.forest,
    "inventory": operations.inventory,
    "taxicab": operations.taxicab,
}
SETTLED, TEXTBOOK, FRESH, LATER = (
    tuple(FAMILIES)[part] for part in (slice(18), slice(18, 25), slice(25, 32), slice(32, 40))
)
