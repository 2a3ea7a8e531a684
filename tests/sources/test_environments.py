"""Roll-outs: vector environments in every reset mode give what single environments give."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from o2td import sources
from o2td.errors import InputError


def tilted(x):
    """Push the cart towards the side it leans to, mostly."""
    right = np.where(x[:, 2] > 0, 0.8, 0.3)
    return np.stack([1 - right, right], axis=1)


def even(x):
    return np.full((len(x), 2), 0.5)


def _vector(count, mode, **options):
    return gym.make_vec(
        "CartPole-v1",
        num_envs=count,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **options,
    )


def _by_episode(data):
    """The rows of each episode, in an order that does not depend on who finished first."""
    found = {}
    for e in range(data["episode"][-1] + 1):
        rows = data["episode"] == e
        found[data["observation"][rows][0].tobytes()] = {
            name: value[rows] for name, value in data.items() if value is not None
        }
    return found


def _by_hand(seed, episodes, limit):
    """The same roll-out written down as anybody would write it."""
    env = gym.make("CartPole-v1", max_episode_steps=limit)
    rng = np.random.default_rng([seed, 1])
    rows = []
    for e in range(episodes):
        x, _ = env.reset(seed=seed) if e == 0 else env.reset()
        over = False
        while not over:
            chance = tilted(np.array([x], dtype=np.float64))[0]
            action = int(rng.random() >= chance[0])
            after, reward, terminated, truncated, _ = env.step(action)
            rows.append((e, x, action, reward, terminated, truncated, after, chance[action]))
            x, over = after, terminated or truncated
    return rows


@pytest.mark.parametrize("limit", [12, 500])
def test_single_environment_equals_a_loop_by_hand(joined, limit):
    env = gym.make("CartPole-v1", max_episode_steps=limit)
    source = sources.rollouts(env, tilted, discount=0.9, episodes=6, seed=5, target=even)
    got = joined(source, 17)
    rows = _by_hand(5, 6, limit)
    assert len(rows) == len(got["reward"])
    assert (limit == 12) == bool(got["truncated"].any())
    for t, (e, x, action, reward, terminated, truncated, after, chance) in enumerate(rows):
        assert (got["episode"][t], got["action"][t], got["reward"][t]) == (e, action, reward)
        assert (got["terminated"][t], got["truncated"][t]) == (terminated, truncated)
        assert got["discount"][t] == (0.0 if terminated else 0.9)
        assert got["rho"][t] == 0.5 / chance
        np.testing.assert_array_equal(got["observation"][t], x)
        np.testing.assert_array_equal(got["next_observation"][t], x if terminated else after)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("limit", [12, 500])
def test_vector_environments_equal_single_ones(joined, mode, limit):
    vector = _vector(3, mode, max_episode_steps=limit)
    source = sources.rollouts(vector, tilted, discount=0.9, episodes=11, seed=7, target=even)
    got = _by_episode(joined(source, 50))
    assert len(got) == 11
    want = {}
    for i, count in enumerate([4, 4, 3]):
        env = gym.make("CartPole-v1", max_episode_steps=limit)
        one = sources.rollouts(env, tilted, discount=0.9, episodes=count, seed=7 + i, target=even)
        want |= _by_episode(joined(one))
    assert got.keys() == want.keys()
    for first, rows in want.items():
        for name, value in rows.items():
            if name not in ("episode", "key"):
                np.testing.assert_array_equal(got[first][name], value, err_msg=name)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_steps_are_shared_and_cut_episodes_are_truncated(joined, mode):
    source = sources.rollouts(_vector(4, mode), tilted, discount=0.9, steps=102, seed=1)
    got = joined(source)
    assert len(got["reward"]) == 102
    assert source.info.dropped == {}
    ends = np.append(got["start"][1:], True)
    np.testing.assert_array_equal(ends, got["terminated"] | got["truncated"])
    go_on = ~ends
    np.testing.assert_array_equal(
        got["next_observation"][go_on], got["observation"][1:][go_on[:-1]]
    )


def test_each_pass_plays_the_same(joined, same):
    source = sources.rollouts("CartPole-v1", tilted, discount=0.9, episodes=4, seed=2)
    same(joined(source), joined(source, 9))
    assert (joined(source)["rho"] == 1.0).all()


def test_states_and_their_policies(joined):
    behavior = np.full((16, 4), 0.25)
    target = np.tile([0.1, 0.4, 0.4, 0.1], (16, 1))
    source = sources.rollouts(
        "FrozenLake-v1", behavior, discount=0.95, episodes=30, seed=0, target=target
    )
    got = joined(source, 13)
    assert got["observation"] is None
    assert set(got["state"]) <= set(range(16))
    assert (got["next_state"][got["terminated"]] == -1).all()
    np.testing.assert_array_equal(got["rho"], target[0][got["action"]] / 0.25)


def test_continuous_actions_by_densities(joined):
    def normal(scale):
        def density(x, action):
            z = (action[:, 0] + x[:, 2]) / scale
            return -0.5 * z**2 - np.log(scale * np.sqrt(2 * np.pi))

        return density

    def behavior(x, rng):
        action = rng.normal(-x[:, 2], 0.5)[:, None]
        return action, normal(0.5)(x, action)

    source = sources.rollouts("Pendulum-v1", behavior, discount=0.9, episodes=1, target=normal(0.4))
    got = joined(source)
    assert got["action"].shape == (200, 1)
    want = normal(0.4)(got["observation"], got["action"]) - normal(0.5)(
        got["observation"], got["action"]
    )
    np.testing.assert_allclose(got["rho"], np.exp(want))


def test_logs_written_are_logs_read(joined, same, tmp_path):
    source = sources.rollouts(
        _vector(3, AutoresetMode.SAME_STEP), tilted, discount=0.9, episodes=9, target=even
    )
    file = sources.write_logs(source, tmp_path / "log.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]
    back = sources.open_logs(file, discount=0.9)
    same(joined(source), joined(back, 31), but=("key",))
    assert back.info.verified
    lake = sources.rollouts("FrozenLake-v1", np.full((16, 4), 0.25), discount=0.9, steps=100)
    file = sources.write_logs(lake.chunks(7), tmp_path / "lake.parquet")
    same(joined(lake), joined(sources.open_logs(file, discount=0.9)), but=("key",))


def test_writing_that_fails_leaves_nothing(frame, tmp_path):
    log = frame()
    log.loc[20, "obs_0"] = np.nan
    with pytest.raises(InputError):
        sources.write_logs(sources.open_logs(log, discount=0.9).chunks(4), tmp_path / "log.parquet")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match=r"written as parquet; name it log\.parquet"):
        sources.write_logs([], tmp_path / "log.csv")


def careful(x):
    """Blackjack: draw another card below 17, mostly."""
    draw = np.where(x[:, 0] < 17, 0.9, 0.1)
    return np.stack([1 - draw, draw], axis=1)


def test_tuple_observations_are_columns_side_by_side(joined):
    got = joined(sources.rollouts("Blackjack-v1", careful, discount=1.0, episodes=20, seed=3))
    env, rng = gym.make("Blackjack-v1"), np.random.default_rng([3, 1])
    t = 0
    for e in range(20):
        x, _ = env.reset(seed=3) if e == 0 else env.reset()
        over = False
        while not over:
            np.testing.assert_array_equal(got["observation"][t], np.array(x, dtype=np.float64))
            chance = careful(np.array([x], dtype=np.float64))[0]
            x, reward, over, _, _ = env.step(int(rng.random() >= chance[0]))
            assert (got["reward"][t], got["terminated"][t]) == (reward, over)
            t += 1
    assert len(got["reward"]) == t


def test_tuple_observations_of_vector_environments(joined):
    vector = gym.make_vec("Blackjack-v1", num_envs=2, vectorization_mode="sync")
    got = joined(sources.rollouts(vector, careful, discount=1.0, episodes=8, seed=4))
    want = [
        joined(sources.rollouts("Blackjack-v1", careful, discount=1.0, episodes=4, seed=seed))
        for seed in (4, 5)
    ]

    def rows(*logs):
        listed = [np.column_stack([log["observation"], log["reward"]]) for log in logs]
        return sorted(map(tuple, np.concatenate(listed).tolist()))

    assert rows(got) == rows(*want)


class Named(gym.Env):
    """Observations by name, one of them in a tuple."""

    observation_space = gym.spaces.Dict(
        {
            "speed": gym.spaces.Box(-1.0, 1.0, (2,)),
            "gear": gym.spaces.Tuple([gym.spaces.Discrete(5, start=1)]),
        }
    )
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._seen(1), {}

    def step(self, action):
        return self._seen(4), 1.0, True, False, {}

    def _seen(self, gear):
        return {"speed": np.array([0.25, -0.5], dtype=np.float32), "gear": (gear,)}


def test_dict_observations_are_columns_in_the_order_of_the_space(joined):
    got = joined(sources.rollouts(Named(), even, discount=0.9, episodes=2))
    order = list(Named.observation_space.spaces)
    one = {"speed": [0.25, -0.5], "gear": [1.0]}
    want = np.concatenate([one[name] for name in order])
    np.testing.assert_array_equal(got["observation"], np.tile(want, (2, 1)))


def test_environments_that_cannot_be():
    worded = Named()
    worded.observation_space = gym.spaces.Tuple([gym.spaces.Text(5)])
    with pytest.raises(InputError, match="observations are Text; wrap the environment"):
        sources.rollouts(worded, even, discount=0.9, episodes=1)
    with pytest.raises(InputError, match="episodes or steps"):
        sources.rollouts("CartPole-v1", even, discount=0.9)
    three = lambda x: np.full((len(x), 3), 1 / 3)  # noqa: E731
    with pytest.raises(InputError, match="policy: 3 probabilities, the environment has 2 actions"):
        sources.rollouts("CartPole-v1", three, discount=0.9, episodes=1).scan()


class Edge:
    """A generator that draws the largest number below one."""

    def random(self):
        return 1.0 - 2.0**-53


@pytest.mark.parametrize(
    ("chance", "action"),
    [
        ([0.5, 0.5, 0.0, 0.0], 1),
        ([0.25] * 4, 3),
        ([0.1, 0.2, 0.7, 0.0], 2),
        ([1.0, 0.0, 0.0, 0.0], 0),
    ],
)
def test_the_largest_draw_is_the_last_action_that_may_be_taken(chance, action):
    policy = np.tile(chance, (16, 1))
    source = sources.rollouts("FrozenLake-v1", policy, discount=0.9, steps=5, target=policy)
    form = source._parts[0].format
    found, (given,) = form._act(np.array([3]), [True], [Edge()])
    assert (found.tolist(), given.tolist()) == ([action], [chance[action]])
    found, _ = form._act(np.array([3]), [False], [Edge()])
    assert found.tolist() == [0]  # an episode that has ended acts 0


@pytest.mark.parametrize(("amount", "seed"), [({"episodes": 1}, 2**31 - 1), ({"steps": 1}, 0)])
def test_one_episode_or_one_step_is_enough(amount, seed):
    source = sources.rollouts("CartPole-v1", tilted, discount=0.9, seed=seed, **amount)
    (batch,) = source.batches(lambda rows: np.asarray(rows))
    assert batch.start.sum() == 1
    assert ("steps" not in amount) or batch.n == 1
