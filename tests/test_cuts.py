"""Cuts of traces."""

from __future__ import annotations

from o2td import cuts


def test_cuts_are_equal_by_kind_and_number():
    assert cuts.Clipped(0.5) == cuts.Clipped(0.5)
    assert cuts.Clipped(0.5) != cuts.Clipped(0.6)
    assert cuts.Ratio() != cuts.Target()
    assert cuts.as_cut("ratio") == cuts.Ratio() == cuts.as_cut(None)
    assert cuts.as_cut("target") == cuts.Target()
    assert cuts.as_cut(None, 0.7) == cuts.Clipped(0.7)
