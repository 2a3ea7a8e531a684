"""Every registered learner, in every setting, against every check."""

from __future__ import annotations

import pytest

from o2td.checks import BoundCheck, all_checks, check_learner
from o2td.learners import GTD2, HTD, TDC, TDRC


@pytest.mark.parametrize("check", all_checks("learners"), ids=str)
def test_learner(check: BoundCheck) -> None:
    check()


@pytest.mark.parametrize("kind", [TDC, TDRC, GTD2, HTD])
def test_a_second_step_size_that_is_given_fails_no_check(kind: type) -> None:
    assert "drift" in check_learner(kind(0.01, second_step_size=0.01)).passed
