"""A V or Q of the user's own, which doubly robust estimates correct: a model, or columns of the log."""

from __future__ import annotations

import json

import numpy as np
import pytest

from o2td import evaluation
from o2td.cli import main
from o2td.errors import InputError
from o2td.sources import open_logs

from .episodes import SmallChunks
from .test_compare import END, GAMMA, POLICIES, P, R, made_log, truth

TARGET = POLICIES["B"]
METHODS = ["dr", "wdr", "pdis"]
WRONG_V, WRONG_Q = np.array([5.0, -3.0]), np.array([[4.0, -1.0], [0.0, 7.0]])


def true_q():
    ahead = GAMMA * (1.0 - END) * np.einsum("sa,sat->st", TARGET, P)
    V = np.linalg.solve(np.eye(2) - ahead, (TARGET * R).sum(axis=1))
    return R + GAMMA * (1.0 - END) * np.einsum("sat,t->sa", P, V)


def asked(log, **options):
    given = {"target": TARGET, "methods": METHODS, "lanes": 0, **options}
    return evaluation.evaluate(log, GAMMA, **given)


def recursive(log, model, after=None):
    """`V(s) + rho (r + gamma X' - Q(s, a))` from each episode's last row to its first, and the mean.

    `after` is V beyond the last row of episodes that do not terminate.
    """
    V = model if model.ndim == 1 else (TARGET * model).sum(axis=1)
    found = []
    for _, rows in log.groupby("episode"):
        ahead = 0.0 if rows.terminated.iloc[-1] else after
        for row in rows.iloc[::-1].itertuples():
            ratio = TARGET[row.state, row.action] / row.behavior_prob
            here = V[row.state] if model.ndim == 1 else model[row.state, row.action]
            ahead = V[row.state] + ratio * (row.reward + GAMMA * ahead - here)
        found.append(ahead)
    return float(np.mean(found)), float(np.std(found) / np.sqrt(max(len(found) - 1, 1)))


def weighted(log, model):
    """`mean V(s_0) + sum_t gamma^t sum_e w_t delta_t / sum_e w_t`, weights of ended episodes staying."""
    V = model if model.ndim == 1 else (TARGET * model).sum(axis=1)
    episodes = [rows for _, rows in log.groupby("episode")]
    longest = max(len(rows) for rows in episodes)
    weight, delta = np.zeros((2, len(episodes), longest))
    for e, rows in enumerate(episodes):
        state, action = rows.state.to_numpy(), rows.action.to_numpy()
        ratio = np.cumprod(TARGET[state, action] / rows.behavior_prob.to_numpy())
        here = V[state] if model.ndim == 1 else model[state, action]
        after = np.append(V[state[1:]], 0.0)
        weight[e], weight[e, : len(rows)] = ratio[-1], ratio
        delta[e, : len(rows)] = rows.reward.to_numpy() + GAMMA * after - here
    steps = GAMMA ** np.arange(longest) * (weight * delta).sum(axis=0) / weight.sum(axis=0)
    return float(np.mean([V[rows.state.iloc[0]] for rows in episodes]) + steps.sum())


class Regressor:
    """As scikit-learn's are called: rows of one column."""

    def __init__(self, table):
        self.table = table

    def predict(self, rows):
        assert rows.ndim == 2
        return self.table[rows[:, 0]]


@pytest.fixture(scope="module")
def log():
    return made_log(60, seed=4)


@pytest.mark.parametrize("table", [WRONG_V, WRONG_Q], ids=["V", "Q"])
@pytest.mark.parametrize("way", ["array", "list", "function", "predict", "columns"])
def test_estimates_are_those_computed_by_hand(log, table, way):
    options: dict = {}
    if way == "columns":
        log = log.copy()
        if table.ndim == 1:
            log["mine"] = table[log.state]
            options["columns"] = {"v": "mine"}
        else:
            log["mine_0"], log["mine_1"] = table[log.state].T
            options["columns"] = {"q": "mine_*"}
    else:
        made = {
            "array": table,
            "list": table.tolist(),
            "function": lambda s: table[s],
            "predict": Regressor(table),
        }
        options["value_model"] = made[way]
    answer = asked(log, **options)
    value, error = recursive(log, table)
    assert answer["dr"].value == pytest.approx(value, rel=1e-12)
    assert answer["dr"].standard_error == pytest.approx(error, rel=0.02)
    assert answer["wdr"].value == pytest.approx(weighted(log, table), rel=1e-12)


def test_the_size_of_chunks_and_holding_the_log_change_nothing(log, tmp_path):
    log = log.assign(mine_0=WRONG_Q[log.state, 0], mine_1=WRONG_Q[log.state, 1])
    log["target_prob_0"], log["target_prob_1"] = TARGET[log.state].T
    source = open_logs(log, discount=GAMMA, columns={"q": "mine_*"})
    whole = evaluation.evaluate(source, methods=METHODS)
    parts = evaluation.evaluate(SmallChunks(source, GAMMA, 7), methods=METHODS)
    for method in METHODS:
        assert parts[method].value == pytest.approx(whole[method].value, rel=1e-12)
        assert parts[method].low == pytest.approx(whole[method].low, rel=1e-9)


