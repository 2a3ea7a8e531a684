"""What a simulator gives: steps of the behaviour and returns of the target, each value checked.

The plain loops here are what compiled roll-outs must agree with: every random number is a
`random()` of one stream, the action's before those of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from o2td.arguments import answer_of
from o2td.arrays import Bools, Floats, Ints
from o2td.errors import InputError
from o2td.mdp import ROUNDING, rounding


class ValueEstimate(NamedTuple):
    """Mean return of each observation, and the standard error of that mean."""

    mean: Floats
    standard_error: Floats

    @classmethod
    def of(cls, returns: Floats) -> ValueEstimate:
        """From returns (n, runs), `runs` independent ones of each observation."""
        alike = returns.max(axis=1) == returns.min(axis=1)  # rounding in a mean is no spread
        spread = np.where(alike, 0.0, returns.std(axis=1, ddof=1))
        return cls(returns.mean(axis=1), spread / np.sqrt(returns.shape[1]))

    @property
    def noise(self) -> float:
        """`sqrt(mean standard_error^2)`: the RMSE that these values would show of V itself.

        An RMSE against them is `sqrt(RMSE^2 + noise^2)` on average, so errors below `noise` cannot be
        told apart. Zero where all returns from each observation are the same.

        >>> import numpy as np
        >>> round(ValueEstimate(np.zeros(2), np.array([3.0, 4.0])).noise ** 2, 9)
        12.5
        """
        return float(np.sqrt(np.mean(self.standard_error**2)))


@dataclass(frozen=True, eq=False)
class Rollout:
    """Steps of the behaviour in order, one entry per step: what a log of them would hold."""

    observation: Floats
    action: Ints
    reward: Floats
    next_observation: Floats
    terminated: Bools
    truncated: Bools
    start: Bools
    behavior_prob: Floats
    target_prob: Floats

    @classmethod
    def empty(cls, n: int, k: int) -> Rollout:
        """Columns for `n` steps with observations of `k` numbers, to be filled."""
        flag = [np.zeros(n, dtype=np.bool_) for _ in range(3)]
        number = [np.full(n, np.nan) for _ in range(3)]
        before, after = np.full((n, k), np.nan), np.full((n, k), np.nan)
        action = np.full(n, -1, dtype=np.int64)
        return cls(before, action, number[0], after, flag[0], flag[1], flag[2], *number[1:])

    @property
    def columns(self) -> tuple[Any, ...]:
        """All columns in the order of the fields, as compiled roll-outs take them."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @property
    def episode(self) -> Ints:
        """Number of the episode that each step belongs to, from 0."""
        return np.cumsum(self.start) - 1

    @property
    def step(self) -> Ints:
        """Number of the step within its episode, from 0."""
        first = np.flatnonzero(self.start)
        return np.arange(len(self)) - first[self.episode]

    def take(self, rows: Any) -> Rollout:
        """The given rows, in the given order."""
        return Rollout(*(column[rows] for column in self.columns))

    def __len__(self) -> int:
        return len(self.reward)


