"""Gymnasium environments as problems: exact if they have a transition table, else by roll-outs.

`FrozenLake`, `CliffWalking` and `Taxi` list `(probability, next state, reward, terminated)` for
every state and action. Termination is a property of the transition there, not of the state: see
`_table`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from o2td.arguments import answer_of, unit, whole
from o2td.arrays import Bools, Floats
from o2td.errors import InputError, import_extra
from o2td.mdp import numbers
from o2td.problem import Problem
from o2td.simulated import SimulatedProblem

_DENSE_TABLE = 2000  # states up to which one feature per state is a dense matrix


def from_gymnasium(
    env_id: Any = "FrozenLake-v1",
    behavior: Any = "uniform",
    target: Any = "optimal",
    discount: float = 0.99,
    features: Any = None,
    horizon: int | None = None,
    **options: Any,
) -> Problem | SimulatedProblem:
    """Any Gymnasium environment with discrete actions; those with a transition table are exact.

    Parameters
    ----------
    env_id : str or gymnasium.Env
        A name such as "FrozenLake-v1" or "CartPole-v1", made with `options`; or an environment. One with
        `unwrapped.P` becomes a finite `Problem` with Gymnasium's numbering of the states, another a
        `SimulatedProblem`.
    behavior, target : str, array or callable
        "uniform"; "optimal" (of the table, for `discount`); an (S, A) array; or a function from a
        state number or an observation to the actions' probabilities.
    discount : float
        gamma of every step that does not end an episode.
    features : array, transformer or callable, optional
        For a table, one row per state; None gives one feature per state that can occur. For
        roll-outs, anything that `SimulatedProblem` accepts; None gives Fourier features of order 3
        if the observation space is bounded.
    horizon : int, optional
        Steps after which roll-outs are truncated; None means the environment's own limit.

    Examples
    --------
    >>> problem = from_gymnasium("FrozenLake-v1", map_name="8x8")
    >>> problem.n_states, int(problem.terminal.sum()), problem.d
    (64, 11, 53)
    """
    discount = unit("discount", discount)
    if horizon is not None:
        horizon = whole("horizon", horizon, 1)
    env, made = env_id, isinstance(env_id, str)
    if made:
        gymnasium = import_extra("gymnasium", extra="gymnasium")
        try:
            env = gymnasium.make(env_id, **options)
        except Exception as error:  # environments raise what they like for an option of theirs
            text = f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else error
            raise InputError(f"env_id: Gymnasium cannot make {env_id!r}: {text}") from error
    if not all(hasattr(env, part) for part in ("action_space", "observation_space", "unwrapped")):
        raise InputError(
            f"env_id must be the name of a Gymnasium environment or one itself, got {env_id!r}"
        )
    if not hasattr(env.action_space, "n"):
        raise InputError(f"{_name(env)} has actions {env.action_space}; discrete ones are needed")
    if hasattr(env.unwrapped, "P"):
        return _finite(env, behavior, target, discount, features)
    return _simulated(env, behavior, target, discount, features, horizon, made)


def _name(env: Any) -> str:
    return str(env.spec.id if env.spec is not None else type(env.unwrapped).__name__)


# -- with a table ----------------------------------------------------------------------------------


def _finite(env: Any, behavior: Any, target: Any, discount: float, features: Any) -> Problem:
    inner = env.unwrapped
    n, m = int(env.observation_space.n), int(env.action_space.n)
    start = np.asarray(inner.initial_state_distrib, dtype=np.float64)
    transition, reward, terminal = _table(inner.P, n, m, start > 0.0)
    size = len(terminal)
    start = np.r_[start / start.sum(), np.zeros(size - n)]

    def policy(name: str, given: Any) -> Floats:
        if isinstance(given, str) and given == "optimal":
            return _optimal(transition, reward, terminal, discount)
        table = _policy_table(name, given, n, m)
        return np.vstack([table, np.full((size - n, m), 1.0 / m)])

    return Problem(
        transition,
        reward,
        discount,
        behavior=policy("behavior", behavior),
        target=policy("target", target),
        features=_one_a_state(transition, start, terminal) if features is None else features,
        start=start,
        terminal=terminal,
        name=_name(env),
    )


def _table(P: Any, n: int, m: int, start: Bools) -> tuple[list[Any], list[Any], Bools]:
    """Transitions and rewards as one sparse matrix per action, and the terminal states.

    A state that is only ever entered by ending the episode is terminal itself. Where a state is
    entered both ways (or is a start), endings lead to one extra state after the last instead. Where
    one (s, a, s') has several rewards, their mean is kept.
    """
    listed = [
        (s, a, int(t), float(p), float(r), bool(ended))
        for s in range(n)
        for a in range(m)
        for p, t, r, ended in P[s][a]
        if p > 0.0
    ]
    s, a, t, p, r, ended = (np.array(column) for column in zip(*listed, strict=True))
    terminal, before = np.zeros(n, dtype=np.bool_), -1
    terminal[t[ended]] = True
    terminal &= ~start
    # What is entered alive is not terminal, so it leads on, and may enter another one alive.
    while terminal.sum() != before:
        before = terminal.sum()
        terminal[t[~ended & ~terminal[s]]] = False
    t = np.where(ended & ~terminal[t], n, t)
    size = n + int((t == n).any())
    return (
        *_by_action(s, a, t, p, r, size, m),
        np.r_[terminal, np.ones(size - n, dtype=np.bool_)],
    )


def _by_action(
    s: Any, a: Any, t: Any, p: Floats, r: Floats, size: int, m: int
) -> tuple[list[Any], list[Any]]:
    from scipy.sparse import coo_array, csr_array

    chances, rewards = [], []
    for k in range(m):
        mine = a == k
        where = (s[mine], t[mine])
        chance = csr_array(coo_array((p[mine], where), shape=(size, size)))
        gain = csr_array(coo_array((p[mine] * r[mine], where), shape=(size, size)))
        chance.sum_duplicates()
        gain.sum_duplicates()
        gain.data /= chance.data
        chances.append(chance)
        rewards.append(gain)
    return chances, rewards


def _policy_table(name: str, given: Any, n: int, m: int) -> Floats:
    if isinstance(given, str):
        if given != "uniform":
            raise InputError(
                f'{name} must be "uniform", "optimal", an array or a function, got {given!r}'
            )
        return np.full((n, m), 1.0 / m)
    return numbers(
        name, [answer_of(name, given, s) for s in range(n)] if callable(given) else given, (n, m)
    )


def _optimal(chances: list[Any], rewards: list[Any], terminal: Bools, discount: float) -> Floats:
    """A policy that is greedy for the optimal values, by value iteration; ties even."""
    m, value = len(chances), np.zeros(len(terminal))
    gain = np.stack([(c * r).sum(axis=1) for c, r in zip(chances, rewards, strict=True)], axis=1)
    for _ in range(100_000):
        ahead = np.stack([c @ np.where(terminal, 0.0, value) for c in chances], axis=1)
        q = gain + discount * ahead
        better = q.max(axis=1)
        if np.abs(better - value).max() <= 1e-12 * (1.0 + np.abs(value).max()):
            break
        value = better
    else:
        raise InputError("the optimal policy was not found; pass a discount below 1")
    best = q >= better[:, None] - 1e-9 * (1.0 + np.abs(better[:, None]))
    return np.asarray(best / best.sum(axis=1, keepdims=True)).reshape(-1, m)


def _one_a_state(chances: list[Any], start: Floats, terminal: Bools) -> Any:
    """One feature for each state that can be reached alive; no column for the others."""
    from scipy.sparse import csr_array

    reached, frontier = start > 0.0, start > 0.0
    forward = [csr_array(c.T) for c in chances]
    while frontier.any():
        seen = np.any([f @ frontier.astype(np.float64) > 0.0 for f in forward], axis=0)
        frontier = seen & ~terminal & ~reached
        reached = reached | frontier
    column = np.flatnonzero(reached)
    identity = csr_array(
        (np.ones(len(column)), (column, np.arange(len(column)))), shape=(len(start), len(column))
    )
    return identity.toarray() if len(start) <= _DENSE_TABLE else identity


# -- by roll-outs ----------------------------------------------------------------------------------


def _simulated(
    env: Any,
    behavior: Any,
    target: Any,
    discount: float,
    features: Any,
    horizon: int | None,
    made: bool,
) -> SimulatedProblem:
    limit = env.spec.max_episode_steps if made else None
    # The time limit is kept by the problem, so a made environment is used without its wrappers.
    simulator = _Simulator(env.unwrapped if made else env)
    m = int(env.action_space.n)
    return SimulatedProblem(
        simulator.begin,
        simulator.advance,
        _policy("behavior", behavior, m),
        _policy("target", target, m),
        simulator.fourier() if features is None else features,
        discount,
        horizon=limit if horizon is None else horizon,
        stateful=not simulator.settable,
        bounds=simulator.bounds,
        name=_name(env),
    )


def _policy(name: str, given: Any, m: int) -> Callable[[Floats], Floats]:
    if callable(given):
        return given  # type: ignore[no-any-return]
    if isinstance(given, str) and given == "uniform":
        even = np.full(m, 1.0 / m)
        return lambda observation: even
    raise InputError(
        f'{name} must be "uniform" or a function of the observation without a table, got {given!r}'
    )


class _Simulator:
    """An environment as `reset` and `step` of a simulated problem.

    Classic control whose state is its observation (mountain car, cart pole) can be put into any
    state, in double precision; of the others only the running episode can be continued.
    """

    def __init__(self, env: Any) -> None:
        self.env, self.inner = env, env.unwrapped
        first, _ = answer_of("env_id", lambda: env.reset(seed=0), on=lambda: "reset(seed=0)")
        state = np.asarray(getattr(self.inner, "state", None), dtype=np.float64)
        self.settable = (
            env is self.inner
            and type(env).__module__.startswith("gymnasium.envs.classic_control")
            and state.shape == np.shape(first)
            and np.allclose(state, first, atol=1e-6)
        )
        self._observe(first)

    @property
    def bounds(self) -> Floats | None:
        """(k, 2) where the observation space is a bounded box."""
        space = self.env.observation_space
        if not hasattr(space, "low"):
            return None
        pairs = np.stack([space.low.ravel(), space.high.ravel()], axis=1).astype(np.float64)
        return pairs if (np.abs(pairs) < np.finfo(np.float32).max).all() else None

    def fourier(self) -> Any:
        """The default features."""
        if self.bounds is None:
            raise InputError(
                f"{_name(self.env)} has observations without finite bounds,"
                f" {self.env.observation_space}; pass features="
            )
        from o2td.features import Fourier

        return Fourier(3, bounds=self.bounds)

    def begin(self, rng: np.random.Generator) -> Floats:
        first, _ = self.env.reset(seed=int(rng.random() * 2**31))
        return self._observe(first)

    def advance(
        self, x: Floats, action: int, rng: np.random.Generator
    ) -> tuple[Floats, float, bool, bool]:
        if self.settable:
            self.inner.state = x
            self.inner.np_random = rng
            if hasattr(self.inner, "steps_beyond_terminated"):
                self.inner.steps_beyond_terminated = None
        after, reward, terminated, truncated, _ = self.env.step(action)
        return self._observe(after), float(reward), bool(terminated), bool(truncated)

    def _observe(self, given: Any) -> Floats:
        if isinstance(given, (tuple, dict)):
            raise InputError(
                f"{_name(self.env)} observes {self.env.observation_space}; wrap it so that an"
                " observation is one array of numbers"
            )
        seen = self.inner.state if self.settable else given
        return np.array(seen, dtype=np.float64).ravel()
