"""Whether the columns of each file have types that their roles can use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from o2td.errors import InputError
from o2td.sources.arrow import pa
from o2td.sources.coding import (
    Coding,
    is_text,
    is_time,
    large_ids,
    levels_of,
    mostly_numbers,
    numbers_of,
)
from o2td.sources.columns import Columns
from o2td.sources.mapping import BY_ACTION, CHANCES, Mapped, in_order
from o2td.sources.parts import Part

_INTS = ("state", "next_state", "step")
_FLAGS = ("terminated", "truncated", "done", "start")
_NAMES = ("episode", "time", "user")


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
    """Resolve roles by type: a real-valued `obs` is an observation, and text is not a time."""
    roles = dict(mapped.roles)
    for role, other in (("state", "observation"), ("next_state", "next_observation")):
        name = mapped.one(role)
        guessed = getattr(given, role) is None and name not in (None, "state", "next_state")
        if guessed and pa.types.is_floating(schema.field(name).type):
            del roles[role]
            roles.setdefault(other, (str(name),))
    time = mapped.one("time")
    if time is not None and given.time is None and not _ordered(schema.field(time).type):
        del roles["time"]
    return Mapped(roles, mapped.never)


def with_codings(
    parts: Sequence[Part], mapped: Mapped, order: Sequence[Any] | None
) -> tuple[Mapped, dict[str, Coding]]:
    """Codings of all columns that are not numbers, and the mapping to the coded columns.

    `order` names the actions in the order of the policy; None sorts them.
    """
    schema, roles = parts[0].schema(), dict(mapped.roles)
    codings: dict[str, Coding] = {}
    now, then = mapped.many("observation"), mapped.many("next_observation")
    for j, name in enumerate(now):
        both = (name, then[j]) if len(then) == len(now) else (name,)
        kind, same = schema.field(name).type, is_time
        if not is_time(kind):
            if not _is_name(parts[0], schema, name):
                continue
            same = is_text
        for other in both[1:]:
            if not same(schema.field(other).type):
                raise InputError(
                    f"{parts[0].label}: column {name} holds {kind} and {other} holds"
                    f" {schema.field(other).type}; write both with one type"
                )
        values = () if same is is_time else levels_of(parts, name, both[1:])
        codings |= {one: Coding(one, "levels" if values else "seconds", values) for one in both}
    for role in ("observation", "next_observation"):
        if role in roles:
            made = (codings[n].names if n in codings else (n,) for n in mapped.many(role))
            roles[role] = tuple(one for names in made for one in names)
    states = [one for role in ("state", "next_state") for one in mapped.many(role)]
    if states and (_is_name(parts[0], schema, states[0]) or _is_id(parts[0], schema, states[0])):
        values = numbers_of(parts, states, "state")
        codings |= {name: Coding(name, "number", values) for name in states}
    action = mapped.one("action")
    if action is not None and (order is not None or _is_name(parts[0], schema, action)):
        values = _actions(parts, action, mapped) if order is None else tuple(order)
        codings[action] = Coding(action, "number", values)
        for role in BY_ACTION:
            own = in_order(values, mapped.many(role)) or ()
            if set(own) == set(values):
                roles[role] = tuple(mapped.many(role)[own.index(one)] for one in values)
    return Mapped(roles, mapped.never, mapped.bandit), codings


def _actions(parts: Sequence[Part], action: str, mapped: Mapped) -> tuple[Any, ...]:
    """The actions' names, in the order of the columns of probabilities that bear them, or sorted."""
    values = numbers_of(parts, [action], "action")
    named = (in_order(values, mapped.many(role)) for role in CHANCES)
    return next((found for found in named if found), values)


def _is_name(part: Part, schema: Any, column: str) -> bool:
    """Whether a column holds names; in a text file, numbers with a few mistakes do not count."""
    if not is_text(schema.field(column).type):
        return False
    return not (part.format.text and mostly_numbers(part, column))


def _is_id(part: Part, schema: Any, column: str) -> bool:
    return pa.types.is_integer(schema.field(column).type) and large_ids(part, column)


def check_schema(part: Part, first_part: Part, mapped: Mapped, kinds: dict[str, str]) -> None:
    """Refuse a file that lacks a column or has it in a type that its role cannot use."""
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
                f"{name}: column {column} holds {found}, not one value per row; write one column"
                " per number, such as obs_0, obs_1, …"
            )
        if kind != "any" and not _numeric(found):
            wanted = {"flag": "true or false", "int": "whole numbers"}.get(kind, "numbers")
            said = f"{name}: column {column} holds {found} instead of {wanted}; convert it"
            raise InputError(part.format.bad_cell(column, kind) or said)
        if kind == "any" and column in (mapped.one("episode"), mapped.one("user")):
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
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return "number" if _numeric(kind) else "text" if "string" in str(kind) else str(kind)


def _numeric(kind: Any) -> bool:
    types = pa.types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def _ordered(kind: Any) -> bool:
    types = pa.types
    return _numeric(kind) or bool(types.is_temporal(kind))
