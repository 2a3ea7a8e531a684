"""Families of problems from published papers for `near_optimal`: problem number k of each.

They were chosen, and their recipes fixed, before any learner ran on them. Policies are as in
`textbook`: greedy for the optimal values, or as the source states them, with a random action with
probability epsilon, one for the target and one for the behaviour.
"""

from __future__ import annotations

import numpy as np

from o2td.arrays import Floats
from o2td.paper.studies.textbook import SOFT, greedy, one_hot, soften
from o2td.problem import Problem


def _cosines(n: int, order: int) -> Floats:
    """`cos(pi j x)` for j up to this order, x from 0 to 1."""
    return np.asarray(np.cos(np.pi * np.outer(np.arange(n) / (n - 1.0), np.arange(order + 1))))


def river_swim(k: int, seed: int) -> Problem:
    """RiverSwim (Strehl & Littman 2008): six states, 1 at the upper end, 0.005 at the lower one.

    Swimming up moves on with probability 0.35 and back with 0.05 (0.6 and 0 at the lower end, 0 and
    0.4 at the upper one), swimming down always succeeds. Features are one per state, or cosines.
    """
    n, s = 6, np.arange(6)
    transition, reward = np.zeros((n, 2, n)), np.zeros((n, 2, n))
    transition[s, 0, np.maximum(s - 1, 0)] = 1.0
    up, down = np.r_[0.6, np.full(n - 2, 0.35), 0.0], np.r_[0.0, np.full(n - 2, 0.05), 0.4]
    transition[s[:-1], 1, s[1:]], transition[s[1:], 1, s[:-1]] = up[:-1], down[1:]
    transition[s, 1, s] = 1.0 - up - down
    reward[0, 0, 0], reward[n - 1, 1, n - 1] = 0.005, 1.0
    best, (target, behavior) = greedy(transition, reward, 0.95, ()), SOFT[k % 4]
    table = np.eye(n) if k // 4 % 2 == 0 else _cosines(n, 3)
    return Problem(transition, reward, 0.95, soften(best, behavior), soften(best, target), table)