@dataclass(frozen=True, eq=False)
class Simulator:
    """A simulator and two policies as users write them; see `SimulatedProblem`."""

    reset: Callable[..., Any]
    step: Callable[..., Any]
    behavior: Callable[..., Any]
    target: Callable[..., Any]

    def rollout(
        self, rng: np.random.Generator, horizon: int, given: bool, columns: tuple[Any, ...]
    ) -> None:
        """Fill the columns of a `Rollout`, from its own observations where they are `given`."""
        x, action, reward, next_x, terminated, truncated, start, behavior_prob, target_prob = (
            columns
        )
        fresh, age = True, 0
        for t in range(len(reward)):
            if not given:
                x[t] = self.begin(rng, x.shape[1]) if fresh else next_x[t - 1]
            start[t] = given or fresh
            age = 1 if fresh else age + 1
            b, pi = self._policies(x[t])
            a = _choose(b, rng.random())
            next_x[t], reward[t], terminated[t], cut = self._advance(x[t], a, rng)
            action[t], behavior_prob[t], target_prob[t] = a, b[a], pi[a]
            truncated[t] = (cut or age >= horizon) and not terminated[t]
            fresh = terminated[t] or truncated[t]

    def returns(
        self, rng: np.random.Generator, first: Floats, steps: int, discount: float, out: Floats
    ) -> int:
        """Fill `out` (n, runs) with returns of the target; how many had not ended by `steps`."""
        unfinished = 0
        for i, j in np.ndindex(out.shape):
            x, weight, total, ended = first[i], 1.0, 0.0, False
            for _ in range(steps):
                pi = _probabilities("target", self.target, x, None)
                x, reward, ended, _ = self._advance(x, _choose(pi, rng.random()), rng)
                total += weight * reward
                weight *= discount
                if ended:
                    break
            out[i, j] = total
            unfinished += not ended
        return unfinished

    def begin(self, rng: np.random.Generator, k: int | None = None) -> Floats:
        """Where an episode starts, of `k` numbers if that is known."""
        return _observation("reset", answer_of("reset", self.reset, rng), k)

    def actions(self, x: Floats) -> int:
        """How many actions the behaviour chooses from."""
        return len(_probabilities("behavior", self.behavior, x, None))

    def _advance(
        self, x: Floats, action: int, rng: np.random.Generator
    ) -> tuple[Floats, float, bool, bool]:
        found = answer_of("step", self.step, x.copy(), action, rng)
        if not isinstance(found, (tuple, list)) or not 3 <= len(found) <= 5:
            raise InputError(
                f"step returned {found!r}; give (observation, reward, terminated), and truncated where"
                " it can be, as Gymnasium does"
            )
        next_x, reward, terminated, *cut = found
        gain = _floats(reward)
        if gain.ndim != 0 or not np.isfinite(gain):
            raise InputError(
                f"step returned the reward {reward!r} for action {action} from {x}; give a number"
            )
        cut_off = bool(cut[0]) if cut else False  # a fifth is Gymnasium's info
        return _observation("step", next_x, len(x)), float(gain), bool(terminated), cut_off

    def _policies(self, x: Floats) -> tuple[Floats, Floats]:
        b = _probabilities("behavior", self.behavior, x, None)
        pi = _probabilities("target", self.target, x, len(b))
        if ((pi > 0.0) & (b <= 0.0)).any():
            a = int(np.argmax((pi > 0.0) & (b <= 0.0)))
            raise InputError(
                f"behavior never takes action {a} at observation {x} but target does (probability"
                f" {pi[a]:g}): no data can tell its value; give behavior some probability"
            )
        return b, pi


def _choose(probabilities: Floats, u: float) -> int:
    """The action whose share of [0, 1) holds `u`."""
    total = 0.0
    for a, p in enumerate(probabilities):
        total += p
        if u < total:
            return a
    return int(np.flatnonzero(probabilities)[-1])


def _observation(name: str, value: Any, k: int | None) -> Floats:
    x = np.atleast_1d(_floats(value))
    if x.ndim != 1 or len(x) == 0 or (k is not None and len(x) != k) or not np.isfinite(x).all():
        shape = "(k,)" if k is None else f"({k},)"
        raise InputError(f"{name} returned the observation {value!r}; give {shape} finite numbers")
    return x


def _floats(value: Any) -> Floats:
    """An array of numbers; one NaN, which every check refuses, where it is none."""
    try:
        array = np.asarray(value)
        return np.array([np.nan]) if array.dtype.kind in "SUc" else array.astype(np.float64)
    except (TypeError, ValueError):
        return np.array([np.nan])


def _probabilities(
    name: str, policy: Callable[..., Any], x: Floats, n_actions: int | None
) -> Floats:
    value = answer_of(name, policy, x)
    p = _floats(value)
    if p.ndim != 1 or (n_actions is not None and len(p) != n_actions):
        raise InputError(f"{name} returned shape {p.shape}; give one probability per action")
    if not (p >= 0.0).all() or abs(p.sum() - 1.0) > rounding(value):
        raise InputError(f"{name} returned {value}; probabilities are not negative and sum to 1")
    return p if rounding(value) == ROUNDING else np.asarray(p / p.sum())
