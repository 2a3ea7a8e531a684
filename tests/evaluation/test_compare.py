"""Comparison of policies from one log: paired differences, joint intervals, requirements, files."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from o2td import evaluation, sources
from o2td.errors import InputError
from o2td.evaluation.compare import (
    Crossed,
    Spread,
    _blur,
    _chances,
    _common,
    _doubt,
    _pairs,
    _rank,
)

GAMMA = 0.9
P = np.array([[[0.7, 0.3], [0.2, 0.8]], [[0.9, 0.1], [0.4, 0.6]]])  # (S, A, S), if it goes on
R = np.array([[0.0, 1.0], [2.0, -0.5]])
END = 0.2
POLICIES = {
    "A": np.array([[0.6, 0.4], [0.5, 0.5]]),
    "B": np.array([[0.3, 0.7], [0.8, 0.2]]),
}


def truth(policy):
    ahead = GAMMA * (1.0 - END) * np.einsum("sa,sat->st", policy, P)
    return float(np.linalg.solve(np.eye(2) - ahead, (policy * R).sum(axis=1)).mean())


def made_log(episodes=200, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        state, step, ends = int(rng.integers(2)), 0, False
        while not ends:
            action = int(rng.integers(2))
            ends = rng.random() < END
            reward = R[state, action] + 0.5 * rng.standard_normal()
            chances = [POLICIES[name][state, action] for name in POLICIES]
            rows.append((episode, step, state, action, reward, ends, 0.5, *chances))
            state, step = int(rng.random() < P[state, action, 1]), step + 1
    names = [
        "episode",
        "step",
        "state",
        "action",
        "reward",
        "terminated",
        "behavior_prob",
        "A",
        "B",
    ]
    frame = pd.DataFrame(rows, columns=names)
    for action in (0, 1):
        frame[f"B_prob_{action}"] = POLICIES["B"][frame.state, action]
    return frame


@pytest.fixture(scope="module")
def log():
    return made_log()


@pytest.fixture(scope="module")
def both(log):
    return evaluation.compare(log, discount=GAMMA, policies=POLICIES)


def test_a_difference_is_that_of_two_evaluations_by_the_same_method(both):
    found = both.difference("B", "A")
    assert both["A"][both.method].method == both["B"][both.method].method == found.method
    apart = both["B"][both.method].value - both["A"][both.method].value
    assert found.value == pytest.approx(apart)
    assert found.low < found.value < found.high


def test_the_standard_error_is_that_of_the_episodes_influences(log, both):
    kept = {
        name: evaluation.evaluate(log, GAMMA, target=policy, influence=True).influence
        for name, policy in POLICIES.items()
    }
    apart = kept["B"][both.method].to_numpy() - kept["A"][both.method].to_numpy()
    by_hand = apart.std(ddof=1) / np.sqrt(len(apart))
    found = both.difference("B", "A")
    assert found.standard_error == pytest.approx(by_hand, rel=1e-9)
    assert found.standard_error < found.unpaired_error


def test_the_other_way_round_it_is_the_same_with_another_sign(both):
    one, two = both.difference("A", "B"), both.difference("B", "A")
    assert (one.value, one.low, one.high) == (-two.value, -two.high, -two.low)
    assert one.probability == pytest.approx(1.0 - two.probability)
    assert (one.joint_low, one.joint_high) == (-two.joint_high, -two.joint_low)


def test_an_evaluation_in_a_comparison_is_the_one_made_alone(log, both):
    alone = evaluation.evaluate(log, GAMMA, target=POLICIES["B"])
    for one, two in zip(alone.estimates, both["B"].estimates, strict=True):
        assert one.as_dict() == two.as_dict()
    assert alone.lift.value == both["B"].lift.value


def test_joint_intervals_hold_all_others(both):
    for one in both.differences:
        assert one.joint_low <= one.low <= one.high <= one.joint_high
    assert any(one.joint_high > one.high for one in both.differences)


def test_chances_of_being_best_sum_to_one(both):
    chances = [one.best for one in both.policies]
    chances.append(both.logged["probability_best"])
    assert sum(chances) == pytest.approx(1.0)
    assert both.policies[0].name == both.best == "B"


def test_another_baseline_changes_only_what_is_listed_first(log, both):
    other = evaluation.compare(log, discount=GAMMA, policies=POLICIES, baseline="A")
    assert (other.differences[0].of, other.differences[0].over) == ("B", "A")
    assert other.difference("B", "A").value == both.difference("B", "A").value
    assert other.difference("B").over == "A"
    assert other.difference("B", "logged").value == both.difference("B", "logged").value


def test_policies_by_columns_callables_and_tables_agree(log, both):
    def b(states):
        return POLICIES["B"][states]

    named = {"A": "A", "B": "prob:B", "C": "B_prob", "D": b, "E": "B_prob_*"}
    found = evaluation.compare(log, discount=GAMMA, policies=named, methods="lstd")
    assert found.difference("B", "A").value == pytest.approx(both.difference("B", "A").value)
    for other in "CDE":
        assert found.difference("B", other).value == 0.0
        assert "alike" in found.difference("B", other).reasons[0]


def test_ratios_and_logarithms_say_the_same(log):
    log = log.assign(r=log.B / log.behavior_prob, l=np.log(log.A))
    policies = {"R": "rho:r", "B": "B", "L": "logprob:l", "A": "A"}
    found = evaluation.compare(log, discount=GAMMA, policies=policies, methods="lstd")
    assert found.difference("R", "B").value == 0.0
    assert found.difference("L", "A").value == 0.0


def test_columns_of_named_actions(log):
    words = log.assign(
        action=np.where(log.action == 1, "sell", "buy"),
        B_prob_buy=log.B_prob_0,
        B_prob_sell=log.B_prob_1,
    ).drop(columns=["B_prob_0", "B_prob_1"])
    found = evaluation.compare(words, discount=GAMMA, policies={"B": "B_prob"}, methods="lstd")
    plain = evaluation.compare(log, discount=GAMMA, policies={"B": "B"}, methods="lstd")
    assert found["B"].recommended.value == pytest.approx(plain["B"].recommended.value)


def test_a_column_of_lists(log, both):
    listed = log.assign(p=log[["B_prob_0", "B_prob_1"]].to_numpy().tolist())
    found = evaluation.compare(listed, discount=GAMMA, policies={"B": "p"}, methods="lstd")
    assert found["B"]["lstd"].value == pytest.approx(both["B"]["lstd"].value)


def test_an_open_source_is_asked_anew_for_each_policy(log, both):
    source = sources.open_logs(log, discount=GAMMA, target="behavior")
    found = evaluation.compare(source, policies={"A": POLICIES["A"], "B": "B"}, methods="lstd")
    assert found["B"]["lstd"].value == pytest.approx(both["B"]["lstd"].value)
    assert found.difference("B", "A").method == "lstd"


def test_continuous_observations_share_their_features():
    rng = np.random.default_rng(1)
    n, steps = 150, 6
    x = rng.uniform(-1, 1, (n, steps))
    action = rng.integers(2, size=(n, steps))
    frame = pd.DataFrame(
        {
            "episode": np.repeat(np.arange(n), steps),
            "obs_0": x.ravel(),
            "action": action.ravel(),
            "reward": (x * action).ravel() + 0.1 * rng.standard_normal(n * steps),
            "terminated": np.tile(np.arange(steps) == steps - 1, n),
            "behavior_prob": 0.5,
        }
    )

    def policy(sharp):
        def chances(inputs):
            up = 1.0 / (1.0 + np.exp(-sharp * inputs[:, 0]))
            return np.column_stack([1.0 - up, up])

        return chances

    found = evaluation.compare(frame, discount=0.5, policies={"A": policy(0.5), "B": policy(3.0)})
    assert found["A"].features["picked"] == found["B"].features["picked"]
    apart = found.difference("B", "A")
    assert apart.low > 0.0
    parts = found["A"].recommended, found["B"].recommended
    assert apart.approximation_error <= sum(one.approximation_error or 0.0 for one in parts) + 1e-12


# -- lift and requirements -------------------------------------------------------------------------


def test_the_lift_is_paired_and_in_every_form_of_the_answer(log):
    answer = evaluation.evaluate(log, GAMMA, target=POLICIES["B"])
    lift = answer.lift
    assert lift.over == "logged"
    assert lift.standard_error < lift.unpaired_error
    assert answer.as_dict()["lift"]["value"] == lift.value
    assert answer.as_dict()["differences"][0]["of"] == "target"
    assert answer.as_dict()["policies"][0]["name"] == "target"
    assert "lift over it" in str(answer)
    assert "from the same episodes" in answer._page().decode()


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("value > -1", True),
        ("value > 1e3", False),
        ("lift >= 0", True),
        ("0 < lift", True),
        ("-lift > 0", False),
        ("value - logged > 0", True),
        ("logged < 1000", True),
    ],
)
def test_requirements_of_one_policy(log, text, holds):
    answer = evaluation.evaluate(log, GAMMA, target=POLICIES["B"], methods="lstd")
    assert answer.require(text).holds is holds


def test_the_page_says_which_policies_cannot_be_the_best_for_lack_of_an_answer():
    log = made_log(150)
    tried = np.column_stack([POLICIES["A"], np.zeros(2)])
    found = evaluation.compare(log, GAMMA, {"A": tried, "never": [[0.0, 0.0, 1.0]] * 2})
    assert {one.name: one.best is None for one in found.policies} == {"A": False, "never": True}
    assert "never: not counted, as nothing can be said" in found._page().decode()
    assert "not counted" not in evaluation.compare(log, GAMMA, {"A": "A"})._page().decode()


def test_a_requirement_inside_the_interval_cannot_be_told(both):
    found = both.difference("B", "A")
    middle = both.require(f"B - A > {found.value}")
    assert middle.holds is None
    assert "undecided" in str(middle)
    assert both.require(f"B > A + {found.low - 1e-9}").holds is True
    assert both.require(f"B > A + {found.high + 1e-9}").holds is False


# -- refusals and files ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"policies": {}}, "names with their policies"),
        ({"policies": {"logged": "A"}}, "cannot be a policy's name"),
        ({"policies": {"A": None}}, "None is not a policy"),
        ({"policies": {"A": "Z"}}, "no column 'Z'"),
        ({"policies": {"A": "rho:Z"}}, "no column 'Z'"),
        ({"policies": {"A": "A"}, "baseline": "B"}, "baseline"),
        ({"policies": {"A": "A"}, "baseline": np.array(["A", "B"])}, "baseline must be a text"),
        ({"policies": {"A": "A"}, "wrong": 1}, "no such option"),
    ],
)
def test_mistakes_are_named(log, given, said):
    with pytest.raises(InputError, match=said):
        evaluation.compare(log, discount=GAMMA, **given)


def test_unknown_names_are_refused(both):
    with pytest.raises(InputError, match="no policy 'X'"):
        both.difference("X", "A")
    with pytest.raises(InputError, match="same"):
        both.difference("A", "A")
    with pytest.raises(InputError, match="no 'X'"):
        both["X"]
    with pytest.raises(InputError, match="which policy's"):
        both.require("lift > 0")


def test_a_comparison_shows_and_saves_itself(both, tmp_path):
    from o2td.errors import O2TDError

    folder = both.save(tmp_path / "out")
    kept = json.loads((folder / "evaluation.json").read_text("utf-8"))
    assert kept["best"] == "B"
    assert {"policies", "differences", "logged", "tests", "estimates", "audit"} <= set(kept)
    page = both.report(tmp_path / "page.html").read_text("utf-8")
    assert page == (folder / "report.html").read_text("utf-8")
    assert "B - logged" in page
    assert "Verdict: trust" in str(both)
    assert "B - A" in both._repr_html_()
    assert both.frame().height == 2
    assert len(both.plot().axes) == 1
    with pytest.raises(O2TDError):
        both.save(folder)


def test_paired_intervals_cover():
    """A short run of what `benchmarks/compare_policies.py` does at length."""
    apart = truth(POLICIES["B"]) - truth(POLICIES["A"])
    hits, widths = [], []
    for seed in range(40):
        log = made_log(60, seed + 500)
        found = evaluation.compare(
            log, discount=GAMMA, policies={"A": "A", "B": "B"}, methods="lstd", seed=seed
        ).difference("B", "A")
        hits.append(found.covers(apart))
        widths.append(found.standard_error / found.unpaired_error)
    assert 34 <= sum(hits) <= 40
    assert np.mean(widths) < 0.95


# -- what a comparison makes of its parts ------------------------------------------------------------


def standing(name, value, verdict="trust"):
    return SimpleNamespace(name=name, value=value, verdict=verdict)


def test_policies_are_ranked_by_value_and_those_without_an_answer_come_last():
    rows = [
        standing("a", 1.0), standing("b", 3.0), standing("c", 9.0, "cannot answer"),
        standing("d", None), standing("e", -2.0, "caution"),
    ]  # fmt: skip
    assert [one.name for one in sorted(rows, key=_rank)] == ["b", "a", "e", "c", "d"]


def test_differences_to_the_baseline_come_first_then_those_between_policies():
    assert _pairs(["A", "B"], "logged") == [("A", "logged"), ("B", "logged"), ("B", "A")]
    assert _pairs(["A", "B", "C"], "B") == [
        ("A", "B"), ("C", "B"), ("C", "A"), ("A", "logged"), ("B", "logged"), ("C", "logged")
    ]  # fmt: skip
    assert _pairs(["A"], "A") == [("A", "logged")]


class Viewed:
    """Estimates of policies in lanes, and the errors of their differences."""

    def __init__(self, lanes, errors=None, verdicts=None, approximation=0.0):
        self.found, self.errors, self.verdicts = lanes, errors or {}, verdicts or {}
        self.approximation, self.method = approximation, ""
        self.studies = {name: None for name in lanes if name != "logged"}
        self.asked = []

    def lanes(self, name):
        return np.asarray(self.found[name], dtype=float)

    def case(self, name):
        verdict = self.verdicts.get(name, "trust")
        return SimpleNamespace(verdict=verdict, approximation=self.approximation)

    def difference(self, of, over):
        self.asked.append((self.method, of, over))
        error = self.errors.get((of, over))
        return SimpleNamespace(
            approximation_error=error,
            ends=lambda: None if error is None else (-error, 3.0 * error),
        )


def test_a_policy_is_the_best_in_as_many_lanes_as_it_leads_or_shares():
    view = Viewed({"A": [1, 2, 3, np.nan, 4], "B": [2, 2, 1, 9, 1], "logged": [0, 0, 0, 9, 4]})
    found = _chances(view, ["A", "B", "logged"], 0)
    assert found == pytest.approx({"A": 2.0 / 4, "B": 1.5 / 4, "logged": 0.5 / 4})
    doubted = Viewed(view.found, verdicts={"B": "cannot answer"})
    assert _chances(doubted, ["A", "B", "logged"], 0) == pytest.approx(
        {"A": 3.5 / 4, "logged": 0.5 / 4}
    )
    single = Viewed({"A": [1.0], "logged": [0.0]})
    assert _chances(single, ["A", "logged"], 0) == {}


def test_what_other_features_would_change_blurs_who_is_the_best():
    lanes = {"A": np.zeros(400), "B": np.ones(400), "logged": np.full(400, -99.0)}
    errors = {("A", "B"): 2.0, ("B", "A"): 1.0}
    view = Viewed(lanes, errors)
    found = _chances(view, list(lanes), 3)
    a, b = 2.0 / np.sqrt(2.0), 1.0 / np.sqrt(2.0)
    assert found["B"] == pytest.approx(norm.cdf(1.0 / np.hypot(a, b)), abs=0.02)
    assert found["A"] + found["B"] == pytest.approx(1.0)
    assert _blur(view, "A", ["A", "B", "logged"]) == pytest.approx(a)
    assert _blur(view, "logged", ["A", "B", "logged"]) == 0.0
    assert _blur(Viewed(lanes, {("A", "B"): 2.0}), "A", ["A", "B", "C"]) == pytest.approx(a / 2.0)
    alone = Viewed(lanes, approximation=0.3)
    assert _blur(alone, "A", ["A", "logged"]) == 0.3
    assert _blur(Viewed(lanes, approximation=None), "A", ["A"]) == 0.0


def test_a_methods_doubt_is_the_mean_half_width_of_all_differences():
    errors = {("A", "B"): 1.0, ("A", "logged"): 2.0, ("B", "logged"): 6.0}
    view = Viewed({"A": [], "B": []}, errors)
    assert _doubt(view, "lstd") == pytest.approx(2.0 * 9.0 / 3.0)
    assert view.asked == [("lstd", *pair) for pair in errors]
    assert _doubt(Viewed({"A": [], "B": []}, {("A", "B"): 1.0}), "lstd") == np.inf


def case_by(method, verdict="trust", half=1.0, kind="fit", **given):
    estimator = SimpleNamespace(
        recommendable=given.pop("recommendable", True), mends=given.pop("mends", False)
    )
    found = {"faults": 0.0, "contradicted": False, "value": 1.0} | given
    return SimpleNamespace(
        method=method, verdict=verdict, half=half, estimator=estimator,
        weighs_histories=kind == "history", handicap=lambda doubt: doubt, **found,
    )  # fmt: skip


class Shared(Viewed):
    """Estimates of two policies by several methods, each with its own doubt."""

    def __init__(self, *cases):
        super().__init__({"A": [], "B": []})
        self.cases = {name: {one[k].method: one[k] for one in cases} for k, name in enumerate("AB")}

    def difference(self, of, over):
        half = self.cases["A"][self.method].half
        return SimpleNamespace(ends=lambda: (-half, half))


@pytest.mark.parametrize(
    ("other", "first"),
    [
        ({"half": 0.9}, True),
        ({"half": 1.1}, False),
        ({"half": 0.5, "verdict": "caution"}, False),
        ({"half": 0.5, "faults": 0.5}, False),
        ({"half": 0.5, "contradicted": True}, False),
        ({"half": 0.5, "value": np.nan}, False),
        ({"half": 0.5, "kind": "history"}, False),
        ({"half": 0.5, "mends": True}, False),
        ({"half": 0.5, "recommendable": False}, False),
    ],
)
def test_the_common_method_is_trusted_for_all_then_a_fit_then_the_narrowest(other, first):
    lstd, dr, plain = case_by("lstd"), case_by("dr", **other), case_by("dr", half=other["half"])
    always = other.get("kind") == "history" or "mends" in other
    both = (dr, dr if always else plain)  # one policy is enough for a doubt
    for view in (Shared((lstd, lstd), both), Shared(both, (lstd, lstd))):
        assert _common(view, {"A": 1, "B": 2}) == ("dr" if first else "lstd")


def test_only_methods_that_all_policies_have_are_compared():
    view = Shared((case_by("lstd"),) * 2, (case_by("dr", half=0.1),) * 2)
    del view.cases["B"]["dr"]
    assert _common(view, {"A": 1, "B": 2}) == "lstd"
    del view.cases["B"]["lstd"]
    with pytest.raises(InputError, match="none fits this log for all policies"):
        _common(view, {"A": 1, "B": 2})
    late = Shared((case_by("sotd", recommendable=False),) * 2)
    assert _common(late, {"A": 1, "B": 2}) == "sotd"


@pytest.mark.parametrize("lanes", [0, 20])
@pytest.mark.parametrize("both", [False, True])
def test_a_method_that_lacks_probabilities_of_all_actions_cannot_answer(log, lanes, both):
    policies = {"A": "A"}
    if both:
        log = log.assign(all_0=0.3, all_1=0.7)
        policies["B"] = "all_*"
    found = evaluation.compare(log, GAMMA, policies, methods="lstdq", lanes=lanes)
    for over in ("logged", "B")[: 1 + both]:
        one = found.difference("A", over)
        assert (one.verdict, one.value) == ("cannot answer", None)
        assert "the log has no per-action probabilities of the target" in " ".join(one.reasons)
    assert not both or found.difference("B", "logged").value is not None


def test_a_difference_the_other_way_round_is_skewed_the_other_way():
    spreads = [Spread.of(np.array([1.0, 2.0, 9.0])), Spread.of(np.array([0.0, 5.0, 5.0]))]
    crossed = Crossed(["A", "B"], [])
    crossed.contrasts = SimpleNamespace(spread=spreads.__getitem__)
    crossed._numbers = {(("A", "B"), "lstd"): 0, (("A", "B"), "short 3"): 1}
    assert crossed.spread("A", "B", "lstd") is spreads[0]
    turned = crossed.spread("B", "A", "lstd")
    assert (turned.mean, turned.skew) == (-spreads[0].mean, -spreads[0].skew)
    assert turned.error == spreads[0].error
    assert crossed.spread("A", "B", "wis") is None
    assert crossed.corrections("A", "B") == [spreads[1]]
    assert crossed.corrections("A", "C") == []


@pytest.mark.parametrize(("logged", "best"), [(0.9, "A"), (1.0, "A"), (1.1, "logged")])
def test_the_logged_policy_is_best_if_its_value_is_higher(both, logged, best):
    first = dataclasses.replace(both.policies[0], name="A", value=1.0)
    found = dataclasses.replace(
        both, policies=[first], baseline="logged", logged={**both.logged, "value": logged}
    )
    assert found.best == best
