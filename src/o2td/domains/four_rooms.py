"""Four rooms with eight predictions at once (Ghiassian & Sutton 2021, arXiv:2109.05110).

Cells are (x, y) with x to the right and y up, 11 by 11, of which 104 are free: four rooms and the
hallways (5, 1), (1, 5), (5, 8), (8, 4) between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from o2td.arguments import choice, unit, whole
from o2td.arrays import Bools, Floats, Ints, Seed
from o2td.problem import Problem
from o2td.transitions import Transitions

Cell = tuple[int, int]

SIZE = 11
MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))  # up, down, right, left
HALLWAYS = ((5, 1), (1, 5), (5, 8), (8, 4))
# lower left corner and upper right corner of each room
ROOMS = (((0, 0), (4, 4)), ((0, 6), (4, 10)), ((6, 5), (10, 10)), ((6, 0), (10, 3)))
# (room, the hallway that the target goes to, the room's other hallway)
TARGETS = (
    *((0, 0, 1), (0, 1, 0), (1, 1, 2), (1, 2, 1)),
    *((2, 2, 3), (2, 3, 2), (3, 3, 0), (3, 0, 3)),
)
_TILE = 4  # cells along the side of a tile
_OFFSETS = ((0, 0), (1, 3), (3, 1))
_CUTS = (10, 7, 4)  # of the published features, along both coordinates
_SWAYED = {(1, 1): 3, (1, 8): 3, (8, 1): 2, (8, 8): 2}  # where the behaviour is biased, and to what


def four_rooms(
    target: int = 0, variance: str = "low", discount: float = 0.9, features: str = "tiles"
) -> Problem:
    """Four rooms, random walk; how soon would a shortest path reach the hallway? Eight targets.

    Moves (0 up, 1 down, 2 right, 3 left) are deterministic, and a wall stops them; the walk starts
    at (0, 0) and never ends. Target k is active in its room and the room's other hallway: it takes
    a shortest path to its own hallway, with ties split evenly. The reward is 1 on entering that
    hallway from an active state; the discount on entering a state is `discount` if the target is
    active there, else 0. Elsewhere the target is not followed: the ratio is 0 and `problem.active`
    is False. All eight share the behaviour, the features and, with the same seed, the sampled
    states.

    The features are tilings with three ones per state: 33 tiles of 4 x 4 cells, offset from each
    other, or those of the published experiments, three tilings of 2 x 2 cut at 10, 7 and 4 in both
    coordinates (12 features of rank 10), so that curves can be compared.

    Parameters
    ----------
    target : int, 0 to 7
        See `TARGETS`.
    variance : "low" or "high"
        "high": the behaviour goes left with 0.97 at (1, 1) and (1, 8), right at (8, 1) and (8, 8).
    discount : float
        gamma on entering a state in which the target is active.
    features : "tiles" or "published"
        Which tilings.

    Examples
    --------
    >>> four_rooms(features="published").d
    12
    >>> problem = four_rooms(target=4)
    >>> problem.n_states, int(problem.active.sum()), int(problem.features[0].sum())
    (104, 31, 3)
    """
    k = whole("target", target, 0, len(TARGETS) - 1)
    cells = _cells()
    n = len(cells)
    step = _successors(cells)
    transition = np.zeros((n, len(MOVES), n))
    np.put_along_axis(transition, step[:, :, None], 1.0, axis=2)
    pi, active, goal = _target(cells, step, k)
    entering = (step == goal) & active[:, None]
    return Problem(
        transition,
        reward=entering.astype(np.float64),
        discount=unit("discount", discount) * active,
        behavior=_behavior(cells, variance),
        target=pi,
        features=_features(cells, features),
        start=np.eye(n)[cells.index((0, 0))],
        name="four_rooms",
        description=f"target {k}",
    )


@dataclass(frozen=True, eq=False)
class FourRoomsLanes:
    """One stream of states as seen by all eight targets.

    Parameters
    ----------
    table : CSR array
        Features of all states.
    state, next_state, start : (n,) array
        The states of the stream, and whether a trajectory starts there.
    rho, reward, discount, target_prob : (8, n) array
        Values for each target.
    behavior_prob : (n,) array
        Probability of each move, or of being stopped if a wall stopped it.
    """

    table: Any
    state: Ints
    next_state: Ints
    start: Bools
    rho: Floats
    reward: Floats
    discount: Floats
    target_prob: Floats
    behavior_prob: Floats

    def batch(self, target: int) -> Transitions:
        """The stream as seen by one target."""
        k = whole("target", target, 0, len(TARGETS) - 1)
        return Transitions.from_table(
            self.table,
            self.state,
            self.reward[k],
            self.next_state,
            self.discount[k],
            rho=self.rho[k],
            start=self.start,
            target_prob=self.target_prob[k],
            behavior_prob=self.behavior_prob,
        )


def four_rooms_lanes(
    n: int,
    seed: Seed = 0,
    variance: str = "low",
    discount: float = 0.9,
    scheme: str = "sequential",
) -> FourRoomsLanes:
    """The eight targets' ratios, rewards and discounts along one stream of `n` steps.

    Parameters
    ----------
    n : int
        Number of steps.
    seed : int or several
        Seed of the steps.
    variance, discount
        As for `four_rooms`.
    scheme : "sequential" or "iid"
        As for `Problem.sample`.

    Examples
    --------
    >>> lanes = four_rooms_lanes(1000, seed=1)
    >>> lanes.rho.shape, bool((lanes.batch(3).rho == lanes.rho[3]).all())
    ((8, 1000), True)
    """
    stream = four_rooms(0, variance, discount).sample(n, seed, scheme)
    state, next_state = np.asarray(stream.state), np.asarray(stream.next_state)
    cells = _cells()
    step, behavior = _successors(cells), _behavior(cells, variance)
    # A target never walks into a wall, so its move can be read off the two states.
    moved = (step[state] == next_state[:, None]) & (state != next_state)[:, None]
    action = np.argmax(moved, axis=1)
    walked = state != next_state
    stopped = (step[state] == state[:, None]) * behavior[state]
    taken = np.where(walked, behavior[state, action], stopped.sum(axis=1))
    rho, reward, gamma, chosen = (np.empty((len(TARGETS), n)) for _ in range(4))
    for k in range(len(TARGETS)):
        pi, active, goal = _target(cells, step, k)
        rho[k] = np.where(walked, (pi / behavior)[state, action], 0.0)
        chosen[k] = rho[k] * taken
        reward[k] = (next_state == goal) & active[state]
        gamma[k] = discount * active[next_state]
    numbers = (rho, reward, gamma, chosen, taken)
    return FourRoomsLanes(stream.table, state, next_state, stream.start, *numbers)


def _cells() -> list[Cell]:
    """All free cells, row by row from below; a state is a position in this list."""
    inside = {
        (x, y)
        for (left, low), (right, high) in ROOMS
        for x in range(left, right + 1)
        for y in range(low, high + 1)
    }
    return sorted(inside | set(HALLWAYS), key=lambda cell: (cell[1], cell[0]))


def _successors(cells: list[Cell]) -> Ints:
    """State after each move (104, 4); a wall leaves it where it is."""
    number = {cell: s for s, cell in enumerate(cells)}
    return np.array(
        [[number.get((x + dx, y + dy), s) for dx, dy in MOVES] for s, (x, y) in enumerate(cells)]
    )


def _target(cells: list[Cell], step: Ints, k: int) -> tuple[Floats, Bools, int]:
    """Policy (104, 4), where it is active, and the state of its hallway."""
    room, own, other = TARGETS[k]
    (left, low), (right, high) = ROOMS[room]
    active = np.array(
        [(left <= x <= right and low <= y <= high) or (x, y) == HALLWAYS[other] for x, y in cells]
    )
    goal = cells.index(HALLWAYS[own])
    distance = np.where(np.arange(len(cells)) == goal, 0.0, np.inf)
    for _ in cells:
        nearer = 1.0 + distance[step].min(axis=1)
        distance = np.where(active, np.minimum(distance, nearer), distance)
    best = active[:, None] & (distance[step] == distance[:, None] - 1.0)
    return best / np.maximum(best.sum(axis=1, keepdims=True), 1), active, goal


def _behavior(cells: list[Cell], variance: str) -> Floats:
    behavior = np.full((len(cells), len(MOVES)), 0.25)
    if choice("variance", variance, ("low", "high")) == "high":
        for cell, move in _SWAYED.items():
            behavior[cells.index(cell)] = 0.01
            behavior[cells.index(cell), move] = 0.97
    return behavior


def _features(cells: list[Cell], kind: str) -> Floats:
    if choice("features", kind, ("tiles", "published")) == "tiles":
        return _tiles(cells)
    place = np.array(cells)
    tiles = [2 * (place[:, 0] >= cut) + (place[:, 1] >= cut) for cut in _CUTS]
    return np.hstack([np.eye(4)[tile] for tile in tiles])


def _tiles(cells: list[Cell]) -> Floats:
    """A one for each tiling, in the tile that holds the cell."""
    place = np.array(cells)
    across = (SIZE - 1 + _TILE) // _TILE + 1
    blocks = []
    for offset in _OFFSETS:
        tile = (place + offset) // _TILE
        blocks.append(np.eye(across * across)[tile[:, 0] * across + tile[:, 1]])
    features = np.hstack(blocks)
    return np.asarray(features[:, features.any(axis=0)])
