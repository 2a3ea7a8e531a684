"""Families of problems from decision processes in books and papers: problem number k of each.

They were chosen, and their recipes fixed, before any solver ran on them. Policies are as in
`textbook`: greedy for the optimal values, with a random action with probability epsilon, one for the
target and one for the behaviour. Features are one per state, or as stated.
"""

from __future__ import annotations

from math import comb

import numpy as np

from o2td.arrays import Floats
from o2td.paper.studies.textbook import SIDES, SOFT, greedy, one_hot, soften
from o2td.problem import Problem


def _powers(n: int, order: int) -> Floats:
    return np.asarray((np.arange(n)[:, None] / (n - 1.0)) ** np.arange(order + 1))


def _endless(k: int, transition: Floats, reward: Floats, discount: float, table: Floats) -> Problem:
    """A process that never ends, with soft policies."""
    best, (target, behavior) = greedy(transition, reward, discount, ()), SOFT[k % 4]
    return Problem(
        transition, reward, discount, soften(best, behavior), soften(best, target), table
    )


def six_arms(k: int, seed: int) -> Problem:
    """SixArms (Strehl & Littman 2008): arm i leads to a room with probability p_i, and it pays there.

    Pulling the same arm in its room pays and stays, any other one returns. Features are one per room,
    or a constant, whether one is in a room, and the room's number.
    """
    chances, pays = (1.0, 0.15, 0.1, 0.05, 0.03, 0.01), (50.0, 133.0, 300.0, 800.0, 1660.0, 6000.0)
    transition, reward = np.zeros((7, 6, 7)), np.zeros((7, 6, 7))
    transition[1:, :, 0] = 1.0
    for arm, (chance, pay) in enumerate(zip(chances, pays, strict=True)):
        room = arm + 1
        transition[0, arm, room], transition[0, arm, 0] = chance, 1.0 - chance
        transition[room, arm] = np.eye(7)[room]
        reward[room, arm, room] = pay
    place = np.arange(7)
    table = np.stack([place >= 0, place > 0, place / 6.0], axis=1) if k // 4 % 2 else np.eye(7)
    return _endless(k, transition, reward, 0.95, table * 1.0)


