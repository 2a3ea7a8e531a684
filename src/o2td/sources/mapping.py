"""Which column of a log plays which role: as given, else by the default name, else by a synonym."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import msgspec

from o2td.errors import InputError
from o2td.sources.columns import FLAGS, LISTS, OF_TARGET, SYNONYMS, Columns, says_never
from o2td.sources.places import named

_SINGLE = (
    *("episode", "start", "step", "time", "reward", "terminated", "truncated", "done", "rho"),
    *("behavior_logprob", "target_logprob", "discount", "user", "v", "next_v"),
)
_OF_STATE = ("observation", "next_observation")

Roles = Mapping[str, str | tuple[str, ...]]


class Mapped(msgspec.Struct, frozen=True):
    """The mapping found for one log: role to column, or to a tuple of columns."""

    roles: dict[str, str | tuple[str, ...]]
    never: tuple[str, ...] = ()  # flags said to be False in every row
    bandit: bool = False  # whether each row is a decision of its own, with one reward

    def one(self, role: str) -> str | None:
        """The column of a single-column role, or None if the log has none."""
        found = self.roles.get(role)
        return found if isinstance(found, str) else None

    def many(self, role: str) -> tuple[str, ...]:
        """The columns of a role, in order; empty if the log has none."""
        found = self.roles.get(role, ())
        return (found,) if isinstance(found, str) else found

    @property
    def context(self) -> bool:
        """Whether the log says where decisions were made: observations or states."""
        return "observation" in self.roles or "state" in self.roles

    def all(self) -> list[str]:
        """Every column that is read."""
        return list(dict.fromkeys(name for role in self.roles for name in self.many(role)))

    def __str__(self) -> str:
        lines = []
        for role in self.roles:
            names = self.many(role)
            shown = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)})"
            lines.append(f"{role} = {shown}")
        lines += [f"{role} = never" for role in self.never]
        return "\n".join(lines)


CHANCES = ("target_probs", "behavior_probs", "next_target_probs")
BY_ACTION = (*CHANCES, "q")  # roles with a column for each action


def named_actions(
    mapped: Mapped,
    names: Sequence[str],
    groups: Mapping[str, tuple[str, ...]],
    given: Columns | None = None,
) -> tuple[Mapped, list[str] | None]:
    """Columns of probabilities that are named after actions, and these names in order.

    Columns that `given` names stay as they are.

    >>> log = Mapped({"action": "a"})
    >>> log, order = named_actions(log, ["target_prob_buy", "target_prob_sell"], {})
    >>> log.many("target_probs"), order
    (('target_prob_buy', 'target_prob_sell'), ['buy', 'sell'])
    """
    roles, order = dict(mapped.roles), None
    for role in CHANCES:
        if given is not None and getattr(given, role) is not None:
            continue
        found: dict[str, str] = {}
        for synonym in SYNONYMS[role]:
            columns = groups.get(synonym[:-2], ()) or [
                name for name in names if _plain(name).startswith(synonym[:-1])
            ]
            found = found or {name[len(synonym) - 1 :]: name for name in columns}
        wanted = list(found) if order is None else order
        if len(found) < 2 or all(name.isdecimal() for name in found):
            continue
        if all(name in found for name in wanted):
            order = wanted
            roles[role] = tuple(found[name] for name in order)
    return Mapped(roles, mapped.never, mapped.bandit), order


def in_order(values: tuple[Any, ...], columns: Sequence[str]) -> tuple[Any, ...] | None:
    """The actions in the order of columns that are named after them; None if they are not.

    >>> in_order(("email", "none"), ["A_none", "A_push", "A_email"])
    ('none', 'push', 'email')
    """
    first = str(values[0]) if values else ""
    for column in columns:
        prefix = column.removesuffix(first)
        names = tuple(one.removeprefix(prefix) for one in columns if one.startswith(prefix))
        if len(names) == len(columns) and set(values) <= set(names):
            return names
    return None


def about_target(mapped: Mapped, theirs: Roles | None) -> Mapped:
    """The same log with other columns, or none, that speak of the target; None: as it is.

    >>> about_target(Mapped({"reward": "r", "rho": "ratio"}), {"target_prob": "B"}).roles
    {'reward': 'r', 'target_prob': 'B'}
    """
    if theirs is None:
        return mapped
    roles = {role: found for role, found in mapped.roles.items() if role not in OF_TARGET}
    return Mapped({**roles, **theirs}, mapped.never, mapped.bandit)


_IN_EPISODES = (
    *("episode", "start", "step", "terminated", "truncated", "done"),
    *("next_observation", "next_state", "next_target_probs", "discount"),
)


def as_bandit(mapped: Mapped) -> Mapped:
    """The same log as single decisions, if no column speaks of episodes, steps, ends or successors.

    >>> as_bandit(Mapped({"state": "s", "reward": "r", "time": "ts"})).roles
    {'state': 's', 'reward': 'r'}
    """
    if mapped.never or any(role in mapped.roles for role in _IN_EPISODES):
        return mapped
    roles = {role: found for role, found in mapped.roles.items() if role != "time"}
    return Mapped(roles, bandit=True)


Groups = Mapping[str, tuple[str, ...]]  # a nested column -> the columns that it was spread into


def find_columns(
    names: Sequence[str], given: Columns, where: str, groups: Groups | None = None
) -> Mapped:
    """Each role's column among `names`: as given, else by the default name, else by a synonym.

    >>> print(find_columns(["traj_id", "x_0", "x_1", "r", "terminal"], Columns(), "a.csv"))
    episode = traj_id
    observation = x_0 … x_1 (2)
    reward = r
    terminated = terminal
    """
    roles: dict[str, str | tuple[str, ...]] = {}
    never = tuple(flag for flag in FLAGS if says_never(getattr(given, flag)))
    for flag in FLAGS:
        if getattr(given, flag) is True:
            raise InputError(f"columns: {flag} is True; name a column, or pass False for never")
    groups = groups or {}
    for role in SYNONYMS:
        value = getattr(given, role)
        if isinstance(value, (str, list)) and role not in never:
            roles[role] = _explicit(role, value, names, where, groups)
    own = (found for role, found in roles.items() if role != "user")  # it may be another's, too
    taken = {name for found in own for name in _tuple(found)}
    free = [name for name in names if name not in taken]
    # A state that is named is what the policy saw, whatever else looks like observations.
    hidden = {"discount"}
    if "state" in roles and "observation" not in roles:
        hidden |= {"observation", "next_observation"}
    for role in SYNONYMS:
        if role in roles or role in never or role in hidden:
            continue
        found = _search(role, free, where, groups)
        if found is not None:
            roles[role] = found
            free = [name for name in free if name not in _tuple(found)]
    if roles.get("state") == roles.get("observation"):
        roles.pop("state", None)
    return Mapped({role: roles[role] for role in SYNONYMS if role in roles}, never)


def _tuple(found: str | tuple[str, ...]) -> tuple[str, ...]:
    return (found,) if isinstance(found, str) else found


def called(name: str, role: str, given: Columns) -> bool:
    """Whether a column bears the role's name: the one given, else any of the usual ones.

    >>> called("Rewards", "reward", Columns())
    True
    >>> called("Rewards", "reward", Columns(reward="profit"))
    False
    """
    value = getattr(given, role)
    return name == value if isinstance(value, str) else _plain(name) in SYNONYMS[role]


def _explicit(
    role: str, value: str | list[str], names: Sequence[str], where: str, groups: Groups
) -> str | tuple[str, ...]:
    known = set(names)
    for name in _tuple(value) if isinstance(value, str) else value:
        _check_filled(role, name, groups, where)
    if role in _SINGLE and isinstance(value, str) and value in groups:
        _check_single(role, value, groups, where)
    if isinstance(value, list):
        value = [one for name in value for one in groups.get(name, (name,))]
    elif value in groups:
        value = list(groups[value])
    if isinstance(value, str) and value.endswith("*") and value not in known:
        found = _numbered(value, names, where, role, groups)
        if not found and role in BY_ACTION:
            found = tuple(name for name in names if name.startswith(value[:-1]))
        if not found:
            raise InputError(f"{where}: no column {value} for {role}; it has {_shown(names)}")
        return found
    wanted = [value] if isinstance(value, str) else value
    if not wanted:
        raise InputError(f"columns: {role} is an empty list; name at least one column")
    for name in wanted:
        if name not in known:
            raise InputError(
                f"{where}: no column {name!r}, which columns names for {role}; it has {_shown(names)}"
            )
    several = role in LISTS or isinstance(value, list)
    return tuple(wanted) if several else wanted[0]


def _search(
    role: str, names: Sequence[str], where: str, groups: Groups
) -> str | tuple[str, ...] | None:
    if role in _SINGLE:
        for name, group in groups.items():
            if group and _plain(name) in SYNONYMS[role] and name not in names:
                return _check_single(role, name, groups, where)
    found: list[str | tuple[str, ...]] = []
    for position, synonym in enumerate(SYNONYMS[role]):
        hit: str | tuple[str, ...] | None
        if synonym.endswith("*"):
            spread = (group for name, group in groups.items() if f"{_plain(name)}_*" == synonym)
            free = (group for group in spread if set(group) <= set(names))
            hit = next(free, None) or _numbered(synonym, names, where, role, groups)
        else:
            like = [name for name in names if _plain(name) == synonym]
            hit = _one_of(like, synonym, role, where) if like else None
        if hit:
            if position == 0:
                return hit
            found.append(hit)
    if len(found) > 1:
        _choose([_tuple(one)[0] for one in found], role, where)
    if not found and role not in _OF_STATE:  # beside a state they may be empty
        for name in groups:
            if {_plain(name), f"{_plain(name)}_*"} & set(SYNONYMS[role]):
                _check_filled(role, name, groups, where)
    return found[0] if found else None


def _plain(name: str) -> str:
    return re.sub(r"[-./ ]", "_", name.lower())


def _one_of(like: Sequence[str], exact: str, role: str, where: str) -> str:
    """The name that is written exactly so, else the only one that is written alike."""
    if len(like) > 1 and exact not in like:
        _choose(like, role, where)
    return exact if exact in like else like[0]


def _choose(choices: Sequence[str], role: str, where: str) -> NoReturn:
    raise InputError(
        f"{where}: {role} could be column {' or '.join(choices)}; choose one, {named(role)}"
    )


def _check_filled(role: str, name: str, groups: Groups, where: str) -> None:
    """Refuse a nested column that was spread into nothing."""
    if groups.get(name) == ():
        raise InputError(
            f"{where}: column {name} holds empty lists, and {role} needs numbers; write them, or leave"
            " the column out"
        )


def _check_single(role: str, name: str, groups: Groups, where: str) -> str:
    """The only column that a nested one was spread into, for a role that has one value per row."""
    if len(groups[name]) != 1:
        raise InputError(
            f"{where}: column {name} holds {len(groups[name])} values per row ({groups[name][0]} …), and"
            f" {role} is one; write one column for it"
        )
    return groups[name][0]


def _numbered(
    pattern: str, names: Sequence[str], where: str, role: str, groups: Groups
) -> tuple[str, ...]:
    """The columns `prefix0, prefix1, …` in the order of their numbers, which must be complete."""
    prefix = re.escape(_plain(pattern[:-1]))
    alike: dict[int, list[str]] = {}
    for name in (*names, *groups):
        match = re.fullmatch(prefix + r"([0-9]{1,6})", _plain(name))
        if match:
            alike.setdefault(int(match[1]), []).append(name)
    hits = {
        number: _one_of(like, f"{pattern[:-1]}{number}", role, where)
        for number, like in alike.items()
    }
    if not hits:
        return ()
    numbers = sorted(hits)
    gap = next((a + 1 for a, b in pairwise(numbers) if b != a + 1), None)
    if gap is None and numbers[0] > 1:
        gap = 0
    if gap is not None:
        raise InputError(
            f"{where}: column {pattern[:-1]}{gap} is missing before {hits[numbers[-1]]};"
            " add it, or list the columns to use"
        )
    return tuple(one for n in numbers for one in groups.get(hits[n], (hits[n],)))


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "") if names else "none"
