"""A prediction problem known by its simulator: continuous observations, no matrices.

The behaviour's steps are kept as raw columns (`Rollout`), from which `Transitions` are built with
the problem's features. The value of an observation is the mean of the target's returns from it,
`V(x) ~ mean_k sum_t gamma^t r_{t+1}`, with its standard error.

Every random number is a `random()` of a PCG64 stream named by the seed. A domain may hand over
compiled functions that fill the columns; they draw in the same order as the plain loop here, so
both give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from o2td.arrays import check_finite
from o2td.errors import InputError, NoAnswerError
from o2td.mdp import ROUNDING, rounding
from o2td.transitions import Transitions

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_NEGLIGIBLE = 1e-8  # a return ends where the discount has fallen to this
_FOREVER = int(np.iinfo(np.int64).max)
_ENDLESS = 100_000  # steps after which an undiscounted run counts as one that never ends


class ValueEstimate(NamedTuple):
    """Mean return of each observation, and the standard error of that mean."""

    mean: Floats
    standard_error: Floats


@dataclass(frozen=True, eq=False)
class Rollout:
    """Steps of the behaviour in order, one entry a step: what a log of them would hold."""

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
        number = [np.empty(n) for _ in range(3)]
        before, after, action = np.empty((n, k)), np.empty((n, k)), np.empty(n, dtype=np.int64)
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


class SimulatedProblem:
    """Predict the value of `target` from simulated steps of `behavior`.

    Parameters
    ----------
    reset : callable
        `reset(rng) -> observation (k,)`; `rng` is a `numpy.random.Generator`.
    step : callable
        `step(observation, action, rng) -> (next_observation, reward, terminated)`, and optionally
        `truncated` as a fourth.
    behavior, target : callable
        `policy(observation) -> probabilities (A,)`.
    features : transformer or callable
        Of `o2td.features`, scikit-learn, or a function from (n, k) observations to (n, d) features.
    discount : float
        gamma, from 0 to 1.
    horizon : int, optional
        Episodes are truncated after so many steps. That is not termination: the discount stays, and
        the next row is a start.
    rollout : callable, optional
        `rollout(rng, horizon, given, columns)` fills the columns of a `Rollout`, in compiled code.
        `given` says that the observations are there already and one step is wanted from each.
    returns : callable, optional
        `returns(rng, observations, steps, discount, out)` fills `out` (n, runs) with returns of the
        target and gives the number of runs that did not terminate within `steps`.
    stateful : bool
        Whether `step` goes on from the simulator's own state and ignores `observation`. There is no
        double sampling and no `rollout_value` then.
    bounds : (k, 2) array, optional
        Lowest and highest value of each observation variable.
    initial_theta : (d,) array, optional
        Where experiments on it start.
    name, description : str
        What listings and errors call it.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import Problem
    >>> problem = Problem.simulated(
    ...     reset=lambda rng: np.array([rng.random()]),
    ...     step=lambda x, action, rng: (0.5 * x, float(x[0]), False),
    ...     behavior=lambda x: np.array([0.5, 0.5]),
    ...     target=lambda x: np.array([0.0, 1.0]),
    ...     features=lambda X: np.hstack([X, np.ones_like(X)]),
    ...     discount=0.8,
    ...     horizon=10,
    ... )
    >>> problem.sample(100, seed=0).start.sum()
    np.int64(10)
    >>> problem.rollout_value(np.array([[3.0]])).mean.round(6)
    array([5.])
    """

    def __init__(
        self,
        reset: Callable[..., Any],
        step: Callable[..., Any],
        behavior: Callable[..., Any],
        target: Callable[..., Any],
        features: Any,
        discount: float,
        *,
        horizon: int | None = None,
        rollout: Callable[..., Any] | None = None,
        returns: Callable[..., Any] | None = None,
        stateful: bool = False,
        bounds: Any = None,
        initial_theta: Any = None,
        name: str = "simulated",
        description: str = "",
    ) -> None:
        if not isinstance(discount, (int, float, np.number)) or not 0.0 <= discount <= 1.0:
            raise InputError(f"discount must be in [0, 1], got {discount!r}")
        if horizon is not None:
            _whole("horizon", horizon, 1)
        self.name, self.description = name, description
        self.reset, self.step = reset, step
        self.behavior, self.target, self.features = behavior, target, features
        self.discount, self.horizon = float(discount), horizon
        self.bounds = None if bounds is None else np.asarray(bounds, dtype=np.float64)
        self.initial_theta = None if initial_theta is None else np.asarray(initial_theta, float)
        self.stateful = stateful
        self._fill = rollout
        self._returns = returns

    # -- shapes ------------------------------------------------------------------------------------

    @cached_property
    def _probe(self) -> Floats:
        """One observation, to learn the shapes from."""
        return _observation("reset", self.reset(_generators(0, 1)[0]), None)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(_probabilities("behavior", self.behavior(self._probe), None))

    @cached_property
    def d(self) -> int:
        """Number of features."""
        return int(self.phi(self._probe[None, :]).shape[1])

    def phi(self, observations: Any) -> Any:
        """Features (n, d) of observations (n, k)."""
        transform = getattr(self.features, "transform", self.features)
        return transform(np.asarray(observations, dtype=np.float64))

    def __repr__(self) -> str:
        about = f", {self.description!r}" if self.description else ""
        return (
            f"SimulatedProblem({self.name!r}, observation={len(self._probe)},"
            f" actions={self.n_actions}, features={self.d}{about})"
        )

    # -- sampling ----------------------------------------------------------------------------------

    def rollout(self, n: int, seed: Any = 0) -> Rollout:
        """`n` consecutive steps of the behaviour, as raw columns."""
        return self._simulate(n, _generators(seed, 1)[0])

    def observations(self, n: int, seed: Any = 0, every: int = 1) -> Floats:
        """`n` observations that the behaviour meets, one `every` so many steps."""
        _whole("every", every, 1)
        return np.ascontiguousarray(self.rollout(n * every, seed).observation[::every])

    def sample(
        self, n: int, seed: Any = 0, scheme: str = "sequential", double: bool = False
    ) -> Transitions:
        """`n` transitions of the behaviour; the same seed gives the same rows.

        `scheme="iid"` puts the rows of a sequential roll-out into random order and makes each a
        start: the distribution of the states is not known, so they cannot be drawn from it.
        `double=True` adds a second, independent successor to every row.
        """
        if scheme not in ("sequential", "iid"):
            raise InputError(f'scheme is "sequential" or "iid", got {scheme!r}')
        walk, again, shuffle = _generators(seed, 3)
        rows = self._simulate(n, walk)
        if scheme == "iid":
            rows = rows.take(np.argsort(shuffle.random(n), kind="stable"))
            rows = replace(rows, start=np.ones(n, dtype=np.bool_))
        return self.transitions_of(rows, self._branch(rows.observation, again) if double else None)

    def transitions_of(self, rows: Rollout, second: Rollout | None = None) -> Transitions:
        """Transitions with this problem's features from raw columns.

        `second` holds another, independent step from the same observations.
        """
        extra: dict[str, Any] = {}
        if second is not None:
            extra = {
                "next_phi_2": self.phi(second.next_observation),
                "discount_2": np.where(second.terminated, 0.0, self.discount),
                "rho_2": second.target_prob / second.behavior_prob,
            }
        return Transitions(
            self.phi(rows.observation),
            rows.reward,
            self.phi(rows.next_observation),
            np.where(rows.terminated, 0.0, self.discount),
            start=rows.start,
            target_prob=rows.target_prob,
            behavior_prob=rows.behavior_prob,
            **extra,
        )

    # -- truth, by simulation ----------------------------------------------------------------------

    def rollout_value(
        self, observations: Any, runs: int = 100, seed: Any = 0, steps: int | None = None
    ) -> ValueEstimate:
        """Mean and standard error of `runs` returns of the target from each observation.

        A return is summed until termination or, with a discount below 1, until the discount of a
        reward is below 1e-8; `steps` overrides that. `horizon` plays no part: what lies beyond a
        truncation counts as well.
        """
        self._needs_states("rollout_value")
        _whole("runs", runs, 2)  # for a standard error
        if steps is not None:
            _whole("steps", steps, 1)
        first = np.ascontiguousarray(observations, dtype=np.float64)
        if first.ndim != 2 or first.shape[1] != len(self._probe):
            k = len(self._probe)
            raise InputError(f"observations must have shape (n, {k}), got {first.shape}")
        check_finite("observations", first)
        limit = _steps(self.discount) if steps is None else steps
        out = np.empty((len(first), runs))
        rng = _generators(seed, 4)[3]
        simulate = self._returns or self._plain_returns
        unfinished = simulate(rng, first, limit, self.discount, out)
        if unfinished and steps is None and self.discount == 1.0:
            raise NoAnswerError(
                f"{unfinished} undiscounted runs of the target had not ended after {limit} steps;"
                " pass steps= to cut them there, or a discount below 1"
            )
        return ValueEstimate(out.mean(axis=1), out.std(axis=1, ddof=1) / np.sqrt(runs))

    # -- the simulator -----------------------------------------------------------------------------

    def _simulate(self, n: int, rng: np.random.Generator) -> Rollout:
        _whole("n", n, 0)
        rows = Rollout.empty(n, len(self._probe))
        (self._fill or self._plain_rollout)(rng, self.horizon or _FOREVER, False, rows.columns)
        return rows

    def _branch(self, observations: Floats, rng: np.random.Generator) -> Rollout:
        """One independent step from each of the given observations."""
        self._needs_states("double sampling")
        rows = Rollout.empty(*observations.shape)
        rows.observation[:] = observations
        (self._fill or self._plain_rollout)(rng, _FOREVER, True, rows.columns)
        return rows

    def _needs_states(self, what: str) -> None:
        if self.stateful:
            raise InputError(
                f"{self.name} cannot be put into a given state, which {what} needs; write"
                " step(observation, action, rng) so that it starts from its observation"
            )

    def _plain_rollout(
        self, rng: np.random.Generator, horizon: int, given: bool, columns: tuple[Any, ...]
    ) -> None:
        x, action, reward, next_x, terminated, truncated, start, behavior_prob, target_prob = (
            columns
        )
        fresh, age = True, 0
        for t in range(len(reward)):
            if not given:
                x[t] = self._begin(rng) if fresh else next_x[t - 1]
            start[t] = given or fresh
            age = 1 if fresh else age + 1
            b, pi = self._policies(x[t])
            a = _choose(b, rng.random())
            next_x[t], reward[t], terminated[t], cut = self._advance(x[t], a, rng)
            action[t], behavior_prob[t], target_prob[t] = a, b[a], pi[a]
            truncated[t] = (cut or age >= horizon) and not terminated[t]
            fresh = terminated[t] or truncated[t]

    def _plain_returns(
        self, rng: np.random.Generator, first: Floats, steps: int, discount: float, out: Floats
    ) -> int:
        unfinished = 0
        for i, j in np.ndindex(out.shape):
            x, weight, total, ended = first[i], 1.0, 0.0, False
            for _ in range(steps):
                pi = _probabilities("target", self.target(x), None)
                x, reward, ended, _ = self._advance(x, _choose(pi, rng.random()), rng)
                total += weight * reward
                weight *= discount
                if ended:
                    break
            out[i, j] = total
            unfinished += not ended
        return unfinished

    def _begin(self, rng: np.random.Generator) -> Floats:
        return _observation("reset", self.reset(rng), len(self._probe))

    def _advance(
        self, x: Floats, action: int, rng: np.random.Generator
    ) -> tuple[Floats, float, bool, bool]:
        found = self.step(x.copy(), action, rng)
        if not isinstance(found, (tuple, list)) or not 3 <= len(found) <= 5:
            raise InputError(
                f"step returned {found!r}; give (observation, reward, terminated), and truncated where"
                " it can be, as Gymnasium does"
            )
        next_x, reward, terminated, *cut = found
        if np.ndim(reward) != 0 or not np.isfinite(reward):
            raise InputError(f"step returned the reward {reward} for action {action} from {x}")
        cut_off = bool(cut[0]) if cut else False  # a fifth is Gymnasium's info
        return _observation("step", next_x, len(x)), float(reward), bool(terminated), cut_off

    def _policies(self, x: Floats) -> tuple[Floats, Floats]:
        b = _probabilities("behavior", self.behavior(x), None)
        pi = _probabilities("target", self.target(x), len(b))
        if ((pi > 0.0) & (b <= 0.0)).any():
            a = int(np.argmax((pi > 0.0) & (b <= 0.0)))
            raise InputError(
                f"behavior never takes action {a} at observation {x} but target does (probability"
                f" {pi[a]:g}): no data can tell its value; give behavior some probability"
            )
        return b, pi


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be a whole number, at least {least}; got {value!r}")


def _generators(seed: Any, count: int) -> list[np.random.Generator]:
    from o2td.sampling import streams

    return [np.random.Generator(bits) for bits in streams(seed, count)]


def _steps(discount: float) -> int:
    if discount == 0.0:
        return 1
    return _ENDLESS if discount == 1.0 else max(1, ceil(log(_NEGLIGIBLE) / log(discount)))


def _choose(probabilities: Floats, u: float) -> int:
    """The action whose share of [0, 1) holds `u`."""
    total = 0.0
    for a, p in enumerate(probabilities):
        total += p
        if u < total:
            return a
    return int(np.flatnonzero(probabilities)[-1])


def _observation(name: str, value: Any, k: int | None) -> Floats:
    x = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if x.ndim != 1 or (k is not None and len(x) != k) or not np.isfinite(x).all():
        shape = "(k,)" if k is None else f"({k},)"
        raise InputError(f"{name} returned the observation {value!r}; give {shape} finite numbers")
    return x


def _probabilities(name: str, value: Any, n_actions: int | None) -> Floats:
    p = np.asarray(value, dtype=np.float64)
    if p.ndim != 1 or (n_actions is not None and len(p) != n_actions):
        raise InputError(f"{name} returned shape {p.shape}; give one probability an action")
    if not (p >= 0.0).all() or abs(p.sum() - 1.0) > rounding(value):
        raise InputError(f"{name} returned {p}; probabilities are not negative and sum to 1")
    return p if rounding(value) == ROUNDING else np.asarray(p / p.sum())
