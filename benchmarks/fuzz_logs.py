"""Fuzz the readers of logs: any bytes under any known file ending give rows or one typed error."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from benchmarks.fuzz_common import fuzz, seeds

with seeds("o2td.sources") as atheris:
    import numpy as np
    import polars as pl

    from o2td import sources
    from o2td.errors import O2TDError

ENDINGS = (".csv", ".ndjson", ".parquet", ".arrow", ".feather", ".csv", ".ndjson", ".csv")
FOLDER = Path(tempfile.mkdtemp())


def frame() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "episode": [0, 0, 0, 1, 1],
            "step": [0, 1, 2, 0, 1],
            "obs_0": rng.normal(size=5),
            "action": [0, 1, 0, 1, 1],
            "reward": rng.normal(size=5),
            "terminated": [False, False, True, False, False],
            "truncated": [False, False, False, False, True],
            "behavior_prob": [0.5, 0.25, 0.5, 1.0, 0.75],
            "target_prob": [0.5, 0.5, 0.0, 1.0, 0.25],
        }
    )


def corpus() -> list[bytes]:
    found = []
    small = frame()
    other = small.select("episode", "reward", "terminated").with_columns(
        state=pl.Series([0, 1, 2, 1, 0]), rho=pl.lit(1.0)
    )
    for table in (small, other):
        for ending, write in (
            (0, lambda t, s: t.write_csv(s)),
            (1, lambda t, s: t.write_ndjson(s)),
            (2, lambda t, s: t.write_parquet(s)),
            (3, lambda t, s: t.write_ipc(s)),
        ):
            stream = io.BytesIO()
            write(table, stream)
            found.append(bytes([ending]) + stream.getvalue())
    return found


def read(data: bytes) -> None:
    if not data:
        return
    path = FOLDER / f"log{ENDINGS[data[0] % len(ENDINGS)]}"
    path.write_bytes(data[1:])
    try:
        source = sources.open_logs(path, discount=0.9, sort=bool(data[0] & 64))
        for chunk in source.chunks():
            if not (np.isfinite(chunk.reward).all() and (chunk.rho >= 0.0).all()):
                raise AssertionError("rows that are not numbers were read as good")
    except O2TDError:
        pass
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    fuzz(atheris, read, corpus(), sys.argv, most=4_000)
