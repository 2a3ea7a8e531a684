from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from o2td import sources
from o2td.errors import InputError
from o2td.sources.behavior import (
    _among,
    _basis,
    _calibrate,
    _fit,
    _sample,
    _temperature,
    _tempered,
    _weights,
    _width,
    mix,
)


def _observed(episodes=600, length=10, seed=0):
    """A log of a logistic behaviour with three actions, whose probabilities are known."""
    rng = np.random.default_rng(seed)
    n = episodes * length
    x = rng.normal(size=(n, 2)) * [1.0, 30.0] + [0.0, 5.0]
    scores = np.stack([0 * x[:, 0], 1.5 * x[:, 0], -0.03 * x[:, 1]], axis=1)
    chance = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    action = (rng.random(n)[:, None] > chance.cumsum(axis=1)).sum(axis=1)
    log = pd.DataFrame({"episode": np.repeat(np.arange(episodes), length), "action": action})
    log["obs_0"], log["obs_1"] = x.T
    log["reward"], log["target_prob"] = 0.0, 1 / 3
    log["terminated"] = np.arange(n) % length == length - 1
    return log, chance


def test_logistic_model_recovers_the_behaviour(joined):
    log, chance = _observed()
    source = sources.open_logs(log, discount=0.9)
    assert "behaviour estimated" in source.info.ratio
    got = joined(source)
    taken = chance[np.arange(len(log)), log.action]
    assert np.abs(got["behavior_prob"] - taken).mean() < 0.02
    np.testing.assert_allclose(got["rho"], (1 / 3) / got["behavior_prob"])
    table = source.behavior_model.calibration
    assert table.count.sum() == 3 * len(log)
    well = table.count > 300
    assert np.abs(table.predicted - table.observed)[well].max() < 0.06
    assert table.log_loss < table.marginal_log_loss - 0.1
    assert "log loss" in str(table)


