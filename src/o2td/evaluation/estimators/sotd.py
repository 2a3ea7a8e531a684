"""SOTD on the log's states, or on the cells of a grid if observations are continuous."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.evaluation.basis import Cells, States
from o2td.evaluation.episodes import Episodes
from o2td.evaluation.replicated import Bench, Replicated, ReplicatedEstimator
from o2td.features import GridAggregation
from o2td.solvers import SOTD

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

_CELLS = 400  # cells of the grid: their covariance is factorised
_WIDE = 1024


class SOTDEstimator(ReplicatedEstimator):
    """The paper's batch method, on a sample of the log."""

    name = "sotd"
    title = "SOTD"
    kind = "fit"

    def too_large(self, study: Study) -> bool:
        """Whether there are too many features to run it unasked."""
        return study.choice.width > _WIDE

    def replicate(self, study: Study, bench: Bench) -> Replicated:
        """One solver per group of episodes, merged without each of them in turn."""
        about = "SOTD on states"
        basis: Any = bench.basis
        if isinstance(basis, States) and bench.block.rows.observation is not None:
            basis = Cells(grid(bench.block))
            about = f"SOTD on {basis.name}"
        parts = []
        for g in bench.groups:
            part = Bench(bench.block.pick(bench.group == g), basis)
            parts.append(SOTD().update(part.transitions()))
        whole = Bench(bench.block, basis)
        values, theta = [], np.zeros(0)
        for left in [None, *range(len(bench.left_out))]:
            merged = SOTD()
            for k, one in enumerate(parts):
                if k != left:
                    merged.merge(one)
            start = whole.start(None if left is None else bench.groups[left])
            theta = np.array(merged.theta) if left is None else theta
            values.append(float(start @ merged.theta))
        made = (theta, basis.features)
        return Replicated(values[0], np.array(values[1:]), about, None, "", *made)


def grid(block: Episodes) -> GridAggregation:
    """A regular grid over the observations: at most `_CELLS` cells, at least 2 per variable."""
    inputs = block.rows.input
    bins = max(2, int(min(_CELLS, len(inputs) / 20) ** (1.0 / inputs.shape[1])))
    return GridAggregation(bins).fit(np.concatenate([inputs, block.rows.next_input]))
