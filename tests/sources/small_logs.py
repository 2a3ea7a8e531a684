"""Logs of a few rows, opened and refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from o2td import sources
from o2td.errors import InputError


def log_of(rows=12, **columns):
    """Episodes of three rows, states 0 to 2, two actions in turn."""
    t = np.arange(rows)
    base = {"episode": t // 3, "step": t % 3, "state": t % 3, "action": t % 2, "reward": 1.0}
    base |= {"terminated": t % 3 == 2, "behavior_prob": 0.5, "target_prob": 0.25}
    return pd.DataFrame(base | columns)


def opened(log, **options):
    return sources.open_logs(log, discount=0.9, **options)


def refused(match, log, **options):
    with pytest.raises(InputError, match=match):
        opened(log, **options).scan()
