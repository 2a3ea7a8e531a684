"""Whether the columns of each file have types that their roles can use."""

from __future__ import annotations

from typing import Any

from o2td.errors import InputError, import_extra
from o2td.sources.columns import Columns
from o2td.sources.mapping import Mapped
from o2td.sources.parts import Part

_INTS = ("state", "next_state", "step")
_FLAGS = ("terminated", "truncated", "done", "start")
_NAMES = ("episode", "time")


def kinds_of(mapped: Mapped) -> dict[str, str]:
    """How the cells of each column are read: float, int, flag, or any."""
    kinds: dict[str, str] = {}
    for role in mapped.roles:
        kind = "int" if role in _INTS else "flag" if role in _FLAGS else "float"
        if role in _NAMES or role == "action":
            kind = "any"
        for name in mapped.many(role):
            kinds[name] = kind
    return kinds


def drop_unreadable(mapped: Mapped, schema: Any, given: Columns) -> Mapped:
    """Settle what only types can: a real-valued `obs` is an observation, text actions are names."""
    pa = import_extra("pyarrow", "logs")
    roles = dict(mapped.roles)
    for role, other in (("state", "observation"), ("next_state", "next_observation")):
        name = mapped.one(role)
        guessed = getattr(given, role) is None and name not in (None, "state", "next_state")
        if guessed and pa.types.is_floating(schema.field(name).type):
            del roles[role]
            roles.setdefault(other, (str(name),))
    action = mapped.one("action")
    if action is not None and given.action is None and not _numeric(schema.field(action).type):
        del roles["action"]
    time = mapped.one("time")
    if time is not None and given.time is None and not _ordered(schema.field(time).type):
        del roles["time"]
    return Mapped(roles, mapped.never)


def check_schema(part: Part, first_part: Part, mapped: Mapped, kinds: dict[str, str]) -> None:
    """Refuse a file that lacks a column or has it in a type that its role cannot use."""
    pa = import_extra("pyarrow", "logs")
    schema, name = part.schema(), part.label
    first = schema if part is first_part else first_part.schema()
    for column, kind in kinds.items():
        if column not in schema.names:
            raise InputError(
                f"{name}: column {column} is missing, which {first_part.label} has; write all files"
                " with the same columns"
            )
        found = schema.field(column).type
        if pa.types.is_nested(found):
            raise InputError(
                f"{name}: column {column} holds {found}, not one value a row; write one column a"
                " number, such as obs_0, obs_1, …"
            )
        if kind != "any" and not _numeric(found):
            wanted = {"flag": "true or false", "int": "whole numbers"}.get(kind, "numbers")
            said = f"{name}: column {column} holds {found} instead of {wanted}; convert it"
            raise InputError(part.format.bad_cell(column, kind) or said)
        if kind == "any" and column == mapped.one("episode"):
            _check_names(column, found, first.field(column).type, name, first_part.label)
        if kind == "any" and column in mapped.many("action") and not _numeric(found):
            raise InputError(f"{name}: column {column} holds {found}; number the actions from 0")


def _check_names(column: str, found: Any, first: Any, name: str, first_name: str) -> None:
    if _sort(found) != _sort(first):
        raise InputError(
            f"{name}: column {column} holds {found}, in {first_name} it holds {first}; write all"
            " files with the same types"
        )


def _sort(kind: Any) -> str:
    pa = import_extra("pyarrow", "logs")
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return "number" if _numeric(kind) else "text" if "string" in str(kind) else str(kind)


def _numeric(kind: Any) -> bool:
    types = import_extra("pyarrow", "logs").types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def _ordered(kind: Any) -> bool:
    types = import_extra("pyarrow", "logs").types
    return _numeric(kind) or bool(types.is_temporal(kind))
