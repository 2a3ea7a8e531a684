"""Tests of the log, comparisons, returns and printed pages say what they said, to the number."""

from __future__ import annotations

import pytest

from tests.evaluation import golden_details


def test_every_account_is_kept_and_every_test_of_a_log_is_alarmed_somewhere():
    assert list(golden_details.kept()) == list(golden_details.ACCOUNTS)
    tests = [
        one for account in golden_details.kept().values() for one in account.get("tests") or ()
    ]
    alarmed = {one["name"] for one in tests if one["verdict"] != "trust"}
    assert alarmed == {one["name"] for one in tests}
    assert len(alarmed) >= 9


@pytest.mark.parametrize("name", golden_details.ACCOUNTS)
def test_account_is_as_before(name: str):
    found = golden_details.differences(name)
    assert not found, "\n".join(found)
