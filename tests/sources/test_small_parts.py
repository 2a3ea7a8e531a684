"""Small parts of sources that a changed line would have passed unnoticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from o2td import sources
from o2td.errors import FormatError, InputError


def log(**columns: Any) -> pl.DataFrame:
    plain = {"episode": [0, 0, 1, 1], "step": [0, 1, 0, 1], "state": [0, 1, 1, 0]}
    more = {"action": [0, 1, 0, 1], "reward": [1.0, 2.0, 3.0, 4.0], "rho": [1.0] * 4}
    ends = {"terminated": [False, True] * 2}
    found = {**plain, **more, **ends, **columns}
    return pl.DataFrame({name: column for name, column in found.items() if column is not None})


def test_an_action_that_neither_policy_takes_has_ratio_zero() -> None:
    logs = log(
        rho=None,
        target_logprob=[-np.inf, -0.5, -np.inf, 0.0],
        behavior_logprob=[-0.5, -0.5, -np.inf, -np.log(2.0)],
    )
    (chunk,) = sources.open_logs(logs, discount=0.9).chunks()
    np.testing.assert_allclose(chunk.rho, [0.0, 1.0, 0.0, 2.0])


def test_a_log_that_needs_sorting_is_not_divided(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    log()[[2, 0, 3, 1]].write_parquet(file)
    source = sources.open_logs(file, discount=0.9, sort=True)
    assert len(next(iter(source.chunks()))) == 4
    with pytest.raises(InputError, match="needs sorting is one part"):
        source.partitions(2)


def test_of_so_many_steps_only_the_last_is_cut_off() -> None:
    even = np.full((16, 4), 0.25)
    source = sources.rollouts("FrozenLake-v1", even, discount=0.9, steps=40, target=even)
    (chunk,) = source.chunks()
    assert len(chunk) == 40
    assert chunk.start.sum() < 20
    assert not (chunk.truncated[:-1] & ~chunk.terminated[:-1]).any()
    assert chunk.truncated[-1] or chunk.terminated[-1]


def test_a_file_named_twice_is_read_once_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    log().write_parquet(file)
    with pytest.raises(InputError, match=r"log\.parquet: named twice among the logs"):
        sources.open_logs([file, tmp_path], discount=0.9)


def test_a_bad_probability_is_named_by_its_own_column() -> None:
    logs = log(rho=None, p=[0.5] * 4, q=[0.5, 0.0, 0.5, 0.5])
    columns = {"target_prob": "p", "behavior_prob": "q"}
    with pytest.raises(InputError, match=r"column q, row 2 .* is 0 for the action taken"):
        sources.open_logs(logs, discount=0.9, columns=columns).scan()
    huge = log(rho=None, p=[1.0] * 4, q=[1.0, 1.0, 5e-324, 1.0])
    with pytest.raises(InputError, match=r"column q, row 3 .* a ratio that overflows"):
        sources.open_logs(huge, discount=0.9, columns=columns).scan()


@pytest.mark.parametrize(
    ("columns", "said", "not_said"),
    [
        ({"q": [0.5, -0.2, 0.5, 0.5]}, r"column q, row 2 .* is -0.2; .* in \[0, 1\]", "densities"),
        ({"q": [0.5, 0.5, 1.5, 0.5]}, r"column q, row 3 .* is 1.5; .* densities=True", "ratio is"),
    ],
)
def test_a_probability_above_one_may_be_a_density_one_below_zero_is_none(
    columns: dict[str, Any], said: str, not_said: str
) -> None:
    logs = log(rho=None, p=[0.5] * 4, **columns)
    with pytest.raises(InputError, match=said) as refused:
        sources.open_logs(
            logs, discount=0.9, columns={"target_prob": "p", "behavior_prob": "q"}
        ).scan()
    assert not_said not in str(refused.value)


def test_a_negative_ratio_has_no_remedy_of_probabilities() -> None:
    with pytest.raises(
        InputError, match=r"rho, row 4 .* is -1; a ratio is zero or more"
    ) as refused:
        sources.open_logs(log(rho=[1.0, 1.0, 1.0, -1.0]), discount=0.9).scan()
    assert "densities" not in str(refused.value)


def test_probabilities_of_all_actions_sum_to_one() -> None:
    both = {"behavior_prob_0": [0.5, 0.5, 0.7, 0.5], "behavior_prob_1": [0.5] * 4}
    logs = log(rho=None, **both, target_prob_0=[0.2] * 4, target_prob_1=[0.8] * 4)
    with pytest.raises(InputError, match=r"behavior_prob_0, row 3"):
        sources.open_logs(logs, discount=0.9).scan()


def test_a_policy_in_words_is_the_behaviour_or_nothing() -> None:
    with pytest.raises(InputError, match="target: 'better' is unknown"):
        sources.open_logs(log(), discount=0.9, target="better")
    with pytest.raises(InputError, match="behavior: 'uniform' is unknown"):
        sources.open_logs(log(), discount=0.9, target=np.full((2, 2), 0.5), behavior="uniform")


def test_times_go_on_over_the_ends_of_batches(tmp_path: Path) -> None:
    """Only the last time of a batch is compared with the first of the next."""
    times = [1, 5, 9, 10, 12, 20, 21, 30]
    logs = pl.DataFrame(
        {
            "episode": [0] * 8,
            "timestamp": times,
            "state": [0] * 8,
            "reward": [1.0] * 8,
            "rho": [1.0] * 8,
            "terminated": [False] * 7 + [True],
        }
    )
    file = tmp_path / "log.parquet"
    logs.write_parquet(file)
    assert sum(len(one) for one in sources.open_logs(file, discount=0.9).chunks(rows=3)) == 8
    times[3] = 8  # after the second time of the batch before, but not after its last
    logs.with_columns(pl.Series("timestamp", times)).write_parquet(file)
    with pytest.raises(InputError, match=r"timestamp, row 4 .* is 8, not after the row before"):
        list(sources.open_logs(file, discount=0.9).chunks(rows=3))


def test_so_many_starts_of_dropped_episodes_are_held_and_the_others_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("o2td.sources.stream._WAITING", 3)
    one = {"episode": list(range(9)), "step": [0] * 9, "state": [0] * 9, "reward": [1.0] * 9}
    cut = pl.DataFrame({**one, "rho": [1.0] * 9, "terminated": [False] * 8 + [True]})
    source = sources.open_logs(cut, discount=0.9)
    chunks = list(source.chunks(rows=4))
    held = sum(len(chunk.lone) for chunk in chunks if chunk.lone is not None)
    notes = source.info.notes
    assert notes["start states of such episodes, also left out"] == 8 - held
    assert held >= 3


def test_a_part_of_a_log_without_transitions_counts_the_starts_that_nothing_carries(
    tmp_path: Path,
) -> None:
    """The last file has only single rows that are cut; its first belongs to the part before."""
    plain = {"step": [0] * 40, "state": [0] * 40, "reward": [1.0] * 40, "rho": [1.0] * 40}
    ended = pl.DataFrame({"episode": list(range(40)), **plain, "terminated": [True] * 40})
    cut = ended.with_columns(pl.col("episode") + 40, terminated=False)
    ended.write_parquet(tmp_path / "1.parquet")
    cut.write_parquet(tmp_path / "2.parquet")
    left_out = "start states of such episodes, also left out"
    parts = sources.open_logs(tmp_path, discount=0.9).partitions(2)
    chunks = [list(part.chunks()) for part in parts]
    assert [sum(map(len, one)) for one in chunks] == [40, 0]
    assert sum(len(one.lone) for one in chunks[0] if one.lone is not None) == 1
    assert [part.info.notes.get(left_out, 0) for part in parts] == [0, 39]
    assert [part.info.dropped for part in parts] == [
        {"no final observation": 1},
        {"no final observation": 39},
    ]


@pytest.mark.parametrize("packed", [True, False])
def test_damage_of_an_array_that_is_stored_by_columns_is_noticed(
    tmp_path: Path, packed: bool
) -> None:
    """Its columns are read as streams of their own, none of which meets the checksum."""
    rng = np.random.default_rng(0)
    arrays = {"observations": np.asfortranarray(rng.normal(size=(60, 3))), "rewards": np.ones(60)}
    arrays |= {
        "actions": np.zeros(60, dtype=int),
        "terminals": np.arange(60) % 10 == 9,
        "timeouts": np.zeros(60, bool),
    }
    file = tmp_path / "log.npz"
    (np.savez_compressed if packed else np.savez)(file, **arrays)
    good = sources.open_logs(file, discount=0.9, target="behavior")
    (chunk,) = good.chunks()
    np.testing.assert_array_equal(chunk.observation, arrays["observations"][: len(chunk)])
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 3] ^= 16
    file.write_bytes(raw)
    with pytest.raises(FormatError, match="damaged"):
        list(sources.open_logs(file, discount=0.9, target="behavior").chunks())


def test_lists_up_to_a_thousand_numbers_become_columns() -> None:
    """Longer ones stay lists, which no role can use."""
    plain = {"episode": [0, 1], "reward": [1.0, 2.0], "terminated": [True] * 2, "rho": [1.0] * 2}
    for width in (999, 1000):
        frame = pl.DataFrame({**plain, "obs": [[0.5] * width] * 2})
        (chunk,) = sources.open_logs(frame, discount=0.9).chunks()
        assert chunk.observation.shape == (2, width)
    with pytest.raises(InputError, match="obs"):
        list(
            sources.open_logs(
                pl.DataFrame({**plain, "obs": [[0.5] * 1001] * 2}), discount=0.9
            ).chunks()
        )


def test_episodes_in_lists_are_marked_only_if_they_have_no_names() -> None:
    lists = {"obs": [[[0.0], [1.0]], [[2.0]]], "reward": [[1.0, 2.0], [3.0]]}
    lists |= {"rho": [[1.0, 1.0], [1.0]], "terminated": [[False, True], [True]]}
    for more in ({}, {"episode": ["a", "b"]}):
        source = sources.open_logs(pl.DataFrame({**lists, **more}), discount=0.9)
        (chunk,) = source.chunks()
        assert chunk.start.tolist() == [True, False, True]
        assert ("start" in source.mapped.roles) != bool(more)


def test_an_unknown_word_is_refused_with_the_first_known_ones() -> None:
    for count, said in ((8, "a, b, c, d, e, f, g, h;"), (9, "a, b, c, d, e, f, g, h, …;")):
        names = [*"abcdefghi"[:count]]
        logs = log(action=["a", "b", "z", "c"], rho=None, behavior_prob=[0.5] * 4)
        even = np.full((2, count), 1.0 / count)
        with pytest.raises(InputError, match=rf"action, row 3 .* is 'z', which is none of {said}"):
            sources.open_logs(logs, discount=0.9, target=even, actions=names).scan()


def test_as_many_probabilities_now_as_at_the_next_step() -> None:
    now = {f"target_prob_{k}": [0.5] * 4 for k in range(2)}
    then = {f"next_target_prob_{k}": [0.5] * 4 for k in range(3)}
    with pytest.raises(InputError, match="2 target probabilities now and 3 at the next step"):
        sources.open_logs(log(rho=None, behavior_prob=[0.5] * 4, **now, **then), discount=0.9)


def test_files_to_be_sorted_have_the_same_types(tmp_path: Path) -> None:
    log().write_parquet(tmp_path / "a.parquet")
    names = pl.Series("episode", ["x", "x", "y", "y"])
    log().with_columns(names).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet: .*episode.*a\.parquet"):
        sources.open_logs(tmp_path, discount=0.9, sort=True).scan()


def test_the_name_of_an_environment_is_its_id_or_its_class() -> None:
    import gymnasium

    from tests.sources.test_environments import even

    made = gymnasium.make("CartPole-v1")
    source = sources.rollouts(made, even, discount=0.9, steps=5, target=even)
    assert source._parts[0].label == "CartPole-v1"
    made.unwrapped.spec = None
    bare = sources.rollouts(made.unwrapped, even, discount=0.9, steps=5, target=even)
    assert bare._parts[0].label == "CartPoleEnv"


def test_an_episode_without_its_list_of_steps_is_left_out() -> None:
    step = {"obs": 0.0, "reward": 1.0, "rho": 1.0, "terminated": False}
    last = {**step, "reward": 5.0, "terminated": True}
    frame = pl.DataFrame({"episode": [0, 1, 2], "steps": [[step, last], None, [last]]})
    source = sources.open_logs(frame, discount=0.9)
    (chunk,) = source.chunks()
    assert chunk.reward.tolist() == [1.0, 5.0, 5.0]
    assert chunk.start.tolist() == [True, False, True]


def test_what_was_read_is_told_with_what_was_dropped_and_how_episodes_end() -> None:
    marks = {"terminated": [False, True, False, False], "truncated": [False, False, False, True]}
    source = sources.open_logs(log(episode=None, step=None, **marks), discount=0.9)
    source.scan()
    said = str(source.info).splitlines()
    assert "episodes end where terminated or truncated is true" in said
    assert "no column for step: rows are taken to be in order, without gaps" in said
    named = sources.open_logs(log(terminated=[False] * 4), discount=0.9)
    named.scan()
    assert any(line.startswith("dropped, ") for line in str(named.info).splitlines())
    assert "episodes end where terminated or truncated is true" not in str(named.info)


def test_arrays_in_memory_need_no_checksums() -> None:
    arrays = {name: np.asarray(column) for name, column in log().to_dict(as_series=False).items()}
    source = sources.open_logs(arrays, discount=0.9)
    source.scan()
    assert source.info.verified


@pytest.mark.parametrize("single", [True, False])
def test_a_final_row_needs_no_action_and_none_is_made_up(single: bool) -> None:
    """A row with an observation and nothing else ends an episode that was cut."""
    none = None if single else [0.1, 0.2, None, 0.4, 0.5]
    logs = pl.DataFrame(
        {
            "episode": [0, 0, 0, 1, 1], "obs_0": [1.0, 2.0, 3.0, 4.0, 5.0],
            "action_0": [2.0, 0.0, None, 1.0, 2.0], "action_1": none,
            "reward": [1.0, 2.0, None, 3.0, 4.0], "rho": [1.0, 1.0, None, 1.0, 1.0],
            "terminated": [False, False, False, False, True],
        }
    )  # fmt: skip
    if single:
        logs = logs.drop("action_1").rename({"action_0": "action"})
    (chunk,) = sources.open_logs(logs, discount=0.9).chunks()
    assert chunk.reward.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert chunk.next_observation is not None
    assert chunk.next_observation[:3, 0].tolist() == [2.0, 3.0, 5.0]
    assert chunk.start.tolist() == [True, False, True, False]
    actions = [2, 0, 1, 2] if single else [[2.0, 0.1], [0.0, 0.2], [1.0, 0.4], [2.0, 0.5]]
    assert chunk.action is not None
    assert chunk.action.tolist() == actions


def test_actions_of_environments_are_numbers_or_boxes() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1")
    env.action_space = gymnasium.spaces.MultiBinary(3)
    with pytest.raises(InputError, match=r"actions are MultiBinary\(3\); only Discrete and Box"):
        sources.rollouts(env, lambda x: x, discount=0.9, steps=5).scan()


@pytest.mark.parametrize(("first", "fine"), [(0, True), (1, True), (2, False), (5, False)])
def test_steps_count_from_nothing_or_one(first: int, fine: bool) -> None:
    logs = log(step=[first, first + 1] * 2)
    source = sources.open_logs(logs, discount=0.9)
    if fine:
        assert sum(len(chunk) for chunk in source.chunks()) == 4
        return
    with pytest.raises(InputError, match=rf"column step, row 1 .* is {first}"):
        source.scan()


@pytest.mark.parametrize(("wrong", "names"), [(4, False), (5, True), (6, True)])
def test_texts_of_which_half_are_no_numbers_are_names(
    wrong: int, names: bool, tmp_path: Path
) -> None:
    state = [f"s{k}" if k < wrong else str(k) for k in range(10)]
    logs = pl.DataFrame({"episode": range(10), "state": state, "reward": 1.0, "rho": 1.0})
    file = tmp_path / "log.csv"
    logs.with_columns(terminated=True).write_csv(file)
    source = sources.open_logs(file, discount=0.9) if names else None
    if source is not None:
        assert sum(len(chunk) for chunk in source.chunks()) == 10
        return
    with pytest.raises(InputError, match=r"column state, row 1 .* is 's0'; write a number"):
        sources.open_logs(file, discount=0.9).scan()


def test_a_table_of_probabilities_has_a_row_for_every_state() -> None:
    logs = log(rho=None, behavior_prob=[0.5] * 4, state=[0, 1, 2, 0])
    table = np.full((3, 2), 0.5)
    (chunk,) = sources.open_logs(logs, discount=0.9, target=table).chunks()
    np.testing.assert_allclose(chunk.rho, 1.0)
    with pytest.raises(InputError, match="target: state 2 is in the log, the array has 2 rows"):
        sources.open_logs(logs, discount=0.9, target=table[:2]).scan()


def test_the_row_that_the_behaviour_could_not_take_is_named_and_not_one_before_it() -> None:
    """Where neither policy takes the action the ratio is 0, which is no mistake."""
    logs = log(rho=None, target_prob=[0.0, 0.5, 0.5, 0.5], behavior_prob=[0.0, 0.5, 0.0, 0.5])
    with pytest.raises(InputError, match=r"column behavior_prob, row 3 .* is 0 for the action"):
        sources.open_logs(logs, discount=0.9).scan()


def test_nothing_follows_a_decision_so_its_discount_is_nothing() -> None:
    decisions = pl.DataFrame({"state": [0, 1], "action": [0, 1], "reward": [1.0, 2.0]})
    source = sources.open_logs(decisions.with_columns(rho=1.0))
    (chunk,) = source.chunks()
    assert source.discount == 0.0
    assert chunk.terminated.all()
    assert chunk.discount.tolist() == [0.0, 0.0]
