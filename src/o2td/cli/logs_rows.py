"""Rows of files whose values are wanted: some columns, checked, in bounded batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from o2td.errors import InputError

if TYPE_CHECKING:
    from o2td.evaluation.value_model import ValueModel
    from o2td.sources.coding import Codings
    from o2td.sources.parts import Part
    from o2td.sources.places import Where

_ROWS = 65_536


def rows_of(
    files: Sequence[str],
    inputs: Sequence[str],
    states: bool,
    who: str,
    more: Sequence[str] = (),
    codings: Codings | None = None,
) -> Iterator[tuple[Any, list[Any], Where]]:
    """Observations (n, k) or states (n,), the columns of `more` if all exist, and their place."""
    import numpy as np

    from o2td.sources.arrow_cells import OBSERVED, as_floats, check_finite, whole_numbers
    from o2td.sources.mapping import Mapped
    from o2td.sources.parts import files_of
    from o2td.sources.places import Where
    from o2td.sources.schema import check_schema

    parts = files_of(list(files))
    kind, any_rows = "int" if states else "float", False
    made = {one: name for name, coding in (codings or {}).items() for one in coding.names}
    for part in parts:
        part.codings = codings or {}
        file, columns = part.label, part.schema().names
        for name in inputs:
            if name not in columns:
                raise InputError(f"{file}: column {_missing(part, made.get(name, name), who)}")
        extra = list(more) if all(name in columns for name in more) else []
        kinds = dict.fromkeys(inputs, kind) | dict.fromkeys(extra, "float")
        check_schema(part, part, Mapped({"observation": tuple(inputs)}), kinds)
        first = 0
        for batch in part.batches(kinds, _ROWS):
            where = Where([file], 0, first)
            first += batch.num_rows
            if not batch.num_rows:
                continue
            any_rows = True
            read: dict[str, Any] = {}
            for name in kinds:
                if states and name in inputs:
                    read[name] = whole_numbers(batch.column(name), name, where)
                else:
                    read[name] = as_floats(batch.column(name))
                    check_finite(read[name], name, where, most=OBSERVED)
            table = [read[name] for name in inputs]
            rows = table[0] if states else np.column_stack(table)
            yield rows, [read[name] for name in extra], where
    if not any_rows:
        raise InputError(f"{parts[0].label}: has no rows; write some, or leave it out")


def _missing(part: Part, name: str, who: str) -> str:
    """What is wrong with a column that is not there, or is there as a list or a struct."""
    schema = part.format.schema()
    if name in schema.names:
        return f"{name} holds {schema.field(name).type}, not one value per row; write one number per row"
    return f"{name} is missing, which {who} reads; add it, or rename the column that holds it"


def check_states(model: ValueModel, states: Any, where: Where) -> None:
    """Refuse the first row whose state the features do not know."""
    import numpy as np

    low, high = 0, len(states)
    if _known(model, states):
        return
    while high - low > 1:  # the first bad row is in low … high - 1
        middle = (low + high) // 2
        low, high = (middle, high) if _known(model, states[low:middle]) else (low, middle)
    said = f"is {np.asarray(states)[low]}, a state that the model does not know"
    where.refuse(low, model.inputs[0], said, "leave the row out, or fit on logs that visit it")


def _known(model: ValueModel, states: Any) -> bool:
    try:
        model.predict(states) if not model.of_actions else model.action_values(states)
    except InputError:
        return False
    return True


def chances_of(columns: Sequence[Any]) -> Any:
    """Columns of probabilities as one (n, A) table, or None if there are none."""
    import numpy as np

    return np.column_stack(columns) if columns else None
