from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.coverage_common import log_of

__all__ = ["ENDS", "line_log", "line_value", "log_of"]


ENDS = 0.05  # chance of a step of the line to be the last


def line_log(episodes: int, seed: int, steps: int = 40) -> pd.DataFrame:
    """A point that drifts on a line, pushed left or right evenly; the target pushes right more.

    A step ends the episode with chance `ENDS`; it is cut after `steps`. The reward is the place.
    """
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for e in range(episodes):
        x = rng.normal()
        for t in range(steps):
            action = int(rng.random() < 0.5)
            after = 0.9 * x + (0.3 if action else -0.3) + 0.1 * rng.normal()
            ends = rng.random() < ENDS
            row: dict[str, Any] = {"episode": e, "obs_0": x, "next_obs_0": after}
            row |= {"action": action, "reward": x, "terminated": ends}
            row |= {"truncated": t == steps - 1 and not ends, "behavior_prob": 0.5}
            row |= {"target_prob_0": 0.3, "target_prob_1": 0.7}
            row |= {"next_target_prob_0": 0.3, "next_target_prob_1": 0.7}
            rows.append(row)
            x = after
            if ends:
                break
    return pd.DataFrame(rows)


def line_value(discount: float) -> float:
    """`V(x) = a x + c` with `a = 1 / (1 - 0.9 k)`, `c = 0.12 k a / (1 - k)`; starts average 0."""
    k = discount * (1.0 - ENDS)
    return 0.12 * k / (1.0 - 0.9 * k) / (1.0 - k)
