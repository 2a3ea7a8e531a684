"""Every value, interval, verdict and reason is what it was, on logs of all kinds."""

from __future__ import annotations

import pytest

from tests.evaluation import golden

KEPT = golden.kept()


def test_logs_of_all_kinds_are_kept():
    assert list(KEPT) == list(golden.CASES)
    assert len(KEPT) >= 30
    listed = [estimate for one in KEPT.values() for estimate in one["estimates"]]
    words = {estimate["verdict"] for estimate in listed if "verdict" in estimate}
    assert words == {"trust", "caution", "cannot answer"}


@pytest.mark.parametrize("name", golden.CASES)
def test_answer_is_as_before(name: str):
    found = list(golden.compared(name, golden.account(name)))
    assert not found, "\n".join(found)


def test_what_rounding_decides_is_no_difference():
    before = {"low": -2.03e15, "more": 13 * 10**34, "said": "the interval is ±4.03e+15, wider than"}
    after = {"low": -2.3e15, "more": 87 * 10**33, "said": "the interval is ±3.3e+15,  wider than"}
    assert not list(golden.differences(before, after, "x"))
    for other in ({**after, "low": 2.3e15}, {**after, "more": 3}, {**after, "said": "±3.3e+5"}):
        assert len(list(golden.differences(before, other, "x"))) == 1


def test_differences_are_found():
    before = {"a": [1.0, None], "b": "word", "c": 1}
    after = {"a": [1.0 + 1e-8, None], "b": "word", "d": 1}
    assert [line.partition(":")[0] for line in golden.differences(before, after, "x")] == [
        "x.a[0]",
        "x.c",
        "x.d",
    ]
