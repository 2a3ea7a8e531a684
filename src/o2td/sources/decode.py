"""From Arrow record batches to one NumPy array per role, every cell checked.

The decoder remembers the last row of the previous batch, so episodes, steps and their order are
checked across batches and files as if there were no boundary.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arrays import Bools, Floats, Ints
from o2td.errors import option
from o2td.sources.arrow import pa, pc
from o2td.sources.arrow_cells import (
    LARGEST,
    MISSING,
    OBSERVED,
    RUN_TOGETHER,
    all_usable,
    as_floats,
    check_finite,
    matrix,
    nulls,
    pa_bool,
    whole_numbers,
)
from o2td.sources.known_episodes import KnownEpisodes
from o2td.sources.mapping import Mapped
from o2td.sources.places import Keys, Where, mix, sorted_rows
from o2td.sources.ratio import densities_needed

_OF_A_STEP = ("rho", "behavior_prob", "target_prob", "behavior_logprob", "target_logprob")


# The columns of consecutive rows by role, without those that the log does not give. Also `start`
# (first rows of episodes), `key` (their names as hashes), `next_known` (rows whose successor is
# written, absent if all are) and `bare` (rows that only hold a final observation, absent if none).
Decoded = dict[str, Any]


class Decoder:
    """Turns the record batches of one log into columns of numbers, in order."""

    def __init__(
        self, mapped: Mapped, discrete: bool, from_flags: bool, middle: bool = False
    ) -> None:
        self.mapped = mapped
        self.discrete = discrete  # whether actions must be whole numbers
        self.from_flags = from_flags  # episodes end where the flags say so, and nowhere else
        self._middle = middle  # whether the first row may be inside an episode
        self._seen = KnownEpisodes()
        self._last_episode: Any = None
        self._last_key = np.zeros(1, dtype=np.uint64)
        self._last_step: int | None = None
        self._base: int | None = None
        self._last_time: Any = None
        self._last_end = True
        self._count = 0

    def decode(self, batch: Any, where: Where) -> Decoded:
        """The columns of a batch that has at least one row."""
        reward, bare = self._reward(batch, where)
        terminated, truncated = self._ends(batch, where, bare)
        start, names = self._episodes(batch, where, terminated | truncated, bare)
        self._order(batch, where, start)
        user = self.mapped.one("user")
        if user is not None:
            names = self._users(batch.column(user), user, where, start)
        names = np.concatenate([self._last_key, names])
        self._last_key = names[-1:]
        found: Decoded = {"start": start, "key": names[np.cumsum(start)], "reward": reward}
        found |= {"terminated": terminated, "truncated": truncated, "bare": bare}
        found |= self._inputs(batch, where) | self._successors(batch, where, terminated)
        found["action"] = self._action(batch, where, bare)
        for role in (*_OF_A_STEP, "discount"):
            found[role] = self._optional(batch, role, where, bare)
        found |= self._per_action(batch, where, bare) | self._values(batch, where, bare)
        return {role: values for role, values in found.items() if values is not None}

    # -- rows --------------------------------------------------------------------------------------

    def _reward(self, batch: Any, where: Where) -> tuple[Floats, Bools | None]:
        """Rewards, and the rows that are only final observations, with nothing of a step."""
        name = self.mapped.one("reward") or ""
        reward = as_floats(batch.column(name))
        if all_usable(reward):
            return reward, None
        bare = np.isnan(reward)
        for action in self.mapped.many("action"):
            bare &= nulls(batch.column(action))
        check_finite(reward, name, where, bare)
        if not bare.any():
            return reward, None
        self._check_bare(batch, where, bare, name)
        return np.where(bare, 0.0, reward), bare

    def _check_bare(self, batch: Any, where: Where, bare: Bools, reward: str) -> None:
        """Refuse a row with a ratio or a probability of its action: it is a step without reward."""
        for role in _OF_A_STEP:
            name = self.mapped.one(role)
            if name is None:
                continue
            filled = bare & ~nulls(batch.column(name))
            if filled.any():
                where.refuse(
                    *(int(np.argmax(filled)), reward, f"is missing and {name} is not"),
                    f"fill it in, or leave {name} empty too where a row is only a final observation",
                )

    def _ends(self, batch: Any, where: Where, bare: Bools | None) -> tuple[Bools, Bools]:
        flags = {role: self._flag(batch, role, where, bare) for role in ("terminated", "truncated")}
        terminated, truncated = flags["terminated"], flags["truncated"]
        if self.mapped.bandit:
            terminated = np.ones(batch.num_rows, dtype=np.bool_)
        done = self._flag(batch, "done", where, bare)
        if truncated is None:
            truncated = np.zeros(batch.num_rows, dtype=np.bool_)
        if terminated is None:
            terminated = np.zeros(batch.num_rows, dtype=np.bool_)
            if done is not None and "terminated" not in self.mapped.never:
                terminated = done & ~truncated
        if done is not None and "truncated" not in self.mapped.never:
            truncated = truncated | (done & ~terminated)
        return terminated, truncated

    def _flag(self, batch: Any, role: str, where: Where, bare: Bools | None) -> Bools | None:
        name = self.mapped.one(role)
        if name is None:
            return None
        column = batch.column(name)
        if pa_bool(column):
            known: Bools = column.to_numpy(zero_copy_only=False)
            return known
        values = as_floats(column)
        bad = (values != 0.0) & (values != 1.0)
        if bare is not None:
            bad &= ~(bare & np.isnan(values))
        if bad.any():
            row = int(np.argmax(bad))
            value = column[row].as_py()
            if value is None:
                where.refuse(row, name, "is missing", "write true or false")
            where.refuse(row, name, f"is {value!r}", "write true or false")
        marks: Bools = values == 1.0
        return marks

    # -- episodes and order ------------------------------------------------------------------------

    def _episodes(
        self, batch: Any, where: Where, ended: Bools, bare: Bools | None
    ) -> tuple[Bools, Keys]:
        name = self.mapped.one("episode")
        if name is not None:
            return self._named_episodes(batch.column(name), name, where)
        if self.from_flags:
            if bare is not None:  # it closes its episode, wherever the flag stands
                ended = ended | bare
            new = np.concatenate([[self._last_end], ended[:-1]])
            if bare is not None:
                new &= ~bare
                new[0] |= self._count == 0
            self._last_end = bool(ended[-1])
        else:
            marks = self._flag(batch, "start", where, bare)
            new = np.zeros(len(ended), dtype=np.bool_) if marks is None else marks.copy()
            new[0] |= self._count == 0
        count = int(new.sum())
        key = mix(np.arange(self._count, self._count + count))
        self._count += count
        return new, key

    def _named_episodes(self, column: Any, name: str, where: Where) -> tuple[Bools, Keys]:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.null_count:
            where.refuse(int(np.argmax(nulls(column))), name, "is missing", MISSING)
        if pa.types.is_floating(column.type):
            large = np.abs(as_floats(column)) > 2.0**53
            if large.any():
                row = int(np.argmax(large))
                said = f"is {column[row].as_py():g}"
                where.refuse(row, name, said, f"{RUN_TOGETHER}, or write names with letters")
        new = np.empty(len(column), dtype=np.bool_)
        whole = pa.types.is_integer(column.type)
        values = column.to_numpy() if whole else None
        if values is not None:
            new[1:] = values[1:] != values[:-1]
        elif len(column) > 1:
            changed = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
            new[1:] = changed.to_numpy(zero_copy_only=False)
        first = column[0].as_py()
        new[0] = self._count == 0 or first != self._last_episode
        self._last_episode = column[len(column) - 1].as_py()
        rows = np.flatnonzero(new)
        self._count += len(rows)
        if values is not None:
            key = mix(values[rows])
        else:
            names = column.take(pa.array(rows)).to_pylist()
            key = np.array([_hash(one) for one in names], dtype=np.uint64)
        again = self._seen.add(key if values is None else values[rows].astype(np.int64))
        if again is not None:
            row = int(rows[again])
            value = column[row].as_py()
            where.refuse(row, name, f"is {value!r}, an episode that ended before", sorted_rows())
        return new, key

    def _users(self, column: Any, name: str, where: Where, new: Bools) -> Keys:
        """The user of each new episode; one episode has one user."""
        if column.null_count:
            where.refuse(int(np.argmax(nulls(column))), name, "is missing", MISSING)
        key = _hashes(column)
        before = np.concatenate([self._last_key, key[:-1]])
        other = ~new & (key != before)
        other[0] &= self._count > int(new.sum())  # known from the previous batch
        if other.any():
            row = int(np.argmax(other))
            said = f"is {column[row].as_py()!r} in an episode of another user"
            where.refuse(row, name, said, "an episode belongs to one; give it one name")
        return key[new]

    def _order(self, batch: Any, where: Where, new: Bools) -> None:
        name = self.mapped.one("step")
        if name is not None:
            self._steps(whole_numbers(batch.column(name), name, where), name, where, new)
        name = self.mapped.one("time")
        if name is None or self.mapped.one("step") is not None:
            return
        column = batch.column(name)
        if column.null_count:
            where.refuse(int(np.argmax(nulls(column))), name, "is missing", MISSING)
        times = column.to_numpy(zero_copy_only=False)
        before = np.concatenate([[times[0] if new[0] else self._last_time], times[:-1]])
        late = ~new & (times <= before)
        if late.any():
            row = int(np.argmax(late))
            where.refuse(row, name, f"is {times[row]}, not after the row before", sorted_rows())
        self._last_time = times[-1]

    def _steps(self, steps: Ints, name: str, where: Where, new: Bools) -> None:
        before = np.concatenate([[self._last_step or 0], steps[:-1]])
        self._last_step = int(steps[-1])
        if self._middle:
            self._middle, new = False, new.copy()
            before[0], new[0] = steps[0] - 1, False
        firsts = steps[new]
        if self._base is None and len(firsts):
            self._base = int(firsts[0]) if firsts[0] in (0, 1) else 0
        bad = np.where(new, steps != self._base, steps != before + 1)
        if not bad.any():
            return
        row = int(np.argmax(bad))
        step, last = int(steps[row]), int(before[row])
        if new[row] and step == last + 1:
            where.refuse(
                *(row, name, f"is {step} in the first row of an episode, after {last}"),
                f"episodes begin at step {self._base}; if it keeps counting across episodes, say that"
                " it is a time, columns={'time': …}",
            )
        if new[row]:
            where.refuse(
                *(row, name, f"is {step} in the first row of an episode"),
                f"episodes begin at step {self._base}: restore the rows before it, or {sorted_rows()}",
            )
        if step == last:
            where.refuse(row, name, f"is {step} twice in one episode", "remove the duplicate")
        if step < last:
            where.refuse(row, name, f"is {step} after {last}", sorted_rows())
        where.refuse(
            *(row, name, f"is {step} after {last}"),
            f"rows are missing in between: restore them, or pass {option('sort=True', '--sort')} if they"
            " are elsewhere in the log",
        )

    # -- values ------------------------------------------------------------------------------------

    def _inputs(self, batch: Any, where: Where) -> Decoded:
        found: Decoded = {}
        names = self.mapped.many("observation")
        if names:
            found["observation"] = self._matrix(batch, names, where, None, OBSERVED)
        state = self.mapped.one("state")
        if state is not None:
            found["state"] = states = whole_numbers(batch.column(state), state, where)
            if states.min() < 0:
                row = int(np.argmax(states < 0))
                where.refuse(row, state, f"is {states[row]}", "number the states from 0")
        if not found:  # decisions without a context
            found["state"] = np.zeros(batch.num_rows, dtype=np.int64)
        return found

    def _successors(self, batch: Any, where: Where, terminated: Bools) -> Decoded:
        found: Decoded = {}
        names = self.mapped.many("next_observation")
        missing = np.zeros(batch.num_rows, dtype=np.bool_)
        if names and self.mapped.many("observation"):
            missing = np.isnan(as_floats(batch.column(names[0])))
            skip = missing | terminated
            found["next_observation"] = self._matrix(batch, names, where, skip, OBSERVED)
        state = self.mapped.one("next_state")
        if state is not None and self.mapped.one("state") is not None:
            column = batch.column(state)
            unknown = nulls(column)
            values = as_floats(column) if unknown.any() else None
            filled = column if values is None else np.where(np.isnan(values), -1.0, values)
            found["next_state"] = whole_numbers(filled, state, where)
            missing |= unknown | (found["next_state"] < 0)
        if missing.any():
            found["next_known"] = ~missing
        return found

    def _matrix(
        self,
        batch: Any,
        names: tuple[str, ...],
        where: Where,
        skip: Bools | None,
        most: float = LARGEST,
    ) -> Floats:
        """Columns of numbers as one matrix, checked outside the rows to skip."""
        columns = [as_floats(batch.column(name)) for name in names]
        for name, column in zip(names, columns, strict=True):
            check_finite(column, name, where, skip, most)
        return matrix(columns)

    def _action(self, batch: Any, where: Where, bare: Bools | None) -> npt.NDArray[Any] | None:
        names = self.mapped.many("action")
        if not names:
            return None
        real = pa.types.is_floating(batch.column(names[0]).type) and not self.discrete
        if len(names) > 1 or (real and isinstance(self.mapped.roles["action"], tuple)):
            rows = self._matrix(batch, names, where, bare)
            return rows if bare is None else np.where(bare[:, None], 0.0, rows)
        values = as_floats(batch.column(names[0]))
        check_finite(values, names[0], where, bare)
        values = values if bare is None else np.where(bare, 0.0, values)
        if real:
            return values
        if np.mean(values != np.floor(values)) > 0.5:
            said = "holds real numbers, and the ratio needs probabilities of numbered actions"
            where.refuse(
                int(np.argmax(values != np.floor(values))), names[0], said, densities_needed()
            )
        return whole_numbers(values, names[0], where)

    def _optional(self, batch: Any, role: str, where: Where, bare: Bools | None) -> Floats | None:
        name = self.mapped.one(role)
        if name is None:
            return None
        values = as_floats(batch.column(name))
        if not all_usable(values):
            skip = np.zeros(len(values), dtype=np.bool_) if bare is None else bare
            if role.endswith("logprob"):
                skip = skip | (values == -np.inf)
            check_finite(values, name, where, skip)
        return values if bare is None else np.where(bare, 0.0, values)

    def _per_action(self, batch: Any, where: Where, bare: Bools | None) -> Decoded:
        found: Decoded = {}
        for role in ("target_probs", "behavior_probs"):
            names = self.mapped.many(role)
            if names:
                found[role] = self._matrix(batch, names, where, bare)
        names = self.mapped.many("next_target_probs")
        if names:
            sums = sum(as_floats(batch.column(name)) for name in names)
            found["next_target_probs"] = self._matrix(batch, names, where, ~np.isfinite(sums))
        return found

    def _values(self, batch: Any, where: Where, bare: Bools | None) -> Decoded:
        """Values of the user's own; a final observation need not have any."""
        found: Decoded = {}
        for role in ("v", "next_v"):
            name = self.mapped.one(role)
            if name is not None:
                found[role] = values = as_floats(batch.column(name))
                skip = np.isnan(values) if role == "next_v" else bare
                check_finite(values, name, where, skip)
        names = self.mapped.many("q")
        if names:
            found["q"] = self._matrix(batch, names, where, bare)
        return found


def _hashes(column: Any) -> Keys:
    """Hashes of the rows' names; whole numbers are hashed as episode numbers are."""
    if pa.types.is_integer(column.type):
        return mix(column.to_numpy(zero_copy_only=False))
    coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    known = np.array([_hash(one) for one in coded.dictionary.to_pylist()], dtype=np.uint64)
    return np.asarray(known[coded.indices.to_numpy(zero_copy_only=False)])


def _hash(name: Any) -> int:
    digest = hashlib.blake2b(repr(name).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
