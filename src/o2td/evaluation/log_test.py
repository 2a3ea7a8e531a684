"""Is the log what it says? Tests of a log, each with a figure, a verdict, a sentence and a remedy.

A test joins the passes of an evaluation: `collect` yields the statistics that the next pass shall
fill, as an estimator's does, and `find` says what they amount to. What is found is in
`Evaluation.tests`, on the page and in the verdicts of the kinds of estimators that it concerns.
Tests are registered in `o2td.registry.LOG_TESTS`, those of other packages by the entry-point group
`o2td.log_tests`.
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

__all__ = ["Finding", "LogTest"]

KINDS = ("fit", "history", "hybrid", "learner")
BIASED = ("fit", "learner")  # what takes states for all that matters


@dataclass(frozen=True)
class Finding:
    """What one test of a log found.

    Parameters
    ----------
    name : str
        Of the test.
    figure : float or None
        What was measured.
    verdict : str
        "trust" where nothing speaks against the log, else "caution" or "cannot answer".
    sentence : str
        What was found, in words.
    remedy : str
        What to do about it.
    kinds : tuple of str
        The kinds of estimators whose verdict is at most this one.
    biased : tuple of str
        The kinds whose estimates it biases, which is worse: others of the same verdict go first.
        Estimators that are `spared` are not among them.

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
    """A question about a log. One object serves one evaluation, so it may keep what it collects.

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
        """Yield the statistics of one pass after the other.

        Before the first `yield` the study knows the source and the settings, after it the survey
        and the sample, too.
        """

    @abstractmethod
    def find(self, study: Study) -> Finding | None:
        """What was found, None where the log does not allow to ask. Called after the last pass."""
