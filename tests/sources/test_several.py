"""One file, several policies."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from o2td.errors import InputError
from o2td.sources import open_logs
from o2td.sources.several import chunks_of_all, open_policies
from tests.evaluation.test_compare import GAMMA, made_log


def test_the_files_are_read_once_for_all_policies(tmp_path):
    path = tmp_path / "log.parquet"
    made_log().to_parquet(path)
    opened = open_policies(path, {"A": "A", "B": "B"}, discount=GAMMA)
    read = []
    part = opened[0]._first_part
    plain = part.batches
    part.batches = lambda kinds, rows: (read.append(sorted(kinds)), plain(kinds, rows))[1]
    streams, reading = chunks_of_all(opened, rows=100)
    with reading:
        for one, two in zip(*streams, strict=True):
            assert (one.reward == two.reward).all()
            assert (one.rho != two.rho).any()
    assert len(read) == 1
    assert {"A", "B"} <= set(read[0])


LOG = {
    "episode": [0, 1, 2, 3],
    "state": 0,
    "reward": 1.0,
    "terminated": True,
    "behavior_prob": 0.5,
}


def frame(**columns):
    return pd.DataFrame({**LOG, "action": ["buy", "sell", "buy", "sell"], **columns})


def ratios(source):
    return [rho for chunk in source.chunks() for rho in chunk.rho.tolist()]


@pytest.mark.parametrize("text", ["A", "A_*", "probs:A"])
def test_columns_with_one_beginning_are_the_probabilities_of_the_actions(text):
    """`A_` alone, or a name that only contains the beginning, is not among them."""
    log = frame(A_buy=0.2, A_sell=0.8, A_=9.0, other_A_hold=7.0)
    (source,) = open_policies(log, {"new": text}, discount=1.0)
    assert ratios(source) == pytest.approx([0.4, 1.6, 0.4, 1.6])


@pytest.mark.parametrize("columns", [["A_sell", "A_buy"], "A_*"])
def test_listed_columns_belong_to_the_actions_that_they_are_named_after(columns):
    """Not to the actions in sorted order; nor need the behaviour's be in the same order."""
    log = frame(A_sell=0.8, A_buy=0.2, behavior_prob=0.5)
    source = open_logs(log, {"target_probs": columns}, discount=1.0)
    assert ratios(source) == pytest.approx([0.4, 1.6, 0.4, 1.6])
    assert str(source.codings["action"]) == "sell = 0, buy = 1"
    log = log.drop(columns="behavior_prob").assign(behavior_prob_buy=0.5, behavior_prob_sell=0.5)
    assert ratios(open_logs(log, {"target_probs": columns}, 1.0)) == ratios(source)


@pytest.mark.parametrize("columns", [["q_sell", "q_buy"], "q_*"])
def test_action_values_belong_to_the_actions_that_they_are_named_after(columns):
    log = frame(A_buy=0.2, A_sell=0.8, q_sell=5.0, q_buy=3.0)
    source = open_logs(log, {"target_probs": "A_*", "q": columns}, discount=1.0)
    assert next(source.chunks()).action_value.tolist() == [3.0, 5.0, 3.0, 5.0]


@pytest.mark.parametrize("columns", [("B_sell", "B_buy"), ("B_buy", "B_sell")])
def test_policies_may_list_the_actions_in_different_orders(columns):
    log = frame(A_buy=0.2, A_sell=0.8, **{name: 0.6 if "buy" in name else 0.4 for name in columns})
    one, two = open_policies(log, {"A": "A", "B": "B"}, discount=1.0)
    assert ratios(one) == pytest.approx([0.4, 1.6, 0.4, 1.6])
    assert ratios(two) == pytest.approx([1.2, 0.8, 1.2, 0.8])


class Classifier:
    """Chances of 0.2 to buy and 0.8 to sell, in any order of its own."""

    def __init__(self, *classes):
        self.classes_ = np.array(classes)

    def predict_proba(self, x):
        chances = [{"buy": 0.2, "sell": 0.8}[one] for one in self.classes_]
        return np.tile(chances, (len(x), 1))


