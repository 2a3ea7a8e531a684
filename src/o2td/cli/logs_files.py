"""What `o2td evaluate --out` writes beside the answer: values of states, and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from o2td.evaluation import Evaluation
    from o2td.evaluation.model import ValueModel

__all__ = ["page_of", "values_of"]


def values_of(model: ValueModel, inputs: Any) -> bytes:
    """`values.parquet`: the model's inputs and the value of each row."""
    from o2td.evaluation.output import parquet_bytes

    rows = np.asarray(inputs)
    columns = rows[:, None] if rows.ndim == 1 else rows
    table = {name: columns[:, j] for j, name in enumerate(model.inputs)}
    return parquet_bytes(table | {"value": model.predict(rows)})


def page_of(answer: Mapping[str, Any], evaluation: Evaluation) -> str:
    """`report.html`, with the figures that this answer has numbers for."""
    from o2td.report.logs import logs_page

    return logs_page(answer, evaluation.series).html()
