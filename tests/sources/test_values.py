"""Values of the user's own, of rows and of what follows them, against a plain loop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import sources
from o2td.errors import InputError
from o2td.sources import values

V = np.array([0.5, -1.0, 2.0, 4.0])
Q = np.array([[0.5, 1.0], [-1.0, 3.0], [2.0, 0.0], [4.0, 4.5]])


def log_of(seed: int = 0) -> pd.DataFrame:
    """Walks among four states that end or are cut; every other cut has lost its only row's successor."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(20):
        length = int(rng.integers(1, 5))
        for step in range(length):
            last = step == length - 1
            ends = last and episode % 2 == 0
            chance = rng.uniform(0.1, 0.9)
            later = rng.uniform(0.1, 0.9)
            row = {
                "episode": episode,
                "state": int(rng.integers(4)),
                "action": int(rng.integers(2)),
            }
            row |= {"next_state": int(rng.integers(4)), "reward": rng.normal()}
            row |= {"behavior_prob": 0.5, "target_prob_0": chance, "target_prob_1": 1.0 - chance}
            row |= {"next_target_prob_0": later, "next_target_prob_1": 1.0 - later}
            rows.append(row | {"terminated": ends, "truncated": last and not ends})
    return pd.DataFrame(rows)


def read(log: pd.DataFrame, rows: int = 1000, **given: Any) -> Any:
    source = sources.open_logs(log, discount=0.9, **given)
    chunks = list(source.chunks(rows))
    names = ("value", "next_value", "action_value")
    found = {
        name: np.concatenate([getattr(chunk, name) for chunk in chunks])
        for name in names
        if getattr(chunks[0], name) is not None
    }
    return SimpleNamespace(**found, said=str(source.own_values))


MODELS = [
    (V, "V of an array by state"),
    (V.tolist(), "V of an array by state"),
    (V.__getitem__, "V of __getitem__"),
    (lambda s: V[s][:, None], "V of <lambda>"),
    (SimpleNamespace(predict=lambda s: V[s[:, 0]]), "V of SimpleNamespace"),
    (SimpleNamespace(predict=lambda s: V[s], states=True), "V of SimpleNamespace"),
]


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize(("model", "said"), MODELS)
def test_values_of_states(model: Any, said: str, rows: int) -> None:
    log = log_of()
    found = read(log, rows, value_model=model)
    np.testing.assert_allclose(found.value, V[log.state])
    np.testing.assert_allclose(found.next_value, np.where(log.terminated, 0.0, V[log.next_state]))
    assert not hasattr(found, "action_value")
    assert found.said == said


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize(
    "model",
    [Q, Q.__getitem__, SimpleNamespace(of_actions=True, action_values=Q.__getitem__, predict=None)],
)
def test_values_of_actions_are_those_of_the_targets_actions(model: Any, rows: int) -> None:
    log = log_of(1)
    found = read(log, rows, value_model=model)
    now, later = (
        log[[f"{name}_{k}" for k in (0, 1)]].to_numpy()
        for name in ("target_prob", "next_target_prob")
    )
    np.testing.assert_allclose(found.value, (now * Q[log.state]).sum(axis=1))
    np.testing.assert_allclose(found.action_value, Q[log.state, log.action])
    after = (later * Q[log.next_state]).sum(axis=1)
    np.testing.assert_allclose(found.next_value, np.where(log.terminated, 0.0, after))
    assert found.said.startswith("Q of ")


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize("kind", ["v", "q"])
def test_values_in_columns_go_on_with_the_next_row_or_what_is_given(kind: str, rows: int) -> None:
    log = log_of(2)
    last = ~log.duplicated("episode", keep="last")
    given = np.where(
        last & ~log.terminated | (log.index % 3 == 0), np.arange(len(log)) / 8.0, np.nan
    )
    if kind == "v":
        made = log.assign(v=V[log.state], next_v=given)
        value = V[log.state]
        after = np.append(value[1:], np.nan)
    else:
        made = log.assign(q_0=Q[log.state, 0], q_1=Q[log.state, 1], next_v=given)
        now = log[["target_prob_0", "target_prob_1"]].to_numpy()
        later = log[["next_target_prob_0", "next_target_prob_1"]].to_numpy()
        value = (now * Q[log.state]).sum(axis=1)
        after = (later * np.vstack([Q[log.state][1:], np.full((1, 2), np.nan)])).sum(axis=1)
    columns = {"next_v": "next_v"} | ({"v": "v"} if kind == "v" else {"q": ["q_0", "q_1"]})
    found = read(made, rows, columns=columns)
    np.testing.assert_allclose(found.value, value)
    wanted = np.where(np.isnan(given), after, given)
    np.testing.assert_allclose(found.next_value, np.where(log.terminated, 0.0, wanted))
    assert found.said == ("V of column v" if kind == "v" else "Q of columns q_0 … q_1")
    unknown = made.assign(next_v=np.where(last, np.nan, given))
    row = int(np.flatnonzero(last & ~log.terminated)[0]) + 1
    column = "v" if kind == "v" else "q_0"
    with pytest.raises(
        InputError, match=rf"column {column}, row {row} .* is not known after this last row"
    ):
        read(unknown, columns=columns)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (V[:3], r"state 3 is in row \d+ of frame or right after it, the array has 3 rows"),
        (np.zeros((4, 3)), "values of 3 actions, and the target has 2; give one for each"),
        (np.zeros((4, 2, 2)), r"an array of shape \(4, 2, 2\)"),
        (lambda s: V[:1], r"it returned shape \(1,\) for \d+ rows"),
        (lambda s: np.zeros((len(s), 1, 1, 2)), r"it returned shape"),
        (lambda s: np.where(s == 2, np.inf, 1.0), r"it is inf in row \d+ of frame"),
        (
            lambda s: np.where(s[:, None] == 2, [[1.0, np.nan]], 1.0),
            r"it is nan in row \d+ of frame",
        ),
        (3, "int is not a value model"),
    ],
)
def test_models_that_do_not_fit_the_log_are_refused(model: Any, said: str) -> None:
    with pytest.raises(InputError, match=rf"value_model: {said}"):
        read(log_of(3), value_model=model)


