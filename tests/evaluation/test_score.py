"""Score tests within strata: when a number is evidence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, norm, poisson

from o2td.evaluation.log_tests.score import (
    chi_square_chance,
    clustered,
    excess_chance,
    means,
    poisson_chance,
    rising,
    strongest,
    two_sided,
)


def test_what_single_rows_carry_is_no_evidence() -> None:
    x = np.zeros((500, 1))
    x[0] = 1.0
    y = x.copy() + 1e-3 * np.random.default_rng(0).normal(size=x.shape)
    assert not strongest(x, y).alarming


def test_many_expected_copies_are_no_alarm() -> None:
    assert poisson_chance(60, 55.0) > 0.2
    assert poisson_chance(120, 55.0) < 1e-6
    for mean in (50.0, 50.5, 51.0):  # by a normal distribution from fifty on
        normal = norm.sf((60 - 0.5 - mean) / np.sqrt(mean))
        wanted = normal if mean > 50.0 else poisson.sf(59, mean)
        assert poisson_chance(60, mean) == pytest.approx(wanted, rel=1e-9)


def test_scores_are_sums_of_products_over_their_deviation_by_permutation() -> None:
    rng = np.random.default_rng(2)
    x, y, stratum = rng.normal(size=(400, 2)), rng.normal(size=(400, 3)), rng.integers(4, size=400)
    total, spread, own = np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3))
    for one in range(4):
        a, b = (part[stratum == one] - part[stratum == one].mean(axis=0) for part in (x, y))
        total += a.T @ b
        spread += np.outer((a**2).sum(axis=0), (b**2).sum(axis=0)) / (len(a) - 1)
        own += (a**2).T @ b**2
    z = total / np.sqrt(np.maximum(spread, own))
    i, j = np.unravel_index(np.abs(z).argmax(), z.shape)
    found = strongest(x, y, stratum)
    assert (found.x, found.y) == (i, j)
    assert found.z == pytest.approx(z[i, j], rel=1e-10)
    assert found.chance == pytest.approx(min(1.0, 6 * 2.0 * norm.sf(abs(z[i, j]))), rel=1e-10)


def test_few_rows_say_nothing() -> None:
    x = np.arange(10.0)[:, None]
    for rows in (0, 1, 9, 10):
        assert strongest(x[:rows], x[:rows]).chance == 1.0


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_what_a_stratum_determines_counts_as_no_column(scale: float) -> None:
    """Rounding errors of such columns were tested, too, and made other p-values larger."""
    rng = np.random.default_rng(5)
    stratum, x = rng.integers(7, size=900), rng.normal(size=(900, 2))
    y = rng.normal(size=(900, 1))
    determined = (0.1 + rng.random((7, 4)))[stratum]
    plain = strongest(x, y, stratum)
    wider = strongest(
        scale * np.hstack([determined, x]), scale * np.hstack([determined, y]), stratum
    )
    assert wider.chance == pytest.approx(plain.chance, rel=1e-9)
    assert (wider.x, wider.y) == (plain.x + 4, plain.y + 4)
    alike = np.full((900, 1), 0.1)
    both = clustered(scale * np.hstack([alike, x]), scale * np.hstack([alike, y]))
    assert both.chance == pytest.approx(clustered(x, y).chance, rel=1e-9)


def test_of_equal_scores_rounding_chooses_none() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(500, 1)), rng.normal(size=(500, 1))
    for factor in (0.1, 0.3, 0.7, 3.0):
        found = strongest(np.hstack([x, factor * x]), np.hstack([factor * y, y]))
        assert (found.x, found.y) == (1, 0)  # the last cause, the first effect


def test_episodes_are_their_own_clusters() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(200, 2)), rng.normal(size=(200, 1)) + 0.3
    a, b = x - x.mean(axis=0), y - y.mean(axis=0)
    z = ((a * b).sum(axis=0) / np.sqrt((a**2 * b**2).sum(axis=0)))[:, None]
    found = clustered(x, y)
    assert found.z == pytest.approx(z.ravel()[np.abs(z).argmax()], rel=1e-10)
    assert found.chance == pytest.approx(min(1.0, 2 * 2.0 * norm.sf(np.abs(z).max())), rel=1e-10)


def test_parts_that_rise_are_judged_on_one_side() -> None:
    each = np.random.default_rng(4).normal(size=300) + 0.1
    z = each.sum() / np.sqrt((each**2).sum())
    up, down = rising(each, 1, 2), rising(-each, 1, 2)
    assert (up.x, up.y) == (1, 2)
    assert up.z == pytest.approx(z)
    assert up.chance == pytest.approx(norm.sf(z))
    assert down.chance == 1.0
    alone = np.zeros(300)
    alone[:5] = 1.0
    assert rising(alone, 0, 0).chance == 1.0
    assert rising(np.zeros(300), 0, 0).chance == 1.0


def test_means_are_shrunk_by_two_rows_towards_what_is_drawn() -> None:
    y = np.array([[1.0], [3.0], [8.0], [0.0], [0.0]])
    code, fit = np.array([0, 0, 1, 0, 1]), np.array([True, True, True, False, False])
    found = means(y, code, fit, np.array([[10.0], [20.0]]))
    np.testing.assert_allclose(found.ravel(), [(1 + 3 + 2 * 10) / 4, (8 + 2 * 20) / 3])


@pytest.mark.parametrize("freedom", [1.0, 4.0, 30.0])
def test_chances_of_chi_square_and_poisson_are_scipys(freedom) -> None:
    for value in (0.5 * freedom, freedom, 2.0 * freedom):
        assert chi_square_chance(value, freedom) == pytest.approx(chi2.sf(value, freedom), abs=1e-2)
    assert chi_square_chance(1.0, 0.0) == 1.0
    for mean in (freedom, 49.0, 51.0, 80.0):
        for count in (int(mean), int(mean + 2.0 * np.sqrt(mean)) + 1):
            wanted = poisson.sf(count - 1, mean)
            near = 1e-12 if mean <= 50.0 else 1e-2
            assert poisson_chance(count, mean) == pytest.approx(wanted, abs=near)
    assert poisson_chance(0, 3.0) == 1.0


@pytest.mark.parametrize("freedom", [3.0, 10.0, 200.0])
@pytest.mark.parametrize("share", [0.5, 0.05, 0.001])
def test_chances_of_chi_square(freedom, share):
    value = chi2.isf(share, freedom)
    assert chi_square_chance(value, freedom) == pytest.approx(share, rel=0.15)
    assert chi_square_chance(value, 0.0) == chi_square_chance(value, -1.0) == 1.0


@pytest.mark.parametrize("mean", [0.3, 4.0, 49.0, 50.0, 51.0, 400.0])
def test_chances_of_poisson(mean):
    for count in (0, 1, int(mean) + 1, int(mean + 2 * mean**0.5)):
        exact = poisson.sf(count - 1, mean)
        assert poisson_chance(count, mean) == pytest.approx(exact, rel=0.15, abs=1e-12)
        if mean <= 50.0:
            assert poisson_chance(count, mean) == pytest.approx(exact, rel=1e-9)


def test_chances_of_normal():
    for z in (-2.0, 0.0, 0.5, 3.0):
        assert two_sided(z) == pytest.approx(2.0 * norm.sf(abs(z)), rel=1e-12)


def test_few_rows_say_nothing_about_logged_probabilities():
    state, pair = np.zeros(3, dtype=int), np.array([0, 1, 0])
    assert excess_chance(np.full(3, 0.5), state, pair) == 1.0


def test_a_chance_is_at_most_one():
    """Of noise that was tried for many pairs the corrected chance would be more."""
    rng = np.random.default_rng(0)
    noise = [strongest(rng.normal(size=(400, 2)), rng.normal(size=(400, 1))) for _ in range(40)]
    assert max(found.chance for found in noise) == 1.0
    assert strongest(rng.normal(size=(9, 1)), rng.normal(size=(9, 1))).chance == 1.0


def plain_excess(b: np.ndarray, state: np.ndarray, pair: np.ndarray) -> float:
    """`1{a = k} / b` summed for each pair, over rows whose `b` lets a state expect five of them."""
    best, tried = -np.inf, 0
    for one in np.unique(pair):
        mine = pair == one
        rows = int((state == state[mine][0]).sum())
        weight = np.where(b[mine] * rows >= 5.0, 1.0 / b[mine], 0.0)
        variance = (weight**2).sum() - weight.sum()
        shared = (weight**2).sum() ** 2 / max((weight**4).sum(), 1e-300)
        if shared >= 30.0 and variance > 0.0:
            best, tried = max(best, (weight.sum() - rows) / np.sqrt(variance)), tried + 1
    return min(1.0, tried * float(norm.sf(best))) if tried else 1.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shift", [0, 1])
def test_more_actions_than_their_probabilities_allow_by_plain_loops(seed: int, shift: int) -> None:
    """Five rows expected count; four do not. Few rows of a pair tell nothing."""
    rng = np.random.default_rng(seed)
    state = rng.choice(3, 400, p=[0.7, 0.2, 0.1])
    rows = np.bincount(state)[state]
    chance = rng.choice([0.3, 0.5, 0.8], 400)
    chance[:40] = 5.0 / rows[:40]
    chance[40:60] = 4.9 / rows[40:60]
    action = (rng.random(400) < chance).astype(int)
    b = np.roll(np.where(action == 1, chance, 1.0 - chance), shift)
    pair = 2 * state + action
    found = excess_chance(b, state, pair)
    assert found == pytest.approx(plain_excess(b, state, pair), rel=1e-9)
    assert excess_chance(np.ones(400), state, state) == 1.0  # nothing varies


def test_an_excess_of_one_pair_counts_once() -> None:
    rng = np.random.default_rng(9)
    b = rng.choice([0.4, 0.5], 300)
    state, pair = np.zeros(300, dtype=int), np.zeros(300, dtype=int)
    found = excess_chance(b, state, pair)
    assert found == pytest.approx(plain_excess(b, state, pair), rel=1e-9)
    assert found < 1e-9
    near = np.full(40, 0.99)  # so near 1 that the sum hardly varies
    few = np.zeros(40, dtype=int)
    assert 0.0 < excess_chance(near, few, few) < 1.0
    assert excess_chance(near, few, few) == pytest.approx(plain_excess(near, few, few))
    low = np.where(np.arange(300) % 2, 0.9, 0.99)
    assert excess_chance(low, state, pair) == pytest.approx(plain_excess(low, state, pair))
