"""Which bases are tried: as many features as are allowed, and not one more; LSTDQ on chosen ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import evaluation
from o2td.evaluation.candidates import (
    Fourier,
    Polynomial,
    Radial,
    _radial,
    _waves,
    candidates,
    farthest,
    median_distance,
    nested,
)

DISCOUNT = 0.9

PAIRS = {order: 1 + 3 * order + 3 * order**2 for order in (2, 4, 5, 6, 7)}  # of three variables


@pytest.mark.parametrize("order", PAIRS)
def test_waves_in_pairs_have_at_most_as_many_features_as_allowed(order: int) -> None:
    assert (order, 2) in _waves(3, PAIRS[order])
    assert (order, 2) not in _waves(3, PAIRS[order] - 1)


def test_other_waves_too() -> None:
    assert _waves(1, 4) == [(2, True), (3, True)]
    assert _waves(2, 11) == [(2, True), (5, False)]
    assert _waves(2, 10) == [(2, True)]


def pushes(x: np.ndarray) -> np.ndarray:
    """Probabilities of stepping down and up, (n, 2)."""
    up = 1.0 / (1.0 + np.exp(-2.0 * x))
    return np.column_stack([1.0 - up, up])


def drifting(rows: int = 400) -> pd.DataFrame:
    """A point on a line, pushed at random until an end by chance; too few rows for bases around rows."""
    rng, log = np.random.default_rng(11), []
    while len(log) < rows:
        x, step, ends, episode = float(rng.uniform(-1.0, 1.0)), 0, False, len(log)
        while not ends:
            action, ends = int(rng.integers(2)), bool(rng.random() < 0.2)
            after = 0.9 * x + 0.2 * (2 * action - 1) + 0.05 * float(rng.standard_normal())
            log.append((episode, step, x, after, action, np.sin(3.0 * x) + action, ends))
            x, step = after, step + 1
    names = ["episode", "step", "obs_0", "next_obs_0", "action", "reward", "terminated"]
    found = pd.DataFrame(log, columns=names).assign(behavior_prob=0.5)
    found[["target_prob_0", "target_prob_1"]] = pushes(found.obs_0.to_numpy())
    return found


def solved_by_hand(log: pd.DataFrame, features: Any, ridge: float) -> float:
    """LSTDQ's value at the starts from plain matrices."""
    here, ahead = (features.transform(log[[name]].to_numpy()) for name in ("obs_0", "next_obs_0"))
    n, d = here.shape
    policy = log[["target_prob_0", "target_prob_1"]].to_numpy()
    after = np.vstack([policy[1:], policy[:1]]) * DISCOUNT * ~log.terminated.to_numpy()[:, None]
    taken = np.zeros((n, 2, d))
    taken[np.arange(n), log.action] = here
    taken = taken.reshape(n, -1)
    later = (after[:, :, None] * ahead[:, None, :]).reshape(n, -1)
    A = taken.T @ (taken - later)
    A += ridge * np.abs(np.diagonal(A)).mean() * np.eye(2 * d)
    first = (log.step == 0).to_numpy()
    start = (policy[first][:, :, None] * here[first][:, None, :]).reshape(first.sum(), -1)
    return float(start.mean(axis=0) @ np.linalg.solve(A, taken.T @ log.reward.to_numpy()))


def test_lstdq_on_chosen_features_is_a_mean_of_fits_on_those_of_least_loss() -> None:
    log = drifting()
    answer = evaluation.evaluate(log, DISCOUNT, methods=["lstd", "lstdq"], lanes=20, seed=3)
    listed = pd.DataFrame(answer.features["candidates"])
    kept = listed[listed.verdict.str.startswith("kept")]
    rank = kept.kernel_bellman_loss.rank() + kept.returns_error.rank()
    best = kept[kept.trace == 0.0].loc[rank[kept.trace == 0.0].sort_values(kind="stable").index][:3]
    inputs = log[["obs_0"]].to_numpy()
    maps = list(candidates(inputs, 3, len(log)))
    assert len(listed) == 2 * len(maps)  # without and with a trace
    values = [solved_by_hand(log, maps[k // 2], max(best.ridge[k], 1e-5)) for k in best.index]
    apart = np.abs(values - np.median(values))
    near = np.array(values)[apart <= 4.0 * 1.4826 * np.median(apart)]  # an odd one is left out
    assert len(near) >= 2
    assert f"mean of {len(near)} fits" in answer["lstdq"].about
    assert answer["lstdq"].value == pytest.approx(near.mean(), rel=1e-5)
    assert answer["lstdq"].approximation_error >= np.ptp(near) / 2.0 - 1e-9


def test_rows_far_from_each_other_and_their_median_distance_by_plain_loops() -> None:
    rows = np.random.default_rng(5).normal(size=(60, 2))
    chosen = [0]
    while len(chosen) < 20:
        near = [min(np.square(row - rows[k]).sum() for k in chosen) for row in rows]
        chosen.append(int(np.argmax(near)))
    assert farthest(rows, 20) == chosen
    assert len(farthest(np.repeat(rows[:7], 3, axis=0), 20)) == 7
    assert len(farthest(rows[:5], 20)) == 5
    apart = [np.sqrt(np.square(a - b).sum()) for k, a in enumerate(rows) for b in rows[:k]]
    assert median_distance(rows) == pytest.approx(np.median(np.square(apart)) ** 0.5)
    assert median_distance(rows, 30) == median_distance(rows[:30])
    assert median_distance(rows[:1]) == 1.0
    assert median_distance(np.repeat(rows[:1], 4, axis=0)) == 1.0


def test_maps_have_the_range_of_the_data_or_of_its_middle() -> None:
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=900), np.where(np.arange(900) == 7, 5.0, 2.0)])
    listed = list(candidates(x, 0, 900))
    waves = _waves(2, 45)
    assert [one.feature for one in listed] == [
        *["fourier"] * 2 * len(waves), *["polynomial"] * 2, *["radial"] * 2
    ]  # fmt: skip
    whole = np.column_stack([x.min(axis=0), x.max(axis=0)])
    inner = np.quantile(x[:, 0], [0.01, 0.99])
    for place, one in enumerate(listed):
        bounds = np.asarray(one.bounds)
        tight = len(waves) <= place < 2 * len(waves)
        np.testing.assert_allclose(bounds[0], inner if tight else whole[0])
        np.testing.assert_allclose(bounds[1], whole[1])  # nearly constant: its whole range
    assert [(one.order, one.coupled) for one in listed[: len(waves)]] == waves
    assert [one.degree for one in listed[2 * len(waves) : 2 * len(waves) + 2]] == [1, 3]


