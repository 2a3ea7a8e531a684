"""What the rows of a log mean: ends, cuts, final observations, episodes, ratios, names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td import sources
from o2td.errors import InputError

_BARE = [1.0, 1.0, 1.0, None]


def _rows(**columns):
    base = {"episode": 0, "obs_0": np.arange(4.0), "reward": np.arange(10.0, 14.0), "rho": 1.0}
    return pd.DataFrame({**base, "terminated": False, "truncated": False, **columns})


def _last(true=True):
    return np.array([False, False, False, true])


def test_a_truncated_row_keeps_gamma_and_its_own_final_observation(joined):
    log = _rows(truncated=_last(), next_obs_0=[1.0, 2.0, 3.0, 99.0])
    got = joined(sources.open_logs(log, discount=0.9))
    assert got["discount"].tolist() == [0.9] * 4
    assert got["next_observation"][:, 0].tolist() == [1.0, 2.0, 3.0, 99.0]


@pytest.mark.parametrize("flag", [True, False])
def test_without_final_observation_the_row_is_dropped_and_counted(joined, flag):
    source = sources.open_logs(_rows(truncated=_last(flag)), discount=0.9)
    got = joined(source)
    assert got["reward"].tolist() == [10.0, 11.0, 12.0]
    assert got["next_observation"][:, 0].tolist() == [1.0, 2.0, 3.0]
    assert source.info.dropped == {"no final observation": 1}
    assert (source.info.rows, source.info.transitions) == (4, 3)


def test_a_terminated_row_needs_no_successor(joined):
    got = joined(sources.open_logs(_rows(terminated=_last()), discount=0.9))
    assert got["discount"].tolist() == [0.9, 0.9, 0.9, 0.0]
    assert len(got["reward"]) == 4


def test_next_observations_that_are_missing_come_from_the_row_after(joined):
    log = _rows(truncated=_last(), next_obs_0=[np.nan, 2.5, np.nan, 4.5])
    got = joined(sources.open_logs(log, discount=0.9))
    assert got["next_observation"][:, 0].tolist() == [1.0, 2.5, 3.0, 4.5]
    source = sources.open_logs(log.assign(next_obs_0=[1.0, 2.0, 3.0, None]), discount=0.9)
    assert joined(source)["reward"].tolist() == [10.0, 11.0, 12.0]
    assert source.info.dropped == {"no final observation": 1}


@pytest.mark.parametrize("at", [2, 3])
@pytest.mark.parametrize("flag", ["terminated", "truncated", None])
def test_a_last_row_without_reward_only_gives_the_final_observation(joined, flag, at):
    log = _rows(reward=[10.0, 11.0, 12.0, None], action=[0.0, 1.0, 0.0, None], rho=_BARE)
    if flag:
        log.loc[at, flag] = True
    for rows in (1, 2, 3, 100):
        source = sources.open_logs(log, discount=0.9)
        got = joined(source, rows)
        assert got["reward"].tolist() == [10.0, 11.0, 12.0]
        last = 0.0 if flag == "terminated" else 0.9
        assert got["discount"].tolist() == [0.9, 0.9, last]
        assert flag == "terminated" or got["next_observation"][2, 0] == 3.0
        assert source.info.dropped == {}
        for name in ("terminated", "truncated"):
            assert got[name].tolist() == [False, False, flag == name]


@pytest.mark.parametrize("at", [4, 5])
def test_flags_on_a_final_observation_end_the_episode_where_nothing_names_it(joined, at):
    both = [10.0, 11.0, 12.0, 13.0, 14.0, np.nan, 16.0, 17.0]
    log = pd.DataFrame({"obs_0": np.arange(8.0), "reward": both, "is_terminal": False})
    log = log.assign(rho=np.where(np.isnan(both), np.nan, 1.0), is_last=False)
    log.loc[[1, 7], "is_last"] = True
    log.loc[at, ["is_terminal", "is_last"]] = True
    for rows in (1, 2, 3, 100):
        got = joined(sources.open_logs(log, discount=0.9), rows)
        assert got["episode"].tolist() == [0, 1, 1, 1, 2]
        assert got["reward"].tolist() == [10.0, 12.0, 13.0, 14.0, 16.0]
        assert got["discount"].tolist() == [0.9, 0.9, 0.9, 0.0, 0.9]


def test_a_final_observation_of_no_episode_is_counted(joined):
    log = _rows(episode=[0, 1, 1, 2], reward=[None, 11.0, 12.0, None], terminated=[1, 0, 1, 1])
    for rows in (1, 2, 100):
        source = sources.open_logs(log.drop(columns="rho"), discount=0.9, target="behavior")
        assert joined(source, rows)["reward"].tolist() == [11.0, 12.0]
        assert source.info.dropped == {"final observation without a step before it": 2}


@pytest.mark.parametrize("name", ["rho", "target_prob", "behavior_logprob"])
def test_a_row_with_a_ratio_or_probability_is_a_step_that_lacks_its_reward(name):
    log = _rows(reward=[10.0, 11.0, 12.0, None], terminated=_last()).drop(columns="rho")
    log[name] = 0.0
    with pytest.raises(InputError, match=f"column reward, row 4 .* is missing and {name} is not"):
        sources.open_logs(log, discount=0.9, target="behavior").scan()


def test_rewards_may_lack_nowhere_else():
    log = _rows(reward=[10.0, None, 12.0, 13.0], rho=[1.0, None, 1.0, 1.0])
    for rows in (1, 2, 100):
        with pytest.raises(InputError, match=r"column reward, row 2 .* only an episode's last row"):
            list(sources.open_logs(log, discount=0.9).chunks(rows))


def test_terminated_and_truncated_at_once_terminates_and_is_counted(joined):
    source = sources.open_logs(_rows(terminated=_last(), truncated=_last()), discount=0.9)
    assert joined(source)["discount"][-1] == 0.0
    assert source.info.notes == {"terminated and truncated at once, read as terminated": 1}


def test_done_is_read_with_and_without_time_limits(joined):
    log = _rows(done=_last()).drop(columns=["terminated", "truncated"])
    source = sources.open_logs(log, discount=0.9)
    assert joined(source)["terminated"].tolist() == _last().tolist()
    assert "done is read as terminated" in str(source.info)
    log = log.assign(timeout=_last(), next_obs_0=[1.0, 2.0, 3.0, 4.0])
    got = joined(sources.open_logs(log, discount=0.9))
    assert not got["terminated"].any()
    assert got["truncated"].tolist() == _last().tolist()


def test_done_beside_terminated_cuts_episodes(joined):
    done = [False, True, False, True]
    log = _rows(terminated=[False, False, False, True], done=done, next_obs_0=[1.0, 9.0, 3.0, 9.0])
    for rows in (1, 3, 100):
        source = sources.open_logs(log.drop(columns=["episode", "truncated"]), discount=0.9)
        got = joined(source, rows)
        assert got["episode"].tolist() == [0, 0, 1, 1]
        assert got["truncated"].tolist() == [False, True, False, False]
        assert got["discount"].tolist() == [0.9, 0.9, 0.9, 0.0]
        assert "column done is read as truncated where terminated is false" in str(source.info)
    never = log.drop(columns=["episode", "truncated", "terminated"])
    got = joined(sources.open_logs(never, {"terminated": False}, 0.9))
    assert (got["truncated"].tolist(), got["terminated"].any()) == (done, False)


def test_episodes_from_marks_and_from_flags(joined):
    log = _rows(terminated=[False, True, False, True]).drop(columns="episode")
    for rows in (1, 2, 3, 100):
        assert joined(sources.open_logs(log, discount=0.9), rows)["episode"].tolist() == [
            0,
            0,
            1,
            1,
        ]
    marked = log.drop(columns="truncated").assign(is_first=[True, False, True, False])
    for rows in (1, 2, 3, 100):
        got = joined(sources.open_logs(marked, discount=0.9), rows)
        assert got["start"].tolist() == [True, False, True, False]
    marked["is_first"] = [True, False, False, True]
    with pytest.raises(InputError, match="comes after the row that ended the episode"):
        sources.open_logs(marked, discount=0.9).scan()


def test_an_episode_of_one_dropped_row_leaves_no_gap_in_the_numbers(joined):
    log = _rows(episode=[0, 1, 2, 2], terminated=[True, False, False, True])
    for rows in (1, 2, 100):
        got = joined(sources.open_logs(log, discount=0.9), rows)
        assert got["episode"].tolist() == [0, 1, 1]
        assert got["start"].tolist() == [True, True, False]


@pytest.mark.parametrize("never", ["false", '"never"', '"False"'])
def test_continuing_logs_say_so_in_either_word(joined, tmp_path, never):
    log = _rows().drop(columns=["terminated", "truncated"])
    source = sources.open_logs(log, {"terminated": False}, 0.9)
    assert joined(source)["discount"].tolist() == [0.9] * 3
    (tmp_path / "columns.toml").write_text(f"terminated = {never}\n")
    again = sources.open_logs(log, tmp_path / "columns.toml", 0.9)
    assert again.mapped.never == source.mapped.never == ("terminated",)


def test_names_are_found_or_given(tmp_path):
    log = pd.DataFrame(
        {
            "Trajectory-ID": [0, 0],
            "T": [1, 2],
            "x.0": [0.0, 1.0],
            "x.1": [0.0, 1.0],
            "rew": [1.0, 1.0],
            "terminal": [0, 1],
            "propensity": [0.5, 0.5],
            "pi": [1.0, 0.0],
        }
    )
    found = sources.open_logs(log, discount=0.9).info.mapping
    assert found == {
        "episode": "Trajectory-ID",
        "step": "T",
        "observation": ("x.0", "x.1"),
        "reward": "rew",
        "terminated": "terminal",
        "behavior_prob": "propensity",
        "target_prob": "pi",
    }
    with pytest.raises(InputError, match="target_prob could be column eval_prob or pi; choose one"):
        sources.open_logs(log.assign(eval_prob=0.5), discount=0.9)
    file = tmp_path / "columns.toml"
    file.write_text('target_prob = "eval_prob"\nobservation = ["x.1"]\n')
    chosen = sources.open_logs(log.assign(eval_prob=0.5), file, 0.9)
    assert chosen.info.mapping["observation"] == ("x.1",)
    assert "ratio: column eval_prob / column propensity" in str(chosen.info)
    file.write_text('target = "eval_prob"\n')
    with pytest.raises(InputError, match=r"columns\.toml: Object contains unknown field `target`"):
        sources.open_logs(log, file, 0.9)


def test_every_synonym_of_every_role_is_its_own():
    names = [name for role in sources.SYNONYMS.values() for name in role]
    assert len(names) == len(set(names))


def test_a_column_of_discounts(joined):
    log = _rows(terminated=_last(), g=[1.0, 0.5, 0.0, 0.7])
    got = joined(sources.open_logs(log, {"discount": "g"}))
    assert got["discount"].tolist() == [1.0, 0.5, 0.0, 0.0]
    with pytest.raises(InputError, match=r"column g, row 2 .* a discount is in"):
        sources.open_logs(log.assign(g=1.5).assign(g=[1, 2, 0, 0]), {"discount": "g"}).scan()
    with pytest.raises(InputError, match=r"discount: 0.9 and column g both give it; leave out one"):
        sources.open_logs(log, {"discount": "g"}, 0.9)


def test_all_ways_to_the_ratio_agree(frame, joined):
    log = frame(final=False)
    n, action = len(log), log.action.to_numpy()
    first = 0.2 + 0.6 / (1 + np.exp(-log.obs_0.to_numpy()))
    target = np.stack([first, 1 - first], axis=1)
    taken = target[np.arange(n), action]
    behavior = log.behavior_prob.to_numpy()
    plain = log.drop(columns=["target_prob", "behavior_prob"])
    want = joined(sources.open_logs(plain.assign(rho=taken / behavior), discount=0.9))["rho"]

    def policy(x):
        p = 0.2 + 0.6 / (1 + np.exp(-x[:, 0]))
        return np.stack([p, 1 - p], axis=1)

    both = plain.assign(behavior_prob=behavior)
    logs = plain.assign(behavior_logprob=np.log(behavior))
    per_action = {"target_prob_0": target[:, 0], "target_prob_1": target[:, 1]}
    ways = [
        sources.open_logs(both.assign(target_prob=taken), discount=0.9),
        sources.open_logs(both.assign(target_logprob=np.log(taken)), discount=0.9),
        sources.open_logs(logs.assign(target_logprob=np.log(taken)), discount=0.9),
        sources.open_logs(logs.assign(target_prob=taken), discount=0.9),
        sources.open_logs(both.assign(**per_action), discount=0.9),
        sources.open_logs(both, discount=0.9, target=policy),
    ]
    for source in ways:
        for rows in (3, 1000):
            np.testing.assert_allclose(joined(source, rows)["rho"], want, rtol=1e-12)
    for source in ways[-2:]:
        got = joined(source, 3)
        want_next = policy(got["next_observation"]) * ~got["terminated"][:, None]
        np.testing.assert_allclose(got["next_target_probs"], want_next, rtol=1e-12)


def test_behaviour_and_target_both_zero_is_ratio_zero(joined):
    log = _rows(
        terminated=_last(), target_prob=[0.0, 0.5, 1.0, 1.0], behavior_prob=[0.0, 0.5, 1, 1]
    )
    source = sources.open_logs(log.drop(columns="rho"), discount=0.9)
    (chunk,) = source.chunks()
    assert chunk.rho.tolist() == [0.0, 1.0, 1.0, 1.0]
    assert sum(source.info.notes.values()) == 1
    assert source.transitions(lambda x: x, chunk).rho[0] == 0.0


def test_next_probabilities_that_nobody_knows_are_marked():
    log = _rows(truncated=_last(), next_obs_0=[1.0, 2, 3, 4], behavior_prob=0.5, action=0)
    log["target_prob_0"], log["target_prob_1"] = 0.25, 0.75
    source = sources.open_logs(log.drop(columns="rho"), discount=0.9)
    (chunk,) = source.chunks()
    assert np.isnan(chunk.next_target_probs).any(axis=1).tolist() == _last().tolist()
    assert source.info.notes == {"next_target_prob unknown in the last row of an episode": 1}


def test_a_policy_that_returns_nonsense_is_named():
    log = _rows(terminated=_last(), action=0, behavior_prob=0.5).drop(columns="rho")
    for policy, sentence in (
        (lambda x: np.full((len(x), 2), 0.4), "target: the policy returned .* sum to 1"),
        (lambda x: np.ones(len(x)), "target: the policy returned shape"),
        (lambda x: np.ma.masked_array(np.ones((len(x), 1)), mask=True), "target: .* masked array"),
        (np.ones((2, 1)), "target: an array of probabilities needs a log with states"),
        ("uniform", "target: 'uniform' is unknown"),
    ):
        with pytest.raises(InputError, match=sentence):
            sources.open_logs(log, discount=0.9, target=policy).scan()
