"""One log under several target policies: opened once for each, read once for all.

A policy is what `open_logs` takes as `target`, or the name of a column of the log. Sources of one
log differ only in their ratios, so batches are read from the files once and decoded by each source.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import tee
from typing import Any

import msgspec

from o2td.errors import InputError, option
from o2td.sources.columns import OF_TARGET, Columns
from o2td.sources.log_rows import LogRows
from o2td.sources.logs import LogSource
from o2td.sources.mapping import find_columns
from o2td.sources.opening import opened
from o2td.sources.parts import Part, PathLike, parts_of
from o2td.sources.policies import action_order
from o2td.sources.source import ROWS

KINDS = {"prob": "target_prob", "logprob": "target_logprob", "probs": "target_probs", "rho": "rho"}


def open_policies(
    logs: Any,
    policies: Mapping[str, Any],
    columns: Columns | Mapping[str, Any] | PathLike | None = None,
    discount: float | None = None,
    *,
    behavior: Any = None,
    sort: bool = False,
    densities: bool = False,
    actions: Sequence[Any] | None = None,
    value_model: Any = None,
) -> list[LogSource]:
    """One source per policy, in their order; `logs` may be an open source.

    Parameters
    ----------
    logs
        What `open_logs` takes, or one of its sources, whose own target is then ignored.
    policies
        Name to policy: what `open_logs` takes as `target`, or columns of the log in words, see
        `policy_columns`.
    columns, discount, behavior, sort, densities, actions
        As in `open_logs`.
    value_model
        As in `open_logs`, one for all policies, or a mapping of the policies' names to one each.

    Examples
    --------
    >>> import pandas as pd
    >>> log = pd.DataFrame({"episode": [0, 1], "state": 0, "action": [0, 1],
    ...                     "reward": 1.0, "terminated": True, "behavior_prob": 0.5})
    >>> log["A"], log["B"] = 0.5, [0.1, 0.9]
    >>> a, b = open_policies(log, {"A": "A", "B": "B"}, discount=1.0)
    >>> [chunk.rho.tolist() for chunk in b.chunks()]
    [[0.2, 1.8]]
    """
    if isinstance(logs, LogSource):
        return [_retargeted(logs, name, policy) for name, policy in policies.items()]
    chosen = Columns.make(columns)
    models = _models(value_model, policies)
    parts = parts_of(logs, chosen)
    made = []
    common = actions  # of all policies that name their actions
    for name, policy in policies.items():
        given, only, order = chosen, None, actions
        if isinstance(policy, str) and policy != "behavior":
            role, found, named = policy_columns(name, policy, parts[0])
            given, only = _only(chosen, role, found, parts[0])
            policy = None
        else:
            named = action_order(policy, None, None)
        if named is not None:
            common = named if common is None or set(common) != set(named) else common
            order = actions or common
        for part in parts:
            part.codings = {}
        reading = (behavior, sort, densities, order, only, models[name])
        source = opened(parts, given, discount, policy, *reading)
        made.append((source, dict(parts[0].codings)))
    codings = made[0][1]
    for name, (_, own) in zip(policies, made, strict=True):
        for column, coding in own.items():
            if column in codings and coding.values != codings[column].values:
                raise InputError(
                    f"policies: {name} has the actions in another order than {next(iter(policies))}"
                    f" ({', '.join(map(str, coding.values[:6]))}); list them in one order, actions=[…]"
                )
        codings |= own
    for part in parts:
        part.codings = codings
    return [source for source, _ in made]


def _models(given: Any, policies: Mapping[str, Any]) -> dict[str, Any]:
    """The value model of each policy."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(policies, given)
    for name in given:
        if name not in policies:
            known = ", ".join(policies)
            raise InputError(f"value_model: {name!r} is not a policy; there are {known}")
    return {name: given.get(name) for name in policies}


