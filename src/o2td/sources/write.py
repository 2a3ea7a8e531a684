"""Writing a log: one parquet file with the default column names and page checksums."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from o2td.arguments import file_path, instance, shown
from o2td.atomic import replacing, writing
from o2td.errors import InputError
from o2td.sources.arrow import pa, pq
from o2td.sources.log_rows import LogRows
from o2td.sources.source import Source


def write_logs(chunks: Source | Iterable[LogRows], path: str | os.PathLike[str]) -> Path:
    """Write chunks to a parquet file that `open_logs` reads without any mapping.

    The file appears complete or not at all. Successors are written, empty if a row terminates;
    discounts are not written, but given when the log is read.

    >>> import tempfile, numpy as np
    >>> from o2td import sources
    >>> even = lambda x: np.full((len(x), 2), 0.5)
    >>> played = sources.rollouts("CartPole-v1", even, discount=0.99, episodes=2)
    >>> file = sources.write_logs(played, Path(tempfile.mkdtemp()) / "log.parquet")
    >>> again = sources.open_logs(file, discount=0.99, target="behavior").scan()
    >>> again.episodes, again.verified
    (2, True)
    """
    target = file_path(path)
    if target.suffix.lower() not in (".parquet", ".pq"):
        raise InputError(f"{target}: logs are written as parquet; name it {target.stem}.parquet")
    if not target.parent.is_dir():
        raise InputError(f"{target.parent}: there is no such folder; create it first")
    try:
        given = iter(chunks.chunks() if isinstance(chunks, Source) else chunks)
    except TypeError:  # not a list, or an array without dimensions
        raise InputError(
            f"chunks must be a source, or chunks of one; got {shown(chunks)}"
        ) from None
    tables = map(_table, given)
    first = next(tables, None)
    if first is None:
        raise InputError(f"{target}: there are no rows to write")
    options = {"compression": "zstd", "write_page_checksum": True}
    with (
        writing(target),
        replacing(target) as file,
        pq.ParquetWriter(file, first.schema, **options) as writer,
    ):
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
    return target


def _table(chunk: LogRows) -> Any:
    instance("chunks", chunk, LogRows, "chunks of a source")
    columns: dict[str, Any] = {"episode": chunk.episode, "step": chunk.step}
    ends = chunk.terminated
    if chunk.observation is not None:
        columns |= _numbered("obs", chunk.observation)
    if chunk.state is not None:
        columns["state"] = chunk.state
    if chunk.action is not None:
        single = chunk.action.ndim == 1
        columns |= {"action": chunk.action} if single else _numbered("action", chunk.action)
    for name in ("reward", "terminated", "truncated"):
        columns[name] = getattr(chunk, name)
    if chunk.next_observation is not None:
        columns |= _numbered("next_obs", chunk.next_observation, ends)
    if chunk.next_state is not None:
        columns["next_state"] = pa.array(chunk.next_state, mask=ends)
    if chunk.behavior_prob is not None:
        columns["behavior_prob"] = chunk.behavior_prob
    if chunk.target_probs is not None:
        columns |= _numbered("target_prob", chunk.target_probs)
    elif chunk.target_prob is not None:
        columns["target_prob"] = chunk.target_prob
    if chunk.next_target_probs is not None:
        unknown = ends | np.isnan(chunk.next_target_probs).any(axis=1)
        columns |= _numbered("next_target_prob", chunk.next_target_probs, unknown)
    if chunk.behavior_prob is None or (chunk.target_prob is None and chunk.target_probs is None):
        columns["rho"] = chunk.rho
    return pa.table(columns)


def _numbered(name: str, matrix: Any, mask: Any = None) -> dict[str, Any]:
    """One column per column of the matrix, empty where the mask is set."""
    return {f"{name}_{j}": pa.array(matrix[:, j], mask=mask) for j in range(matrix.shape[1])}
