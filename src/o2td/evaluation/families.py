"""What the estimators of a family have in common: how they collect, and the doubts about them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from o2td.evaluation.estimator import Doubt, Estimator, Kind, Outcome
from o2td.evaluation.fitting import AnySystem, Fit
from o2td.evaluation.influence import Column
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CANNOT, CAUTION
from o2td.evaluation.verdicts import WIDTH

if TYPE_CHECKING:
    from o2td.evaluation.study import Study
    from o2td.evaluation.verdicts import Case, Grounds

_WIDE = 1024  # with more features, dense solvers other than LSTD run only if named


class FitEstimator(Estimator):
    """A value function: as doubtful as its equations and its features."""

    kind: ClassVar[Kind] = "fit"

    def doubts(self, case: Case, study: Study) -> Iterator[Doubt]:
        """Doubts about equations and features."""
        yield from fit_doubts(case, study)

    def losses(self, grounds: Grounds) -> Iterator[tuple[float, str]]:
        """Values that are too small because of truncation bias, and missing start states."""
        yield hastened(self.hastening(grounds))
        yield lost(grounds.lost, "their start states are missing from the mean")

    def hastening(self, grounds: Grounds) -> float:
        """Share of the value that is lost with dropped last rows."""
        return grounds.hastened


class SystemEstimator(FitEstimator):
    """A fit other than LSTD's: one system of equations, on the same features."""

    def too_large(self, study: Study) -> bool:
        """Whether there are too many features to run it unasked."""
        return study.choice.width > _WIDE

    @abstractmethod
    def system(self, study: Study) -> AnySystem:
        """The equations, empty."""

    def collect(self, study: Study) -> Passes:
        """Fit, then accumulate the influence of episodes."""
        if self.missing(study):
            return
        self._system = study.fitting.want(self.system(study))
        yield [study.fitting]
        self.fit: Fit = study.fitting.fit(self._system)
        self.column = study.influences.blend([(1.0, self.fit)])
        yield [study.influences]

    def estimate(self, study: Study) -> Outcome:
        """The fit, with an approximation error of at least its distance from LSTD."""
        why = self.missing(study)
        if why:
            return Outcome.none(why)
        value = self.fit.value
        return Outcome(
            value,
            *study.influences.found(self.column, [(1.0, self.fit)]),
            approximation=study.beside(value),
            condition=self.fit.condition,
            about=f"{self.title}: {self.fit.system.label}",
            model=self.fit.model(),
        )


class HistoryEstimator(Estimator):
    """Weighted histories: doubtful if few weights dominate, or if episodes were truncated."""

    kind: ClassVar[Kind] = "history"

    def collect(self, study: Study) -> Passes:
        """Wait for the fits, then accumulate the influence of episodes."""
        yield []
        self.column = study.influences.want(self.make_column(study))
        yield [study.influences]

    @abstractmethod
    def make_column(self, study: Study) -> Column:
        """One number per episode: its influence."""

    @abstractmethod
    def value(self, study: Study) -> float:
        """The estimate."""

    def estimate(self, study: Study) -> Outcome:
        """The value; without features there is no approximation error."""
        value, influence = self.value(study), study.influences.spread(self.column)
        return Outcome(
            value, influence, value - influence.mean + influence.lanes, approximation=0.0
        )

    def doubts(self, case: Case, study: Study) -> Iterator[Doubt]:
        """Doubts about weights, and about what lies beyond truncations."""
        yield from weight_doubts(study.grounds)
        grounds = study.grounds
        bounds, cut = grounds.thresholds, grounds.cut
        steps = study.weighed.spread("pdis").carrying
        if self._hides(case, steps, grounds):
            yield (
                CAUTION,
                f"about {steps:.0f} episodes carry all of the variation if each reward has the weight of"
                " its own step, and weights of whole episodes do not make it more",
            )
        if cut > bounds.cut_caution:
            verdict = CANNOT if cut > 1.0 - bounds.support_none else CAUTION
            yield verdict, f"truncated episodes leave out about {cut:.0%} of the rewards"

    def _hides(self, case: Case, steps: float, grounds: Grounds) -> bool:
        """Whether only weights of whole episodes seem to rest on enough episodes."""
        own, bounds = case.outcome.influence, grounds.thresholds
        if not self.whole or own is None or grounds.effective < bounds.ess_caution:
            return False
        return steps < bounds.rewarded_caution <= own.carrying

    def losses(self, grounds: Grounds) -> Iterator[tuple[float, str]]:
        """Values that are too small because of truncation bias, and missing episodes."""
        yield hastened(grounds.hastened)
        yield lost(grounds.lost_histories, "they are missing from the mean")