def test_columns_and_models_exclude_each_other() -> None:
    log = log_of(4).assign(v=1.0, next_v=1.0, q_0=1.0, q_1=2.0)
    v, q, after = {"v": "v"}, {"q": ["q_0", "q_1"]}, {"next_v": "next_v"}
    with pytest.raises(InputError, match="column v gives values, too; leave out one of them"):
        read(log, value_model=V, columns=v)
    with pytest.raises(InputError, match="column q_0 gives values, too; leave out one of them"):
        read(log, value_model=V, columns=q)
    with pytest.raises(InputError, match=r"v \(v\) and q \(q_0 …\) both give values"):
        read(log, columns=v | q)
    with pytest.raises(InputError, match=r"next_v \(next_v\) alone is not enough; name v or q"):
        read(log, columns=after)
    seen = log_of(5).rename(columns={"state": "obs_0", "next_state": "next_obs_0"})
    with pytest.raises(InputError, match="an array by state needs a log with states"):
        read(seen, value_model=V)


@pytest.mark.parametrize(
    ("states", "shape", "seen"),
    [(False, (5,), (5, 1)), (True, (5,), (5,)), (False, (5, 2), (5, 2)), (True, (5, 2), (5, 2))],
)
def test_a_model_that_predicts_gets_numbers_of_states_or_a_table(states, shape, seen):
    class Model:
        def predict(self, inputs: Any) -> Any:
            self.seen = inputs.shape
            return np.zeros(len(inputs))

    model: Any = Model()
    if states:
        model.states = 5
    values._answer(model, np.zeros(shape))
    assert model.seen == seen


@pytest.mark.parametrize(
    ("roles", "model", "of_actions", "said"),
    [
        ({}, abs, None, "values of abs"),
        ({"v": ["v0"]}, None, False, "V of column v0"),
        ({"q": ["q0", "q1"]}, None, True, "Q of columns q0 … q1"),
    ],
)
def test_what_values_are_of_is_not_known_before_a_model_is_asked(roles, model, of_actions, said):
    mapped: Any = SimpleNamespace(
        one=lambda role: next(iter(roles.get(role, [])), None),
        many=lambda role: roles.get(role, []),
    )
    found = values.OwnValues(mapped, model)
    assert found.of_actions is of_actions
    assert str(found) == said
