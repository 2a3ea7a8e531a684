"""Learners refitted without some episodes."""

from __future__ import annotations

import numpy as np

from o2td import TDRC
from o2td.evaluation.replicated import Bench, Replicated, States
from o2td.features import Fourier

from .episodes import block_of
from .logs import line_log


def test_a_learner_that_diverges_without_some_episodes_has_no_interval():
    block, basis = block_of(line_log(60, 2)), States(Fourier(3, bounds=[(-4, 4)]).fit())

    def found_within(most: float) -> Replicated:
        return Bench(block, basis, most).learner(lambda: TDRC(step_size="auto"), "TDRC")

    free = found_within(np.inf)
    outermost = np.abs(free.replicates).max()
    assert outermost > abs(free.value)
    found = found_within((outermost + abs(free.value)) / 2.0)
    assert np.isnan(found.value)
    assert found.trouble.endswith("diverged on this log without some of its episodes")
    assert found_within(outermost).value == free.value
