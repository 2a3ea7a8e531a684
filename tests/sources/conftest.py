from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td.sources import LogRows, Source


def make_frame(
    episodes: int = 12, seed: int = 0, k: int = 3, final: bool = True, names: bool = False
) -> pd.DataFrame:
    """A log of episodes of 1 to 9 rows; every third one is truncated, the others terminate."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for e in range(episodes):
        length = int(rng.integers(1, 10))
        path = rng.normal(size=(length + 1, k))
        for t in range(length):
            last = t == length - 1
            row: dict[str, Any] = {"episode": f"run-{e:03d}" if names else e, "step": t}
            row |= {f"obs_{j}": path[t, j] for j in range(k)}
            row |= {"action": int(rng.integers(0, 2)), "reward": rng.normal()}
            row |= {"terminated": last and e % 3 > 0, "truncated": last and e % 3 == 0}
            if final:
                row |= {f"next_obs_{j}": path[t + 1, j] for j in range(k)}
            row |= {"behavior_prob": rng.uniform(0.2, 0.8), "target_prob": rng.uniform(0, 1)}
            rows.append(row)
    return pd.DataFrame(rows)


def gather(source: Source, rows: int = 65_536) -> dict[str, Any]:
    """All chunks of a source, joined field by field."""
    chunks = list(source.chunks(rows))
    assert all(0 < len(chunk) <= rows for chunk in chunks)
    result: dict[str, Any] = {}
    for name in LogRows.__dataclass_fields__:
        parts = [getattr(chunk, name) for chunk in chunks]
        if name in ("drop", "lone"):
            continue
        result[name] = None if parts[0] is None else np.concatenate(parts)
    return result


def assert_same(one: dict[str, Any], two: dict[str, Any], but: tuple[str, ...] = ()) -> None:
    for name, value in one.items():
        if name not in but:
            np.testing.assert_array_equal(value, two[name], err_msg=name)


@pytest.fixture(scope="session")
def frame() -> Callable[..., pd.DataFrame]:
    return make_frame


@pytest.fixture(scope="session")
def joined() -> Callable[..., dict[str, Any]]:
    return gather


@pytest.fixture(scope="session")
def same() -> Callable[..., None]:
    return assert_same
