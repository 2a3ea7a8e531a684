"""The first pass over a log, by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd

from o2td.evaluation.survey import Survey
from tests.evaluation.episodes import block_of


def surveyed(log: pd.DataFrame, discount: float | None = 0.9, **given: Any) -> Survey:
    """What the first pass finds."""
    found = Survey()
    found.add(block_of(log, discount, **given))
    return found
