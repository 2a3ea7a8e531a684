"""Which bases are tried: as many features as are allowed, and not one more; LSTDQ on chosen ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import evaluation
from o2td.evaluation.candidates import _waves, candidates

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
