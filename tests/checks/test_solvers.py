"""Every registered solver, in every setting, against every check."""

from __future__ import annotations

import pytest

from o2td.checks import BoundCheck, all_checks


@pytest.mark.parametrize("check", all_checks("solvers"), ids=str)
def test_solver(check: BoundCheck) -> None:
    check()