def test_classes_of_a_policy_are_told_from_the_order_of_others():
    log = frame(behavior_prob=0.5)
    policies = {"A": Classifier("sell", "buy"), "B": Classifier("buy", "sell")}
    for one in open_policies(log, policies, discount=1.0):
        assert ratios(one) == pytest.approx([0.4, 1.6, 0.4, 1.6])
        assert one.assumptions == ()
    opened = open_logs(log, {"action": "action"}, discount=1.0, target="behavior")
    for one in open_policies(opened, policies):
        assert ratios(one) == pytest.approx([0.4, 1.6, 0.4, 1.6])
    for one in open_policies(log, policies, discount=1.0, actions=["buy", "sell"]):
        assert ratios(one) == pytest.approx([0.4, 1.6, 0.4, 1.6])


def test_an_order_that_nothing_says_is_an_assumption_that_the_answer_names():
    log = frame(behavior_prob=0.5)
    said = r"alphabetical order of the actions \(buy, sell\); if they are not, pass actions=\[…\]"
    unnamed = {"target": lambda x: np.tile([0.2, 0.8], (len(x), 1)), "discount": 1.0}
    assert re.search(said, open_logs(log, **unnamed).assumptions[0])
    assert open_logs(log, **unnamed, actions=["sell", "buy"]).assumptions == ()
    listed = frame(probs=[[0.2, 0.8]] * 4, behavior_prob=0.5)
    assert open_logs(listed, {"target_probs": "probs"}, 1.0).assumptions
    policies = {"A": Classifier("sell", "buy"), "B": unnamed["target"]}
    with pytest.raises(InputError, match=r"another order than A .*actions=\[…\]"):
        open_policies(log, policies, discount=1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("C", r"C"),
        ("rho:C", r"C"),
        ("A_b", r"A_b"),  # one column is no list
    ],
)
def test_a_policy_without_columns_is_refused_by_name(text, said):
    log = frame(A_buy=0.2, A_sell=0.8)
    with pytest.raises(InputError, match=rf"new.*{said}"):
        open_policies(log, {"new": text}, discount=1.0)


def test_a_column_says_what_it_holds():
    log = frame(r=[0.5, 1.5, 0.5, 1.5], l=np.log([0.25, 0.75, 0.25, 0.75]), p=[0.1, 0.9, 0.1, 0.9])
    named = {"r": "rho:r", "l": "logprob:l", "p": "prob: p", "same": "behavior"}
    found = [ratios(one) for one in open_policies(log, named, discount=1.0)]
    assert found[0] == pytest.approx([0.5, 1.5, 0.5, 1.5])
    assert found[1] == pytest.approx([0.5, 1.5, 0.5, 1.5])
    assert found[2] == pytest.approx([0.2, 1.8, 0.2, 1.8])
    assert found[3] == [1.0] * 4


def test_an_open_source_takes_other_policies():
    log = frame(A=[0.1, 0.9, 0.1, 0.9], B=[0.25, 0.75, 0.25, 0.75])
    source = open_logs(log, discount=1.0, target="behavior")
    one, two = open_policies(source, {"A": "A", "B": "prob:B"}, discount=1.0)
    assert ratios(one) == pytest.approx([0.2, 1.8, 0.2, 1.8])
    assert ratios(two) == pytest.approx([0.5, 1.5, 0.5, 1.5])


def test_each_policy_has_its_own_value_model_or_none():
    log = frame(A=0.5, B=0.5)
    with pytest.raises(InputError, match=r"value_model: 'C' is not a policy; there are A, B"):
        open_policies(log, {"A": "A", "B": "B"}, discount=1.0, value_model={"C": "q"})


def test_words_among_the_observations_are_coded_once_for_all_policies():
    colour = ["red", "blue", "blue", "green"]
    log = frame(A=0.5, B=0.25).drop(columns="state").assign(obs_0=colour, next_obs_0=colour)
    alone = open_logs(log.assign(target_prob=0.5), discount=1.0)
    one, two = open_policies(log, {"A": "A", "B": "B"}, discount=1.0)
    (wanted,), (first,), (second,) = (list(source.chunks()) for source in (alone, one, two))
    np.testing.assert_array_equal(first.input, wanted.input)
    np.testing.assert_array_equal(second.input, wanted.input)
    assert first.input.shape == (4, 2)  # one column less than words
    assert second.rho.tolist() == [0.5] * 4
