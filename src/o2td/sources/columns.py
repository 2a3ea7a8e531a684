"""Which column of a log plays which role: default names, usual synonyms, explicit mappings.

Names are compared in lower case with ``-``, ``.`` and spaces read as ``_``; one that is written
exactly wins over others that are only alike. The default name of a role wins; among synonyms
exactly one may be present, otherwise the user has to choose.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from o2td.errors import InputError

__all__ = ["SYNONYMS", "Columns", "Mapped", "find_columns"]

# role -> its names, the default first; a trailing * stands for 0, 1, … (or 1, 2, …)
SYNONYMS: dict[str, tuple[str, ...]] = {
    "episode": (
        *("episode", "episode_id", "episode_index", "ep", "ep_id", "traj", "traj_id"),
        *("trajectory", "trajectory_id", "session", "session_id"),
    ),
    "start": ("start", "is_first", "is_start", "episode_start", "first"),
    "step": ("step", "t", "timestep", "time_step", "step_index", "step_id", "step_number"),
    "time": ("time", "timestamp", "ts", "datetime"),
    "observation": ("obs_*", "observation_*", "o_*", "x_*", "feature_*", "state_*"),
    "state": ("state", "s", "state_id", "state_index", "observation", "obs"),
    "action": ("action", "a", "act", "action_id", "action_index", "action_*", "a_*", "act_*"),
    "reward": ("reward", "r", "rew", "rewards"),
    "terminated": ("terminated", "terminal", "terminals", "is_terminal", "termination"),
    "truncated": (
        *("truncated", "truncation", "timeout", "timeouts", "time_limit", "is_truncated"),
    ),
    "done": ("done", "dones", "is_done", "is_last"),
    "next_observation": (
        *("next_obs_*", "next_observation_*", "next_o_*", "next_x_*", "next_feature_*"),
        *("next_state_*", "new_obs_*"),
    ),
    "next_state": ("next_state", "next_s", "s_next", "s_prime", "next_observation", "next_obs"),
    "rho": ("rho", "ratio", "importance_ratio", "importance_weight", "is_ratio"),
    "behavior_prob": (
        *("behavior_prob", "behaviour_prob", "propensity", "pscore", "propensity_score"),
        *("logging_prob", "behavior_probability", "behaviour_probability", "action_prob"),
    ),
    "target_prob": (
        *("target_prob", "target_probability", "evaluation_prob", "eval_prob", "pi"),
        *("evaluation_probability",),
    ),
    "behavior_logprob": (
        *("behavior_logprob", "behaviour_logprob", "behavior_log_prob", "behaviour_log_prob"),
        *("logprob", "log_prob", "action_logprob", "action_log_prob", "logging_logprob"),
    ),
    "target_logprob": (
        *("target_logprob", "target_log_prob", "evaluation_logprob", "eval_logprob"),
    ),
    "target_probs": ("target_prob_*", "target_probs_*", "evaluation_prob_*", "eval_prob_*", "pi_*"),
    "next_target_probs": (
        *("next_target_prob_*", "next_target_probs_*", "next_evaluation_prob_*"),
        *("next_eval_prob_*", "next_pi_*"),
    ),
    "discount": ("discount", "gamma"),
}
_LISTS = ("observation", "next_observation", "target_probs", "next_target_probs")
_FLAGS = ("terminated", "truncated")
_NEVER = ("never", "false")


class Columns(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The columns of a log by role; what is None is looked for among the usual names.

    `observation`, `next_observation`, `target_probs`, `next_target_probs` (and `action`, where it
    has several components) are lists of columns, or a pattern such as ``"x_*"`` for numbered ones.
    ``terminated=False`` (or ``"never"``) says that no episode of this log ever ends,
    ``truncated=False`` that none is cut. `discount` is used only where it is named here.

    Parameters
    ----------
    episode : str
        Name of the trajectory.
    start : str
        A flag on the first row of a trajectory, where it has no name.
    step : str
        Place in the trajectory, counted.
    time : str
        The same as a time.
    observation
        What the policy saw, as numbers.
    state : str
        The same as one integer.
    action : str or list
        What it did.
    reward : str
        What it got for that step.
    terminated : str or bool
        Whether the episode ended.
    truncated : str or bool
        Whether only its record ended.
    done : str
        Either of these, where the log does not tell them apart.
    next_observation
        What it saw afterwards; else the next row's observation.
    next_state : str
        The same as one integer.
    rho : str
        The ratio of probabilities itself.
    behavior_prob : str
        Probability of the action under the behaviour.
    target_prob : str
        Probability of the action under the target.
    behavior_logprob : str
        Logarithm of `behavior_prob`.
    target_logprob : str
        Logarithm of `target_prob`.
    target_probs
        The target's probabilities of all actions.
    next_target_probs
        The same in the next state.
    discount : str
        gamma of each row.

    Examples
    --------
    >>> Columns(reward="profit", observation=["price", "charge"]).reward
    'profit'
    """

    episode: str | None = None
    start: str | None = None
    step: str | None = None
    time: str | None = None
    observation: str | list[str] | None = None
    state: str | None = None
    action: str | list[str] | None = None
    reward: str | None = None
    terminated: str | bool | None = None
    truncated: str | bool | None = None
    done: str | None = None
    next_observation: str | list[str] | None = None
    next_state: str | None = None
    rho: str | None = None
    behavior_prob: str | None = None
    target_prob: str | None = None
    behavior_logprob: str | None = None
    target_logprob: str | None = None
    target_probs: str | list[str] | None = None
    next_target_probs: str | list[str] | None = None
    discount: str | None = None

    @classmethod
    def make(cls, value: Columns | Mapping[str, Any] | str | os.PathLike[str] | None) -> Columns:
        """From a struct, a mapping or the path of a TOML file; unknown keys are refused.

        >>> Columns.make({"rewrad": "x"})
        Traceback (most recent call last):
        o2td.errors.InputError: columns: Object contains unknown field `rewrad`; ...
        """
        if value is None:
            return cls()
        if isinstance(value, Columns):
            return value
        origin = "columns"
        try:
            if isinstance(value, (str, os.PathLike)):
                origin = str(value)
                value = msgspec.toml.decode(Path(value).read_bytes())
            return msgspec.convert(value, cls)
        except OSError as error:
            raise InputError(f"{origin}: cannot be read ({error.strerror})") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            roles = ", ".join(SYNONYMS)
            raise InputError(f"{origin}: {error}; the roles are {roles}") from None