def test_state_model_recovers_frequencies():
    rng = np.random.default_rng(1)
    behavior = rng.dirichlet(np.ones(3), size=4)
    state = rng.integers(0, 4, 40_000)
    action = (rng.random(40_000)[:, None] > behavior[state].cumsum(axis=1)).sum(axis=1)
    log = pd.DataFrame({"episode": np.arange(40_000) // 20, "state": state, "action": action})
    log["reward"], log["terminated"] = 0.0, np.arange(40_000) % 20 == 19
    source = sources.open_logs(log, discount=0.9, target=np.full((4, 3), 1 / 3))
    chunk = next(source.chunks())
    assert np.abs(chunk.behavior_prob - behavior[chunk.state, chunk.action]).max() < 0.02


def test_with_few_rows_an_episode_never_sees_itself(monkeypatch):
    """The only episode that takes action 1 is predicted by models that never saw that action."""
    monkeypatch.setattr("o2td.sources.behavior._PER_WEIGHT", 20)
    log, _ = _observed(episodes=10)
    log["action"] = np.where(log.episode == 3, 1, 0)
    source = sources.open_logs(log, discount=0.9)
    chunk = next(source.chunks())
    alone = chunk.episode == 3
    unheated = replace(source.behavior_model, temperature=1.0)
    taken = unheated.taken(chunk.observation, chunk.action, chunk.key)
    assert taken[alone].max() < 0.05
    assert taken[~alone].mean() > 0.8
    # What was not foreseen makes the model less sure.
    assert source.behavior_model.temperature > 2.0
    assert 0.1 < chunk.behavior_prob[alone].max() < 0.3


def test_calibration_keeps_ratios_of_small_logs_near_one():
    """Without it, they average 3 to 5 with ten episodes; seeds 20 to 29 were not looked at before."""
    averages, before = [], []
    for seed in range(20, 30):
        log, _ = _observed(episodes=10, seed=seed)
        log = log.drop(columns="target_prob").assign(target_prob_0=0.2, target_prob_1=0.4)
        source = sources.open_logs(log.assign(target_prob_2=0.4), discount=0.9)
        (chunk,) = source.chunks()
        averages.append(chunk.rho.mean())
        plain = replace(source.behavior_model, temperature=1.0, floor=1e-6)
        taken = plain.taken(chunk.observation, chunk.action, chunk.key)
        before.append((chunk.target_prob / taken).mean())
        assert chunk.behavior_prob.min() >= source.behavior_model.floor == 1 / len(chunk)
    assert abs(np.mean(averages) - 1) < 0.5 * abs(np.mean(before) - 1)


def test_a_probability_that_no_row_supports_is_raised_and_counted():
    log, _ = _observed(episodes=40)
    model = sources.fit_behavior_model(sources.open_logs(log, discount=0.9))
    source = sources.open_logs(log, discount=0.9, behavior=replace(model, floor=0.3))
    (chunk,) = source.chunks()
    low = int((chunk.behavior_prob == 0.3).sum())
    assert low > 10
    assert source.info.notes == {"estimated probability of the action raised to 0.3": low}


def test_folds_follow_the_episodes_not_the_order_or_the_file(joined, tmp_path):
    log, _ = _observed(episodes=40)
    half = log.episode < 20
    log[half].to_parquet(tmp_path / "1.parquet")
    log[~half].to_parquet(tmp_path / "2.parquet")
    source = sources.open_logs(tmp_path, discount=0.9)
    want = joined(source)["behavior_prob"]
    parts = [joined(part)["behavior_prob"] for part in source.partitions()]
    np.testing.assert_array_equal(np.concatenate(parts), want)


def test_a_long_log_is_sampled_evenly(monkeypatch):
    log, _ = _observed(episodes=3000)
    source = sources.open_logs(log, discount=0.9)
    small = sources.fit_behavior_model(source, max_rows=2000)
    assert small.calibration.count.sum() == 3 * 2000
    assert len(small.keys) == 3000
    again = sources.fit_behavior_model(source, max_rows=2000)
    assert again.calibration.log_loss == small.calibration.log_loss


def test_keys_of_many_episodes_are_sampled_and_their_folds_stay_even(monkeypatch):
    monkeypatch.setattr("o2td.sources.behavior._KEYS", 200)
    monkeypatch.setattr("o2td.sources.behavior._PER_WEIGHT", 10**9)
    log, _ = _observed(episodes=3000)
    model = sources.fit_behavior_model(sources.open_logs(log, discount=0.9), max_rows=2000)
    assert 50 < len(model.keys) <= 200
    key = mix(np.arange(3000))
    share = np.bincount(model.fold_of(key), minlength=5) / 3000
    assert share.min() > 0.12
    shuffled = log.sort_values("episode", ascending=False, kind="stable")
    again = sources.fit_behavior_model(sources.open_logs(shuffled, discount=0.9), max_rows=2000)
    np.testing.assert_array_equal(again.keys, model.keys)


def test_a_given_model_or_policy_is_used(joined):
    log, chance = _observed(episodes=50)
    few = sources.open_logs(log[log.episode < 10], discount=0.9)
    assert len(sources.fit_behavior_model(few, folds=2).models) == 2
    model = sources.fit_behavior_model(sources.open_logs(log, discount=0.9), folds=2)
    assert len(model.models) == 1  # there are rows enough for one of all
    got = joined(sources.open_logs(log, discount=0.9, behavior=model))
    inputs = log[["obs_0", "obs_1"]].to_numpy()
    np.testing.assert_array_equal(
        got["behavior_prob"], model.taken(inputs, log.action.to_numpy(), got["key"])
    )

    def known(x):
        scores = np.stack([0 * x[:, 0], 1.5 * x[:, 0], -0.03 * x[:, 1]], axis=1)
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)

    got = joined(sources.open_logs(log, discount=0.9, behavior=known))
    np.testing.assert_allclose(got["behavior_prob"], chance[np.arange(len(log)), log.action])


def test_continuous_actions_cannot_be_estimated():
    log, _ = _observed(episodes=5)
    with pytest.raises(
        InputError, match=r"column action, row 1 .* holds real numbers, and the ratio needs"
    ):
        sources.open_logs(log.assign(action=0.25), discount=0.9).scan()
    several = log.drop(columns="action").assign(action_0=0.1, action_1=0.2)
    with pytest.raises(InputError, match=r"action_0, action_1 hold real numbers, whose prob"):
        sources.open_logs(several, discount=0.9)


def _decisions(seed, count=400):
    """Single decisions in four states, with the probabilities that they were drawn with."""
    rng = np.random.default_rng(seed)
    behavior = np.array([[0.2, 0.8], [0.5, 0.5], [0.7, 0.3], [0.9, 0.1]])
    state = rng.integers(0, 4, count)
    action = (rng.random(count) < behavior[state, 1]).astype(int)
    reward = state + 2.0 * action + 0.3 * rng.normal(size=count)
    log = pd.DataFrame({"state": state, "action": action, "reward": reward})
    return log, behavior[state, action]


def test_probabilities_of_a_model_of_all_rows_are_frequencies():
    log, _ = _decisions(0)
    (chunk,) = sources.open_logs(log, target=np.full((4, 2), 0.5)).chunks()
    overall = (np.bincount(log.action) + 1.0) / (len(log) + 2.0)
    joint = np.zeros((4, 2))
    np.add.at(joint, (log.state, log.action), 1.0)
    table = (joint + overall) / (joint.sum(axis=1, keepdims=True) + 1.0)
    np.testing.assert_allclose(chunk.behavior_prob, table[log.state, log.action])


def test_estimated_probabilities_make_estimates_vary_less_than_the_true_ones():
    """What they take away is noise of the draws: means of weighted rewards over 60 logs."""
    target, found = np.full((4, 2), 0.5), {"known": [], "estimated": []}
    for seed in range(60):
        log, chance = _decisions(100 + seed)
        (chunk,) = sources.open_logs(log, target=target).chunks()
        found["estimated"].append((chunk.rho * chunk.reward).mean() - log.state.mean())
        found["known"].append((0.5 / chance * log.reward).mean() - log.state.mean())
    assert abs(np.mean(found["estimated"]) - 1.0) < 0.04  # frequencies are smoothed by a count
    assert np.std(found["estimated"]) < 0.3 * np.std(found["known"])


def test_states_with_few_rows_are_predicted_by_models_that_never_saw_them():
    """Every state occurs twice: of all rows, frequencies would call the action taken certain."""
    rng = np.random.default_rng(0)
    action = rng.integers(0, 2, 400)
    log = pd.DataFrame({"state": np.arange(400) % 200, "action": action, "reward": 0.0})
    source = sources.open_logs(log, target=np.full((200, 2), 0.5))
    (chunk,) = source.chunks()
    assert len(source.behavior_model.models) == 5
    assert abs(chunk.rho.mean() - 1.0) < 0.1


def test_settings_of_a_model_are_checked_before_anything_is_read():
    class Unread:
        """Nothing but a name: reading it would fail."""

        def unweighted_chunks(self):
            raise AssertionError

    for given, said in (
        ({"ridge": 0.0}, "ridge"),
        ({"ridge": -1.0}, "ridge"),
        ({"folds": 0}, "folds"),
        ({"max_rows": 0}, "max_rows"),
    ):
        with pytest.raises(InputError, match=said):
            sources.fit_behavior_model(Unread(), **given)


@pytest.mark.parametrize("k", [1, 2, 12, 13])
def test_features_of_a_model_are_squares_and_of_few_variables_products(k):
    z = np.random.default_rng(0).normal(size=(5, k)) * 6.0
    found = _basis(z)
    assert found.shape == (5, _width(k))
    z = np.clip(z, -10.0, 10.0)
    pairs = [z[:, i] * z[:, j] for i in range(k) for j in range(i + 1, k)] if k <= 12 else []
    wanted = np.column_stack([np.ones(5), z, z**2, *pairs])
    np.testing.assert_array_equal(found, wanted)


def test_calibration_is_by_bins_of_a_tenth_of_all_predicted_probabilities():
    predicted = np.array([[0.05, 0.95], [0.25, 0.75], [0.22, 0.78], [1.0, 0.0]])
    found = _calibrate(predicted, np.array([1, 0, 1, 0]), 1e-3)
    assert found.count.tolist() == [2, 2, 2, 2]
    np.testing.assert_allclose(found.predicted, [0.025, 0.235, 0.765, 0.975])
    np.testing.assert_allclose(found.observed, [0.0, 0.5, 0.5, 1.0])


def test_actions_of_other_kinds_are_refused():
    source = sources.open_logs(_observed(60)[0], discount=0.9)
    model = sources.fit_behavior_model(source)
    with pytest.raises(InputError, match="action must list the number of each row's action"):
        model.taken(np.zeros((2, 2)), np.array([0.5, 1.0]), model.keys[:2])
    with pytest.raises(InputError, match="was not in the log"):
        model.taken(np.zeros((2, 2)), np.array([0, 99]), model.keys[:2])


def test_with_one_fold_probabilities_are_those_of_its_only_model():
    """Eight rows are too few for a model of all, and one fold holds no rows out to calibrate on."""
    state, action = np.arange(8) % 2, np.array([0, 1, 1, 1, 0, 0, 0, 1])
    log = pd.DataFrame({"episode": 0, "state": state, "action": action, "reward": 0.0})
    log = log.assign(target_prob=0.5, terminated=np.arange(8) == 7)
    model = sources.fit_behavior_model(sources.open_logs(log, discount=0.9), folds=1)
    found = model.probabilities(np.array([0, 1, 7]), model.keys[[0, 0, 0]])
    # Three of four rows of state 0 take action 0, and one count is spread evenly.
    np.testing.assert_allclose(found, [[0.7, 0.3], [0.3, 0.7], [0.5, 0.5]])
    np.testing.assert_allclose(model.calibration.predicted, [0.3, 0.7])
    np.testing.assert_allclose(model.calibration.observed, [0.25, 0.75])


@pytest.mark.parametrize(("rows", "models"), [(80, 1), (79, 5)])
def test_one_model_needs_ten_rows_for_each_of_its_weights(rows, models):
    """Four states and three actions have eight free weights."""
    t = np.arange(rows)
    log = pd.DataFrame({"state": t % 4, "action": t // 4 % 3, "reward": 0.0})
    source = sources.open_logs(log, target=np.full((4, 3), 1 / 3))
    assert len(sources.fit_behavior_model(source).models) == models


def test_a_share_of_the_keys_is_kept_and_a_smaller_one_is_among_it():
    keys = mix(np.arange(20_000))
    assert len(_among(keys, 1.0)) == 20_000
    half, quarter = _among(keys, 0.5), _among(keys, 0.25)
    assert abs(len(half) - 10_000) < 500
    assert abs(len(quarter) - 5000) < 500
    assert set(quarter.tolist()) < set(half.tolist())
    assert set(_among(keys[::-1], 0.5).tolist()) == set(half.tolist())


@pytest.mark.parametrize("ridge", [0.1, 5.0])
def test_the_regression_is_where_the_penalised_likelihood_is_greatest(ridge):
    """Intercepts are all but free; a variable that is constant does no harm."""
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.normal(3.0, 2.0, 300), rng.normal(size=300), np.full(300, 7.0)])
    action = (rng.random(300) < 1.0 / (1.0 + np.exp(-(x[:, 0] - 3.0)))).astype(int)
    action[:20] = 2
    found = _fit(x, action, 4, ridge)  # the fourth is never taken
    spread = x.std(axis=0)
    z = (x - x.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    phi = np.column_stack(
        [np.ones(300), z, z**2, z[:, 0] * z[:, 1], z[:, 0] * z[:, 2], z[:, 1] * z[:, 2]]
    )
    penalty = np.full((phi.shape[1], 1), ridge)
    penalty[0] = 300 * 1e-8

    def loss(W):
        scores = phi @ W
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return -logs[np.arange(300), action].sum() + 0.5 * (penalty * W**2).sum()

    least = loss(found.weights)
    for i, j in np.ndindex(*found.weights.shape):
        for step in (0.02, -0.02):
            other = found.weights.copy()
            other[i, j] += step
            assert loss(other) > least - 1e-3
    chance = np.exp(phi @ found.weights)
    np.testing.assert_allclose(
        found.predict(x), chance / chance.sum(axis=1, keepdims=True), rtol=1e-9
    )
    assert found.predict(x)[:, 3].max() < 0.01
    np.testing.assert_allclose(np.bincount(action), found.predict(x)[:, :3].sum(axis=0), rtol=1e-2)


def test_the_temperature_makes_held_out_actions_most_likely():
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(2000, 3)) * 2.0
    true = np.exp(scores / 3.0)
    true /= true.sum(axis=1, keepdims=True)
    action = (rng.random(2000)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    sure = np.exp(scores)
    sure /= sure.sum(axis=1, keepdims=True)

    def loss(temperature):
        tempered = np.exp(np.log(sure) / temperature)
        tempered /= tempered.sum(axis=1, keepdims=True)
        return -np.log(tempered[np.arange(2000), action]).mean()

    found = _temperature(sure, action)
    assert found == pytest.approx(3.0, rel=0.15)
    tempered = _tempered(sure, found)
    np.testing.assert_allclose(-np.log(tempered[np.arange(2000), action]).mean(), loss(found))
    for other in (0.97, 1.03):
        assert loss(found) <= loss(other * found)
    certain = np.where(np.arange(3) == action[:, None], 0.5, 0.25)
    assert _temperature(certain, action) == pytest.approx(1 / 20, rel=0.02)  # at least that
    against = np.where(np.arange(3) == action[:, None], 0.01, 0.495)
    assert _temperature(against, action) == pytest.approx(20.0, rel=0.02)  # at most that
    assert _temperature(np.full((2000, 3), 1.0 / 3.0), action) == 1.0


def test_an_even_sample_has_the_rows_whose_hashes_are_least(monkeypatch):
    log, _ = _observed(episodes=60)
    source = sources.open_logs(log, discount=0.9)
    draw = mix(np.arange(600)) / 2.0**64
    for limit in (7, 100, 149, 600, 5000):
        found = _sample(source, limit)
        best = np.sort(np.argsort(draw, kind="stable")[:limit])
        np.testing.assert_array_equal(found.action, log.action.to_numpy()[best])
        np.testing.assert_array_equal(found.inputs, log[["obs_0", "obs_1"]].to_numpy()[best])
        assert len(found.keys) == 60
        assert np.isin(found.key, found.keys).all()
    monkeypatch.setattr("o2td.sources.behavior._ELEMENTS", 6 * 50)  # of six features a row
    assert len(_sample(source, 600).action) == 50
    assert len(_sample(source, 20).action) == 20


def test_weights_are_counted_by_states_or_features_for_all_actions_but_one():
    assert _weights(np.array([0, 3, 3, 9]), 4) == 3 * 3
    assert _weights(np.zeros((5, 2)), 3) == (1 + 2 + 2 + 1) * 2
    assert _weights(np.zeros((5, 13)), 2) == 1 + 26


def test_losses_of_a_calibration_are_means_of_minus_logarithms():
    predicted = np.array([[0.9, 0.1], [0.4, 0.6], [1.0, 0.0], [0.2, 0.8]])
    action = np.array([0, 1, 1, 0])
    found = _calibrate(predicted, action, 0.05)
    assert found.log_loss == pytest.approx(-np.log([0.9, 0.6, 0.05, 0.2]).mean())
    assert found.marginal_log_loss == pytest.approx(np.log(2.0))