def double_loop(k: int, seed: int) -> Problem:
    """The two loops of Dearden, Friedman & Russell (1998): one pays 1, the other 2 to who stays in it.

    Features are one per state, or the loop and the number of steps in it.
    """
    transition, reward = np.zeros((9, 2, 9)), np.zeros((9, 2, 9))
    ahead = (1, 2, 3, 4, 0)
    for s, to in enumerate(ahead):
        transition[s, :, to] = 1.0
    transition[0, 1] = np.eye(9)[5]
    for s in (5, 6, 7):
        transition[s, 0, 0] = transition[s, 1, s + 1] = 1.0
    transition[8, :, 0], reward[4, :, 0], reward[8, :, 0] = 1.0, 1.0, 2.0
    loop, steps = np.array([0, 1, 1, 1, 1, 2, 2, 2, 2]), np.array([0, 1, 2, 3, 4, 1, 2, 3, 4])
    table = np.eye(9) if k // 4 % 2 == 0 else one_hot(loop, steps)
    return _endless(k, transition, reward, (0.95, 0.99)[k // 2 % 2], table)


def small_world(k: int, seed: int) -> Problem:
    """The 4 x 3 world of Russell & Norvig (1995): a move goes astray to either side with 0.1 each.

    -0.04 a move, 1 and -1 in two corners, which end it; a wall in the middle. Features are one per
    place, or one per row and column.
    """
    rows, columns, wall, ends = 3, 4, 5, (3, 7)
    n = rows * columns
    still = np.zeros((n, 4, n))
    for s in range(n):
        row, column = divmod(s, columns)
        for action, (down, right) in enumerate(SIDES):
            inside = 0 <= row + down < rows and 0 <= column + right < columns
            to = s + columns * down + right if inside else s
            still[s, action, s if to == wall else to] = 1.0
    transition = 0.8 * still + 0.1 * np.roll(still, 1, axis=1) + 0.1 * np.roll(still, -1, axis=1)
    reward = np.full((n, 4, n), -0.04)
    reward[:, :, ends[0]] += 1.0
    reward[:, :, ends[1]] -= 1.0
    best, (target, behavior) = greedy(transition, reward, 1.0, ends), SOFT[k % 4]
    places = np.divmod(np.arange(n), columns)
    return Problem(
        transition, reward, 1.0, soften(best, behavior), soften(best, target),
        np.eye(n) if k // 4 % 2 == 0 else one_hot(*places), start=np.eye(n)[8], terminal=ends,
    )  # fmt: skip


def hanoi(k: int, seed: int) -> Problem:
    """The Tower of Hanoi with three discs, -1 a move; a move that is not allowed changes nothing.

    As a decision process for example in Edwards, Downs & Davidson (2018). Features are one per
    state, or one per disc and peg.
    """
    pegs = np.stack(np.unravel_index(np.arange(27), (3, 3, 3)))  # of the small disc first
    moves = [(a, b) for a in range(3) for b in range(3) if a != b]
    transition, reward = np.zeros((27, 6, 27)), np.full((27, 6, 27), -1.0)
    for s in range(27):
        for action, (a, b) in enumerate(moves):
            tops = [next((disc for disc in range(3) if pegs[disc, s] == peg), 3) for peg in (a, b)]
            to = pegs[:, s].copy()
            if tops[0] < tops[1]:
                to[tops[0]] = b
            transition[s, action, np.ravel_multi_index(tuple(to), (3, 3, 3))] = 1.0
    best, (target, behavior) = greedy(transition, reward, 1.0, [26]), SOFT[k % 4]
    return Problem(
        transition, reward, 1.0, soften(best, behavior), soften(best, target),
        np.eye(27) if k // 4 % 2 == 0 else one_hot(*pegs), start=np.eye(27)[0], terminal=[26],
    )  # fmt: skip


def bus_engines(k: int, seed: int) -> Problem:
    """Replacement of bus engines (Rust 1987, table IX, group 4): 90 steps of mileage.

    Running costs 0.001 * 2.293 a step of mileage, a new engine 10.075; a month adds 0, 1 or 2 steps
    with probabilities 0.3919, 0.5953 and 0.0128. Discount 0.99 (0.9999 in the source). Features are
    powers up to the third, or groups of ten steps.
    """
    n, x = 90, np.arange(90)
    transition, reward = np.zeros((n, 2, n)), np.zeros((n, 2, n))
    for more, chance in enumerate((0.3919, 0.5953, 0.0128)):
        transition[x, 0, np.minimum(x + more, n - 1)] += chance
        transition[:, 1, more] += chance
    reward[:, 0], reward[:, 1] = -0.002293 * x[:, None], -10.075
    table = _powers(n, 3) if k // 4 % 2 == 0 else one_hot(x // 10)
    return _endless(k, transition, reward, 0.99, table)


def forest(k: int, seed: int) -> Problem:
    """Forest management (Chadès et al. 2014) with 20 classes of age: wait, or cut.

    Fire takes the forest with probability 0.1. Waiting pays 4 in the oldest class; cutting pays 2
    there, 1 in others and nothing in the youngest. Features are one per class, or powers up to the
    fourth.
    """
    n, age = 20, np.arange(20)
    transition, reward = np.zeros((n, 2, n)), np.zeros((n, 2, n))
    transition[age, 0, np.minimum(age + 1, n - 1)] = 0.9
    transition[:, 0, 0] += 0.1
    transition[:, 1, 0] = 1.0
    reward[n - 1, 0], reward[1:, 1], reward[n - 1, 1] = 4.0, 1.0, 2.0
    table = np.eye(n) if k // 4 % 2 == 0 else _powers(n, 4)
    return _endless(k, transition, reward, (0.95, 0.99)[k // 2 % 2], table)


def inventory(k: int, seed: int) -> Problem:
    """Stochastic inventory control with the costs of Puterman (1994, section 3.2).

    Ordering u costs 4 + 2u, a unit in stock 1, a unit sold brings 8. Stock is at most 12 (3 in the
    source), orders are 0, 4, 8 or 12 units, cut to what fits, and demand is binomial(8, 1/2)
    (binomial(2, 1/2) there). Features are powers up to the third, or one per stock.
    """
    n, demand = 13, np.array([comb(8, j) for j in range(9)]) / 256.0
    transition, reward = np.zeros((n, 4, n)), np.zeros((n, 4, n))
    for s in range(n):
        for action in range(4):
            order = min(4 * action, n - 1 - s)
            stock = s + order
            sold = np.minimum(np.arange(9), stock)
            np.add.at(transition[s, action], stock - sold, demand)
            reward[s, action] = (
                8.0 * float(demand @ sold) - stock - (4.0 + 2.0 * order) * (order > 0)
            )
    table = _powers(n, 3) if k // 4 % 2 == 0 else np.eye(n)
    return _endless(k, transition, reward, (0.95, 0.9)[k // 2 % 2], table)


def taxicab(k: int, seed: int) -> Problem:
    """The taxicab of Howard (1960): three towns; cruise, go to a stand, or wait for a radio call.

    There is no radio call in the second town: waiting for one is going to a stand. Features are a
    constant and the town's number, or one per town.
    """
    transition = np.array([
        [[8, 4, 4], [1, 12, 3], [4, 2, 10]],
        [[8, 0, 8], [1, 14, 1], [1, 14, 1]],
        [[4, 4, 8], [2, 12, 2], [12, 1, 3]],
    ]) / 16.0  # fmt: skip
    reward = np.array([
        [[10, 4, 8], [8, 2, 4], [4, 6, 4]],
        [[14, 0, 18], [8, 16, 8], [8, 16, 8]],
        [[10, 2, 8], [6, 4, 2], [4, 0, 8]],
    ]) * 1.0  # fmt: skip
    table = _powers(3, 1) if k // 4 % 2 == 0 else np.eye(3)
    return _endless(k, transition, reward, (0.95, 0.9)[k // 2 % 2], table)
