"""Arrow's views and run-end encodings as the plain types that all of its functions take.

Polars writes text as `string_view`, also as the categories of a dictionary; much of Arrow (take,
index_in, dictionary_decode) has no code for views.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.sources.arrow import pa, pc

__all__ = ["is_list", "plain_batch", "plain_schema"]


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is any kind of list, but for views."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def plain_schema(schema: Any) -> Any:
    """The schema that `plain_batch` gives to batches of this one."""
    kinds = [_plain(kind) for kind in schema.types]
    if kinds == schema.types:
        return schema
    return pa.schema(list(zip(schema.names, kinds, strict=True)))


def plain_batch(batch: Any) -> Any:
    """The batch with columns of plain types, itself if all are."""
    found = batch.schema
    schema = plain_schema(found)
    if schema is found:
        return batch
    columns = [
        _cast(column, kind) for column, kind in zip(batch.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(kind: Any) -> Any:
    """The plain type of the same values."""
    types = pa.types
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_run_end_encoded(kind):
        return _plain(kind.value_type)
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain(kind.value_type), kind.ordered)
    if types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    views = types.is_list_view(kind) or types.is_large_list_view(kind)
    if views or is_list(kind):
        item = kind.value_field.with_type(_plain(kind.value_type))
        return pa.large_list(item) if views or item.type != kind.value_type else kind
    return kind


def _cast(column: Any, kind: Any) -> Any:
    """A column as a plain type; Arrow's own cast from views of lists gives wrong values."""
    if column.type == kind:
        return column
    if pa.types.is_run_end_encoded(column.type):
        return _cast(pc.run_end_decode(column), kind)
    if pa.types.is_dictionary(kind):
        values = column.dictionary.cast(kind.value_type)
        return pa.DictionaryArray.from_arrays(column.indices, values, ordered=kind.ordered)
    missing = column.is_null()
    if pa.types.is_struct(kind):
        parts = [
            _cast(*both) for both in zip(column.flatten(), (f.type for f in kind), strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=missing)
    if is_list(kind):
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64())
        values = _cast(pc.list_flatten(column), kind.value_type)
        return pa.LargeListArray.from_arrays(offsets, values, kind, mask=missing)
    return column.cast(kind)