def cut_log(log):
    """The same episodes without their last row; the successor's state is written."""
    log = log.copy()
    log["next_state"] = log.state.shift(-1).fillna(0).astype(int)
    last = log.episode != log.episode.shift(-1)
    cut = log[~last].copy()
    cut["truncated"] = cut.episode != cut.episode.shift(-1)
    return cut.reset_index(drop=True)


@pytest.mark.parametrize("table", [WRONG_V, WRONG_Q], ids=["V", "Q"])
def test_a_cut_episode_goes_on_with_the_model(log, table):
    cut = cut_log(log)
    V = table if table.ndim == 1 else (TARGET * table).sum(axis=1)
    found = []
    for _, rows in cut.groupby("episode"):
        found.append(recursive(rows, table, V[rows.next_state.iloc[-1]])[0])
    # Episodes of which no row is left count by their start; here all have at least one.
    answer = asked(cut, value_model=table)
    assert answer["dr"].value == pytest.approx(np.mean(found), rel=1e-12)
    assert answer["dr"].approximation_error > 0.0
    assert any("the value model that was given" in reason for reason in answer["dr"].reasons)
    column = cut.assign(mine=V[cut.state], then=V[cut.next_state])
    columns = {"v": "mine", "next_v": "then"}
    if table.ndim == 2:
        column["q_0"], column["q_1"] = table[cut.state].T
        columns = {"q": "q_*", "next_v": "then"}
    assert asked(column, columns=columns)["dr"].value == pytest.approx(np.mean(found), rel=1e-12)


def test_starts_of_which_nothing_else_is_known_count_by_the_model(log):
    """The last row of each episode cannot be used; of episodes of one row the start remains."""
    cut = log.drop(columns="terminated").assign(terminated=False)
    last = cut.episode != cut.episode.shift(-1)
    cut["truncated"] = last
    starts = cut[cut.step == 0]
    kept = cut[~last]
    assert len(kept.episode.unique()) < len(starts)  # some have one row alone
    corrections = []
    for _, rows in kept.groupby("episode"):
        after = WRONG_V[cut.state[rows.index[-1] + 1]]
        corrections.append(recursive(rows, WRONG_V, after)[0] - WRONG_V[rows.state.iloc[0]])
    by_hand = WRONG_V[starts.state].mean() + np.mean(corrections)
    assert asked(cut, value_model=WRONG_V)["dr"].value == pytest.approx(by_hand, rel=1e-12)
    column = cut.assign(mine=WRONG_V[cut.state])
    assert asked(column, columns={"v": "mine"})["dr"].value == pytest.approx(by_hand, rel=1e-12)


def test_a_wrong_model_does_not_bias_and_the_true_one_narrows():
    of_wrong, width = [], {"wrong": [], "true": [], "none": []}
    for seed in range(40):
        log = made_log(40, seed=1000 + seed)
        wrong, right = asked(log, value_model=WRONG_Q), asked(log, value_model=true_q())
        of_wrong.append(wrong["dr"].value)
        width["wrong"].append(wrong["dr"].standard_error)
        width["true"].append(right["dr"].standard_error)
        width["none"].append(right["pdis"].standard_error)
    error = np.std(of_wrong, ddof=1) / np.sqrt(len(of_wrong))
    by_itself = float((TARGET * WRONG_Q).sum(axis=1).mean())
    assert abs(np.mean(of_wrong) - truth(TARGET)) < 3.0 * error
    assert abs(by_itself - truth(TARGET)) > 3.0 * error  # so the correction was needed
    assert np.mean(width["true"]) < 0.75 * np.mean(width["none"]) < np.mean(width["wrong"])


