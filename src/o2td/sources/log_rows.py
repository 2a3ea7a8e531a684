"""What a source yields: consecutive rows of a log as arrays, decoded, checked and complete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import all_of, shown
from o2td.arrays import Bools, Floats, Ints, as_array
from o2td.errors import InputError
from o2td.sources.places import Keys

NO_FINAL = "no final observation"
UNLIKE = "target_prob differs from the target's probabilities of all actions, which are used"
UNHELD = "start states of such episodes, also left out"


@dataclass(frozen=True, slots=True)
class LoneStarts:
    """Start states of episodes without a transition, because their only row was dropped.

    What follows is unknown, but where the episode started is known. `input` has observations or
    states, `key` identifies the episodes, `target_probs` is what the target would do there, if
    known, `value` is V there by a model of the user's, and `before` is the row of the chunk before
    which each belongs.
    """

    input: npt.NDArray[Any]
    key: Keys
    before: Ints
    target_probs: Floats | None = None
    value: Floats | None = None

    def __len__(self) -> int:
        return len(self.key)

    def take(self, which: Any) -> LoneStarts:
        """Some of them, by slice, mask or number."""
        probs = None if self.target_probs is None else self.target_probs[which]
        value = None if self.value is None else self.value[which]
        return LoneStarts(self.input[which], self.key[which], self.before[which], probs, value)

    def at(self, row: int) -> LoneStarts:
        """The same, all placed before one row."""
        return replace(self, before=np.full(len(self), row, dtype=np.int64))

    def parts(self, limit: int) -> Iterator[LoneStarts]:
        """Parts of at most `limit` starts."""
        return (self.take(slice(low, low + limit)) for low in range(0, len(self), limit))

    @staticmethod
    def joined(parts: Sequence[LoneStarts | None]) -> LoneStarts | None:
        """Several as one, or None if there are none."""
        some = [part for part in parts if part is not None and len(part)]
        if len(some) < 2:
            return some[0] if some else None
        probs, values = (
            [one for part in some if (one := getattr(part, name)) is not None]
            for name in ("target_probs", "value")
        )
        return LoneStarts(
            np.concatenate([part.input for part in some]),
            np.concatenate([part.key for part in some]),
            np.concatenate([part.before for part in some]),
            np.concatenate(probs) if len(probs) == len(some) else None,
            np.concatenate(values) if len(values) == len(some) else None,
        )


@dataclass(frozen=True, slots=True)
class LogRows:
    """Consecutive transitions of a log, in order. Row t is one transition, whatever the file held.

    `reward[t]` is what followed `action[t]`. `discount` is 0 where the row terminates, else gamma;
    a truncated row keeps gamma. Where it terminates nothing is read from the successor, so
    `next_observation` repeats the observation, `next_state` is -1 and `next_target_probs` is 0. An
    episode whose last row does not terminate was truncated there. `terminated`, `truncated` and
    `start` mark rows; `rho` is the ratio of `target_prob` to `behavior_prob`, where these are
    known; `observation` or `state` is what the policy saw, `target_probs` what the target would do.

    `next_target_probs` is NaN in the last row of a truncated episode if the log does not give it.
    `value`, `next_value` (0 where it terminates) and `action_value` are V(s), V(s') and Q(s, a) by a
    model of the user's, if there is one; a model of V gives no `action_value`.

    `episode` counts from 0 in the order of the log, `step` from 0 in each episode; `key` is a hash
    of the episode's name, or of its user's where the log has one. `drop` counts the rows left out
    since the chunk before, by reason; `lone` are starts of episodes with no row left (a part of a
    chunk has neither).

    >>> import pandas as pd
    >>> from o2td import sources
    >>> log = pd.DataFrame(
    ...     {"episode": ["a", "a", "b"], "obs_0": [0.1, 0.2, 0.3], "reward": 1.0,
    ...      "terminated": [False, True, True], "rho": 1.0})
    >>> chunk = next(sources.open_logs(log, discount=0.9).chunks())
    >>> chunk.episode, chunk.step, chunk.next_observation[0]
    (array([0, 0, 1]), array([0, 1, 0]), array([0.2]))
    """

    reward: Floats
    terminated: Bools
    truncated: Bools
    discount: Floats
    start: Bools
    episode: Ints
    step: Ints
    rho: Floats
    key: Keys
    observation: Floats | None = None
    next_observation: Floats | None = None
    state: Ints | None = None
    next_state: Ints | None = None
    action: npt.NDArray[Any] | None = None
    behavior_prob: Floats | None = None
    target_prob: Floats | None = None
    target_probs: Floats | None = None
    next_target_probs: Floats | None = None
    value: Floats | None = None
    action_value: Floats | None = None
    next_value: Floats | None = None
    drop: Mapping[str, int] = field(default_factory=dict)
    lone: LoneStarts | None = None

    def __len__(self) -> int:
        return len(self.reward)

    def take(self, which: Any) -> LogRows:
        """Rows by slice, mask or number; a slice is a view."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        try:
            which = which if isinstance(which, slice) else as_array("which", which)
            picked: dict[str, Any] = {
                name: None if a is None else a[which] for name, a in arrays.items()
            }
        except (IndexError, TypeError, ValueError, OverflowError):
            raise InputError(
                f"which must be a slice, a mask or row numbers below {len(self)}, got {shown(which)}"
            ) from None
        return LogRows(**picked)

    @staticmethod
    def joined(parts: Sequence[LogRows]) -> LogRows:
        """Several as one; an array that one of them lacks is left out."""
        parts = all_of("parts", parts, LogRows, "log rows", 1)
        arrays: dict[str, Any] = {}
        for name in ARRAYS:
            found = [getattr(part, name) for part in parts]
            arrays[name] = None if any(one is None for one in found) else np.concatenate(found)
        return LogRows(**arrays)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(a.nbytes for name in ARRAYS if (a := getattr(self, name)) is not None)

    def elsewhere(self) -> Ints:
        """Rows whose successor is not the next row."""
        equal = self.next_input[:-1] == self.input[1:]
        same = np.zeros(len(self), dtype=np.bool_)
        same[:-1] = equal if equal.ndim == 1 else equal.all(axis=1)
        return np.flatnonzero(~same & ~self.terminated)

    @property
    def input(self) -> npt.NDArray[Any]:
        """What policies and feature maps see: observations, or states if there are none."""
        return inputs_of(self.observation, self.state)

    @property
    def next_input(self) -> npt.NDArray[Any]:
        """The same for the successors; the row's own if it terminates."""
        if self.next_observation is not None:
            return self.next_observation
        return successors_of(self.state, self.next_state)

    def starts(self) -> tuple[npt.NDArray[Any], Floats | None]:
        """Inputs at episode starts and what the target would do there, including lone starts."""
        first = np.flatnonzero(self.start)
        inputs, probs = self.input[first], self.target_probs
        chances = None if probs is None else probs[first]
        if self.lone is None:
            return inputs, chances
        place = np.searchsorted(first, self.lone.before)
        inputs = np.insert(inputs, place, self.lone.input, axis=0)
        if chances is not None and self.lone.target_probs is not None:
            chances = np.insert(chances, place, self.lone.target_probs, axis=0)
        return inputs, chances


ARRAYS = tuple(part.name for part in fields(LogRows) if part.name not in ("drop", "lone"))


def inputs_of(observation: Floats | None, state: Ints | None) -> npt.NDArray[Any]:
    """Observations, or states if there are none."""
    inputs = state if observation is None else observation
    if inputs is None:
        raise InputError("logs: neither observations nor states")
    return inputs


def successors_of(state: Ints | None, next_state: Ints | None) -> Ints:
    """Next states, with the row's own in place of the -1 of a terminated row."""
    if state is None or next_state is None:
        raise InputError("logs: neither observations nor states")
    return np.where(next_state < 0, state, next_state)
