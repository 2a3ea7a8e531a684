"""Every registered learner, in every setting, against every check."""

from __future__ import annotations

import pytest

from o2td.checks import BoundCheck, all_checks


@pytest.mark.parametrize("check", all_checks("learners"), ids=str)
def test_learner(check: BoundCheck) -> None:
    check()
