"""A Minari dataset, recorded here from a real environment."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from o2td import sources
from o2td.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # minari warns about metadata that is not ours


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def _record(env_id, name, episodes, limit, seed=0):
    import minari
    from minari.data_collector.episode_buffer import EpisodeBuffer

    env = gym.make(env_id, max_episode_steps=limit)
    rng = np.random.default_rng(seed)
    rows, buffers = [], []
    for e in range(episodes):
        x, _ = env.reset(seed=seed + e)
        over = False
        while not over:
            action = int(rng.integers(env.action_space.n))
            after, reward, terminated, truncated, _ = env.step(action)
            rows.append((e, x, action, reward, terminated, truncated, after))
            x, over = after, terminated or truncated
        mine = [row[1:] for row in rows if row[0] == e]
        columns = [list(column) for column in zip(*mine, strict=True)]
        states = [*columns[0], columns[5][-1]]
        buffers.append(EpisodeBuffer(e, seed + e, None, states, *columns[1:5], {}))
    # Not by DataCollector, which needs jax; the dataset on disk is the same.
    data = minari.create_dataset_from_buffers(name, buffers, env=env, eval_env=env)
    env.close()
    return data, rows


def test_rows_are_those_that_were_played(store, joined):
    data, rows = _record("CartPole-v1", "cartpole/random-v0", 8, 15)
    source = sources.minari(data, discount=0.9)
    for size in (4, 1000):
        got = joined(source, size)
        assert len(got["reward"]) == len(rows)
        for t, (e, x, action, reward, terminated, truncated, after) in enumerate(rows):
            assert (got["episode"][t], got["action"][t], got["reward"][t]) == (e, action, reward)
            assert (got["terminated"][t], got["truncated"][t]) == (terminated, truncated)
            np.testing.assert_array_equal(got["observation"][t], x)
            np.testing.assert_array_equal(got["next_observation"][t], x if terminated else after)
    assert got["truncated"].any()
    assert (got["rho"] == 1.0).all()
    assert source.info.files == ("cartpole/random-v0",)


def test_target_with_a_known_and_an_estimated_behaviour(store, joined):
    _record("FrozenLake-v1", "lake/random-v0", 60, 50)
    target = np.tile([0.1, 0.4, 0.4, 0.1], (16, 1))
    known = sources.minari(
        "lake/random-v0", discount=0.95, target=target, behavior=np.full((16, 4), 0.25)
    )
    got = joined(known)
    np.testing.assert_array_equal(got["rho"], target[0][got["action"]] / 0.25)
    guessed = sources.minari("lake/random-v0", discount=0.95, target=target)
    often = np.isin(got["state"], [0, 4])
    assert np.abs(joined(guessed)["behavior_prob"][often] - 0.25).max() < 0.1


def test_a_dataset_that_is_not_there(store):
    with pytest.raises(InputError, match="no such dataset on this machine"):
        sources.minari("nobody/nothing-v0", discount=0.9)
