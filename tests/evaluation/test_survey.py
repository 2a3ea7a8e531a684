"""The first pass: a bounded sample, and the support of the target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import evaluation
from o2td.errors import InputError
from o2td.evaluation.survey import FEWEST, Sample, Survey, folds_of

from .episodes import block_of
from .logs import line_log
from .survey import surveyed


def test_a_sample_is_bounded_and_the_same_in_any_order():
    block = block_of(line_log(200, 4))
    one, two = Sample(limit=1500), Sample(limit=1500)
    order = np.random.default_rng(0).permutation(block.count)
    one.add(block)
    for e in order:
        two.add(block.pick(np.arange(block.count) == e))
    assert one.rows <= 1500
    assert set(one.joined().key) == set(two.joined().key)


def test_a_sample_of_few_long_episodes_is_bounded_too():
    log = line_log(60, 5).assign(episode=lambda rows: np.arange(len(rows)) // 150)
    log = log.assign(terminated=False, truncated=False)
    block = block_of(log)
    whole, part = Sample(len(block.rows)), Sample(len(block.rows) // 4)
    for sample in (whole, part):
        for e in range(block.count):
            sample.add(block.pick(np.arange(block.count) == e))
    assert block.count <= FEWEST
    assert whole.rows == len(block.rows)
    assert part.joined().key.tolist() == block.key.tolist()
    assert np.diff(part.joined().first).max() == part.limit // 10
    again = part.joined().rows.reward[: part.limit // 10]
    np.testing.assert_array_equal(again, block.rows.reward[: part.limit // 10])


def test_support_falls_with_every_step_that_the_log_cannot_follow():
    log = line_log(60, 0)
    half = log.drop(columns=[c for c in log if "prob" in c]).assign(rho=1.0)
    assert surveyed(half).support() == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    lost = half.assign(rho=rng.choice([0.0, 1.5], len(half), p=[0.5, 0.5]))
    assert surveyed(lost).support() < 0.7
    none = half.assign(rho=0.0)
    assert surveyed(none).support() == 0.0


@pytest.mark.parametrize("rewards", [(2.0, 3.0), (-1.0, 3.0), (-3.0, -1.0)])
def test_values_lie_between_the_sums_of_the_extreme_rewards(rewards):
    """A sum of positive rewards is at least one of them, and of negative ones at most one."""
    log = line_log(30, 1).assign(rho=1.0)
    low, high = rewards
    log["reward"] = np.linspace(low, high, len(log))
    found, longest = surveyed(log, 0.9), int(log.groupby("episode").size().max())

    def bounds(most):
        return low * (most if low < 0.0 else 1.0), high * (most if high > 0.0 else 1.0)

    assert found.bounds() == pytest.approx(bounds(10.0))
    assert found.bounds(1) == pytest.approx((low, high))
    assert found.bounds(4) == pytest.approx(bounds(1.0 + 0.9 + 0.81 + 0.729))
    plain = surveyed(log, 1.0)
    assert plain.bounds() == pytest.approx(bounds(longest))
    assert plain.bounds(3) == pytest.approx(bounds(3.0))


def test_visits_ahead_are_those_of_a_chain_that_ends_as_often_as_the_log():
    log = line_log(30, 1).assign(rho=1.0)
    ends = log.terminated.mean()
    assert surveyed(log, 0.9).ahead() == pytest.approx(1.0 / (1.0 - 0.9 * (1.0 - ends)))


def test_folds_depend_on_keys_alone_and_are_even():
    key = np.random.default_rng(0).integers(0, 2**64, 6000, dtype=np.uint64)
    fold = folds_of(key, 5)
    assert set(fold) == set(range(5))
    assert np.abs(np.bincount(fold) - 1200).max() < 5 * np.sqrt(1200)
    np.testing.assert_array_equal(folds_of(key[::-1], 5), fold[::-1])
    mixed = [((int(k) ^ (int(k) >> 29)) * 0xD1B54A32D192ED03) % 2**64 for k in key[:50]]
    assert fold[:50].tolist() == [(word >> 33) % 5 for word in mixed]


@pytest.mark.parametrize("spread", [0.0, 0.01])
def test_the_standard_error_of_the_mean_ratio_by_its_formula(spread):
    """`sum_t (rho_t - mean)` of each episode is one number: ratios near 1 have an error near 0."""
    log = line_log(20, 2)
    rng = np.random.default_rng(3)
    rho = 1.0 + spread * rng.normal(size=len(log))
    log = log.drop(columns=[c for c in log if "prob" in c]).assign(rho=rho)
    rows = block_of(log)
    ratio, first = rows.rows.rho, rows.first
    each = np.add.reduceat(ratio - ratio.mean(), first[:-1])
    error = np.sqrt((each**2).sum() * len(each) / (len(each) - 1)) / len(ratio)
    mean, found = surveyed(log).step_support()
    assert mean == pytest.approx(ratio.mean(), rel=1e-9)
    assert found == pytest.approx(error, rel=1e-6, abs=1e-9)


def first_pass(log: pd.DataFrame) -> Survey:
    """What the first pass finds, with the log's own discounts."""
    return surveyed(log, None, columns={"discount": "discount"})


