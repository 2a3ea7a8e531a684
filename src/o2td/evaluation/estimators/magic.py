"""A blend of a fit and of histories in the manner of MAGIC (Thomas and Brunskill 2016).

`g_j` is the weighted doubly robust estimate that follows histories for j steps and continues with
the fit's values: j = 0 is the fit, the largest j is as far as weights reach. The blend `x·g` on the
simplex has the least `x·(C + b b^T) x`: C is the covariance of the `g_j` over episodes, including
the fit's in proportion to the discount left to it, and `b_j` the distance of `g_j` from the last
one beyond the median of what chance explains. The fit is of action values if there is one, else of
state values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.estimator import Doubt, Outcome
from o2td.evaluation.estimators.dr import DoublyRobustColumn
from o2td.evaluation.families import FitEstimator, fit_doubts
from o2td.evaluation.fitting import Fit
from o2td.evaluation.moments import Spread
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CANNOT, CAUTION

if TYPE_CHECKING:
    from o2td.evaluation.study import Study
    from o2td.evaluation.verdicts import Case

_LEAST = 10.0  # histories are followed down to this many effective episodes
_HALF = 0.674  # in standard errors: half of all chance differences are smaller
_MOST = 10  # lengths of histories
_ROUNDING = 1e-12  # of the baseline: smaller differences are no differences
_HEARD = 0.05  # least weight in the blend for histories of a length to count


class MagicEstimator(FitEstimator):
    """A blend of a fit and weighted histories with the least estimated error."""

    name = "magic"
    title = "blend of fit and histories"
    mends = True

    def collect(self, study: Study) -> Passes:
        """Fit what is to be corrected, then accumulate histories of several lengths."""
        study.fitting.want(study.corrected)
        yield [study.fitting]
        weighed, influences = study.weighed, study.influences
        self.fit: Fit = study.fitting.fit(study.corrected)
        self.own = influences.blend([(1.0, self.fit)])
        self.lengths = _lengths(weighed.horizon.effective_size)
        number, base = influences.correct(study.baseline), study.baseline.mean
        start = weighed.units / max(weighed.totals.opened, 1.0)
        share = weighed.units * weighed.horizon.inverse
        steps = np.arange(len(share))
        self.columns = [
            influences.want(DoublyRobustColumn(number, base, start, share * (steps < length)))
            for length in self.lengths
        ]
        yield [influences]

    def estimate(self, study: Study) -> Outcome:
        """The blend; the fit's approximation error counts by the discount left to the fit."""
        self.parts = [study.influences.spread(column) for column in self.columns]
        fit, bare = study.influences.spread(self.own), self.parts[0]
        self.left = self._left(study)
        # The rows' influence on the fit counts by the discount left to it; starts are in all parts.
        lanes = np.stack(
            [
                part.lanes + left * (fit.lanes - bare.lanes)
                for part, left in zip(self.parts, self.left, strict=True)
            ]
        )
        means = np.array([part.mean for part in self.parts])
        self.weights, bias = _blend(means, lanes, self.parts, _ROUNDING * abs(study.baseline.mean))
        mean, left = float(self.weights @ means), float(self.weights @ self.left)
        value, base = study.baseline.mean + mean, study.reference
        approximation = abs(float(self.weights @ bias))
        if base.approximation is not None:
            approximation = max(approximation, left * base.approximation)
        return Outcome(
            value,
            self._spread(mean, self.weights @ lanes, fit),
            approximation=None if base.approximation is None else approximation,
            condition=self.fit.condition,
            about=f"histories followed for {self._followed:.3g} steps on average, then"
            f" {self.fit.system.label}",
        )

    @cached_property
    def _followed(self) -> float:
        return float(self.weights @ np.array(self.lengths))

    def _left(self, study: Study) -> Floats:
        """Share of the discount that histories of each length leave to the fit."""
        horizon, gamma = study.weighed.horizon, study.survey.largest_discount
        alive = np.append(horizon.weight * horizon.inverse, 0.0)
        at = np.array(self.lengths)
        beyond = study.survey.left() * (at == len(horizon.weight))
        return np.asarray(np.maximum(alive[at] * gamma**at, beyond))

    def _spread(self, mean: float, lanes: Floats, fit: Spread) -> Spread:
        """Moments of the blend, taken from its heaviest part."""
        heavy = self.parts[int(self.weights.argmax())] if self.weights[0] < 0.5 else fit
        error = self._error(fit)
        values = None
        if fit.values is not None:
            share = float(self.weights @ self.left)
            parts = [part.values for part in self.parts if part.values is not None]
            values = self.weights @ np.stack(parts) + share * (fit.values - parts[0])
        heard = [
            part for part, x in zip(self.parts[1:], self.weights[1:], strict=True) if x > _HEARD
        ]
        few = min(part.carrying for part in (*heard, fit))
        found = replace(heavy, mean=mean, error=error, carrying=few, lanes=lanes)
        return replace(found, values=values, among=None)

    def _error(self, fit: Spread) -> float:
        """Standard error of the blend, from the covariances of its parts and of the fit."""
        assert fit.among is not None  # noqa: S101
        share = float(self.weights @ self.left)
        weights = {part.column: float(x) for part, x in zip(self.parts, self.weights, strict=True)}
        weights[self.parts[0].column] -= share
        return fit.among.error({**weights, fit.column: share})

    def doubts(self, case: Case, study: Study) -> Iterator[Doubt]:
        """Doubts about the fit by the discount left to it, and about the weights used."""
        left, bounds = float(self.weights @ self.left), study.grounds.thresholds
        if left > bounds.cut_caution:
            yield from fit_doubts(case, study)
            base = study.reference
            if base.verdict == CANNOT:
                verdict = CANNOT if left > bounds.approximation_none else CAUTION
                yield verdict, f"{left:.0%} of it comes from {base.method}, which cannot answer"
        heard = np.flatnonzero(self.weights > _HEARD)
        size = study.weighed.horizon.effective_size
        length = self.lengths[int(heard[-1])] if len(heard) else 0
        if length and size[length - 1] < bounds.ess_caution:
            yield CAUTION, f"weights leave {size[length - 1]:.0f} effective episodes"

    def fault(self, test: str) -> float:
        """Prefer it to the fit: histories remove part of the bias."""
        return 0.75