class Mapped(msgspec.Struct, frozen=True):
    """The mapping found for one log: role to column, or to a tuple of columns."""

    roles: dict[str, str | tuple[str, ...]]
    never: tuple[str, ...] = ()  # flags said to be False in every row

    def one(self, role: str) -> str | None:
        """The column of a role that has one column, None where the log has none."""
        found = self.roles.get(role)
        return found if isinstance(found, str) else None

    def many(self, role: str) -> tuple[str, ...]:
        """The columns of a role, in order; empty where the log has none."""
        found = self.roles.get(role, ())
        return (found,) if isinstance(found, str) else found

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


def find_columns(names: Sequence[str], given: Columns, where: str) -> Mapped:
    """Each role's column among `names`: as given, else by the default name, else by a synonym.

    >>> print(find_columns(["traj_id", "x_0", "x_1", "r", "terminal"], Columns(), "a.csv"))
    episode = traj_id
    observation = x_0 … x_1 (2)
    reward = r
    terminated = terminal
    """
    roles: dict[str, str | tuple[str, ...]] = {}
    never = tuple(flag for flag in _FLAGS if says_never(getattr(given, flag)))
    _check_flags(given)
    for role in SYNONYMS:
        value = getattr(given, role)
        if isinstance(value, (str, list)) and role not in never:
            roles[role] = _explicit(role, value, names, where)
    taken = {name for found in roles.values() for name in _tuple(found)}
    free = [name for name in names if name not in taken]
    # A state that is named is what the policy saw, whatever else looks like observations.
    hidden = {"discount"}
    if "state" in roles and "observation" not in roles:
        hidden |= {"observation", "next_observation"}
    for role in SYNONYMS:
        if role in roles or role in never or role in hidden:
            continue
        found = _search(role, free, where)
        if found is not None:
            roles[role] = found
            free = [name for name in free if name not in _tuple(found)]
    if roles.get("state") == roles.get("observation"):
        roles.pop("state", None)
    return Mapped({role: roles[role] for role in SYNONYMS if role in roles}, never)


def says_never(value: Any) -> bool:
    """Whether a flag's column is given as one that is false in every row.

    >>> [says_never(value) for value in (False, "false", "Never", "ended", None)]
    [True, True, True, False, False]
    """
    return value is False or (isinstance(value, str) and value.strip().lower() in _NEVER)


def _tuple(found: str | tuple[str, ...]) -> tuple[str, ...]:
    return (found,) if isinstance(found, str) else found


def _check_flags(given: Columns) -> None:
    for flag in _FLAGS:
        if getattr(given, flag) is True:
            raise InputError(f"columns: {flag} is True; name a column, or pass False for never")


def _explicit(
    role: str, value: str | list[str], names: Sequence[str], where: str
) -> str | tuple[str, ...]:
    known = set(names)
    if isinstance(value, str) and value.endswith("*") and value not in known:
        found = _numbered(value, names, where, role)
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
    several = role in _LISTS or isinstance(value, list)
    return tuple(wanted) if several else wanted[0]


def _search(role: str, names: Sequence[str], where: str) -> str | tuple[str, ...] | None:
    found: list[str | tuple[str, ...]] = []
    for position, synonym in enumerate(SYNONYMS[role]):
        hit: str | tuple[str, ...] | None
        if synonym.endswith("*"):
            hit = _numbered(synonym, names, where, role)
        else:
            like = [name for name in names if _plain(name) == synonym]
            hit = _one_of(like, synonym, role, where) if like else None
        if hit:
            if position == 0:
                return hit
            found.append(hit)
    if len(found) > 1:
        _choose([_tuple(one)[0] for one in found], role, where)
    return found[0] if found else None


def _plain(name: str) -> str:
    return re.sub(r"[-. ]", "_", name.lower())


def _one_of(like: Sequence[str], exact: str, role: str, where: str) -> str:
    """The name that is written exactly so, else the only one that is written alike."""
    if len(like) > 1 and exact not in like:
        _choose(like, role, where)
    return exact if exact in like else like[0]


def _choose(choices: Sequence[str], role: str, where: str) -> NoReturn:
    raise InputError(
        f"{where}: {role} could be column {' or '.join(choices)}; choose one, columns={{{role!r}: …}}"
    )


def _numbered(pattern: str, names: Sequence[str], where: str, role: str) -> tuple[str, ...]:
    """The columns `prefix0, prefix1, …` in the order of their numbers, which must be complete."""
    prefix = re.escape(_plain(pattern[:-1]))
    alike: dict[int, list[str]] = {}
    for name in names:
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
            f"{where}: column {pattern[:-1]}{gap} is missing beside {hits[numbers[-1]]};"
            " add it, or list the columns to use"
        )
    return tuple(hits[number] for number in numbers)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "") if names else "none"
