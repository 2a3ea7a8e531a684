from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chi2

from o2td import Problem, Transitions

FALSE_ALARM = 1e-6  # of one comparison, were the seeds not fixed
Floats = npt.NDArray[np.float64]


def chi_square(counts: Floats, expected: Floats) -> tuple[float, int]:
    """Statistic and degrees of freedom, rare cells put together (expected counts of 5 or more)."""
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    rare = int(np.searchsorted(np.cumsum(expected), 5.0)) + 1 if expected[0] < 5.0 else 1
    rare = max(rare, int(np.searchsorted(expected, 5.0)))
    seen = np.r_[counts[:rare].sum(), counts[rare:]]
    meant = np.r_[expected[:rare].sum(), expected[rare:]]
    if len(seen) < 2 or meant.min() < 5.0:
        return 0.0, 0
    return float(((seen - meant) ** 2 / meant).sum()), len(seen) - 1


def assert_fits(counts: Floats, expected: Floats) -> None:
    assert (counts[expected == 0.0] == 0).all()
    statistic, freedom = chi_square(counts[expected > 0.0], expected[expected > 0.0])
    assert statistic <= chi2.isf(FALSE_ALARM, max(freedom, 1))


def kinds_of_pairs(problem: Problem) -> tuple[dict[Any, int], Floats, npt.NDArray[np.int64]]:
    """Every distinguishable (s, s', r, gamma, rho, pi, b), its probability given s, and its s.

    Built from the problem's arrays alone, with the ratio as pi / b.
    """
    pairs = problem.pairs
    number: dict[Any, int] = {}
    chance: list[float] = []
    owner: list[int] = []
    for k in range(len(pairs.state)):
        s, a = int(pairs.state[k]), int(pairs.action[k])
        b, pi = float(problem.behavior[s, a]), float(problem.target[s, a])
        if b == 0.0:
            continue
        key = (
            *(s, int(pairs.next_state[k]), float(pairs.reward[k]), float(pairs.discount[k])),
            *(pi / b, pi, b),
        )
        if key not in number:
            number[key] = len(chance)
            chance.append(0.0)
            owner.append(s)
        chance[number[key]] += b * float(pairs.probability[k])
    return number, np.array(chance), np.array(owner)


def assert_rows_fit(problem: Problem, batch: Transitions, second: bool = False) -> None:
    """Each row is an entry of the tables to the bit; their counts given s pass a chi-square test."""
    number, chance, owner = kinds_of_pairs(problem)
    assert batch.state is not None
    if second:
        # The second successor keeps neither reward nor probabilities: merge what it cannot show.
        merged: dict[Any, int] = {}
        into = np.empty(len(number), dtype=np.int64)
        for (s, t, _, g, rho, *_), k in number.items():
            into[k] = merged.setdefault((s, t, g, rho), len(merged))
        number, chance = merged, np.bincount(into, chance)
        owner = np.array([key[0] for key in merged])
        columns = [batch.state, batch.next_state_2, batch.discount_2, batch.rho_2]
    else:
        columns = [batch.state, batch.next_state, batch.reward, batch.discount, batch.rho]
        columns += [batch.target_prob, batch.behavior_prob]
    rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    counts = np.bincount([number[row] for row in rows], minlength=len(number)).astype(float)
    visits = np.bincount(batch.state, minlength=problem.n_states)
    statistic, freedom = 0.0, 0
    for s in np.flatnonzero(visits):
        mine = owner == s
        part = chi_square(counts[mine], visits[s] * chance[mine])
        statistic, freedom = statistic + part[0], freedom + part[1]
    assert statistic <= chi2.isf(FALSE_ALARM, max(freedom, 1))


@pytest.fixture
def rows_fit() -> Callable[..., None]:
    return assert_rows_fit


@pytest.fixture
def fits() -> Callable[[Floats, Floats], None]:
    return assert_fits
