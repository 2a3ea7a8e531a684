"""The parameters of a learner: its own and those that it passes on."""

from __future__ import annotations

from o2td.learners import TD, VTrace
from o2td.learners.parameters import whole_signature


def test_a_class_takes_its_own_parameters_and_those_that_it_passes_on():
    names = list(whole_signature(TD).parameters)
    assert names[0] == "step_size"
    assert {"trace", "clip", "cut", "emphasis", "average", "l1", "radius"} < set(names)
    assert "self" not in names
    assert "axes" not in names
    vtrace = list(whole_signature(VTrace).parameters)
    assert vtrace[0] == "step_size"
    assert "cut" not in vtrace
    assert "clip" in vtrace
