"""LSTD with a trace chosen by the data, `LSTD(trace="auto")`, on the lead's features or on states.

The interval comes from leaving out groups of episodes, each time with a new choice of the trace, so
it includes how uncertain that choice is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from o2td.evaluation.estimator import Outcome
from o2td.evaluation.replicated import Bench, Replicated, ReplicatedEstimator
from o2td.solvers import LSTD
from o2td.transitions import Transitions

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

_WIDE = 512  # features: the sums of all traces take 2 kB times their square


class LSTDAutoEstimator(ReplicatedEstimator):
    """LSTD with the trace, the bound on ratios and the shrinkage of least estimated error."""

    name = "lstd_auto"
    title = "LSTD, trace chosen"
    kind = "fit"

    def too_large(self, study: Study) -> bool:
        """Whether there are too many features to run it unasked."""
        return study.choice.width > _WIDE

    def estimate(self, study: Study) -> Outcome:
        """The value; the influence of episodes is not LSTD's where another trace is chosen."""
        return replace(super().estimate(study), influence=None)

    def replicate(self, study: Study, bench: Bench) -> Replicated:
        """One solver on all episodes, and one without each group of them."""
        share = float(getattr(study.choice.lead, "ridge", 0.0))
        whole = _fit(bench.transitions(), share)
        theta, direction = whole.theta, getattr(whole.solution, "direction", "no trace")
        values = [
            float(bench.start(g) @ _fit(bench.transitions(bench.group != g), share).theta)
            for g in bench.left_out
        ]
        about = f"LSTD: {bench.basis.name}, chosen {direction}"
        made = (np.array(theta), bench.basis.features)
        return Replicated(float(bench.start() @ theta), np.array(values), about, None, "", *made)


def _fit(batch: Transitions, share: float) -> LSTD:
    """The solver, with the ridge that `evaluate`'s own LSTD has without a trace."""
    ridge = 0.0
    if share and not batch.sparse:
        left = batch.rho[:, None] * batch.phi
        right = batch.phi - batch.discount[:, None] * batch.next_phi
        ridge = share * float(np.abs((left * right).sum(axis=0)).mean())
    return LSTD(trace="auto", ridge=ridge).fit(batch)
