"""Rows of a log as numbers: names of episodes, users, actions and rows without a step."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.errors import InputError
from tests.sources.small_logs import log_of, opened, refused


@pytest.mark.parametrize("rows", [1, 2, 5, 100])
@pytest.mark.parametrize("kind", [np.int64, np.float64, np.str_, "category"])
def test_episodes_are_told_apart_by_numbers_and_names_of_any_kind(kind, rows):
    """Floats count up to 2**53, and also numbers that are not in order."""
    names = np.repeat([2**53, 107, 3, 2**52], 3)
    log = log_of(episode=names)
    chunks = list(opened(log.assign(episode=log.episode.astype(kind))).chunks(rows))
    episode = np.concatenate([chunk.episode for chunk in chunks])
    assert episode.tolist() == np.repeat(np.arange(4), 3).tolist()
    keys = np.concatenate([chunk.key for chunk in chunks])
    assert len(set(keys.tolist())) == 4
    assert (keys == np.repeat(keys[::3], 3)).all()


@pytest.mark.parametrize("number", [2.0**53 + 2.0, -(2.0**53) - 2.0])
def test_floats_above_what_tells_whole_numbers_apart_name_no_episode(number):
    names = np.repeat([0.0, 1.0, number, 3.0], 3)
    refused(r"column episode, row 7 .* above 2\*\*53 apart", log_of(episode=names))


@pytest.mark.parametrize("rows", [1, 4, 100])
def test_episodes_of_one_user_share_a_key(rows):
    log = log_of(user=np.repeat(["anna", "ben", "anna", "ben"], 3))
    chunks = list(opened(log, columns={"user": "user"}).chunks(rows))
    keys = np.concatenate([chunk.key for chunk in chunks])
    one, two, three, four = keys[::3]
    assert one == three != two == four
    assert (keys == np.repeat(keys[::3], 3)).all()


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("row", [1, 2, 7])
def test_an_episode_has_one_user_across_the_ends_of_batches_too(rows, row):
    users = np.repeat([5, 6, 5, 6], 3)
    users[row] = 9
    source = opened(log_of(user=users), columns={"user": "user"})
    said = rf"column user, row {row + 1} .* in an episode of another user"
    with pytest.raises(InputError, match=said):
        list(source.chunks(rows))


def test_actions_are_real_only_if_more_than_half_of_them_are():
    whole = np.array([0.0, 1.0] * 6)
    for halves, said in ((6, "write a whole number"), (7, "holds real numbers")):
        action = whole.copy()
        action[:halves] += 0.5
        probs = {"target_prob_0": 0.5, "target_prob_1": 0.5}
        refused(said, log_of(action=action, **probs).drop(columns="target_prob"))


@pytest.mark.parametrize("column", ["behavior_prob", "target_prob"])
def test_a_row_without_reward_and_action_is_final_only_without_probabilities(column):
    log = log_of().astype({"action": float}).drop(columns="terminated").assign(terminated=False)
    last = log.step == 2
    log.loc[last, ["reward", "action", "behavior_prob", "target_prob"]] = np.nan
    (chunk,) = opened(log).chunks()
    assert len(chunk) == 8
    assert chunk.next_state.tolist() == [1, 2] * 4
    log.loc[5, column] = 0.5
    refused(rf"column reward, row 6 .* is missing and {column} is not", log)


@pytest.mark.parametrize("value", [-np.inf, -0.5])
def test_a_logarithm_may_be_that_of_nothing_and_a_probability_may_not(value):
    log = log_of().drop(columns=["target_prob", "behavior_prob"])
    target = np.zeros(12)
    target[3] = value
    (chunk,) = opened(log.assign(target_logprob=target, behavior_logprob=-0.25)).chunks()
    want = np.exp(target + 0.25)
    np.testing.assert_allclose(chunk.rho, want)
    target[4] = np.inf
    refused("column target_logprob, row 5", log.assign(target_logprob=target, behavior_logprob=0.0))