def ratios(seed: int, episodes: int = 14) -> pd.DataFrame:
    """Short episodes with ratios, three actions of which one is never logged, and a discount each."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for e in range(episodes):
        length = int(rng.integers(1, 7))
        for t in range(length):
            last = t == length - 1
            row: dict[str, Any] = {"episode": e, "step": t, "state": int(rng.integers(4))}
            row |= {"next_state": int(rng.integers(4)), "action": int(rng.integers(2))}
            row |= {"reward": rng.normal(), "terminated": last and e % 3 > 0}
            row |= {"truncated": last and e % 3 == 0, "behavior_prob": 0.5}
            row |= {"target_prob_0": 0.2, "target_prob_1": 0.7, "target_prob_2": 0.1}
            row["discount"] = 0.0 if row["terminated"] else (0.8 if t % 2 else 0.6)
            rows.append(row)
    return pd.DataFrame(rows)


def plain_weights(log: pd.DataFrame) -> pd.DataFrame:
    """By episode: length, final weight, return, discount left at the end, and whether it ended."""
    found = []
    for _, rows in log.groupby("episode", sort=False):
        weight, gone, total = 1.0, 1.0, 0.0
        for _, row in rows.iterrows():
            weight *= row[f"target_prob_{row.action}"] / row.behavior_prob
            total += gone * row.reward
            gone *= row.discount
        found.append((len(rows), weight, total, gone, bool(rows.terminated.iloc[-1])))
    return pd.DataFrame(found, columns=["length", "weight", "plain", "left", "ended"])


def test_what_the_first_pass_counts_by_plain_loops():
    log = ratios(5)
    found, each = first_pass(log), plain_weights(log)
    rho = np.where(log.action == 0, 0.4, 1.4)
    assert (found.rows, found.episodes, found.zero) == (len(log), 14, 0)
    assert (found.highest, found.lowest) == (log.reward.max(), log.reward.min())
    assert (found.largest_discount, found.smallest_discount) == (0.8, 0.6)
    assert found.n_actions == 3
    np.testing.assert_allclose(
        found.taken[0], [(log.action == 0).sum(), (log.action == 1).sum(), 0]
    )
    np.testing.assert_allclose(found.taken[1, :2], [rho[log.action == k].sum() for k in (0, 1)])
    np.testing.assert_allclose(found.taken[2], np.array([0.2, 0.7, 0.1]) * len(log))
    assert found.most() == pytest.approx(np.abs(log.reward).max() / (1.0 - 0.8))
    ends = each.ended.sum()
    assert found.ahead() == pytest.approx(1.0 / (1.0 - 0.8 * (1.0 - ends / len(log))))
    assert found.left() == pytest.approx(each.left[~each.ended].sum() / 14)
    assert found.unended == 14 - ends
    assert not found.endless
    said = found.weights()
    weight = np.sort(each.weight)[::-1]
    assert said["effective_sample_size"] == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert said["effective_rows"] == pytest.approx(rho.sum() ** 2 / (rho**2).sum())
    assert said["max_rho"] == pytest.approx(1.4)
    assert said["max_weight"] == pytest.approx(weight[0])
    assert said["max_weight_share"] == pytest.approx(weight[0] / weight.sum())
    np.testing.assert_allclose(said["largest_weights"], weight[:10])
    assert said["largest_weights_share"] == pytest.approx(weight[:10].sum() / weight.sum())
    assert list(said["effective_sample_size_by_horizon"]) == [
        n for n in (1, 2, 5) if n <= each.length.max()
    ]


def test_a_log_of_a_few_episodes_lists_all_their_weights_and_no_more():
    said = first_pass(ratios(6, 3)).weights()
    np.testing.assert_allclose(
        said["largest_weights"], np.sort(plain_weights(ratios(6, 3)).weight)[::-1]
    )
    assert said["largest_weights_share"] == pytest.approx(1.0)
    none = first_pass(ratios(6, 3).assign(target_prob_0=0.0, target_prob_1=0.0, target_prob_2=1.0))
    assert none.weights()["max_weight_share"] is None
    assert none.weights()["largest_weights_share"] is None
    assert none.zero == none.rows
    assert none.support() == 0.0


def test_support_is_the_share_of_discounted_visits_that_steps_of_known_actions_reach():
    """A tenth of the target's probability is an action that was never logged; episodes end."""
    log = ratios(7, 60)
    found, length = first_pass(log), plain_weights(log).length
    mean, error = found.step_support()
    step = min(1.0, mean + 2.0 * error, 0.9)
    share = whole = 0.0
    for t in range(int(length.max())):
        alive = 0.8**t * (length > t).mean()
        share, whole = share + alive * step**t, whole + alive
    assert found.support() == pytest.approx(share / whole, rel=1e-12)


