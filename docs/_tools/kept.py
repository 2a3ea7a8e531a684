"""The numbers that pages and pictures are made from: docs/data/numbers.json.

`_tools.measure` measures them. The file is rewritten only if a number has changed by more than the
tolerance, so that machines with different rounding do not overwrite each other. A test measures again
and fails if the two differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from docs._tools import measure
from docs._tools.measure import ROOT
from docs._tools.values import near

KEPT = ROOT / "docs" / "data" / "numbers.json"
_DIVERGED = 1e6  # beyond this a learner has diverged, and its numbers are not compared


def numbers() -> dict[str, Any]:
    """The contents of the file, with the stored results of other studies."""
    from docs._tools import board, claims, curves, near
    from docs._tools.blocks import record

    return {
        **read(),
        "claims": claims.by_id(),
        "coverage": record(),
        "leaderboard": board.kept(),
        "near": near.kept(),
        "printed": curves.kept(),
    }


def read() -> dict[str, Any]:
    """The measured numbers alone."""
    found: dict[str, Any] = json.loads(KEPT.read_text("utf-8"))
    return found


def refresh() -> list[str]:
    """Measure, rewrite the file if something differs, and return what differs."""
    measured = _rounded(measure.numbers())
    changed = differences(read(), measured) if KEPT.exists() else ["everything"]
    if changed:
        lines = (f"{json.dumps(k)}:{_compact(v)}" for k, v in measured.items())
        KEPT.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")
    return changed


def differences(old: Any, new: Any) -> list[str]:
    """Where two measurements differ by more than a hundredth, as dotted names.

    >>> differences({"a": [1.0, 2.0], "b": 3}, {"a": [1.001, 2.5], "b": 4})
    ['a.1: 2.0, now 2.5', 'b: 3, now 4']
    """
    return list(_differences(old, new, ""))


def _differences(old: Any, new: Any, where: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}, key=str):
            if key in old and key in new:
                yield from _differences(old[key], new[key], f"{where}.{key}")
            else:
                yield f"{where}.{key}: {'gone' if key in old else 'new'}".removeprefix(".")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, pair in enumerate(zip(old, new, strict=True)):
            yield from _differences(*pair, f"{where}.{k}")
    elif not _same(old, new):
        yield f"{where}: {old}, now {new}".removeprefix(".")


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, bool) or isinstance(new, bool) or not _numeric(old) or not _numeric(new):
        return bool(old == new) or (_diverged(old) and _diverged(new))
    if isinstance(old, int) and isinstance(new, int):
        return old == new
    return near(old, new) or (_diverged(old) and _diverged(new))


def _numeric(value: Any) -> bool:
    return isinstance(value, (int, float))


def _diverged(value: Any) -> bool:
    return value == "inf" or (_numeric(value) and abs(value) > _DIVERGED)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
