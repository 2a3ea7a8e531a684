"""Is the log what it claims to be? Tests, each with a number, a verdict, a sentence and a remedy.

A test joins the passes of an evaluation: like an estimator's, its `collect` yields the statistics
that the next pass is to fill, and `find` draws the conclusion. Findings appear in
`Evaluation.tests`, in the report, and in the verdicts of the kinds of estimators that they concern.
Tests are registered in `o2td.registry.LOG_TESTS`, those of other packages through the entry-point
group `o2td.log_tests`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from o2td.arguments import choice
from o2td.evaluation.statistic import Passes
from o2td.evaluation.thresholds import CANNOT, CAUTION, TRUST

if TYPE_CHECKING:
    from o2td.evaluation.study import Study

KINDS = ("fit", "history", "hybrid", "learner")
BIASED = ("fit", "learner")  # kinds that assume states hold all that matters


@dataclass(frozen=True)
class Finding:
    """The finding of one test of a log.

    Parameters
    ----------
    name : str
        Name of the test.
    figure : float or None
        What was measured.
    verdict : str
        "trust" if nothing speaks against the log, else "caution" or "cannot answer".
    sentence : str
        What was found, in words.
    remedy : str
        What to do about it.
    kinds : tuple of str
        The kinds of estimators whose verdict is capped at this one.
    biased : tuple of str
        The kinds whose estimates it biases; others with the same verdict are preferred to these.
        Estimators that are `spared` are not included.

    Examples
    --------
    >>> Finding("drift", 0.3, "trust", "rewards do not change along the log").passed
    True
    """

    name: str
    figure: float | None
    verdict: str
    sentence: str
    remedy: str = ""
    kinds: tuple[str, ...] = KINDS
    biased: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        choice("verdict", self.verdict, (TRUST, CAUTION, CANNOT))

    @property
    def passed(self) -> bool:
        """Whether nothing was found that speaks against the log."""
        return self.verdict == TRUST

    @property
    def reason(self) -> str:
        """Sentence and remedy in one line."""
        return f"{self.sentence}; {self.remedy}" if self.remedy else self.sentence

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return {**vars(self), "kinds": list(self.kinds), "biased": list(self.biased)}


class LogTest(ABC):
    """A question about a log. One object serves one evaluation, so it may store what it collects.

    >>> class Longest:
    ...     rows = 0
    ...     def add(self, episodes):
    ...         length = episodes.first[1:] - episodes.first[:-1]
    ...         self.rows = max(self.rows, int(length.max()))
    ...     def merge(self, other):
    ...         self.rows = max(self.rows, other.rows)
    >>> class Short(LogTest):
    ...     name = "short"
    ...     title = "Are there episodes of more than one step?"
    ...     def collect(self, study):
    ...         self.longest = Longest()
    ...         yield [self.longest]
    ...     def find(self, study):
    ...         return Finding(self.name, self.longest.rows, "trust", "there are")
    """

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def collect(self, study: Study) -> Passes:
        """Yield the statistics for each pass in turn.

        Before the first `yield` the study has the source and the settings; after it, also the
        survey and the sample.
        """

    @abstractmethod
    def find(self, study: Study) -> Finding | None:
        """The finding, or None if the log cannot be tested for it. Called after the last pass."""
