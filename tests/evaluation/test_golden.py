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
    found = list(golden.differences(KEPT[name], golden.account(name), name))
    assert not found, "\n".join(found)


def test_differences_are_found():
    before = {"a": [1.0, None], "b": "word", "c": 1}
    after = {"a": [1.0 + 1e-8, None], "b": "word", "d": 1}
    assert [line.partition(":")[0] for line in golden.differences(before, after, "x")] == [
        "x.a[0]",
        "x.c",
        "x.d",
    ]
