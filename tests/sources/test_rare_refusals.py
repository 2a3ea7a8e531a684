"""Refusals that few meet, each by the words that name what is wrong and what to do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from o2td import sources
from o2td.errors import FormatError, InputError
from tests.sources.small_logs import log_of, opened, refused

# -- models of the behaviour ---------------------------------------------------------------------------


def fitted(**columns):
    log = log_of(60, **columns).drop(columns="behavior_prob")
    if "obs_0" in columns:
        log = log.drop(columns="state")
    source = opened(log)
    return sources.fit_behavior_model(source, folds=2)


@pytest.mark.parametrize("key", [np.zeros(3), np.zeros((3, 1), np.uint64), np.arange(3)])
def test_keys_that_are_no_hashes(key):
    with pytest.raises(InputError, match="key must be the hashes"):
        fitted().fold_of(key)


@pytest.mark.parametrize("inputs", [[0.5], [[0]], [-1]])
def test_states_of_another_kind(inputs):
    model = fitted()
    with pytest.raises(InputError, match="inputs must list the state of each row, from 0"):
        model.probabilities(np.array(inputs), model.keys[:1])
    assert model.probabilities(np.array([0]), model.keys[:1]).shape == (1, 2)


@pytest.mark.parametrize("shape", [(2,), (2, 1), (2, 3)])
def test_observations_of_another_width(shape):
    rng = np.random.default_rng(0)
    model = fitted(obs_0=rng.normal(size=60), obs_1=rng.normal(size=60))
    with pytest.raises(InputError, match="inputs must have 2 observation variables in each row"):
        model.probabilities(np.zeros(shape), model.keys[:2])
    assert model.probabilities(np.zeros((2, 2)), model.keys[:2]).shape == (2, 2)


def test_keys_or_actions_of_fewer_rows():
    model = fitted()
    with pytest.raises(InputError, match="key has 1 rows, inputs has 2; pass the same rows"):
        model.probabilities(np.zeros(2, np.int64), model.keys[:1])
    with pytest.raises(InputError, match="action has 1 rows, inputs has 2; pass the same rows"):
        model.taken(np.zeros(2, np.int64), np.zeros(1, np.int64), model.keys[:2])


def test_a_behaviour_is_estimated_from_logs_with_few_whole_actions():
    with pytest.raises(InputError, match="source must be one that open_logs gives"):
        sources.fit_behavior_model(log_of())
    many = log_of(action=np.arange(12) * 1000)
    with pytest.raises(
        InputError, match="numbered up to 11000; the behaviour can be estimated for"
    ):
        sources.fit_behavior_model(opened(many))
    odd = log_of(action=0.5).assign(action_1=0.25).rename(columns={"action": "action_0"})
    with pytest.raises(InputError, match="a behaviour model needs one column of whole actions"):
        sources.fit_behavior_model(
            opened(odd.drop(columns=["behavior_prob", "target_prob"]).assign(rho=1.0))
        )
    negative = log_of(action=-np.arange(12) % 2 * -1)
    negative = negative.drop(columns=["behavior_prob", "target_prob"]).assign(rho=1.0)
    with pytest.raises(InputError, match="action: -1 is negative; number the actions from 0"):
        sources.fit_behavior_model(opened(negative))


# -- columns and cells ---------------------------------------------------------------------------------


def test_a_time_or_a_state_that_is_missing_or_negative():
    log = log_of(time=np.arange(12.0)).drop(columns="step")
    assert opened(log).scan().transitions == 12
    refused("column time, row 6 .* is missing", log.assign(time=[*range(5), None, *range(6, 12)]))
    state = np.arange(12) % 3
    state[7] = -2
    refused("column state, row 8 .* is -2; number the states from 0", log_of(state=state))


def test_frames_of_pandas_that_are_no_tables():
    refused("its column names are not all strings; rename", log_of().rename(columns={"step": 3}))
    mixed = log_of().astype({"reward": object})
    mixed.loc[[0, 4], "reward"] = None, "x"
    refused("column reward mixes types, row 5 is 'x' among float", mixed)
    late = log_of(3000, user=None)
    late.loc[2500:, "user"] = "anna"
    refused(
        "column user, row 2501 is 'anna' .*, and no text before", late, columns={"user": "user"}
    )

    class Odd:
        def __repr__(self):
            return "odd " * 100

    strange = log_of().astype({"reward": object})
    strange["reward"] = [Odd()] * 12
    with pytest.raises(InputError, match=r"cannot be read as a table|holds null") as caught:
        opened(strange).scan()
    assert len(str(caught.value)) < 300


def test_columns_named_in_ways_that_mean_nothing():
    refused("columns: terminated is True; name a column", log_of(), columns={"terminated": True})
    refused("columns: action is an empty list; name at least one", log_of(), columns={"action": []})
    single = log_of().assign(reward=[[1.0]] * 12)
    assert opened(single, columns={"reward": "reward"}).scan().transitions == 12
    assert opened(single).scan().transitions == 12


def test_a_log_that_cannot_be_sorted():
    log = log_of().drop(columns=["episode", "step"])
    refused("no column for episode, so the rows cannot be sorted; add it", log, sort=True)


def test_files_whose_types_differ_cannot_be_sorted_together(tmp_path):
    log_of().to_parquet(tmp_path / "a.parquet")
    log_of(episode=[f"e{k // 3}" for k in range(12)]).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match="same types"):
        opened(tmp_path, sort=True).scan()


# -- policies ------------------------------------------------------------------------------------------


def test_columns_that_contradict_each_other_are_counted():
    """target_prob beside the probabilities of all actions: three of twelve rows differ."""
    log = log_of(target_prob_0=0.75, target_prob_1=0.25)
    log["target_prob"] = np.where(log["action"] == 0, 0.75, 0.25)
    assert opened(log).scan().notes == {}
    log.loc[[1, 5, 6], "target_prob"] += 0.1
    notes = opened(log).scan().notes
    assert list(notes.values()) == [3]
    assert "target" in next(iter(notes))


# -- values of one's own -------------------------------------------------------------------------------


def test_values_by_state_need_states():
    log = log_of(obs_0=0.5).drop(columns="state")
    refused("an array by state needs a log with states", log, value_model=np.zeros(3))


def test_one_column_of_values_is_a_vector():
    flat = opened(log_of(), value_model=lambda s: 2.0 + s)
    tall = opened(log_of(), value_model=lambda s: (2.0 + s)[:, None])
    (one,), (two,) = flat.chunks(), tall.chunks()
    np.testing.assert_array_equal(one.value, 2.0 + np.arange(12) % 3)
    np.testing.assert_array_equal(two.value, one.value)
    np.testing.assert_array_equal(two.next_value, one.next_value)


def test_what_a_function_of_values_refuses_is_said_as_it_is():
    def picky(_):
        raise InputError("these states are not mine")

    with pytest.raises(InputError, match=r"^these states are not mine$"):
        opened(log_of(), value_model=picky).scan()


def test_values_of_actions_that_a_cut_leaves_unknown():
    log = log_of(11, q_0=1.0, q_1=2.0, target_prob_0=0.5, target_prob_1=0.5)
    log["truncated"] = np.arange(11) == 10
    log["next_state"] = 0
    with pytest.raises(InputError, match=r"column q_0, row 11 .* name a column of the value that"):
        list(opened(log, columns={"q": ["q_0", "q_1"]}).chunks())


# -- rows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [[12], "a", np.zeros((2, 2, 2)), [0.5], np.ones(3, bool)])
def test_rows_that_are_not_there(which):
    (rows,) = opened(log_of()).chunks()
    with pytest.raises(InputError, match="which must be a slice, a mask or row numbers below 12"):
        rows.take(which)
    assert rows.take([1, 3]).state.tolist() == [1, 0]


def test_features_that_do_not_fit_the_log():
    log = log_of(obs_0=0.5).drop(columns="state")
    (rows,) = opened(log).chunks()
    with pytest.raises(InputError, match="a table of features needs a log with states"):
        opened(log).transitions(np.eye(3), rows)
    with pytest.raises(InputError, match=r"features must give an \(n, d\) array, got"):
        opened(log).transitions(lambda x: x.tolist(), rows)


def test_chunks_have_rows():
    with pytest.raises(InputError, match="rows"):
        next(opened(log_of()).chunks(0))


# -- files ---------------------------------------------------------------------------------------------


def test_a_file_that_vanishes_while_it_is_read(tmp_path):
    file = tmp_path / "log.parquet"
    log_of().to_parquet(file)
    source = opened(file)
    file.unlink()
    with pytest.raises((FormatError, InputError), match=r"log\.parquet"):
        source.scan()


# -- environments --------------------------------------------------------------------------------------


def test_environments_that_are_none():
    pytest.importorskip("gymnasium")
    with pytest.raises(InputError, match="env: Gymnasium cannot make 'NoSuch-v9'"):
        sources.rollouts("NoSuch-v9", lambda x: x, episodes=1, discount=0.9)
    with pytest.raises(InputError, match="env must be an environment of Gymnasium or its id"):
        sources.rollouts(3, lambda x: x, episodes=1, discount=0.9)


# -- what is said and allowed ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({}, {}, ["column done is read as terminated"]),
        ({"truncated": False}, {}, []),
        ({}, {"truncated": False}, []),
        ({}, {"terminated": False}, ["column done is read as truncated"]),
        ({"terminated": False}, {}, ["column done is read as truncated where terminated is false"]),
        ({"terminated": False, "truncated": False}, {}, []),
    ],
)
def test_how_done_is_read_is_said_where_it_is_a_guess(columns, options, said):
    log = log_of().drop(columns="terminated").assign(done=np.arange(12) % 3 == 2, **columns)
    source = opened(log, columns=options)
    source.scan()
    remarks = [one for one in source.info.remarks if "done" in one]
    assert len(remarks) == len(said)
    for one, part in zip(remarks, said, strict=True):
        assert part in one


def test_rounding_is_allowed_in_probabilities_and_not_in_ratios():
    ratios = log_of().drop(columns=["behavior_prob", "target_prob"])
    rho = np.ones(12)
    rho[4] = -1e-12
    refused("column rho, row 5 .* a ratio is zero or more", ratios.assign(rho=rho))
    (rows,) = opened(log_of(target_prob=1.0 + 1e-9)).chunks()
    assert (rows.target_prob == 1.0).all()
    assert (rows.rho == 2.0).all()
    refused("column target_prob, row 1 .* a probability is in", log_of(target_prob=1.001))
    refused("column target_prob, row 1 .* a probability is in", log_of(target_prob=-0.001))


def test_successors_of_rows_that_do_not_follow_each_other():
    """Features of successors, where some are the row below and others are given or the row itself."""
    t = np.arange(12)
    log = log_of(obs_0=t * 1.0, obs_1=-t * 2.0, next_obs_0=t + 0.5, next_obs_1=-t - 0.5)
    source = opened(log.drop(columns="state"))
    (rows,) = source.chunks()
    batch = source.transitions(lambda x: np.column_stack([x, x[:, 0] ** 2]), rows)
    x = np.column_stack([t, -2.0 * t, t**2])
    after = np.column_stack([t + 0.5, -t - 0.5, (t + 0.5) ** 2])
    ends = t % 3 == 2
    np.testing.assert_allclose(batch.phi, x)
    np.testing.assert_allclose(batch.next_phi[~ends], after[~ends])
    np.testing.assert_allclose(batch.discount, np.where(ends, 0.0, 0.9))


def test_a_row_is_named_by_its_place_in_its_file_in_a_part_of_a_log_too(tmp_path):
    """The second part begins inside the second file, after the end of an episode of the first."""
    log = log_of(30)
    log.loc[24, "behavior_prob"] = 2.0
    log[:13].to_parquet(tmp_path / "a.parquet")
    log[13:].to_parquet(tmp_path / "b.parquet")
    parts = opened(tmp_path).partitions()
    assert sum(len(chunk) for chunk in parts[0].chunks()) == 15
    with pytest.raises(InputError, match=r"b\.parquet: column behavior_prob, row 12 "):
        list(parts[1].chunks())


def test_a_function_of_values_that_raises_is_named_with_the_first_row():
    def broken(_):
        raise ZeroDivisionError("no")

    with pytest.raises(
        InputError, match=r"raised ZeroDivisionError for 12 rows from frame, row 1 on"
    ):
        opened(log_of(), value_model=broken).scan()


@pytest.mark.parametrize("options", [{}, {"target": "behavior"}])
def test_probabilities_of_all_actions_are_not_looked_up_where_ratios_are_known(options):
    """Actions beyond them then do no harm, and no probability of the action taken is made up."""
    log = log_of(action=5, target_prob_0=0.5, target_prob_1=0.5, rho=1.0)
    log = log.drop(columns=["behavior_prob", "target_prob"])
    (rows,) = opened(log, **options).chunks()
    assert rows.target_prob is None
    np.testing.assert_array_equal(rows.rho, 1.0)
    np.testing.assert_array_equal(rows.target_probs, 0.5)


# -- nested columns that no role can use ---------------------------------------------------------------


@pytest.mark.parametrize(
    "role", ["episode", "terminated", "rho", "time", "action", "state", "user"]
)
@pytest.mark.parametrize("value", [[], {}])
def test_columns_of_empty_lists(role, value):
    kind = pa.list_(pa.float64()) if value == [] else pa.struct([])
    table = pa.Table.from_pandas(log_of().drop(columns=role, errors="ignore"))
    table = table.append_column(role, pa.array([value] * 12, kind))
    refused(f"frame: column {role} holds empty lists, and {role} needs numbers; write them", table)
    renamed = table.rename_columns({role: "other"})
    with pytest.raises(InputError, match=f"column other holds empty lists, and {role} needs"):
        opened(renamed, columns={role: "other"})
    opened(pa.Table.from_pandas(log_of()).append_column("tags", table[role])).scan()


def test_empty_lists_beside_a_state_are_no_observations():
    table = pa.Table.from_pandas(log_of())
    table = table.append_column("obs", pa.array([[]] * 12, pa.list_(pa.float64())))
    assert opened(table).scan().transitions == 12


POLICY = np.full((3, 2), 0.5)
BY_ACTION = {
    "target": ({"target": POLICY}, {}),
    "behavior": ({"behavior": POLICY}, {}),
    "columns of the target": ({}, {"target_prob_0": 0.5, "target_prob_1": 0.5}),
    "columns, ratios given": ({}, {"target_prob_0": 0.5, "target_prob_1": 0.5, "rho": 1.0}),
    "columns of the behaviour": ({}, {"behavior_prob_0": 0.5, "behavior_prob_1": 0.5}),
}


@pytest.mark.parametrize("by", list(BY_ACTION))
def test_actions_of_several_numbers_have_no_probabilities_of_all(by):
    options, columns = BY_ACTION[by]
    log = log_of(**columns)
    if "behaviour" in by:
        log = log.drop(columns="behavior_prob")
    both = [[float(one), 1.0 - one] for one in log["action"]]
    said = (
        r"columns action[_.]\w, action[_.]\w hold 2 numbers for each action, and probabilities of"
    )
    refused(said, log.assign(action=both), **options)
    refused(said, log.assign(action=[{"a": a, "b": b} for a, b in both]), **options)
    alone = [[one] for one, _ in both]  # a list of one number is that number
    want, got = (next(opened(one, **options).chunks()) for one in (log, log.assign(action=alone)))
    np.testing.assert_array_equal(want.rho, got.rho)
    np.testing.assert_array_equal(want.action, got.action)


def test_actions_without_a_value_of_their_own():
    log = log_of(action=np.arange(12) % 3, target_prob_0=0.5, target_prob_1=0.5, rho=1.0)
    with pytest.raises(InputError, match=r"action, row 3 .* is 2; values are of 2 actions; number"):
        opened(log, value_model=lambda states: np.zeros((len(states), 2))).scan()