def test_overlap_is_told_by_action():
    log = ratios(8)
    found = first_pass(log).overlap()
    logged = [(log.action == k).mean() for k in (0, 1, 2)]
    assert [one["action"] for one in found] == [0, 1, 2]
    np.testing.assert_allclose([one["logged"] for one in found], logged)
    np.testing.assert_allclose([one["target"] for one in found], [0.2, 0.7, 0.1])
    met = [min(1.0, logged[0] * 0.4 / 0.2), min(1.0, logged[1] * 1.4 / 0.7), 0.0]
    np.testing.assert_allclose([one["share_met"] for one in found], met)
    taken = log.drop(columns=["behavior_prob", *(f"target_prob_{k}" for k in range(3))])
    alone = first_pass(taken.assign(rho=np.where(log.action == 0, 0.5, 1.5))).overlap()
    assert [one["share_met"] for one in alone] == [None, None]
    np.testing.assert_allclose([one["target"] for one in alone], [logged[0] * 0.5, logged[1] * 1.5])


def test_rows_that_were_dropped_hasten_ends_and_lose_starts():
    log = ratios(9)
    found = first_pass(log)
    ends, rows = plain_weights(log).ended.sum(), len(log)
    seem = 1.0 - 0.8 * (1.0 - ends / (rows - 2))
    are = 1.0 - 0.8 * (1.0 - ends / (rows + 5))
    assert found.hastened(5, 2) == pytest.approx(seem / are - 1.0)
    assert found.hastened(0) == 0.0
    assert found.hastened(5, rows) == 0.0
    assert found.lost(0) == 0.0
    assert found.lost(6) == pytest.approx(6 / 20)
    assert first_pass(log.assign(terminated=False, discount=0.9)).hastened(5) == 0.0
    assert first_pass(log.assign(terminated=False, discount=1.0)).endless


def test_two_surveys_merge_into_that_of_the_whole():
    log = ratios(10, 20)
    whole, early = first_pass(log), first_pass(log[log.episode < 8])
    early.merge(first_pass(log[log.episode >= 8]))
    assert (early.rows, early.episodes, early.zero) == (whole.rows, whole.episodes, whole.zero)
    for name in ("highest", "lowest", "largest_discount", "smallest_discount", "n_actions"):
        assert getattr(early, name) == getattr(whole, name), name
    np.testing.assert_allclose(early.taken, whole.taken)
    np.testing.assert_array_equal([early.low, early.high], [whole.low, whole.high])
    assert early.support() == pytest.approx(whole.support(), rel=1e-12)
    assert early.step_support() == pytest.approx(whole.step_support(), rel=1e-9)
    one, two = early.weights(), whole.weights()
    for name in (
        "effective_sample_size",
        "effective_rows",
        "max_rho",
        "max_weight",
    ):
        assert one[name] == pytest.approx(two[name], rel=1e-9), name
    np.testing.assert_allclose(one["largest_weights"], two["largest_weights"])
    series, other = early.series(), whole.series()
    np.testing.assert_array_equal(series["horizon"]["step"], np.arange(1, 7))
    for name in ("size", "value"):
        np.testing.assert_allclose(series["horizon"][name], other["horizon"][name])
    np.testing.assert_allclose(series["weights"], other["weights"])


