"""What an estimator is: a class with a name, passes over the log, an estimate, and its own doubts.

One object serves one evaluation. `collect` yields the statistics that the next pass shall fill, once
for each pass; then `estimate` says what they amount to; then `doubts` names reasons of its own not
to trust it. Bootstrap, thresholds, agreement and recommendation are common to all estimators and
know them by this interface alone. An estimator is registered in `o2td.registry.ESTIMATORS`; one of
another package by the entry-point group `o2td.estimators`.
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

__all__ = ["Doubt", "Estimator", "Outcome"]

Kind = Literal["fit", "history", "hybrid", "learner"]
# a verdict and the reason for it; then perhaps what it is about
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
    """What an estimator found.

    Parameters
    ----------
    value : float
        The target's expected discounted reward from the start states.
    influence : Spread or None
        What episodes move it by; standard error, interval and agreement rest on it.
    lanes : array or None
        The value in each bootstrap lane; by default that of the influence.
    interval : Interval or None
        One of its own, where episodes' influence is not known.
    approximation : float or None
        How far other features would move the value, 0 without features, None if not known.
    condition : float
        Of the equations that were solved.
    about : str
        How it was computed, for readers of the report.
    trouble : str
        Why there is no value.
    model : tuple or None
        Weights (d,), or (A, d) of action values, and the feature map that they belong to.
    curve : mapping or None
        `rows` and `value`, for estimates that change while rows come in.
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
        """No value, for a reason.

        >>> Outcome.none("the log has no states").trouble
        'the log has no states'
        """
        return cls(float("nan"), trouble=why)


class Estimator(ABC):
    """A way to the target's value.

    `name` is what users write, `title` what readers see. `kind` is "fit" (a value function),
    "history" (weighted histories), "hybrid" (histories that correct a fit) or "learner" (one pass
    over the rows, never a reason to doubt others). `needs` are the arrays of `sources.LogRows` without
    which there is no estimate. What is not `recommendable` is computed only when asked for.
    `uses_ratios` says whether rows count by their ratios. A fit that `mends` is one that histories
    correct: it is recommended where the others are doubted.

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

    def missing(self, study: Study) -> str:
        """What this log lacks, in words; empty where there is all that is needed."""
        for name in self.needs:
            if getattr(study.sample.rows, name) is None:
                return _SAID.get(name, f"the log has no {name}")
        return ""

    def too_large(self, study: Study) -> bool:
        """Whether it is left out unless it is asked for, because it would take too long."""
        return False

    @abstractmethod
    def collect(self, study: Study) -> Passes:
        """Yield the statistics of one pass after the other; an empty list waits for the next pass.

        All that is fitted is fitted in the first of these passes (`study.fitting`), the influence of
        episodes is traced in the second one (`study.influences`).
        """

    @abstractmethod
    def estimate(self, study: Study) -> Outcome:
        """What was found. Called after the last pass."""

    def doubts(self, case: Case, study: Study) -> Iterator[Doubt]:
        """Reasons of its own not to trust the estimate, each with the verdict that it allows."""
        return iter(())

    def spared(self, study: Study) -> tuple[str, ...]:
        """Names of tests of the log whose failure does not concern it, whatever its kind."""
        return ()

    def fault(self, test: str) -> float:
        """How much a failed test counts that biases it, beside others of its kind."""
        return 1.0

    def losses(self, grounds: Grounds) -> Iterator[tuple[float, str]]:
        """Shares of the value that dropped rows may cost this estimator, each in words."""
        return iter(())

    def unlogged(self, study: Study) -> float:
        """Share of the target's visits to what no row leaves, as this estimator sees states."""
        return study.unlogged
