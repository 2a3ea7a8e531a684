"""A study of a log after its first pass, or after all."""

from __future__ import annotations

import numpy as np
import pandas as pd

from o2td.evaluation import Finding, Histories, histories
from o2td.evaluation.study import Log, Settings, Study
from o2td.registry import LOG_TESTS
from o2td.sources import open_logs

from .episodes import block_of


def opened(log: pd.DataFrame, discount: float) -> Study:
    return Study(Log(open_logs(log, discount=discount)), Settings())


def studied(log: pd.DataFrame, discount: float) -> Study:
    study = opened(log, discount)
    for wanted in study.collect():
        for one in wanted:
            study.log.collect(one)
    return study


def failed(log: pd.DataFrame, discount: float) -> dict[str, Finding]:
    study = studied(log, discount)
    found = [LOG_TESTS[name]().find(study) for name in LOG_TESTS]
    return {one.name: one for one in found if one is not None and not one.passed}


def traced(log: pd.DataFrame) -> tuple[Study, Histories]:
    """A study after its first pass, and its histories with rewards as a baseline's errors."""
    study = opened(log, 0.9)
    study.log.collect(study.survey)
    block = block_of(log)
    return study, Histories(block, *histories(block), [np.zeros(block.count)], [block.rows.reward])
