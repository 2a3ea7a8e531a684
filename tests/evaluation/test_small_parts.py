"""Small parts of an evaluation by themselves, against what they promise and numbers by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.sparse import csr_array

from o2td.errors import FormatError, InputError, O2TDError
from o2td.evaluation import Thresholds, ValueModel, bootstrap, evaluate, load_model
from o2td.evaluation.arguments import check_arguments, method_names
from o2td.evaluation.basis import apply
from o2td.evaluation.histories import Horizon, effective, padded_sum
from o2td.evaluation.log_tests import score
from o2td.evaluation.moments import Spread
from o2td.evaluation.output import json_text, write_page
from o2td.evaluation.past import CHOICES, Past
from o2td.evaluation.requirements import Quantity, check, parse
from o2td.evaluation.result import Estimate
from o2td.evaluation.survey import folds_of
from o2td.features import Fourier, Tabular

GOOD = {"confidence": 0.9, "seed": 0, "trace": None, "lanes": 50, "thresholds": None}
GOOD |= {"features": "fourier:3", "horizon": None}


@pytest.mark.parametrize(
    ("name", "good", "bad", "said"),
    [
        ("horizon", [1, 25, np.int64(3)], [0, -1, 2.0, "3", True], "is not a number of steps"),
        ("confidence", [0.001, 0.5, 0.999], [0.0, 1.0, -0.5, 1.5, True, "a"], "between 0 and 1"),
        ("seed", [0, 7, (1, 2), [3], np.array([4, 5])], [-1, 0.5, (), (1, -2), True], "from 0 up"),
        ("lanes", [0, 20, 100_000], [1, 19, 100_001, -20, 20.0, True], "at least 20, at most 100,000"),
        ("thresholds", [None, Thresholds()], [{}, 3], "is not a table of thresholds"),
        ("trace", [None, 0.0, 0.5, 1.0], [-0.01, 1.01, "a", True], r"is not in \[0, 1\]"),
    ],
)  # fmt: skip
def test_arguments_at_their_bounds(name, good, bad, said):
    for one in good:
        check_arguments(**{**GOOD, name: one})
    for one in bad:
        with pytest.raises(InputError, match=said) as caught:
            check_arguments(**{**GOOD, name: one})
        assert str(caught.value).startswith(name)


def test_traces_are_chosen_with_the_features():
    check_arguments(**{**GOOD, "features": "auto", "trace": 0.0})
    with pytest.raises(InputError, match=r"trace: 0\.5 cannot be combined with features"):
        check_arguments(**{**GOOD, "features": "auto", "trace": 0.5})


def test_tables_of_features():
    table = np.arange(6.0).reshape(3, 2)
    for good in (table, table.astype(int), table > 2, csr_array(table)):
        check_arguments(**{**GOOD, "features": good})
    for bad in (table[0], table[:, :0], table[:0], table[None]):
        with pytest.raises(InputError, match=r"pass \(S, d\), a row of features for each state"):
            check_arguments(**{**GOOD, "features": bad})
    for bad in (table.astype(str), table.astype(complex), table.astype(object)):
        with pytest.raises(InputError, match=r"a table of .*; pass numbers"):
            check_arguments(**{**GOOD, "features": bad})
    table[2, 0] = np.nan
    with pytest.raises(InputError, match="one of state 2 is not a finite number"):
        check_arguments(**{**GOOD, "features": table})
    with pytest.raises(InputError, match="features: one is not a finite number"):
        check_arguments(**{**GOOD, "features": csr_array(table)})


def test_names_of_methods():
    assert method_names(None) == (None, False)
    assert method_names(" ALL ") == (None, True)
    assert method_names("lstd, WIS,lstd") == (["lstd", "wis"], False)
    assert method_names(("dr", " is ")) == (["dr", "is"], False)
    for bad, said in [
        ("", "none is named"), ([], "none is named"), (3, "is not a list of names"),
        ("lstd,no", "'no' is not known"), ([1], "1 is not known"), ("lstd,", "'' is not known"),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=f"^methods: .*{said}"):
            method_names(bad)


# -- features ------------------------------------------------------------------------------------------


def test_features_are_rows_of_a_table_or_what_a_map_returns():
    table, states = np.arange(6.0).reshape(3, 2), np.array([2, 0])
    np.testing.assert_array_equal(apply(table, states), table[states])
    np.testing.assert_array_equal(apply(lambda s: table[s] + 1.0, states), table[states] + 1.0)
    with pytest.raises(InputError, match="state 3 is in the log, the table has 3 rows"):
        apply(table, np.array([0, 3]))
    with pytest.raises(InputError, match=r"a table of features needs a log with states"):
        apply(table, np.zeros((2, 1)))
    for wrong in (lambda s: table, lambda s: s * 1.0, lambda s: [[1.0]]):
        with pytest.raises(InputError, match=r"features: returned shape .* for 2 rows"):
            apply(wrong, states)
    with pytest.raises(InputError, match="not a finite number for 5; correct the feature map"):
        apply(lambda s: np.where(s[:, None] == 5, np.inf, table[:1]), np.array([1, 5]))
    with pytest.raises(InputError, match="not a finite number for some input"):
        apply(lambda s: csr_array(np.full((2, 2), np.nan)), states)


# -- models of values ----------------------------------------------------------------------------------


STATE = ValueModel(np.array([0.5, 2.0]), Tabular(2).fit(), ("state",), True, "LSTD", 0.9)
ACTION = ValueModel(np.array([[1.0, 2.0], [3.0, 5.0]]), Tabular(2).fit(), ("state",), True, "Q")


def test_action_values_need_probabilities():
    np.testing.assert_array_equal(ACTION.action_values([1, 0]), [[2.0, 5.0], [1.0, 3.0]])
    np.testing.assert_allclose(ACTION.predict([1, 0], [[0.5, 0.5], [1.0, 0.0]]), [3.5, 1.0])
    with pytest.raises(InputError, match="Q gives action values; pass the policy's probabilities"):
        ACTION.predict([0])
    with pytest.raises(InputError, match=r"probabilities: shape \(1, 3\), expected \(1, 2\)"):
        ACTION.predict([0], np.ones((1, 3)))
    with pytest.raises(InputError, match="LSTD has values of states, not of actions"):
        STATE.action_values([0])
    with pytest.raises(InputError, match=r"rows must be \(n, k\) observations or \(n,\) states"):
        STATE.predict(np.zeros((1, 1, 1)))


def test_tables_of_predictions():
    found = ACTION.table([1, 0], [[0.5, 0.5], [1.0, 0.0]])
    assert list(found) == ["state", "value", "value_0", "value_1"]
    np.testing.assert_allclose(found["value"], [3.5, 1.0])
    np.testing.assert_allclose(found["value_1"], [5.0, 3.0])
    assert list(ACTION.table([1])) == ["state", "value_0", "value_1"]
    nothing = ValueModel(STATE.theta, STATE.features, (), True, "LSTD")
    assert list(nothing.table([0, 1])) == ["value"]
    taken = ValueModel(STATE.theta, STATE.features, ("value_1",), True, "LSTD")
    assert list(taken.table([0, 1])) == ["value_1", "predicted_value"]
    with pytest.raises(InputError, match="rows: 2 columns, the model takes 1: state"):
        STATE.table(np.zeros((3, 2)))


def test_models_in_files(tmp_path):
    file = tmp_path / "model.npz"
    wave = ValueModel(
        np.arange(4.0), Fourier(3, bounds=[(0, 1)]).fit(), ("x",), False, "LSTD", None
    )
    for model in (STATE, ACTION, wave):
        model.save(file)
        again = load_model(file)
        assert vars(again) | {"theta": 0, "features": 0} == vars(model) | {
            "theta": 0,
            "features": 0,
        }
        np.testing.assert_array_equal(again.theta, model.theta)
    with pytest.raises(
        InputError, match="ndarray has no state_dict, so the model cannot be written"
    ):
        ValueModel(np.ones(2), np.eye(2), ("state",), True, "LSTD").save(file)
    for wrong in (np.ones(3), np.array([1.0, np.nan]), np.ones((1, 1, 2))):
        ValueModel(wrong, Tabular(2).fit(), ("state",), True, "LSTD").save(file)
        with pytest.raises(FormatError, match=r"does not hold a value model .its parts do not fit"):
            load_model(file)
    ValueModel(np.ones(2), Tabular(2).fit(), (), True, "LSTD").save(file)
    with pytest.raises(FormatError, match="does not hold a value model"):
        load_model(file)


# -- requirements --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("value > 3", ("value", None, True, 3.0, True)),
        ("3 > value", ("value", None, False, 3.0, True)),
        ("value - 2 >= 1 - 4", ("value", None, True, -1.0, False)),
        ("-value < -3", ("value", None, True, 3.0, True)),
        ("b > a", ("b", "a", True, 0.0, True)),
        ("b - a > 0.5 + 1", ("b", "a", True, 1.5, True)),
        ("b <= a - 2", ("b", "a", False, -2.0, False)),
        ("a + b - a < --2", ("b", None, False, 2.0, True)),
        ("a > - -2", ("a", None, True, 2.0, True)),
    ],
)  # fmt: skip
def test_requirements_are_read_as_one_side_against_a_bar(text, found):
    one = parse(text)
    plus, minus, above, bar, strict = found
    if one.plus != plus:  # the same the other way round
        plus, minus, above, bar = minus, plus, not above, -bar
    assert (one.plus, one.minus, one.above, one.bar, one.strict) == (
        plus,
        minus,
        above,
        bar,
        strict,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("> 3", "'>' is out of place"), ("a > > 3", "'>' is out of place"),
        ("a > 1 > 0", "'>' is out of place"), ("a > 3 4", "nothing joins '4' to what comes before"),
        ("a b > 3", "nothing joins 'b'"), ("a", "one of >, >=, <, <= and a side after it are missing"),
        ("a >", "something is missing at its end"), ("a > 3 +", "something is missing at its end"),
        ("1 > 0", "it must be about one value"), ("a + b > 0", "it must be about one value"),
        ("a - b - c > 0", "it must be about one value"), ("a + a > 0", "it must be about one value"),
        ("a > 3 !", "'!' cannot be read"), ("a > a", "it must be about one value"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_requirement_is_said(text, said):
    with pytest.raises(InputError, match=said.replace("+", r"\+").replace(">,", ">,")):
        parse(text)


@pytest.mark.parametrize(
    ("text", "low", "high", "holds"),
    [
        ("v > 1", 1.0, 2.0, None), ("v >= 1", 1.0, 2.0, True), ("v > 1", 1.01, 2.0, True),
        ("v > 2", 1.0, 2.0, False), ("v >= 2", 1.0, 2.0, None), ("v >= 2.1", 1.0, 2.0, False),
        ("v < 2", 1.0, 2.0, None), ("v <= 2", 1.0, 2.0, True), ("v < 1", 1.0, 2.0, False),
        ("v <= 1", 1.0, 2.0, None), ("v <= 0.9", 1.0, 2.0, False), ("v < 3", None, 2.0, None),
        ("v < 3", 1.0, None, None),
    ],
)  # fmt: skip
def test_a_requirement_holds_where_the_whole_interval_does(text, low, high, holds):
    told = check(text, lambda _: Quantity("v", 1.5, low, high, None, "trust"))
    assert told.holds is holds
    words = {True: "holds", False: "does not hold", None: "undecided"}[holds]
    assert told.words.startswith(words)
    if low is None or high is None:
        assert told.words == f"{words}, v has no estimate"


def test_quantities_in_words():
    row = {"value": 1.5, "low": 1.0, "high": 2.0}
    assert str(Quantity.of("v", row)) == "v is 1.5 [1, 2]"
    assert Quantity.of("v", row).verdict == "trust"
    wide = Quantity.of("v", row | {"approximation_error": 0.25, "verdict": "caution"})
    assert str(wide) == "v is 1.5 [1, 2] ± 0.25 of approximation error"
    assert wide.verdict == "caution"
    lost = check("v > 0", lambda _: Quantity("v", 1.5, 1.0, 2.0, 0.0, "cannot answer"))
    assert (lost.holds, lost.words) == (None, "undecided: the log cannot answer")


def test_an_interval_covers_its_ends():
    one = Estimate("lstd", 1.0, 0.5, 1.5, "sandwich", 0.25, "trust", "")
    assert [one.covers(x) for x in (0.49, 0.5, 1.0, 1.5, 1.51)] == [False, True, True, True, False]
    assert [one.covers(x, True) for x in (0.24, 0.25, 1.75, 1.76)] == [False, True, True, False]
    for low, high in [(None, 2.0), (0.0, None)]:
        assert not Estimate("lstd", 1.0, low, high, "", None, "trust", "").covers(1.0)
    assert Estimate("lstd", 1.0, 0.5, 1.5, "", None, "trust", "").covers(1.5, True)


# -- chances -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("freedom", [3.0, 10.0, 200.0])
@pytest.mark.parametrize("share", [0.5, 0.05, 0.001])
def test_chances_of_chi_square(freedom, share):
    value = stats.chi2.isf(share, freedom)
    assert score.chi_square_chance(value, freedom) == pytest.approx(share, rel=0.15)
    assert score.chi_square_chance(value, 0.0) == score.chi_square_chance(value, -1.0) == 1.0


@pytest.mark.parametrize("mean", [0.3, 4.0, 49.0, 50.0, 51.0, 400.0])
def test_chances_of_poisson(mean):
    for count in (0, 1, int(mean) + 1, int(mean + 2 * mean**0.5)):
        exact = stats.poisson.sf(count - 1, mean)
        assert score.poisson_chance(count, mean) == pytest.approx(exact, rel=0.15, abs=1e-12)
        if mean <= 50.0:
            assert score.poisson_chance(count, mean) == pytest.approx(exact, rel=1e-9)


def test_chances_of_normal():
    for z in (-2.0, 0.0, 0.5, 3.0):
        assert score.two_sided(z) == pytest.approx(2.0 * stats.norm.sf(abs(z)), rel=1e-12)


def test_few_rows_say_nothing_about_logged_probabilities():
    state, pair = np.zeros(3, dtype=int), np.array([0, 1, 0])
    assert score.excess_chance(np.full(3, 0.5), state, pair) == 1.0


# -- what is printed and written -----------------------------------------------------------------------


def two_segments(tmp_path=None, parts=1, **columns):
    """Ninety episodes of two rows; seventy start in state 0, twenty in state 1."""
    rng = np.random.default_rng(1)
    episode = np.repeat(np.arange(90), 2)
    first = np.arange(180) % 2 == 0
    log = pd.DataFrame({"episode": episode, "state": np.where(first, episode >= 70, 2)})
    log = log.astype({"state": int}).assign(reward=rng.normal(size=180), terminated=~first, rho=1.0)
    log = log.assign(**columns)
    if tmp_path is None:
        return log
    for k, part in enumerate(np.array_split(np.arange(90), parts)):
        log[log["episode"].isin(part)].to_parquet(tmp_path / f"{k}.parquet")
    return tmp_path


def test_segments_are_printed_with_their_starts_and_verdicts():
    bounds = Thresholds(episodes_none=30, episodes_caution=100)
    answer = evaluate(
        two_segments(), discount=0.9, segments="state", methods="lstd", thresholds=bounds
    )
    large, small = answer.segments
    assert [(one.segment, one.starts) for one in answer.segments] == [("0", 70), ("1", 20)]
    assert "only 70 episodes start here" in large.reasons
    assert small.verdict == "cannot answer"
    assert "20 episodes start here: too few to know where they start" in small.reasons
    lines = str(answer).splitlines()
    (head,) = [k for k, line in enumerate(lines) if line.startswith("segment")]
    assert lines[head].split()[:4] == ["segment", "starts", "value", "95%"]
    first, second = lines[head + 1 : head + 3]
    assert first.split()[:2] == ["0", "70"]
    assert float(first.split()[2]) == pytest.approx(large.value, abs=0.01)
    assert second.split()[:2] == ["1", "20"]
    assert "cannot answer: " in " ".join(lines[head + 2 : head + 5])
    assert "cannot answer" not in first
    assert lines[head - 1] == ""


def test_a_function_of_segments_gives_one_label_for_each_start():
    with pytest.raises(InputError, match=r"the function returned 1 labels for \d+ rows"):
        evaluate(two_segments(), discount=0.9, segments=lambda s: ["all"], methods="lstd")


def test_many_files_are_counted(tmp_path):
    answer = evaluate(two_segments(tmp_path, 7), discount=0.9, methods="lstd", lanes=0)
    said = str(answer)
    assert sum(f"{k}.parquet: " in said for k in range(7)) == 5
    assert "and 2 more files" in said
    five = evaluate([tmp_path / f"{k}.parquet" for k in range(5)], discount=0.9, methods="lstd")
    assert "more files" not in str(five)


def test_json_and_pages(tmp_path):
    assert json_text({"a": [1, None]}) == '{"a": [1, null]}'
    assert json_text({"a": 1}, 0) == '{\n"a": 1\n}'
    assert json_text({"a": 1}, 2) == '{\n  "a": 1\n}'
    for bad in (-1, 101, 1.5):
        with pytest.raises(InputError, match="indent"):
            json_text({"a": 1}, bad)
    assert write_page(tmp_path / "page.html", b"<p>") == tmp_path / "page.html"
    assert (tmp_path / "page.html").read_bytes() == b"<p>"
    with pytest.raises(O2TDError, match=r"page\.html: cannot be written .*; nothing was changed"):
        write_page(tmp_path / "none" / "page.html", b"<p>")


def test_traces_need_features_that_states_share():
    with pytest.raises(InputError, match=r"trace: 0\.5 needs features that states share"):
        evaluate(two_segments(), discount=0.9, features="tabular", trace=0.5)
    with pytest.raises(
        InputError, match=r"fourier.* needs columns of observations, and the log gives"
    ):
        evaluate(two_segments(), discount=0.9, features="fourier:2")


# -- numbers of states with their past, and sums by step ---------------------------------------------


@pytest.mark.parametrize("parts", CHOICES, ids=" ".join)
def test_every_past_has_a_number_of_its_own(parts):
    """States 0 to 2; previous action, state and reward, or 0 for none; steps up to 4."""
    past = Past(parts, 3, 2, 4)
    sizes = {"action": 3, "state": 4, "reward": 3, "step": 6}
    names = ("action", "state", "reward", "step")
    ranges = [range(sizes[name] if name in parts else 1) for name in names]
    every = np.array(list(itertools.product(range(3), *ranges)))
    codes = past.code(*every.T)
    assert len(np.unique(codes)) == len(every)
    assert codes.min() == 0
    assert codes.max() == len(every) - 1  # without gaps
    np.testing.assert_array_equal(
        past.state_of([2, 0]), past.code(*np.array([[2, 0], *[[0, 0]] * 4]))
    )
    assert past.fits
    assert not Past(parts, 2**31, 2, 4).fits
    assert Past(parts, 2**20, 2, 1000).fits


def test_a_past_in_words():
    assert str(Past(("action",), 1, 1, 1)) == "state with the previous action"
    assert str(Past(("step", "reward"), 1, 1, 1)) == "state with the step and previous reward"


def test_sums_by_step_where_weights_are_small_or_zero():
    """Two episodes end at step 1 and 2 with weights 0.2 and 0.3; a third has weight 0 from step 1."""
    alive = np.array([1.5, 0.5, 0.3])
    horizon = Horizon(
        weight=alive,
        square=np.array([1.0, 0.13, 0.09]),
        number=np.array([3.0, 0.1, 0.15]),
        ended=np.array([0.0, 0.2, 0.3]),
        ended_square=np.array([0.0, 0.04, 0.09]),
    )
    total = np.array([1.5, 0.5, 0.5])  # those that ended keep their weight
    np.testing.assert_allclose(horizon.total, total)
    np.testing.assert_allclose(horizon.inverse, 1.0 / total)
    np.testing.assert_allclose(horizon.weighted(), np.array([3.0, 0.1, 0.15]) / total)
    squares = np.array([1.0, 0.13, 0.13])
    np.testing.assert_allclose(horizon.effective_size, total**2 / squares)
    none = Horizon(*np.zeros((5, 2)))
    np.testing.assert_array_equal(none.weighted(), 0.0)
    np.testing.assert_array_equal(none.inverse, 0.0)
    np.testing.assert_array_equal(none.effective_size, 0.0)
    np.testing.assert_array_equal(padded_sum(np.array([1.0]), np.array([2.0, 3.0])), [3.0, 3.0])
    np.testing.assert_array_equal(padded_sum(np.array([2.0, 3.0]), np.array([1.0])), [3.0, 3.0])
    assert effective(3.0, 4.5) == 2.0
    assert effective(3.0, 0.0) == 0.0


def test_intervals_by_their_formulas():
    """BCa by Efron's formula with t levels, on lanes whose quantiles are known."""
    rng = np.random.default_rng(2)
    x = rng.exponential(size=40)
    spread = Spread.of(x, np.arange(40, dtype=np.uint64), seed=0, lanes=500)
    plain = bootstrap.sandwich(1.5, spread, 0.9)
    error = np.std(x) / np.sqrt(40) * np.sqrt(40 / 39)
    assert plain.standard_error == pytest.approx(error, rel=0.02)
    reach = stats.t.ppf(0.95, 39) * spread.error
    assert (plain.low, plain.high) == pytest.approx((1.5 - reach, 1.5 + reach))
    value, lanes = float(x.mean()), spread.lanes
    found = bootstrap.bca(value, lanes, spread, 0.9)
    z0, a = stats.norm.ppf((lanes < value).mean()), spread.skew / 6.0
    z = stats.t.ppf(0.95, 39) * np.sqrt(40 / 39)
    levels = [stats.norm.cdf(z0 + (z0 + s * z) / (1.0 - a * (z0 + s * z))) for s in (-1, 1)]
    low, high = np.quantile(lanes, levels)
    assert found.low == pytest.approx(low, rel=0.01)
    assert found.high == pytest.approx(high, rel=0.01)
    assert found.name.startswith("BCa")
    for few in (lanes[:19], np.append(lanes[:19], np.nan)):
        assert bootstrap.bca(value, few, spread, 0.9).name == "clustered sandwich"
    assert bootstrap.bca(value, lanes[:20], spread, 0.9).name.startswith("BCa")
    assert bootstrap.bca(np.nan, lanes, spread, 0.9).name == "clustered sandwich"


def test_folds_depend_on_keys_alone_and_are_even():
    key = np.random.default_rng(0).integers(0, 2**64, 6000, dtype=np.uint64)
    fold = folds_of(key, 5)
    assert set(fold) == set(range(5))
    assert np.abs(np.bincount(fold) - 1200).max() < 5 * np.sqrt(1200)
    np.testing.assert_array_equal(folds_of(key[::-1], 5), fold[::-1])
    mixed = [((int(k) ^ (int(k) >> 29)) * 0xD1B54A32D192ED03) % 2**64 for k in key[:50]]
    assert fold[:50].tolist() == [(word >> 33) % 5 for word in mixed]
