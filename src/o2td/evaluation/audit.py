"""What an audit needs: what was computed, from which files, when and how."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from o2td._version import __version__
from o2td.evaluation.study import Study


def facts(study: Study) -> dict[str, Any]:
    """Version, date, settings, files with digests and rows, and columns as they were understood."""
    source, settings = study.source, study.settings
    info, column = source.info, source.mapped.one("discount")
    return {
        "version": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "discount": source.discount if column is None else f"column {column}",
        **({} if settings.horizon is None else {"horizon": settings.horizon}),
        "confidence": settings.confidence,
        "seed": settings.seed,
        "bootstrap": settings.lanes,
        "files": _files(source, info.files, info.rows),
        "columns": {role: _named(names) for role, names in info.mapping.items()},
        "ratio": info.ratio,
        "rows": info.rows,
        "transitions": info.transitions,
        "episodes": info.episodes,
    }


def _files(source: Any, names: tuple[str, ...], rows: int) -> list[dict[str, Any]]:
    counted: dict[str, int | None] = getattr(source, "rows_by_file", dict)()
    found = []
    for name in names:
        path = Path(name)
        known = path.is_file()
        found.append(
            {
                "name": name,
                "rows": rows if len(names) == 1 else counted.get(name),
                "bytes": path.stat().st_size if known else None,
                "sha256": _digest(path) if known else None,
            }
        )
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _named(names: str | tuple[str, ...]) -> str | list[str]:
    several = (names,) if isinstance(names, str) else names
    return several[0] if len(several) == 1 else list(several)
