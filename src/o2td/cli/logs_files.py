"""What `o2td evaluate --out` writes beside the answer: values of states, and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from o2td.evaluation import Evaluation
    from o2td.evaluation.model import ValueModel

__all__ = ["page_of", "values_of"]


def values_of(model: ValueModel, parts: Iterable[Any]) -> Callable[[Path], None]:
    """A writer of `values.parquet`: the model's inputs and the value of each row.

    A part is rows and the target's probabilities there, which only values of actions need.
    """
    from o2td.cli.logs_rows import predicted
    from o2td.evaluation.output import write_parquet

    def columns(part: tuple[Any, Any]) -> dict[str, Any]:
        rows, chances = np.asarray(part[0]), part[1]
        each = rows[:, None] if rows.ndim == 1 else rows
        table = {name: each[:, j] for j, name in enumerate(model.inputs)}
        return table | predicted(model, rows, chances)

    return lambda path: write_parquet(path, map(columns, parts))


def page_of(answer: Mapping[str, Any], evaluation: Evaluation) -> str:
    """`report.html`, with the figures that this answer has numbers for."""
    from o2td.report.logs import logs_page

    return logs_page(answer, evaluation.series).html()
