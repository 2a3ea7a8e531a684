"""What estimators and tests of the log are given: the log, the settings, and what passes have found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from o2td.evaluation.bootstrap import LANES
from o2td.evaluation.episodes import Episodes, Log
from o2td.evaluation.statistic import Passes
from o2td.evaluation.survey import Survey
from o2td.evaluation.thresholds import Thresholds
from o2td.sources import Source

__all__ = ["Settings", "Study"]


@dataclass(frozen=True)
class Settings:
    """What `evaluate` was asked for beside the question itself."""

    confidence: float = 0.95
    seed: int = 0
    lanes: int = LANES
    trace: float | None = None
    thresholds: Thresholds = Thresholds()  # noqa: RUF009  # it is frozen


class Study:
    """One question to one log.

    `survey` and `sample` are complete after the first pass.
    """

    def __init__(self, log: Log, settings: Settings) -> None:
        self.log, self.settings = log, settings
        self.survey = Survey()

    @property
    def source(self) -> Source:
        """Where the rows come from: `mapped` says which columns, `info` what was read."""
        return self.log.source

    @cached_property
    def sample(self) -> Episodes:
        """Some whole episodes, at most about 100,000 rows, chosen by their keys alone."""
        return self.survey.sample.joined()

    def collect(self) -> Passes:
        """The first pass."""
        yield [self.survey]