class HybridEstimator(HistoryEstimator):
    """Histories that correct a fit, whose values continue truncated episodes."""

    kind: ClassVar[Kind] = "hybrid"

    def collect(self, study: Study) -> Passes:
        """Fit what is to be corrected, then accumulate the influence of episodes."""
        study.fitting.want(study.corrected)
        if study.own is not None:
            study.fitting.want(study.own)
        yield [study.fitting]
        self.column = study.influences.want(self.make_column(study))
        yield [study.influences]

    def value(self, study: Study) -> float:
        """The corrected mean of the fit's values at the start."""
        return study.control.mean + study.influences.spread(self.column).mean

    def estimate(self, study: Study) -> Outcome:
        """The value, with the fit's approximation error where it continues truncated episodes.

        No reward corrects V there, and V's own interval is not in this one either.
        """
        found = super().estimate(study)
        fitted = "V by LSTD" if study.corrected is study.choice.lead else "Q by LSTDQ"
        about = f"{fitted} on the other folds: {study.corrected.label}"
        left, base = study.survey.left(), study.reference
        approximation: float | None = 0.0 if not left else None
        if left and base.approximation is not None:
            approximation = left * (base.approximation + base.half_width)
        if study.own is not None:
            about = f"{study.source.own_values}, given and not fitted here"
            if approximation is not None:
                approximation = max(approximation, left * abs(study.control.mean - base.value))
        return Outcome(
            found.value,
            found.influence,
            found.lanes,
            approximation=approximation,
            condition=base.outcome.condition if left else 1.0,
            about=f"{self.title}, {about}",
        )

    def doubts(self, case: Case, study: Study) -> Iterator[Doubt]:
        """Doubts about weights, and about the fit where episodes were truncated."""
        grounds, base = study.grounds, study.reference
        bounds, cut = grounds.thresholds, grounds.cut
        yield from weight_doubts(grounds)
        if cut <= bounds.cut_caution:
            return
        yield from fit_doubts(case, study)
        much = cut > bounds.approximation_none
        said = f"where episodes were cut off ({cut:.0%} of the discount), this continues with"
        if study.own is not None:
            yield CAUTION, f"{said} the value model that was given, which no reward corrects there"
            return
        said += f" {base.method}'s values"
        if base.verdict == CANNOT:
            yield CANNOT if much else CAUTION, f"{said}, which are unknown"
        elif base.verdict == CAUTION and much:
            yield CAUTION, f"{said}, which are doubtful"

    def losses(self, grounds: Grounds) -> Iterator[tuple[float, str]]:
        """The same; the fit's values at starts without rows stay uncorrected."""
        yield hastened(grounds.hastened)
        yield lost(grounds.lost_histories, "nothing corrects their part of the mean")


# -- reasons ---------------------------------------------------------------------------------------


def hastened(share: float) -> tuple[float, str]:
    """The reason if non-terminal last rows were dropped."""
    return share, (
        f"the last rows of truncated episodes were dropped, those of terminated ones kept: values may"
        f" be {share:.1%} too small; log the observation after the last step"
    )


def lost(share: float, missing: str) -> tuple[float, str]:
    """The reason if episodes lost their only row."""
    return share, (
        f"{share:.1%} of the episodes lost their only row, and {missing}; log the observation after"
        " the last step"
    )


def weight_doubts(grounds: Grounds) -> Iterator[Doubt]:
    """Doubts about the weights of whole histories."""
    bounds, (mean, error) = grounds.thresholds, grounds.mean_weight
    if grounds.effective < bounds.ess_none:
        yield CANNOT, f"weights leave {grounds.effective:.1f} effective episodes"
    elif grounds.effective < bounds.ess_caution:
        yield CAUTION, f"weights leave {grounds.effective:.0f} effective episodes"
    elif mean < bounds.support_caution and 1.0 - mean > bounds.weight_caution * error:
        yield (
            CAUTION,
            f"weights of histories average {mean:.2g} ± {error:.1g} instead of 1: the log lacks the rare"
            " histories whose weights are largest",
        )
    shape = grounds.pareto
    if shape is not None and shape > bounds.pareto_none:
        yield (
            CANNOT,
            f"the weights' tail is too heavy for a mean to converge (Pareto shape {shape:.2f})",
        )
    elif shape is not None and shape > bounds.pareto_caution:
        yield CAUTION, f"the weights' variance may be infinite (Pareto shape {shape:.2f})"
    if grounds.share is not None and grounds.share > bounds.share_caution:
        yield CAUTION, f"one episode carries {grounds.share:.0%} of the total weight"


def fit_doubts(case: Case, study: Study) -> Iterator[Doubt]:
    """Doubts about equations and features."""
    grounds, outcome = study.grounds, case.outcome
    bounds, approximation = grounds.thresholds, outcome.approximation
    if outcome.condition > bounds.condition_caution:
        yield CAUTION, f"the equations are nearly singular (condition {outcome.condition:.1g})"
    if approximation is None:
        yield CAUTION, "the approximation error is not known"
        return
    scale = abs(case.value) + grounds.spread
    if approximation > bounds.approximation_none * scale > 0.0:
        yield (
            CANNOT,
            f"other features change the answer by {approximation:.3g}: these cannot express the values",
        )
    elif approximation > bounds.approximation_caution * scale > 0.0:
        yield (
            CAUTION,
            f"other features would move the answer by about {approximation:.2g}, and values here are of"
            f" the size of {scale:.2g}: compare finer features, or judge the difference to the logged"
            " policy",
            WIDTH,
        )