def _retargeted(source: LogSource, name: str, policy: Any) -> LogSource:
    if not isinstance(policy, str) or policy == "behavior":
        return source._retargeted(policy)
    part = source._first_part
    role, found, _ = policy_columns(name, policy, part)
    given, only = _only(Columns(), role, found, part)
    roles = find_columns(part.schema().names, given, part.label, part.groups).roles
    return source._retargeted(None, {one: roles[one] for one in only})


def policy_columns(
    name: str, text: str, part: Part
) -> tuple[str, str | list[str], list[str] | None]:
    """The role and the columns that a policy named by columns has, and what they call the actions.

    A column of numbers is the probability that the policy gives to the action taken. A column of
    lists or structs, or the beginning of the names of several columns (`B_prob` or `B_prob_*` for
    `B_prob_0`, `B_prob_1`, … or `B_prob_buy`, `B_prob_sell`, …), are those of all actions. `rho:NAME`,
    `logprob:NAME`, `prob:NAME` and `probs:NAME` say what a column holds.
    """
    kind, colon, rest = text.partition(":")
    names, groups = part.schema().names, part.groups
    if colon and kind.strip() in KINDS and text not in names:
        role, column = KINDS[kind.strip()], rest.strip()
        if role == "target_probs":
            return role, *_listed(name, column, part)
        if column not in names:
            raise _no_column(name, column, part)
        return role, column, None
    if text in names and text not in groups:
        return "target_prob", text, None
    return "target_probs", *_listed(name, text, part)


def _listed(name: str, text: str, part: Part) -> tuple[str | list[str], list[str] | None]:
    """Columns of the probabilities of all actions, and the actions' names if they have any."""
    if text in part.groups:
        return text, None
    prefix = text[:-1] if text.endswith("*") else f"{text}_"
    found = [one for one in part.schema().names if one.startswith(prefix) and one != prefix]
    if len(found) < 2:
        raise _no_column(name, text, part)
    if all(one[len(prefix) :].isdecimal() for one in found):
        return f"{prefix}*", None
    return found, [one[len(prefix) :] for one in found]


def _no_column(name: str, text: str, part: Part) -> InputError:
    names = part.schema().names
    shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    where = option(f"policies[{name!r}]", f"--target {name}={text}")
    function = option("", " (a policy that is a function needs Python: evaluation.compare)")
    return InputError(
        f"{where}: {part.label} has no column {text!r}; name one with the policy's probability of the"
        " action taken (or rho:NAME, logprob:NAME), a column of lists, or what the names of the columns"
        f" of all actions begin with{function}; it has {shown}"
    )


def _only(
    chosen: Columns, role: str, found: str | list[str], part: Part
) -> tuple[Columns, list[str]]:
    """The columns without those of other policies, and the roles of this policy's."""
    changed: dict[str, Any] = {**dict.fromkeys(OF_TARGET), role: found}
    if role == "target_probs":
        known = part.schema().names
        if isinstance(found, list):
            following: Any = [f"next_{one}" for one in found]
            there = all(one in known for one in following)
        else:
            following = f"next_{found}"
            begin = following.rstrip("*")
            there = following in part.groups or (
                following != begin and any(one.startswith(begin) for one in known)
            )
        changed["next_target_probs"] = following if there else None
    only = [one for one in OF_TARGET if changed[one] is not None]
    return msgspec.structs.replace(chosen, **changed), only


def chunks_of_all(
    sources: Sequence[LogSource], rows: int = ROWS
) -> tuple[list[Iterator[LogRows]], Any]:
    """The chunks of sources from `open_policies`, to be drawn in turn; files are read once.

    Returns what to draw from, and what to close afterwards.
    """
    lead = sources[0]
    lead._know_behavior()
    for other in sources[1:]:
        other._share_behavior(lead)
    reading = lead._read(rows, sources)
    streams = [
        source._chunks_from(_own(batches), rows)
        for source, batches in zip(sources, tee(reading, len(sources)), strict=True)
    ]
    return streams, closing(reading)


def _own(batches: Iterator[Any]) -> Generator[Any]:
    yield from batches
