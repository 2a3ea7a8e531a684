"""Can the mean reward be estimated? Heavy tails, and a few rows that carry everything.

Both are measured on what state and action do not explain. A generalised Pareto fit to the largest
values has a shape above 0.5 where the variance is infinite. If a handful of rows holds most of the
squares under the target's ratios, one row more or less would change the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.log_test import Finding, LogTest
from o2td.evaluation.log_tests.seen import seen
from o2td.evaluation.pareto import pareto_shape, tail_size
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CAUTION, TRUST

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

_CARRYING = 15.0  # rows
_LEAST = 500  # rows
_DISTINCT = 100  # rewards, below which a tail has no shape
_SURE = 1.64  # standard errors


class Tails(LogTest):
    """Tails of the rewards."""

    name = "tails"
    title = "Can the mean reward be estimated from these rows?"

    def collect(self, study: Study) -> Passes:
        """The sample is enough."""
        return iter(())

    def find(self, study: Study) -> Finding | None:
        """What was found."""
        view = seen(study)
        rho = view.rows.rho
        if len(rho) < _LEAST:
            return None
        size = np.abs(view.residual(view.rows.reward[:, None])[:, 0])
        several = len(np.unique(view.rows.reward)) >= _DISTINCT
        shape, error = _shape(size) if several else (0.0, 0.0)
        bound = study.settings.thresholds.pareto_caution
        if shape - _SURE * error > bound:
            return Finding(
                self.name,
                shape,
                CAUTION,
                f"the rewards' variance may be infinite (Pareto shape {shape:.2f})",
                "clip or transform the rewards",
            )
        weight = rho * size**2
        if not weight.sum() > 1e-12 * float(np.square(view.rows.reward).sum()):
            return Finding(self.name, None, TRUST, "state and action determine the reward")
        carrying = float(weight.sum() ** 2 / float((weight**2).sum()))
        enough = float(rho.sum()) ** 2 > 4.0 * _CARRYING * float(rho @ rho)
        if enough and carrying < _CARRYING:
            return Finding(
                self.name,
                carrying,
                CAUTION,
                f"about {carrying:.0f} rows carry most of the rewards' variation: events that rare"
                " may be missing or over-represented",
                "log more of such rows",
            )
        return Finding(self.name, shape, TRUST, "the mean reward can be estimated")


def _shape(size: Floats) -> tuple[float, float]:
    """Shape of the tail and its standard error; 0 where there is none."""
    some = np.sort(size[size > 1e-9 * max(float(size.max()), 1e-300)])[::-1]
    if len(np.unique(some[:1000])) < _DISTINCT:
        return 0.0, 0.0
    shape = pareto_shape(some)
    return (0.0, 0.0) if shape is None else (shape, (1.0 + shape) / np.sqrt(tail_size(len(some))))
