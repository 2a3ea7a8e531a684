"""Error bars of an averaged learner: an online bootstrap over replicates with random row weights.

A replicate is the same learner on the same rows, except that every row's step is multiplied by 1/2
or 3/2, the same for all rows of a block: an episode or, without episodes, about `2 t^(1/3)` rows.
The standard deviation of the replicates' averages, doubled because that of the weights is 1/2,
estimates the error of the learner's own average (multiplier bootstrap; Fang, Xu & Yang 2018, "Online
bootstrap confidence intervals for the stochastic gradient descent estimator"). Weights within 1/2 of
one do not destabilise a stable step size.

Consecutive rows are dependent, so a learner with step size alpha has a bias of order alpha, which
averaging does not remove. There are two estimates of it. It is quadratic in the weights: with
weights of variance 1/4 it is 5/4 as large, so it is four times the distance from the learner to the
mean of its replicates. And one replicate learns with half the step sizes: the bias is twice the
distance from it to the learner. Both count terms of higher order too often (those of third order
three times and one and a half times), the first has more noise, and the second is wrong where small
steps have not arrived yet; so the mean of both is used. Half of it is subtracted, and a quarter of
its square is added to the variance: where there is little bias, the estimate is mostly noise, which
the other half would add. (Settled on 60 or 80 streams of each of eight problems, with other seeds
than those of the record.)

A learner that changes with the number of rows, as ARCTD does while its traces grow, has not the
limit yet that it will have. Half of its replicates are then as it will be in the end: one without
weights, one with half the step sizes, the others with the weights of the first half. The first of
them, less its own bias, is where the learner will be; the distance to it counts as bias.

Weights are hashes of block and lane, so they do not depend on how the rows are split, two learners
on the same rows share them (hence their difference has an error bar too), and a file need not store
a generator. The intervals include neither initial bias nor approximation error of the features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from o2td.arguments import number, whole
from o2td.arrays import Floats
from o2td.errors import InputError
from o2td.kernels.resampling import SPREAD, multipliers
from o2td.learners.parameters import averaging

if TYPE_CHECKING:
    from o2td.learners.base import Learner
    from o2td.learners.family import GroupedLearner
    from o2td.transitions import Transitions

__all__ = ["Prediction", "as_replicates", "bars", "resample"]

MOST = 1 << 12
KNOWN, DOUBT = 1.0 / 2.0, 1.0 / 4.0  # of the bias, and of its square in the variance
HALF = 0.5  # weight of all rows in the replicate with small steps
FEWEST = 8  # replicates from which there is such a one


class Prediction(NamedTuple):
    """The result of `predict(phi, interval=...)`: values and the ends of their intervals."""

    value: Floats
    low: Floats
    high: Floats


def as_replicates(learner: Learner, value: Any) -> int:
    """The number of replicates: 0, or at least 2 for a learner that averages."""
    found = whole("replicates", value, 0, MOST)
    name = type(learner).__name__
    if found == 1:
        raise InputError("replicates must be 0 or at least 2: one tells no spread; 64 are enough")
    if found and not learner.average:
        raise InputError(
            f"replicates={found} of {name} need averaged predictions: give average=True as well"
        )
    if found and "replicates" in learner.undefined:
        raise InputError(f"{name} keeps no replicates, its steps are not in proportion to alpha")
    return found


def resample(
    rows: dict[str, Floats],
    step_sizes: Sequence[str],
    block: Transitions,
    first: int,
    learner: GroupedLearner,
) -> None:
    """Row arrays (lanes, n) of a learner's replicates, from those of its first lane."""
    for array in rows.values():
        array[1:] = array[0]
    weights = np.empty((learner._width - 1, block.n))
    memory = learner._memory.setdefault("blocks", np.zeros(3))
    own = len(weights) - learner._ahead
    multipliers(block.start, first, memory, weights[:own])
    weights[own:] = weights[: learner._ahead]
    if len(weights) >= FEWEST:
        weights[-1] = HALF
        if learner._ahead:
            weights[-2] = 1.0
    for name in step_sizes:
        rows[name][1:] *= weights


def bars(learner: Learner, phi: Any, single: bool, level: float) -> Prediction:
    """Values of these rows with intervals of this level, from mean and spread of the replicates.

    Uses Student's t, since both the replicates and the blocks in an average are few. Intervals are
    centred on the value less half of the estimated bias, and always include the value itself.
    """
    from scipy.special import stdtrit

    level = number("interval", level, 0.0, 1.0)
    if not 0.0 < level < 1.0:
        raise InputError(f"interval must be between 0 and 1, such as 0.95; got {level:g}")
    count = learner._width - 1
    if not count or not learner.average:
        needed = "replicates=64" if learner.average else "average=True, replicates=64"
        raise InputError(
            f"this {type(learner).__name__} keeps no replicates, so it has no intervals; create it with"
            f" {needed}"
        )
    lanes = _Lanes.of(learner)
    value = np.asarray(phi @ lanes.own)
    apart = np.asarray(phi @ (lanes.weighted - lanes.own).T) / SPREAD
    bias = np.asarray(phi @ (lanes.own - lanes.end)) + lanes.bias(phi)
    variance = np.var(apart, axis=1, ddof=1) + DOUBT * bias**2
    recent = averaging(learner.average)
    blocks = learner._memory["blocks"][0] if learner.steps else 0.0
    seen = max(1.0, blocks * (2.0 * recent - 1.0) / recent**2)
    degrees = 1.0 / (1.0 / len(lanes.weighted) + 1.0 / seen)
    reach = stdtrit(degrees, 0.5 + level / 2.0) * np.sqrt(variance)
    if (learner._diverged >= 0).any():
        bias, reach = np.zeros_like(value), np.full_like(value, np.inf)
    middle = value - KNOWN * bias
    low, high = np.minimum(value, middle - reach), np.maximum(value, middle + reach)
    found = Prediction(value, low, high)
    return Prediction(*(part[0] for part in found)) if single else found


class _Lanes(NamedTuple):
    """Averages of a learner, of its weighted replicates, and of those that tell the bias."""

    own: Floats
    weighted: Floats
    end: Floats  # the learner as it will be in the end; `own` if it does not change
    end_weighted: Floats
    halved: Floats | None  # `end` with half the step sizes

    @classmethod
    def of(cls, learner: Learner) -> _Lanes:
        mean, count = learner._arrays["mean"], learner._width - 1
        own, first = mean[0], 1 + count - learner._ahead
        if count < FEWEST:
            return cls(own, mean[1:], own, mean[1:], None)
        if learner._ahead:
            return cls(own, mean[1:first], mean[-2], mean[first:-2], mean[-1])
        return cls(own, mean[1:-1], own, mean[1:-1], mean[-1])

    def bias(self, phi: Any) -> Floats:
        """The bias of `end` at these rows that comes from its step size."""
        by_weights = np.asarray(phi @ (self.end_weighted.mean(axis=0) - self.end)) / SPREAD**2
        if self.halved is None:
            return by_weights
        return (by_weights + np.asarray(phi @ (self.end - self.halved)) / HALF) / 2.0
