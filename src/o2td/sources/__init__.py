"""Logged data as streams of transitions: files, frames, Gymnasium roll-outs, Minari datasets.

Every source yields the same chunks of arrays, in bounded memory, whatever it reads:

>>> import pandas as pd
>>> from o2td import sources
>>> log = pd.DataFrame(
...     {"episode": [7, 7], "obs_0": [0.5, 0.1], "reward": [1.0, 2.0],
...      "terminated": [False, True], "behavior_prob": 0.5, "target_prob": 1.0})
>>> source = sources.open_logs(log, discount=0.9)
>>> for chunk in source.chunks(rows=1000):
...     print(chunk.reward, chunk.discount, chunk.rho)
[1. 2.] [0.9 0. ] [2. 2.]
"""

from __future__ import annotations

from o2td.sources.behavior import BehaviorModel, fit_behavior_model
from o2td.sources.columns import SYNONYMS, Columns
from o2td.sources.format import Format
from o2td.sources.info import LogInfo
from o2td.sources.log_rows import LogRows
from o2td.sources.logs import LogSource
from o2td.sources.opening import minari, open_logs, rollouts
from o2td.sources.source import Source
from o2td.sources.write import write_logs

__all__ = [
    "SYNONYMS",
    "BehaviorModel",
    "Columns",
    "Format",
    "LogInfo",
    "LogRows",
    "LogSource",
    "Source",
    "fit_behavior_model",
    "minari",
    "open_logs",
    "rollouts",
    "write_logs",
]
