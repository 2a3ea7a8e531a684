"""Estimates on a sample of the log, recomputed without each of several groups of episodes.

A learner has no closed-form influence of episodes, so it is run once on all episodes of the sample
and once without each of `GROUPS` groups of them: a delete-a-group jackknife,
`se^2 = (G-1)/G sum (v_g - v)^2` (Kott 2001).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.arrays import Floats
from o2td.errors import O2TDError
from o2td.evaluation.basis import Cells, States
from o2td.evaluation.bootstrap import student
from o2td.evaluation.episodes import Episodes, Keys
from o2td.evaluation.estimator import Outcome
from o2td.evaluation.families import FitEstimator
from o2td.evaluation.statistic import Passes
from o2td.evaluation.survey import folds_of
from o2td.transitions import Transitions

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

GROUPS = 10
BEYOND = 10.0  # multiple of the largest possible return: a learner beyond it has diverged
POINTS = 25  # of a learning curve
_INTERVAL = "t, leaving out groups of episodes"


@dataclass(frozen=True, eq=False)
class Replicated:
    """A value, the values without each group, and how they were computed."""

    value: float
    replicates: Floats
    about: str
    curve: dict[str, Any] | None = None
    trouble: str = ""
    theta: Floats | None = None
    features: Any = None


def groups_of(key: Keys) -> Any:
    """The group of each episode, from its key alone, independent of its fold."""
    return folds_of(key * np.uint64(3) + np.uint64(1), GROUPS)


class Bench:
    """A sample of the log as transitions, for learners and solvers."""

    def __init__(self, block: Episodes, basis: States | Cells, most: float = np.inf) -> None:
        self.block, self.basis, self.most = block, basis, most
        self.group = groups_of(block.key)
        self.groups = np.unique(self.group)
        # With a single group nothing would be left when it is left out.
        self.left_out = self.groups if len(self.groups) > 1 else self.groups[:0]

    def transitions(self, chosen: Any = None) -> Transitions:
        """The rows, of the given episodes only if there are any."""
        block = self.block if chosen is None else self.block.pick(chosen)
        rows = block.rows
        shared: dict[str, Any] = {
            "discount": rows.discount,
            "rho": rows.rho,
            "start": block.begin,
        }
        if isinstance(self.basis, Cells):
            from scipy.sparse import eye_array

            here, ahead = self.basis.index(block)
            size = self.basis.features.n_features_out_
            table: Any = np.eye(size) if size <= 64 else eye_array(size, format="csr")
            return Transitions.from_table(table, here, rows.reward, ahead, **shared)
        return Transitions(*self._dense(block), **shared)

    def _dense(self, block: Episodes) -> tuple[Floats, Floats, Floats]:
        here, ahead = self.basis.both(block)  # type: ignore[union-attr]
        return here, block.rows.reward, ahead

    def start(self, without: int | None = None) -> Any:
        """Mean features of the start states, without one group if it is given."""
        block = self.block if without is None else self.block.pick(self.group != without)
        first = block.rows.input[block.first[:-1][block.opens]]
        if self.block.lone is not None:
            lone = self.block.lone
            lone = lone if without is None else lone.take(groups_of(lone.key) != without)
            first = np.concatenate([first, lone.input])
        if isinstance(self.basis, Cells):
            size = self.basis.features.n_features_out_
            state = self.basis.features.state_of(first)
            return np.bincount(state, minlength=size) / max(len(state), 1)
        return self.basis.phi(first).mean(axis=0)

    def learner(self, make: Callable[[], Any], about: str) -> Replicated:
        """Run a learner over the rows in order, with its learning curve."""
        batch, start = self.transitions(), self.start()
        learner = make()
        curve: dict[str, Any] = {"rows": [], "value": []}
        size = max(1, -(-batch.n // POINTS))
        for part in batch.chunks(size):
            learner.partial_fit(part)
            curve["rows"].append(learner.steps)
            curve["value"].append(float(start @ learner.theta))
        gone = Replicated(np.nan, np.zeros(0), about, curve, f"{about} diverged on this log")
        if learner.status.kind == "diverged" or not abs(curve["value"][-1]) <= self.most:
            return gone
        values = np.array(
            [float(self.start(g) @ make().partial_fit(self._left(g)).theta) for g in self.left_out]
        )
        if not (np.abs(values) <= self.most).all():
            return replace(gone, trouble=f"{gone.trouble} without some of its episodes")
        theta = np.array(learner.theta)
        made = (theta, self.basis.features)
        return Replicated(curve["value"][-1], values, about, curve, "", *made)

    def _left(self, group: int) -> Transitions:
        return self.transitions(self.group != group)


class ReplicatedEstimator(FitEstimator):
    """An estimate on a sample, with an interval from leaving out groups of episodes."""

    recommendable = False
    noise = 2.0  # standard errors from LSTD that chance can explain

    def collect(self, study: Study) -> Passes:
        """Ask for no pass: the sample is there."""
        return iter(())

    @abstractmethod
    def replicate(self, study: Study, bench: Bench) -> Replicated:
        """The value, and that without each group."""

    def estimate(self, study: Study) -> Outcome:
        """The value, with LSTD's diagnostics: it uses the same rows and features."""
        most = BEYOND * study.survey.most()
        try:
            found = self.replicate(study, Bench(study.sample, study.choice.online, most))
        except O2TDError as error:
            found = Replicated(np.nan, np.zeros(0), self.name, None, str(error))
        about, base = found.about, study.reference
        if study.survey.sample.threshold < 1.0:
            about += f", on a sample of {len(study.sample.rows)} rows"
        return Outcome(
            found.value,
            base.outcome.influence,
            interval=student(found.value, found.replicates, study.settings.confidence, _INTERVAL),
            approximation=study.beside(found.value, self.noise),
            about=about,
            trouble=found.trouble,
            model=None if found.theta is None else (found.theta, found.features),
            curve=found.curve,
        )


class LearnerEstimator(ReplicatedEstimator):
    """One pass of a learner over the rows, from zero; it may not have converged."""

    kind = "learner"
    noise = 0.0

    @abstractmethod
    def learner(self, study: Study) -> tuple[Any, str]:
        """The learner, untrained, and how it is described."""

    def replicate(self, study: Study, bench: Bench) -> Replicated:
        """One run over all episodes, and one without each group."""
        about = f"{self.learner(study)[1]}, one pass, automatic step size"
        return bench.learner(lambda: self.learner(study)[0], about)