def access_control(k: int, seed: int) -> Problem:
    """Access-control queuing (Sutton & Barto 2018, example 10.2), discounted.

    Ten servers, each busy one free again with probability 0.06. The customer at the head of the
    queue pays 1, 2, 4 or 8 and is accepted, if a server is free, or rejected.
    """
    servers, pays, n = 10, (1.0, 2.0, 4.0, 8.0), 44
    transition, reward = np.zeros((n, 2, n)), np.zeros((n, 2, n))
    freed = np.zeros((servers + 1, servers + 1))  # busy servers, and how many of them become free
    freed[0, 0] = 1.0
    for busy in range(1, servers + 1):
        freed[busy] = 0.94 * freed[busy - 1] + 0.06 * np.r_[0.0, freed[busy - 1, :-1]]
    for s in range(n):
        free, kind = divmod(s, 4)
        for action in (0, 1):
            left = free - (action if free else 0)
            if left < free:
                reward[s, action] = pays[kind]
            for more in range(servers - left + 1):
                to = 4 * (left + more) + np.arange(4)
                transition[s, action, to] += freed[servers - left, more] / 4.0
    discount = (0.95, 0.99)[k // 4 % 2]
    best, (target, behavior) = greedy(transition, reward, discount, ()), SOFT[k % 4]
    places = np.unravel_index(np.arange(n), (servers + 1, 4))
    table = np.eye(n) if k // 2 % 2 == 0 else one_hot(*places)
    return Problem(
        transition, reward, discount, soften(best, behavior), soften(best, target), table
    )


def long_jumps(k: int, seed: int) -> Problem:
    """The walk of 1,000 states (Sutton & Barto 2018, example 9.1): jumps to one of 100 neighbours.

    Ends pay -1 and 1. The behaviour goes left or right with equal probability, as in the source, and
    the target goes right with another one. Features are groups of 100 states, or cosines.
    """
    inner, reach, n = 1000, 100, 1002
    transition = np.zeros((n, 2, n))
    for s in range(1, inner + 1):
        for action, way in enumerate((-1, 1)):
            to = np.clip(s + way * np.arange(1, reach + 1), 0, n - 1)
            np.add.at(transition[s, action], to, 1.0 / reach)
    reward = np.broadcast_to(np.r_[-1.0, np.zeros(inner), 1.0], transition.shape)
    right = (0.6, 0.5, 0.7, 0.4)[k % 4]
    groups = one_hot(np.arange(inner) // reach)
    table = groups if k // 4 % 2 == 0 else _cosines(inner, 5)
    empty = np.zeros((1, table.shape[1]))
    return Problem(
        transition, reward, 1.0, np.full((n, 2), 0.5), np.tile([1.0 - right, right], (n, 1)),
        np.vstack([empty, table, empty]), start=np.eye(n)[n // 2 - 1], terminal=[0, n - 1],
    )  # fmt: skip


def deep_sea(k: int, seed: int) -> Problem:
    """Deep Sea of bsuite (Osband et al. 2020), ten rows: 1 for ten moves to the right, 0.001 each.

    Every move goes down one row; in the second form a move to the right fails with probability 0.1.
    """
    size, n = 10, 101
    fails = (0.0, 1.0 / size)[k // 4 % 2]
    transition, reward = np.zeros((n, 2, n)), np.zeros((n, 2, n))
    transition[n - 1, :, n - 1] = 1.0
    for s in range(n - 1):
        row, column = divmod(s, size)
        for action, moved, chance in ((0, -1, 1.0), (1, 1, 1.0 - fails), (1, 0, fails)):
            across = min(max(column + moved, 0), size - 1)
            to = n - 1 if row == size - 1 else (row + 1) * size + across
            transition[s, action, to] += chance
        reward[s, 1] = -0.01 / size + (s == n - 2)
    best, (target, behavior) = greedy(transition, reward, 1.0, [n - 1]), SOFT[k % 4]
    places = np.unravel_index(np.arange(n - 1), (size, size))
    table = np.eye(n - 1) if k // 2 % 2 == 0 else one_hot(*places)
    return Problem(
        transition, reward, 1.0, soften(best, behavior), soften(best, target),
        np.vstack([table, np.zeros((1, table.shape[1]))]), start=np.eye(n)[0], terminal=[n - 1],
    )  # fmt: skip


def administrator(k: int, seed: int) -> Problem:
    """SysAdmin (Guestrin, Koller & Parr 2001) in the form of the 2011 planning competition.

    A ring of eight machines. One that runs goes on with probability 0.95, or 0.7 if its neighbour is
    down; one that is down recovers with 0.1, and one that is rebooted (for 0.75) runs. Each running
    machine pays 1. Features are a constant and the machines, or the pairs of neighbours as well.
    """
    machines, n = 8, 256
    runs = np.array(np.unravel_index(np.arange(n), (2,) * machines)).T.astype(np.float64)
    chance = np.where(runs == 1.0, np.where(np.roll(runs, 1, axis=1) == 1.0, 0.95, 0.7), 0.1)
    transition, reward = np.ones((n, machines + 1, n)), np.empty((n, machines + 1, n))
    for action in range(machines + 1):
        up = chance.copy()
        if action < machines:
            up[:, action] = 1.0
        for m in range(machines):
            transition[:, action] *= np.where(runs[:, m] == 1.0, up[:, [m]], 1.0 - up[:, [m]])
        reward[:, action] = runs.sum(axis=1)[:, None] - 0.75 * (action < machines)
    best, (target, behavior) = greedy(transition, reward, 0.95, ()), SOFT[k % 4]
    table = np.hstack([np.ones((n, 1)), runs])
    if k // 4 % 2 == 1:
        table = np.hstack([table, runs * np.roll(runs, 1, axis=1)])
    return Problem(transition, reward, 0.95, soften(best, behavior), soften(best, target), table)


def pig(k: int, seed: int) -> Problem:
    """A turn of Pig (Neller & Presser 2004): roll on, and lose the turn's total with a 1, or hold.

    The target holds at 20, or at 25. Features are groups of five totals, or cosines.
    """
    n, ends = 100, 102  # lost, held
    transition, reward = np.zeros((ends, 2, ends)), np.zeros((ends, 2, ends))
    transition[n:, :, n:] = np.eye(2)[:, None]
    for total in range(n):
        transition[total, 0, n + 1], reward[total, 0, n + 1] = 1.0, total
        transition[total, 1, n] = 1.0 / 6.0
        for die in range(2, 7):
            to = total + die if total + die < n else n + 1
            transition[total, 1, to] += 1.0 / 6.0
        reward[total, 1, n + 1] = n  # a hundred ends the game
    least, (target, behavior) = (20, 25)[k // 4 % 2], SOFT[k % 4]
    hold = np.eye(2)[np.r_[(np.arange(n) < least) * 1, 0, 0]]
    table = one_hot(np.arange(n) // 5) if k // 2 % 2 == 0 else _cosines(n, 5)
    return Problem(
        transition, reward, 1.0, soften(hold, behavior), soften(hold, target),
        np.vstack([table, np.zeros((2, table.shape[1]))]), start=np.eye(ends)[0], terminal=[n, n + 1],
    )  # fmt: skip


def service_rate(k: int, seed: int) -> Problem:
    """The queue with a controlled service rate of de Farias & Van Roy (2003), at most 50 customers.

    One arrives with probability 0.2, one leaves with probability q of 0.2, 0.4, 0.6 or 0.8, which
    costs 60 q^3; each customer in the queue costs 1 a step; discount 0.98. Features are powers up to
    the third, as in the source, or groups of three lengths.
    """
    n, arrives, rates = 51, 0.2, np.array([0.2, 0.4, 0.6, 0.8])
    x = np.arange(n)
    transition = np.zeros((n, 4, n))
    for action, leaves in enumerate(rates):
        transition[x[:-1], action, x[1:]] = arrives
        transition[x[1:], action, x[:-1]] = leaves
        transition[x, action, x] = 1.0 - arrives * (x < n - 1) - leaves * (x > 0)
    reward = np.broadcast_to(-(x[:, None] + 60.0 * rates**3)[:, :, None], transition.shape)
    best, (target, behavior) = greedy(transition, reward, 0.98, ()), SOFT[k % 4]
    table = (x[:, None] / (n - 1.0)) ** np.arange(4) if k // 4 % 2 == 0 else one_hot(x // 3)
    return Problem(transition, reward, 0.98, soften(best, behavior), soften(best, target), table)