@pytest.mark.parametrize(
    ("rows", "columns", "centers"),
    [(419, 1, 0), (420, 1, 20), (900, 3, 44), (900, 4, 0)],
)
def test_bases_around_rows_need_twenty_centres_and_few_variables(
    rows: int, columns: int, centers: int
) -> None:
    x = np.random.default_rng(2).normal(size=(600, columns))
    made = [one for one in candidates(x, 3, rows) if one.feature == "radial"]
    assert [len(one.centers) for one in made] == ([centers] * 2 if centers else [])


def test_centres_are_rows_far_apart_and_rows_where_data_are_dense() -> None:
    x = np.random.default_rng(4).normal(size=(300, 2)) * [0.3, 10.0]
    bounds = np.column_stack([x.min(axis=0), x.max(axis=0)])
    narrow, wide = _radial(x, bounds, 21, 5)
    rng = np.random.default_rng(5)
    pool = x[rng.permutation(300)]
    scaled = pool / x.std(axis=0)
    far = farthest(scaled, 10)
    near = rng.permutation(300)[:11]
    centers = np.unique(np.concatenate([pool[far], pool[near]]), axis=0)
    each = median_distance(scaled) * x.std(axis=0) / (bounds[:, 1] - bounds[:, 0])
    for made, share in ((narrow, 0.3), (wide, 0.6)):
        np.testing.assert_allclose(made.centers, centers)
        np.testing.assert_allclose(made.width, share * each)
        np.testing.assert_allclose(made.bounds, bounds)
    flat = np.column_stack([x[:, 0], np.full(300, 3.0)])
    ends = np.column_stack([flat.min(axis=0), flat.max(axis=0)])
    still = next(_radial(flat, ends, 21, 5))
    assert np.asarray(still.width)[1] == pytest.approx(
        0.3
        * median_distance(flat[np.random.default_rng(5).permutation(300)] / [x[:, 0].std(), 1.0])
    )


def test_features_of_one_order_are_among_those_of_a_higher_one() -> None:
    wide, tight = [(0.0, 1.0), (0.0, 2.0)], [(0.0, 1.0), (0.0, 1.5)]
    maps = [
        Fourier(2, bounds=wide).fit(),
        Fourier(3, bounds=wide).fit(),
        Fourier(2, bounds=tight).fit(),
        Polynomial(1, bounds=wide).fit(),
        Polynomial(3, bounds=wide).fit(),
        Radial(centers=np.zeros((2, 2)), width=0.5, bounds=wide).fit(),
        Fourier(5, bounds=wide, coupled=False).fit(),
    ]
    found = nested(maps)
    assert [whole for whole, _ in found] == [1, 1, 2, 4, 4, 5, 6]
    x = np.random.default_rng(0).random((9, 2)) * [1.0, 2.0]
    for one, (whole, places) in zip(maps, found, strict=True):
        np.testing.assert_allclose(one.transform(x), maps[whole].transform(x)[:, places])


@pytest.mark.parametrize(("rows", "most"), [(40, 4), (80, 4), (100, 5), (400, 20)])
def test_few_rows_allow_few_features(rows: int, most: int) -> None:
    x = np.random.default_rng(2).normal(size=(rows, 1))
    widths = {one.transform(x).shape[1] for one in candidates(x, 0, rows)}
    assert max(widths) <= most


def test_features_of_several_orders_are_all_among_those_of_the_highest() -> None:
    maps = [Fourier(order, bounds=[(0.0, 1.0)]).fit() for order in (2, 1, 4, 3)]
    assert [(whole, places.tolist()) for whole, places in nested(maps)] == [
        (2, [0, 1, 2]), (2, [0, 1]), (2, [0, 1, 2, 3, 4]), (2, [0, 1, 2, 3])
    ]  # fmt: skip