def test_the_answer_says_whose_model_it_was(log, tmp_path):
    answer = asked(log, value_model=WRONG_Q)
    found = answer.diagnostics["value_model"]
    assert found["value"] == pytest.approx(
        np.mean((TARGET * WRONG_Q).sum(axis=1)[log.state[log.step == 0]])
    )
    assert found["cross_fitted"] is False
    assert "Q of an array by state, given and not fitted here" in answer["dr"].about
    for words in ("The value model given", "no cross-fitting is needed if it never"):
        assert words in " ".join(str(answer).split())
    answer.save(tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "The value model given (Q of an array by state)" in page
    assert "value_model" not in asked(log).diagnostics
    only = asked(log, value_model=WRONG_Q, methods="pdis").diagnostics["value_model"]
    assert only["value"] is None
    assert "by any requested method" in only["said"]


def test_other_estimators_do_not_see_it(log):
    plain, own = (asked(log, value_model=m, methods=None) for m in (None, WRONG_Q))
    for method in ("lstd", "lstdq", "magic", "wpdis"):
        assert own[method].value == plain[method].value


def test_policies_may_each_have_their_model(log):
    both = evaluation.compare(
        log,
        GAMMA,
        POLICIES,
        methods="dr",
        lanes=0,
        value_model={"B": WRONG_Q},
    )
    assert both.answers["B"]["dr"].value == pytest.approx(recursive(log, WRONG_Q)[0])
    assert "value_model" not in both.answers["A"].diagnostics
    with pytest.raises(InputError, match="value_model: 'C' is not a policy; there are A, B"):
        evaluation.compare(log, GAMMA, POLICIES, value_model={"C": WRONG_Q})


def test_a_value_is_a_feature_as_well(log):
    """[1, V]: by a function of states, or by naming its column as an observation."""
    Q = true_q()
    V = (TARGET * Q).sum(axis=1)
    by_hand = asked(
        log, features=lambda s: np.column_stack([np.ones(len(s)), V[s]]), methods="lstd"
    )
    log = log.assign(mine=V[log.state], target_prob=TARGET[log.state, log.action])
    named = evaluation.evaluate(
        log,
        GAMMA,
        columns={"observation": ["mine"]},
        features="polynomial:1",
        methods="lstd",
        lanes=0,
    )
    assert named["lstd"].value == pytest.approx(by_hand["lstd"].value, rel=1e-6)


def broken(states):
    raise KeyError("no such state")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (broken, r"value_model: it raised KeyError for \d+ rows from frame, row 1 on .*; fix it"),
        (
            lambda s: np.zeros(3),
            r"it returned shape \(3,\) for \d+ rows; return one number per row",
        ),
        (lambda s: np.zeros((len(s), 2, 2)), "it returned shape .*; return one number per row"),
        (
            lambda s: np.where(np.arange(len(s)) == 4, np.nan, 0.0),
            "it is nan in row 5 of frame or right after it; return a finite number",
        ),
        (lambda s: np.zeros((len(s), 3)), "values of 3 actions, and the target has 2"),
        (lambda s: np.ma.masked_array(np.zeros(len(s)), mask=s == 1), "are a masked array; pass a"),
        (np.ma.masked_array([1.0, 2.0], mask=True), "value_model: .* a masked array"),
        ([1.0], "state 1 is in row .* of frame or right after it, the array has 1 rows; give one"),
        (np.array([["a"]]), "value_model: .* is not an array of numbers"),
        (np.zeros((2, 2, 2)), r"an array of shape \(2, 2, 2\); pass V \(states,\)"),
        (3.5, "float is not a value model; pass a function"),
        ("q", "str is not a value model; pass a function"),
    ],
)
def test_a_model_that_cannot_be_used_is_refused_in_one_sentence(log, model, said):
    with pytest.raises(InputError, match=said) as error:
        asked(log, value_model=model)
    assert "\n" not in str(error.value)


def test_columns_that_cannot_be_used_are_refused(log):
    log = log.assign(mine=0.5, q_0=0.0, q_1=1.0)
    hole = log.assign(mine=np.where(np.arange(len(log)) == 2, np.nan, 0.5))
    with pytest.raises(InputError, match=r"frame: column mine, row 3 .* is missing"):
        asked(hole, columns={"v": "mine"})
    with pytest.raises(InputError, match=r"v \(mine\) and q \(q_0 …\) both give values"):
        asked(log, columns={"v": "mine", "q": "q_*"})
    with pytest.raises(InputError, match="column mine gives values, too; leave out one"):
        asked(log, columns={"v": "mine"}, value_model=WRONG_V)
    with pytest.raises(InputError, match=r"next_v \(mine\) alone is not enough; name v or q"):
        asked(log, columns={"next_v": "mine"})
    named = {"q": "q_*", "target_prob": "B"}
    with pytest.raises(InputError, match="need the target's probabilities of all actions"):
        evaluation.evaluate(log, GAMMA, columns=named, methods="dr")
    cut = cut_log(log)
    with pytest.raises(
        InputError, match=r"column mine, row .* that was cut; name a column .*next_v"
    ):
        asked(cut, columns={"v": "mine"})


def test_it_is_columns_on_the_command_line(log, tmp_path, capsys):
    log = log.assign(mine_0=WRONG_Q[log.state, 0], mine_1=WRONG_Q[log.state, 1])
    log["target_prob_0"], log["target_prob_1"] = TARGET[log.state].T
    log.to_parquet(tmp_path / "log.parquet")
    given = ["evaluate", str(tmp_path / "log.parquet"), "--discount", str(GAMMA)]
    given += ["--columns", "q=mine_*", "--methods", "dr,wdr", "--bootstrap", "0"]
    assert main([*given, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    values = {row["method"]: row["value"] for row in found["estimates"]}
    assert values["dr"] == pytest.approx(recursive(log, WRONG_Q)[0], rel=1e-12)
    assert found["diagnostics"]["value_model"]["from"] == "Q of columns mine_0 … mine_1"
    assert found["audit"]["columns"]["q"] == ["mine_0", "mine_1"]
    assert main(given) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The value model given (Q of columns mine_0 … mine_1)" in said
    assert main([*given, "--columns", "q=none_*"]) == 2
    assert "no column none_* for q" in " ".join(capsys.readouterr().err.split())
