"""LSTD with a trace chosen by the data, `LSTD(trace="auto")`, on states or on the lead's features.

Where features were chosen, each of the kept bases gets a trace of its own, and the estimate is the
mean of the middle half of their values. The interval comes from leaving out groups of episodes,
each time with a new choice of every trace and of the middle half, so it includes how uncertain
these choices are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.evaluation.basis import States
from o2td.evaluation.estimator import Outcome
from o2td.evaluation.fitting import middle_half, sound
from o2td.evaluation.replicated import Bench, Replicated, ReplicatedEstimator
from o2td.evaluation.select import Choice
from o2td.solvers import LSTD
from o2td.transitions import Transitions

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

_WIDE = 512  # features: the sums of all traces take 2 kB times their square
_NARROW = 200  # features of a basis that is one of several


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
        """Solvers on all episodes, and without each group of them."""
        share = float(getattr(study.choice.lead, "ridge", 0.0))
        tried = [(bench, share)]
        if study.choice.average:
            able = _by_basis(study.choice.kept)
            tried = [(Bench(bench.block, States(x.features)), x.ridge) for x in able] or tried
        solvers = [_fit(one.transitions(), ridge) for one, ridge in tried]
        value, used = _midmean(
            [float(one.start() @ x.theta) for (one, _), x in zip(tried, solvers, strict=True)]
        )
        without = [_without(one, x) for (one, _), x in zip(tried, solvers, strict=True)]
        values = [_midmean(list(each))[0] for each in zip(*without, strict=True)]
        (first, _), whole = tried[0], solvers[0]
        chosen = f"{first.basis.name}, chosen {getattr(whole.solution, 'direction', 'no trace')}"
        about = f"LSTD: {chosen}"
        if len(tried) > 1:
            about = f"LSTD: mean of {used} of {len(tried)} fits; as model {chosen}"
        made = (np.array(whole.theta), first.basis.features)
        return Replicated(value, np.array(values), about, None, "", *made)


def _by_basis(kept: list[Choice]) -> list[Choice]:
    """The first choice of each basis that is not wide, without a trace where that was kept."""
    able = sorted((one for one in kept if one.d <= _NARROW), key=lambda one: one.trace)
    first = {id(one.features): one for one in reversed(able)}
    return [one for one in kept if first.get(id(one.features)) is one]


def _midmean(values: list[float]) -> tuple[float, int]:
    """The mean of the middle half, and how many values that is."""
    fine = np.array(values)[sound(np.array(values))]
    half = middle_half(fine)
    return float(fine[half].mean()), len(half)


def _fit(batch: Transitions, share: float) -> LSTD:
    """The solver, with the ridge that `evaluate`'s own LSTD has without a trace."""
    ridge = 0.0
    if share and not batch.sparse:
        left = batch.rho[:, None] * batch.phi
        right = batch.phi - batch.discount[:, None] * batch.next_phi
        ridge = share * float(np.abs((left * right).sum(axis=0)).mean())
    return LSTD(trace="auto", ridge=ridge).fit(batch)


def _without(bench: Bench, whole: LSTD) -> Iterator[float]:
    """The value without each group of episodes, in the order of the groups.

    To leave out one group of a set, one half of the set is added at a time to what lies outside of
    it, then halved itself, so a row is added `log2` times the number of groups instead of that
    number.
    """

    def halved(left: Floats, outside: LSTD) -> Iterator[float]:
        if len(left) == 1:
            yield float(bench.start(int(left[0])) @ outside.theta)
            return
        half = len(left) // 2
        for mine, others in ((left[:half], left[half:]), (left[half:], left[:half])):
            rows = bench.transitions(np.isin(bench.group, others))
            yield from halved(mine, LSTD(**whole.get_params()).merge(outside).update(rows))

    if len(bench.left_out):
        yield from halved(bench.left_out, LSTD(**whole.get_params()))