@pytest.mark.parametrize(
    ("episodes", "limit", "full", "halved"),
    [(40, 120, False, False), (40, 119, True, True), (20, 59, True, False), (21, 62, True, True)],
)
def test_a_sample_is_halved_beyond_its_rows_down_to_a_few_episodes(episodes, limit, full, halved):
    log = pd.DataFrame({"episode": np.repeat(np.arange(episodes), 3), "state": 0, "reward": 0.0})
    block = block_of(log.assign(terminated=log.index % 3 == 2, rho=1.0))
    sample = Sample(limit)
    sample.add(block)
    assert sample.full == full
    assert (sample.threshold < 1.0) == halved
    assert sample.rows == sum(len(part.rows) for part in sample.blocks)
    drawn = sample._drawn(block.key)
    np.testing.assert_array_equal(sample.joined().key, block.key[drawn])
    assert drawn.all() != halved


def test_blocks_of_a_sample_are_joined_from_time_to_time():
    log = pd.DataFrame({"episode": np.arange(66), "state": 0, "reward": 0.0, "rho": 1.0})
    block = block_of(log.assign(terminated=True))
    sample = Sample(10**6)
    for k in range(66):
        sample.add(block.pick(np.arange(66) == k))
        assert len(sample.blocks) == (k + 1 if k < 64 else 1 + k - 64)
    np.testing.assert_array_equal(sample.joined().key, block.key)


def test_long_episodes_of_a_full_sample_keep_their_first_rows():
    log = pd.DataFrame({"episode": np.repeat(np.arange(4), 30), "state": 0, "reward": 0.0})
    block = block_of(log.assign(terminated=log.index % 30 == 29, rho=1.0))
    sample = Sample(100)
    sample.add(block)
    assert np.diff(sample.joined().first).tolist() == [10] * 4
    tiny = Sample(5)
    tiny.add(block)
    assert np.diff(tiny.joined().first).tolist() == [1] * 4


@pytest.mark.parametrize(("actions", "counted"), [([0, 1000], 1001), ([0, 1001], 0), ([-1, 3], 0)])
def test_actions_are_counted_up_to_a_thousand(actions, counted):
    log = pd.DataFrame({"episode": [0, 1], "state": 0, "reward": 0.0, "rho": [0.5, 2.0]})
    found = surveyed(log.assign(action=actions, terminated=True))
    assert found.taken.shape == (3, counted)
    if counted:
        assert found.taken[:, [0, -1]].tolist() == [[1.0, 1.0], [0.5, 2.0], [0.0, 0.0]]
    assert found.n_actions == 0


@pytest.mark.parametrize("action", [2, -1])
@pytest.mark.parametrize("methods", [None, "lstdq", "tstep"])
def test_actions_of_which_the_target_says_nothing_are_refused(action, methods):
    n = np.arange(12)
    log = pd.DataFrame({"episode": n // 2, "state": 0, "action": n % 2, "reward": 1.0, "rho": 1.0})
    log = log.assign(terminated=n % 2 == 1, target_prob_0=0.3, target_prob_1=0.7)
    log.loc[5, "action"] = action
    with pytest.raises(InputError, match=f"an action is {action}, and the target has .* 2 actions"):
        evaluation.evaluate(log, discount=0.9, lanes=0, methods=methods)


def test_a_merged_sample_is_full_if_one_of_both_is():
    block = block_of(line_log(200, 4))
    small, large = Sample(limit=1500), Sample(limit=10**6)
    small.add(block)
    assert small.full
    assert not large.full
    large.merge(small)
    assert large.full
