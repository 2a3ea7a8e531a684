"""Intervals from the influence of episodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td.evaluation import Outcome, Study
from o2td.evaluation.study import Interval, Log, Settings, Spread, bca, sandwich
from o2td.sources import open_logs

KEYS = np.random.default_rng(0).integers(0, 2**63, 4000).astype(np.uint64)


def test_bca_covers_a_skewed_mean_better_than_a_symmetric_interval():
    rng = np.random.default_rng(5)
    hits = np.zeros(2)
    for _ in range(150):
        x = np.where(rng.random(200) < 0.03, rng.exponential(size=200), 0.0)
        if not x.any():
            continue
        found = Spread.of(x, KEYS[:200], int(rng.integers(1000)), 200)
        skewed, plain = bca(x.mean(), found.lanes, found, 0.95), sandwich(x.mean(), found, 0.95)
        hits += [end.low <= 0.03 <= end.high for end in (skewed, plain)]
    assert hits[0] > hits[1]
    assert hits[0] / 150 > 0.85


def test_intervals_contain_their_value_and_few_episodes_do_not_break_them():
    assert sandwich(1.0, Spread.of(np.zeros(1)), 0.95).standard_error == np.inf
    same = bca(2.0, np.full(50, 2.0), Spread.of(np.zeros(30)), 0.95)
    assert (same.low, same.high) == (2.0, 2.0)


def test_lanes_that_repeat_the_value_up_to_rounding_are_neither_above_nor_below():
    x = Spread.of(np.random.default_rng(4).normal(size=30))
    lanes = np.concatenate([np.full(60, 1.0), np.linspace(0.0, 2.0, 40)])
    exact = bca(1.0, lanes, x, 0.95)
    for nudge in (1e-15, -1e-15):
        assert bca(1.0, lanes + nudge, x, 0.95).high == pytest.approx(exact.high, abs=1e-9)


# -- what a study makes of outcomes --------------------------------------------------------------------


def asked(**given: Any) -> Any:
    """A study of which only these parts are known."""
    found = Study.__new__(Study)
    settings = {"confidence": 0.9, "lanes": 200, "horizon": None, "influence": False}
    vars(found).update(settings=SimpleNamespace(**settings))
    vars(found).update(given)
    return found


def survey_of(rows: float = 80.0, units: int = 90, actions: int = 2) -> Any:
    weighed = SimpleNamespace(units=units)
    return SimpleNamespace(
        weighed=weighed, weights=lambda: {"effective_rows": rows}, n_actions=actions, unknown=0,
        largest_discount=0.9,
    )  # fmt: skip


def test_an_interval_is_bca_from_lanes_or_a_sandwich_without():
    spread = Spread.of(np.random.default_rng(0).exponential(size=50) - 1.0, KEYS[:50], 0, 200)
    study = asked(survey=survey_of())
    own = 3.0 + 2.0 * spread.lanes
    assert study._interval(Outcome(3.0, spread, own)) == bca(3.0, own, spread, 0.9)
    lanes = 3.0 - spread.mean + spread.lanes
    assert study._interval(Outcome(3.0, spread)) == bca(3.0, lanes, spread, 0.9)
    study.settings.lanes = 0
    assert study._interval(Outcome(3.0, spread, own)) == sandwich(3.0, spread, 0.9)
    given = sandwich(5.0, spread, 0.5)
    assert study._interval(Outcome(3.0, spread, interval=given)) is given
    nothing = study._interval(Outcome(3.0))
    assert nothing.name == "none"
    assert np.isnan([nothing.low, nothing.high, nothing.standard_error]).all()


@pytest.mark.parametrize(("rows", "units", "count"), [(80.0, 90, 80.0), (80.0, 70, 70)])
def test_where_all_episodes_agree_the_rule_of_three_counts_what_ratios_leave(rows, units, count):
    study = asked(survey=survey_of(rows, units), weighed=SimpleNamespace(units=units))
    for error, flat in ((2e-6, True), (2.1e-6, False)):
        made = study._interval(Outcome(-2.0, interval=Interval(-2.1, -1.9, "made", error)))
        reach = 2.0 * (1.0 - 0.1 ** (1.0 / count))
        assert made.high + 2.0 == pytest.approx(reach if flat else 0.1, rel=1e-9)
    zero = Interval(0.0, 0.0, "made", 0.0)
    assert study._interval(Outcome(0.0, interval=zero)) is zero


def test_another_estimate_is_off_by_its_distance_beyond_two_errors():
    base = SimpleNamespace(
        approximation=0.25, value=3.0, interval=SimpleNamespace(standard_error=0.5)
    )
    study = asked(reference=base)
    assert study.beside(3.5) == 0.25
    assert study.beside(5.0) == 1.0
    assert study.beside(1.0) == 1.0
    assert study.beside(5.0, 0.0) == 2.0
    assert study.beside(5.0, 3.0) == 0.5
    assert study.beside(np.nan) is None
    base.approximation = None
    assert study.beside(3.0) is None
    base.approximation, base.value = 0.25, np.inf
    assert study.beside(3.0) is None


def test_columns_of_estimators_and_of_corrections_that_are_traced():
    reference = SimpleNamespace(name="lstd", column=-1, short={4: 7, 9: 8})
    others = [SimpleNamespace(name="wis", column=2), SimpleNamespace(name="sotd")]
    study = asked(_reference=reference, estimators=others, choice=SimpleNamespace(exact=False))
    assert study.columns() == {"lstd": -1, "wis": 2, "short 4": 7, "short 9": 8}
    study.choice.exact = True
    assert study.columns() == {"lstd": -1, "wis": 2}


@pytest.mark.parametrize(
    ("lacks", "width", "unknown", "there"),
    [(None, 512, 0, True), ("action", 512, 0, False), ("target_probs", 512, 0, False),
     ("next_target_probs", 512, 0, False), (None, 513, 0, False), (None, 512, 1, False)],
)  # fmt: skip
def test_action_values_need_probabilities_of_all_actions_and_not_too_many_features(
    lacks, width, unknown, there
):
    rows = {"next_target_probs": 1, "target_probs": 1, "action": 1}
    survey = survey_of()
    survey.unknown = unknown
    for ridge, wanted in ((0.0, 1e-8), (1e-3, 1e-3)):
        states = SimpleNamespace(uses_ratios=False, tabular=False)
        lead = SimpleNamespace(ridge=ridge)
        choice = SimpleNamespace(width=width, states=states, lead=lead, exact=True)
        sample = SimpleNamespace(rows=SimpleNamespace(**rows | {lacks: None} if lacks else rows))
        study = asked(survey=survey, choice=choice, sample=sample)
        found = study.action_values
        assert (found is not None) == there
        if found is not None:
            assert found.ridge == wanted
            assert found.basis.n_actions == 2
            assert study.corrected is found
            choice.exact = False
        assert study.corrected is (found if found and choice.exact else lead)


def test_models_know_actions_only_where_all_their_probabilities_are_logged():
    for probs, action, n, wanted in ((1, 1, 2, 2), (None, 1, 2, 1), (1, None, 2, 1), (1, 1, 0, 1)):
        sample = SimpleNamespace(rows=SimpleNamespace(target_probs=probs, action=action))
        study = asked(sample=sample, survey=survey_of(actions=n))
        found = study.model(SimpleNamespace(), 7)
        assert (found.actions, found.steps, found.gamma, found.wanted) == (wanted, 7, 0.9, 200)


def test_every_dropped_last_row_is_missing_also_where_its_start_is_not_held(monkeypatch):
    """Six episodes lose their only row, of which two starts are held, and one its third."""
    monkeypatch.setattr("o2td.sources.stream._WAITING", 2)
    sizes = [2, *[1] * 6, 3, 2]
    episode = np.repeat(np.arange(9), sizes)
    step = np.concatenate([np.arange(n) for n in sizes])
    log = pd.DataFrame({"episode": episode, "step": step, "state": step, "reward": 1.0, "rho": 1.0})
    log["terminated"] = np.isin(episode, [0, 8]) & (step == 1)
    study = Study(Log(open_logs(log, discount=0.9)), Settings())
    study.log.collect(study.survey)
    assert study.source.info.dropped == {"no final observation": 7}
    assert 0 < study.survey.weighed.lone < 6
    assert study.grounds.hastened == study.survey.hastened(7) > 0.0


def test_the_reference_is_judged_first_and_once():
    reference, other = object(), object()
    study = asked(reference=reference)
    assert study.judged([other, reference]) == [reference, other]
    assert study.judged([other]) == [reference, other]
