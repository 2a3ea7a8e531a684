"""Families of problems from textbooks and Gymnasium for `near_optimal`: problem number k of each.

Policies are greedy for the optimal values, or as the source states them, and take a random action
with probability epsilon, one for the target and one for the behaviour. Features are one per state,
or one per value of each of the state's coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, factorial
from typing import Any

import numpy as np

from o2td.arrays import Floats
from o2td.problem import Problem

SOFT = ((0.1, 0.5), (0.0, 0.6), (0.2, 0.8), (0.3, 0.3))  # epsilon of target and behaviour
SIDES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left: each is between its neighbours
CORNERS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def greedy(transition: Floats, reward: Floats, discount: float, terminal: Any) -> Floats:
    """The first action that is best by value iteration, as an (S, A) table."""
    gain, going = np.einsum("sat,sat->sa", transition, reward), np.ones(len(transition))
    going[list(terminal)] = 0.0
    value, before = np.zeros(len(transition)), np.ones(len(transition))
    while np.abs(value - before).max() > 1e-12 * np.abs(value).max():
        q = gain + discount * transition @ (going * value)
        value, before = q.max(axis=1), value
    best = np.argmax(q >= value[:, None] - 1e-9 * (1.0 + np.abs(value).max()), axis=1)
    return np.asarray(np.eye(q.shape[1])[best])


def soften(policy: Floats, epsilon: float) -> Floats:
    """The policy, with a random action with probability epsilon."""
    return np.asarray((1.0 - epsilon) * policy + epsilon / policy.shape[1])


def one_hot(*coordinates: Any) -> Floats:
    """One feature per value of each coordinate."""
    return np.hstack([np.eye(np.max(x) + 1)[np.asarray(x)] for x in coordinates])


def _grid(
    rows: int, columns: int, moves: Any, move: Callable[[int, int, Any], tuple[int, int]]
) -> Floats:
    """The (S, A, S) table of `move(row, column, action)`; a move off the grid stays at its edge."""
    transition = np.zeros((rows * columns, len(moves), rows * columns))
    for s in range(rows * columns):
        for action, way in enumerate(moves):
            row, column = move(*divmod(s, columns), way)
            row, column = min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)
            transition[s, action, row * columns + column] = 1.0
    return transition


def cliff(k: int, seed: int) -> Problem:
    """Cliff walking (Sutton & Barto 2018, example 6.6): the safe path's value from random detours.

    Four rows of twelve, -1 a move, -100 and back to the start from the cliff. Both policies go up,
    along the top row and down to the goal, with random actions.
    """
    across, n, start, goal = 12, 48, 36, 47
    fall = slice(37, 47)
    transition = _grid(4, across, SIDES, lambda row, column, way: (row + way[0], column + way[1]))
    transition[:, :, start] += transition[:, :, fall].sum(axis=2)
    reward = np.full((n, 4, n), -1.0)
    reward[transition[:, :, fall].any(axis=2), start] = -100.0
    transition[:, :, fall] = 0.0
    place = np.arange(n)
    safe = np.where(place % across == across - 1, 2, np.where(place < across, 1, 0))
    target, behavior = ((0.0, 0.5), (0.1, 0.5), (0.1, 1.0), (0.2, 0.6))[k % 4]
    path = np.eye(4)[safe]
    return Problem(
        transition, reward, (0.95, 0.99)[k // 4 % 2], soften(path, behavior), soften(path, target),
        one_hot(place // across, place % across), start=np.eye(n)[start], terminal=[goal],
    )  # fmt: skip


LAKES = (
    "SFFF FHFH FFFH HFFG",
    "SFFFFFFF FFFFFFFF FFFHFFFF FFFFFHFF FFFHFFFF FHHFFFHF FHFFHFHF FFFHFFFG",
)


def frozen_lake(k: int, seed: int) -> Problem:
    """Gymnasium's FrozenLake-v1, 4 x 4 and 8 x 8: slippery, 1 for the goal, holes end the episode."""
    lake = LAKES[k // 4 % 2].split()
    size, kinds = len(lake), np.array(list("".join(lake)))
    still = _grid(size, size, SIDES, lambda row, column, way: (row + way[0], column + way[1]))
    transition = (still + np.roll(still, 1, axis=1) + np.roll(still, -1, axis=1)) / 3.0
    reward = np.broadcast_to((kinds == "G") * 1.0, transition.shape)
    terminal = np.flatnonzero(np.isin(kinds, ("H", "G")))
    best, (target, behavior) = greedy(transition, reward, 0.99, terminal), SOFT[k % 4]
    place = np.arange(size**2)
    table = np.eye(size**2) if k // 2 % 2 == 0 else one_hot(place // size, place % size)
    return Problem(
        transition, reward, 0.99, soften(best, behavior), soften(best, target), table,
        start=(kinds == "S") * 1.0, terminal=terminal,
    )  # fmt: skip


def windy_gridworld(k: int, seed: int) -> Problem:
    """The windy gridworld (Sutton & Barto 2018, example 6.5), and with king's moves (exercise 6.9)."""
    wind, start, goal = (0, 0, 0, 1, 1, 1, 2, 2, 1, 0), 30, 37
    moves = SIDES if k // 4 % 2 == 0 else SIDES + CORNERS
    transition = _grid(
        7, 10, moves, lambda row, column, way: (row + way[0] - wind[column], column + way[1])
    )
    reward, place = np.full(transition.shape, -1.0), np.arange(70)
    best, (target, behavior) = greedy(transition, reward, 1.0, [goal]), SOFT[k % 4]
    table = np.eye(70) if k // 2 % 2 == 0 else one_hot(place // 10, place % 10)
    return Problem(
        transition, reward, 1.0, soften(best, behavior), soften(best, target), table,
        start=np.eye(70)[start], terminal=[goal],
    )  # fmt: skip


def maze(k: int, seed: int) -> Problem:
    """The Dyna maze (Sutton & Barto 2018, example 8.1): 1 for the goal, seven walls."""
    walls, start, goal = ((1, 2), (2, 2), (3, 2), (4, 5), (0, 7), (1, 7), (2, 7)), 18, 8

    def move(row: int, column: int, way: tuple[int, int]) -> tuple[int, int]:
        to = row + way[0], column + way[1]
        return (row, column) if to in walls else to

    transition = _grid(6, 9, SIDES, move)
    reward, place = np.broadcast_to(np.eye(54)[goal], transition.shape), np.arange(54)
    best, (target, behavior) = greedy(transition, reward, 0.95, [goal]), SOFT[k % 4]
    table = np.eye(54) if k // 2 % 2 == 0 else one_hot(place // 9, place % 9)
    return Problem(
        transition, reward, 0.95, soften(best, behavior), soften(best, target), table,
        start=np.eye(54)[start], terminal=[goal],
    )  # fmt: skip


def taxi(k: int, seed: int) -> Problem:
    """Gymnasium's Taxi-v3: -1 a step, -10 for a wrong pick-up or drop-off, 20 for the right one.

    A state is the taxi's row and column, where the passenger is (four places, or in the taxi) and
    the destination.
    """
    places, blocked = (
        ((0, 0), (0, 4), (4, 0), (4, 3)),
        {(0, 1), (1, 1), (3, 0), (4, 0), (3, 2), (4, 2)},
    )
    shape = (5, 5, 5, 4)
    n = int(np.prod(shape))
    transition, reward = np.zeros((n + 1, 6, n + 1)), np.full((n + 1, 6, n + 1), -1.0)
    transition[n, :, n] = 1.0
    for s in range(n):
        row, column, rider, goal = (int(x) for x in np.unravel_index(s, shape))
        for action in range(6):
            down, right, sits, gain, ended = row, column, rider, -1.0, False
            if action < 2:
                down = min(max(row + (1, -1)[action], 0), 4)
            elif action == 2 and (row, column) not in blocked:
                right = min(column + 1, 4)
            elif action == 3 and (row, column - 1) not in blocked:
                right = max(column - 1, 0)
            elif action == 4:
                here = rider < 4 and (row, column) == places[rider]
                sits, gain = (4, -1.0) if here else (rider, -10.0)
            elif action == 5 and rider == 4 and (row, column) == places[goal]:
                gain, ended = 20.0, True
            elif action == 5 and rider == 4 and (row, column) in places:
                sits = places.index((row, column))
            elif action == 5:
                gain = -10.0
            to = n if ended else int(np.ravel_multi_index((down, right, sits, goal), shape))
            transition[s, action, to], reward[s, action, to] = 1.0, gain
    discount = (0.95, 0.99)[k // 4 % 2]
    best, (target, behavior) = greedy(transition, reward, discount, [n]), SOFT[k % 4]
    where = np.array(np.unravel_index(np.arange(n), shape))
    first = np.r_[(where[2] < 4) & (where[2] != where[3]), False]
    return Problem(
        transition, reward, discount, soften(best, behavior), soften(best, target),
        np.vstack([one_hot(*where), np.zeros(sum(shape))]), start=first / first.sum(), terminal=[n],
    )  # fmt: skip


def blackjack(k: int, seed: int) -> Problem:
    """Blackjack (Sutton & Barto 2018, examples 5.1 and 5.3): the value of sticking late.

    A state is the player's sum (12 to 21), the dealer's card and whether an ace counts 11; its value
    is the expected result: -1, 0 or 1. The target sticks at 20 and 21, or from 17 on.
    """
    cards = np.r_[np.full(9, 1.0), 4.0] / 13.0  # ace to ten
    n, ends = 200, 203  # lost, drawn, won

    def state(total: int, card: int, ace: int) -> int:
        return ((total - 12) * 10 + card - 1) * 2 + ace

    def drawn(total: int, ace: int, card: int) -> tuple[int, int]:
        """Sum and usable ace after a card."""
        total, ace = (total + 11, ace + 1) if card == 1 else (total + card, ace)
        while total > 21 and ace:
            total, ace = total - 10, ace - 1
        return total, ace

    def dealt(total: int, ace: int, least: int) -> dict[tuple[int, int], float]:
        """Chances of sum and ace once cards were drawn up to `least`."""
        if total >= least:
            return {(total, ace): 1.0}
        found: dict[tuple[int, int], float] = {}
        for card in range(1, 11):
            for end, chance in dealt(*drawn(total, ace, card), least).items():
                found[end] = found.get(end, 0.0) + cards[card - 1] * chance
        return found

    transition, start = np.zeros((ends, 2, ends)), np.zeros(ends)
    transition[n:, :, n:] = np.eye(3)[:, None]
    begins = dealt(0, 0, 12)
    for card in range(1, 11):
        dealer = dealt(*drawn(0, 0, card), 17)
        for (total, ace), chance in begins.items():
            start[state(total, card, ace)] += cards[card - 1] * chance
        for total in range(12, 22):
            for ace in (0, 1):
                s = state(total, card, ace)
                for (other, _), chance in dealer.items():
                    result = 2 if other > 21 or other < total else 1 if other == total else 0
                    transition[s, 0, n + result] += chance
                for extra in range(1, 11):
                    then, left = drawn(total, ace, extra)
                    to = n if then > 21 else state(then, card, left)
                    transition[s, 1, to] += cards[extra - 1]
    reward = np.broadcast_to(np.r_[np.zeros(n), -1.0, 0.0, 1.0], transition.shape)
    sums, shown, aces = np.unravel_index(np.arange(n), (10, 10, 2))
    late = np.eye(2)[np.r_[(sums + 12 < (20, 17)[k // 2 % 2]) * 1, 0, 0, 0]]
    target, behavior = ((0.0, 1.0), (0.1, 0.6))[k // 4 % 2]
    table = np.eye(n) if k % 2 == 0 else one_hot(sums, shown, aces)
    return Problem(
        transition, reward, 1.0, soften(late, behavior), soften(late, target),
        np.vstack([table, np.zeros((3, table.shape[1]))]), start=start, terminal=[n, n + 1, n + 2],
    )  # fmt: skip


def car_rental(k: int, seed: int) -> Problem:
    """Jack's car rental (Sutton & Barto 2018, example 4.2): two places, up to five cars moved a night.

    A car rented gives 10, a car moved costs 2; Poisson requests (3 and 4 a day) and returns (3 and
    2); at most 20 cars each, discount 0.9.
    """
    most = 20

    def chances(mean: float) -> Floats:
        found = [exp(-mean) * mean**i / factorial(i) for i in range(most)]
        return np.array([*found, 1.0 - sum(found)])  # 20 or more as 20

    def day(requests: float, returns: float) -> tuple[Floats, Floats]:
        """From cars in the morning to cars in the evening, and the expected number of rentals."""
        evening, rented = np.zeros((21, 21)), np.zeros(21)
        asked, back = chances(requests), chances(returns)
        for first in range(21):
            for wish in range(21):
                out = min(first, wish)
                rented[first] += asked[wish] * out
                for more in range(21):
                    evening[first, min(first - out + more, most)] += asked[wish] * back[more]
        return evening, rented

    (one, sold), (two, let) = day(3.0, 3.0), day(4.0, 2.0)
    n, shape = 441, (21, 21)
    transition, reward = np.zeros((n, 11, n)), np.zeros((n, 11, n))
    for s in range(n):
        a, b = divmod(s, 21)
        for action in range(11):
            moved = int(np.clip(action - 5, -b, a))
            here, there = min(a - moved, most), min(b + moved, most)
            transition[s, action] = np.outer(one[here], two[there]).ravel()
            reward[s, action] = 10.0 * (sold[here] + let[there]) - 2.0 * abs(moved)
    best, (target, behavior) = greedy(transition, reward, 0.9, ()), SOFT[k % 4]
    places = np.unravel_index(np.arange(n), shape)
    if k // 4 % 2 == 0:
        table = one_hot(*places)
    else:
        x, y = (np.cos(np.pi * np.outer(p / most, np.arange(4))) for p in places)
        table = np.einsum("si,sj->sij", x, y).reshape(n, 16)
    return Problem(transition, reward, 0.9, soften(best, behavior), soften(best, target), table)


def gambler(k: int, seed: int) -> Problem:
    """The gambler's problem (Sutton & Barto 2018, example 4.3): reach 100 with heads at 0.4.

    The target stakes as much as it can use. Features are groups of ten neighbours, or cosines.
    """
    n, heads = 101, 0.4
    transition = np.zeros((n, 50, n))
    for s in range(n):
        for action in range(50):
            stake = min(action + 1, s, n - 1 - s)
            transition[s, action, s + stake] += heads
            transition[s, action, s - stake] += 1.0 - heads
    reward = np.broadcast_to(np.eye(n)[-1], transition.shape)
    place = np.arange(n)
    bold = np.eye(50)[np.maximum(np.minimum(place, n - 1 - place), 1) - 1]
    target, behavior = SOFT[k % 4]
    groups = one_hot(np.minimum(place, n - 2) // 10)
    waves = np.cos(np.pi * np.outer(place / (n - 1.0), np.arange(6)))
    return Problem(
        transition, reward, 1.0, soften(bold, behavior), soften(bold, target),
        groups if k // 4 % 2 == 0 else waves, start=np.r_[0.0, np.ones(n - 2), 0.0] / (n - 2),
        terminal=[0, n - 1],
    )  # fmt: skip
