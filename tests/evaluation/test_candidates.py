"""Which bases are tried: as many features as are allowed, and not one more."""

from __future__ import annotations

import pytest

from o2td.evaluation.candidates import _waves

PAIRS = {order: 1 + 3 * order + 3 * order**2 for order in (2, 4, 5, 6, 7)}  # of three variables


@pytest.mark.parametrize("order", PAIRS)
def test_waves_in_pairs_have_at_most_as_many_features_as_allowed(order: int) -> None:
    assert (order, 2) in _waves(3, PAIRS[order])
    assert (order, 2) not in _waves(3, PAIRS[order] - 1)


def test_other_waves_too() -> None:
    assert _waves(1, 4) == [(2, True), (3, True)]
    assert _waves(2, 11) == [(2, True), (5, False)]
    assert _waves(2, 10) == [(2, True)]
