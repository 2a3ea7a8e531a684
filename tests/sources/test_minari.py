"""A Minari dataset, recorded here from a real environment."""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest

from o2td import sources
from o2td.cli import main
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


def _continuous(store, name):
    """Pendulum under a normal policy, recorded."""
    import minari
    from minari.data_collector.episode_buffer import EpisodeBuffer

    env = gym.make("Pendulum-v1", max_episode_steps=20)
    rng = np.random.default_rng(0)
    buffers = []
    for e in range(12):
        seen, acts, rewards, ends, cuts = [env.reset(seed=e)[0]], [], [], [], []
        while not (cuts and (cuts[-1] or ends[-1])):
            acts.append(rng.normal(size=1).astype(np.float32))
            x, reward, terminated, truncated, _ = env.step(acts[-1])
            seen.append(x)
            rewards.append(float(reward))
            ends.append(terminated)
            cuts.append(truncated)
        buffers.append(EpisodeBuffer(e, e, None, seen, acts, rewards, ends, cuts, {}))
    minari.create_dataset_from_buffers(name, buffers, env=env, eval_env=env)
    env.close()


def test_the_command_takes_a_name_or_a_folder_also_with_continuous_actions(store, capsys):
    _record("CartPole-v1", "cartpole/random-v0", 30, 15)
    _continuous(store, "pendulum/normal-v0")
    options = ["--discount", "0.9", "--on-policy", "--methods", "lstd", "--features", "fourier:1"]
    for place in ("cartpole/random-v0", "pendulum/normal-v0", str(store / "pendulum/normal-v0")):
        assert main(["evaluate", f"minari:{place}", *options, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["estimates"]
    assert main(["evaluate", str(store / "pendulum"), *options]) == 2
    assert "is part of a Minari dataset; name that instead" in capsys.readouterr().err
    assert main(["evaluate", "minari:nobody/nothing-v0", *options]) == 2
    assert "nobody/nothing-v0: no such dataset on this machine" in capsys.readouterr().err


def test_a_dataset_that_is_not_there(store):
    with pytest.raises(InputError, match="no such dataset on this machine"):
        sources.minari("nobody/nothing-v0", discount=0.9)
