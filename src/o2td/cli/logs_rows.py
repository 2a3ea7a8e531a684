"""Rows of files whose values are asked for: some columns, checked, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from o2td.errors import InputError

if TYPE_CHECKING:
    from o2td.sources.blocks import Where

__all__ = ["read_inputs", "rows_of"]

_ROWS = 65_536


def rows_of(
    files: Sequence[str], inputs: Sequence[str], states: bool, who: str, more: Sequence[str] = ()
) -> Iterator[tuple[Any, list[Any], Where]]:
    """Observations (n, k) or states (n,), the columns of `more` if all are there, and the place."""
    import numpy as np

    from o2td.sources.blocks import Where
    from o2td.sources.cells import as_floats, check_finite, whole_numbers
    from o2td.sources.paths import expand
    from o2td.sources.readers import FileReader

    reader = FileReader(expand(list(files)))
    kind, any_rows = "int" if states else "float", False
    for part, file in enumerate(reader.names):
        columns = reader.schema(part).names
        for name in inputs:
            if name not in columns:
                raise InputError(
                    f"{file}: column {name} is missing, which {who} reads; add it, or rename the"
                    " column that holds it"
                )
        extra = list(more) if all(name in columns for name in more) else []
        kinds = dict.fromkeys(inputs, kind) | dict.fromkeys(extra, "float")
        first = 0
        for batch in reader.batches(part, kinds, _ROWS):
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
                    check_finite(read[name], name, where)
            table = [read[name] for name in inputs]
            rows = table[0] if states else np.column_stack(table)
            yield rows, [read[name] for name in extra], where
    if not any_rows:
        raise InputError(f"{reader.names[0]}: has no rows; write some, or leave it out")


def read_inputs(files: Sequence[str], inputs: Sequence[str], states: bool, who: str) -> Any:
    """All rows at once."""
    import numpy as np

    return np.concatenate([rows for rows, _, _ in rows_of(files, inputs, states, who)])
