"""The interface of estimators: a name, passes over the log, an estimate, and reasons to doubt it.

One object serves one evaluation. `collect` yields the statistics that the next pass is to fill,
once per pass; then `estimate` computes the result; then `doubts` gives the estimator's own reasons
not to trust it. Bootstrap, thresholds, agreement and recommendation are common to all estimators
and use only this interface. Estimators are registered in `o2td.registry.ESTIMATORS`, those of other
packages through the entry-point group `o2td.estimators`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from o2td.arrays import Floats
from o2td.evaluation.bootstrap import Interval
from o2td.evaluation.moments import Spread
from o2td.evaluation.statistic import Passes

if TYPE_CHECKING:
    from o2td.evaluation.study import Study
    from o2td.evaluation.verdicts import Case, Grounds

Kind = Literal["fit", "history", "hybrid", "learner"]
# a verdict and the reason for it, optionally followed by its subject
Doubt = tuple[str, str] | tuple[str, str, str]
_SAID = {
    "action": "the log has no actions",
    "observation": "the log has no observations",
    "state": "the log has no states",
    "target_probs": "the log has no per-action probabilities of the target",
    "next_target_probs": "the log has no per-action probabilities of the target, now and next",
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of an estimator.

    Parameters
    ----------
    value : float
        The target's expected discounted reward from the start states.
    influence : Spread or None
        The influence of episodes on it; standard error, interval and agreement rest on this.
    lanes : array or None
        The value in each bootstrap lane; by default computed from the influence.
    interval : Interval or None
        The estimator's own interval, if the influence of episodes is not known.
    approximation : float or None
        How much other features would change the value; 0 without features, None if not known.
    condition : float
        Condition number of the equations that were solved.
    about : str
        How it was computed, for readers of the report.
    trouble : str
        Why there is no value.
    model : tuple or None
        Weights (d,), or (A, d) for action values, and the feature map that they belong to.
    curve : mapping or None
        `rows` and `value`, for estimates that change as rows come in.
    variants : mapping
        The value under other features, by their names.
    """

    value: float
    influence: Spread | None = None
    lanes: Floats | None = None
    interval: Interval | None = None
    approximation: float | None = None
    condition: float = 1.0
    about: str = ""
    trouble: str = ""
    model: tuple[Floats, Any] | None = None
    curve: Mapping[str, Any] | None = None
    variants: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def none(cls, why: str) -> Outcome:
        """An outcome without a value, and the reason.

        >>> Outcome.none("the log has no states").trouble
        'the log has no states'
        """
        return cls(float("nan"), trouble=why)


class Estimator(ABC):
    """Base class of estimators of the target's value.

    `name` is what users write, `title` what readers see. `kind` is "fit" (a value function),
    "history" (weighted histories), "hybrid" (histories that correct a fit) or "learner" (one pass
    over the rows, never a reason to doubt others). `needs` lists the arrays of `sources.LogRows`
    that the estimate requires. An estimator that is not `recommendable` is computed only on
    request. `uses_ratios` says whether rows are weighted by their ratios. A fit that `mends` is
    corrected by histories: it is recommended when the others are in doubt. A history that is `whole`
    weighs every reward by the episode's last weight, and is recommended after the others.

    Examples
    --------
    >>> from o2td.registry import ESTIMATORS
    >>> ESTIMATORS["wdr"].title, ESTIMATORS["wdr"].kind
    ('weighted doubly robust', 'hybrid')
    """

    name: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[Kind]
    needs: ClassVar[tuple[str, ...]] = ()
    recommendable: ClassVar[bool] = True
    uses_ratios: ClassVar[bool] = True
    mends: ClassVar[bool] = False
    whole: ClassVar[bool] = False

    def missing(self, study: Study) -> str:
        """What this log lacks, in words; empty if nothing is missing."""
        for name in self.needs:
            if getattr(study.sample.rows, name) is None:
                return _SAID.get(name, f"the log has no {name}")
        return ""

    def too_large(self, study: Study) -> bool:
        """Whether it would take too long, so that it is skipped unless requested."""
        return False

    @abstractmethod
    def collect(self, study: Study) -> Passes:
        """Yield the statistics for each pass in turn; an empty list waits for the next pass.

        Everything is fitted in the first of these passes (`study.fitting`); the influence of
        episodes is traced in the second (`study.influences`).
        """

    @abstractmethod
    def estimate(self, study: Study) -> Outcome:
        """The result. Called after the last pass."""

    def doubts(self, case: Case, study: Study) -> Iterator[Doubt]:
        """The estimator's own reasons for doubt, each with the best verdict that it allows."""
        return iter(())

    def spared(self, study: Study) -> tuple[str, ...]:
        """Names of log tests whose failure does not concern this estimator, whatever its kind."""
        return ()

    def fault(self, test: str) -> float:
        """How much a failed test that biases it counts, relative to others of its kind."""
        return 1.0

    def losses(self, grounds: Grounds) -> Iterator[tuple[float, str]]:
        """Fractions of the value that dropped rows may cost this estimator, each in words."""
        return iter(())

    def unlogged(self, study: Study) -> float:
        """Share of the target's visits to states that no row leaves, by this estimator's states."""
        return study.unlogged
