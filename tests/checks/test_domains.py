"""Every registered domain against every check."""

from __future__ import annotations

import pytest

from o2td.checks import BoundCheck, all_checks


@pytest.mark.parametrize("check", all_checks("domains"), ids=str)
def test_domain(check: BoundCheck) -> None:
    check()
