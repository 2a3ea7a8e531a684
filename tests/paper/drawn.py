"""Records made by hand, and sections drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from o2td.report import Page, Section


def rows(error: float | None, least: float = 0.1, **more: Any) -> list[dict[str, Any]]:
    """Errors of one method that fall from 2 to `least` in three records, of two runs."""
    return [
        {
            "algorithm": "TD",
            "run": run,
            "metric": metric,
            "step": 50 * (k + 1),
            "value": value * (1.0 + 0.01 * run),
            **({"truth_error": error if metric == "rmse" else None} if error is not None else {}),
            **more,
        }
        for metric in ("rmse", "rmspbe")
        for run in range(2)
        for k, value in enumerate((2.0, 0.5, least))
    ]


def drawn(results: Any, folder: Any, make: Callable[..., Section], *more: Any) -> str:
    return Page("t", "l", [make(results, folder, *more)], "f").html()
