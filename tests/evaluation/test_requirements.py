"""Requirements: what they may say, and when they hold."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from o2td.errors import InputError
from o2td.evaluation.requirements import Quantity, check, of_evaluation, parse


def test_the_approximation_error_counts_on_the_deciding_side():
    found = Quantity("value", 1.0, 0.8, 1.2, 0.3, "trust")
    assert check("value > 0.6", lambda _: found).holds is None
    assert check("value > 0.4", lambda _: found).holds is True
    assert check("value > 1.4", lambda _: found).holds is None
    assert check("value > 1.6", lambda _: found).holds is False
    lost = Quantity("value", 1.0, 0.8, 1.2, 0.0, "cannot answer")
    assert check("value > 0", lambda _: lost).holds is None


@pytest.mark.parametrize(
    "text",
    ["", "value", "value >", "> 3", "value > 3 4", "value ! 3", "1 > 0", "a - b - c > 0", "a + b > 0",
     "value > __import__('os')", "value >> 3", "value > 1 > 0"],
)  # fmt: skip
def test_what_is_no_requirement_is_refused_in_a_sentence(text):
    with pytest.raises(InputError, match="requirement"):
        parse(text)


def test_names_that_are_no_words_stand_in_quotes():
    found = parse("\"new policy\" - 'old-1' > -0.5")
    assert (found.plus, found.minus, found.bar) == ("new policy", "old-1", -0.5)


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


def answer(**given):
    """As much of an evaluation as a requirement asks for."""
    row = {"value": 1.5, "low": 1.0, "high": 2.0, "verdict": "trust"}
    best = SimpleNamespace(as_dict=lambda: row)
    lift = SimpleNamespace(as_dict=lambda: {**row, "value": 0.5, "low": 0.25, "high": 0.75})
    logged = {"value": 1.0, "low": 0.5, "high": 1.25}
    parts = {"recommended": best, "verdict": "trust", "logged": logged, "lift": lift}
    return SimpleNamespace(**parts | given)


@pytest.mark.parametrize(
    ("text", "holds", "words"),
    [
        ("value > 0.9", True, "holds, value is 1.5 [1, 2]"),
        ("logged > 0.4", True, "holds, logged is 1 [0.5, 1.25]"),
        ("logged > 1.25", False, "does not hold, logged is 1 [0.5, 1.25]"),
        ("lift > 0.2", True, "holds, lift is 0.5 [0.25, 0.75]"),
        ("value > logged", True, "holds, lift is 0.5 [0.25, 0.75]"),
        ("value - logged > 0.75", False, "does not hold, lift is 0.5 [0.25, 0.75]"),
    ],
)
def test_an_answer_knows_its_value_that_of_the_log_and_the_lift(text, holds, words):
    told = of_evaluation(answer(), text)
    assert (told.holds, told.words) == (holds, words)
    assert str(told) == f"{text}: {words}"
    assert told.as_dict() == {"requirement": text, "holds": holds, "words": words}


@pytest.mark.parametrize(
    ("text", "given", "wrong"),
    [
        ("lift > 0", {"lift": None}, "'lift' is not known here"),
        ("value > logged", {"lift": None}, "value - logged is not known here"),
        ("logged > 0", {"logged": {}}, "'logged' is not known here"),
        ("logged > 0", {"logged": {"value": None}}, "'logged' is not known here"),
        ("lift - value > 0", {}, "lift - value is not known here"),
        ("cvar(0.1) > value", {}, "cvar.0.1. - value is not known here"),
        ("value > other", {}, "'other' is not known here"),
        ("cvar(9) > 0", {}, "cvar.9. has no share between 0 and 1; write cvar.0.1."),
    ],
)
def test_what_an_answer_does_not_know_is_refused(text, given, wrong):
    with pytest.raises(InputError, match=wrong):
        of_evaluation(answer(**given), text)


def test_the_verdict_of_the_answer_counts_and_not_that_of_its_estimate():
    told = of_evaluation(answer(verdict="cannot answer"), "value > 0")
    assert (told.holds, told.words) == (None, "undecided: the log cannot answer")


def test_requirements_on_returns_ask_for_their_level():
    asked = []

    def returns(quantiles, cvar):
        asked.append((quantiles, cvar))
        row = {"value": 3.0, "low": 2.0, "high": 4.0, "verdict": "trust"}
        return [SimpleNamespace(as_dict=lambda: row)]

    for text in ("cvar(0.2) > 1", "quantile(.75) > 1"):
        told = of_evaluation(answer(returns=returns), text)
        assert told.words == f"holds, {text.split()[0]} is 3 [2, 4]"
    assert asked == [([], 0.2), ([0.75], None)]