def _lengths(size: Floats) -> list[int]:
    """Numbers of steps, doubling, as long as enough episodes are effective."""
    enough = size >= _LEAST
    reach = int(len(size) if enough.all() else np.argmin(enough))
    doubling = [2**k for k in range(reach.bit_length()) if 2**k < reach]
    return [0, *doubling[-_MOST + 2 :], reach] if reach else [0]


def _blend(
    means: Floats, lanes: Floats, parts: list[Spread], least: float = 0.0
) -> tuple[Floats, Floats]:
    """Weights on the simplex with the least estimated error, and the biases used.

    Where neither bias nor noise is above `least`, the fit is kept.
    """
    from scipy.optimize import nnls

    if lanes.shape[1]:
        noise = lanes - lanes.mean(axis=1, keepdims=True)
        noise /= np.sqrt(lanes.shape[1])
        apart = np.std(lanes - lanes[-1], axis=1)
    else:
        noise = np.diag([part.error for part in parts])
        apart = np.array([float(np.hypot(part.error, parts[-1].error)) for part in parts])
    gap = means - means[-1]
    bias = np.sign(gap) * np.maximum(np.abs(gap) - _HALF * apart, 0.0)
    rows = np.vstack([noise.T, bias[None]])
    scale = float(np.abs(rows).max())
    if not np.isfinite(scale) or scale <= least:
        return np.eye(len(means))[0], bias
    # Non-negative least squares with a heavy row for the sum of the weights.
    heavy = np.vstack([rows / scale, np.full(len(means), 1e4)])
    found, _ = nnls(heavy, np.append(np.zeros(len(rows)), 1e4))
    return np.asarray(found / max(found.sum(), 1e-300)), bias
