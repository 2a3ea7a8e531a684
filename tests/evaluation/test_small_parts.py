"""Small parts of an evaluation by themselves, against what they promise and numbers by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td.errors import FormatError, InputError
from o2td.evaluation import Estimate, Thresholds, ValueModel, evaluate, load_model
from o2td.features import Fourier, Tabular

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


def test_an_interval_covers_its_ends():
    one = Estimate("lstd", 1.0, 0.5, 1.5, "sandwich", 0.25, "trust", "")
    assert [one.covers(x) for x in (0.49, 0.5, 1.0, 1.5, 1.51)] == [False, True, True, True, False]
    assert [one.covers(x, True) for x in (0.24, 0.25, 1.75, 1.76)] == [False, True, True, False]
    for low, high in [(None, 2.0), (0.0, None)]:
        assert not Estimate("lstd", 1.0, low, high, "", None, "trust", "").covers(1.0)
    assert Estimate("lstd", 1.0, 0.5, 1.5, "", None, "trust", "").covers(1.5, True)


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


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        *(
            (lambda s, one=one: one, "for .* rows; return one label")
            for one in (3, None, "abc", {})
        ),
        (len, "for .* rows; return one label for each"),
        (lambda s: np.zeros((len(s), 2)), "for .* rows; return one label for each"),
        (lambda s: np.zeros((len(s), 1)), "for .* rows; return one label for each"),
        (lambda s: [[1], [2, 3]], "for .* rows; return one label for each"),
        (lambda s: np.ma.masked_array(s, mask=True), "for .* rows; return one label for each"),
        (lambda s: np.where(s == 0, np.nan, 1.0), "nan.* in place of a label; return one for each"),
        (lambda s: [None if one else "a" for one in s], "None in place of a label"),
        (lambda s: pd.Series(["a"] * len(s)).where(s == 1, pd.NA), "in place of a label"),
        (lambda s: np.where(s == 0, np.datetime64("NaT"), np.datetime64("2020")), "place of a lab"),
    ],
)
def test_a_function_of_segments_that_gives_no_labels_is_refused(answer, said):
    with pytest.raises(InputError, match=f"segments: the function returned .*{said}"):
        evaluate(two_segments(), discount=0.9, segments=answer, methods="lstd", lanes=0)


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pd.Categorical, tuple])
def test_labels_of_any_sequence(kind):
    def labels(states):
        return kind(["north" if one else "south" for one in states])

    found = evaluate(two_segments(), discount=0.9, segments=labels, methods="lstd", lanes=0)
    assert {one.segment for one in found.segments} == {"north", "south"}


def test_many_files_are_counted(tmp_path):
    answer = evaluate(two_segments(tmp_path, 7), discount=0.9, methods="lstd", lanes=0)
    said = str(answer)
    assert sum(f"{k}.parquet: " in said for k in range(7)) == 5
    assert "and 2 more files" in said
    five = evaluate([tmp_path / f"{k}.parquet" for k in range(5)], discount=0.9, methods="lstd")
    assert "more files" not in str(five)


def test_traces_need_features_that_states_share():
    with pytest.raises(InputError, match=r"trace: 0\.5 needs features that states share"):
        evaluate(two_segments(), discount=0.9, features="tabular", trace=0.5)
    with pytest.raises(
        InputError, match=r"fourier.* needs columns of observations, and the log gives"
    ):
        evaluate(two_segments(), discount=0.9, features="fourier:2")
