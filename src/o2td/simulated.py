"""A prediction problem given by a simulator: continuous observations, no matrices.

The behaviour's steps are stored as raw columns (`Rollout`), from which `Transitions` are built with
the problem's features. The value of an observation is the mean of the target's returns from it,
`V(x) ~ mean_k sum_t gamma^t r_{t+1}`, with its standard error.

Every random number is a `random()` of a PCG64 stream named by the seed. A domain may supply
compiled functions that fill the columns; they draw in the same order as the plain loops of
`o2td.rollouts`, so both give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from math import ceil, log
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import answer_of, choice, switch, text, unit, whole
from o2td.arrays import Floats, Seed, as_numbers, check_finite, in_memory
from o2td.errors import InputError, NoAnswerError
from o2td.rollouts import Rollout, Simulator, ValueEstimate
from o2td.transitions import Transitions

__all__ = ["Rollout", "SimulatedProblem", "ValueEstimate"]


MAX_ROWS = 1 << 34  # steps of one roll-out: more would not fit into memory
_NEGLIGIBLE = 1e-8  # a return ends where the discount has fallen to this
_FOREVER = int(np.iinfo(np.int64).max)
_PARTS = ("reset", "step", "behavior", "target", "rollout", "returns")
_NEEDED = 4  # the first of them; the others have plain loops in their place
_ENDLESS = 100_000  # steps after which an undiscounted run counts as one that never ends


class SimulatedProblem:
    """Predict the value of the `target` policy from simulated steps of the `behavior` policy.

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
        A transformer of `o2td.features` or scikit-learn, or a function from (n, k) observations to
        (n, d) features.
    discount : float
        gamma, from 0 to 1.
    horizon : int, optional
        Number of steps after which episodes are truncated. This is not termination: the discount
        stays, and the next row is a start.
    rollout : callable, optional
        `rollout(rng, horizon, given, columns)` fills the columns of a `Rollout`, in compiled code.
        `given` means that the observations are already there and one step is wanted from each.
    returns : callable, optional
        `returns(rng, observations, steps, discount, out)` fills `out` (n, runs) with returns of the
        target, and returns the number of runs that did not terminate within `steps`.
    stateful : bool
        Whether `step` continues from the simulator's own state and ignores `observation`. Double
        sampling and `rollout_value` are then not available.
    bounds : (k, 2) array, optional
        Lowest and highest value of each observation variable.
    initial_theta : (d,) array, optional
        Initial weights for experiments on it.
    name, description : str
        Shown in listings and errors.

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
        bounds: npt.ArrayLike | None = None,
        initial_theta: npt.ArrayLike | None = None,
        name: str = "simulated",
        description: str = "",
    ) -> None:
        discount = unit("discount", discount)
        if horizon is not None:
            horizon = min(whole("horizon", horizon, 1), _FOREVER)
        functions = (reset, step, behavior, target, rollout, returns)
        for k, (part, given) in enumerate(zip(_PARTS, functions, strict=True)):
            if not callable(given) and (k < _NEEDED or given is not None):
                raise InputError(f"{part} must be a function, got {given!r}; see SimulatedProblem")
        if not callable(getattr(features, "transform", features)):
            raise InputError(
                f"features must be a transformer, such as those of o2td.features, or a function from"
                f" (n, k) observations to (n, d) features; got {features!r}"
            )
        self.name, self.description = text("name", name), text("description", description)
        self.reset, self.step = reset, step
        self.behavior, self.target, self.features = behavior, target, features
        self.discount, self.horizon = discount, horizon
        self.bounds = None if bounds is None else _pairs(bounds)
        self.initial_theta = None if initial_theta is None else _theta(initial_theta)
        self.stateful = switch("stateful", stateful)
        plain = Simulator(reset, step, behavior, target)
        self._plain = plain
        self._fill = plain.rollout if rollout is None else partial(answer_of, "rollout", rollout)
        self._returns = plain.returns if returns is None else partial(answer_of, "returns", returns)

    # -- shapes ------------------------------------------------------------------------------------

    @cached_property
    def _probe(self) -> Floats:
        """One observation, to learn the shapes from."""
        return self._plain.begin(_generators(0, 1)[0])

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return self._plain.actions(self._probe)

    @cached_property
    def d(self) -> int:
        """Number of features."""
        return int(self.phi(self._probe[None, :]).shape[1])

    def phi(self, observations: npt.ArrayLike) -> Any:
        """Features (n, d) of observations (n, k)."""
        transform = getattr(self.features, "transform", self.features)
        seen = as_numbers("observations", observations)
        if seen.ndim != 2:
            raise InputError(f"observations must have shape (n, k), got {seen.shape}")
        rows = answer_of("features", transform, seen)
        shape = getattr(rows, "shape", None)
        if shape is None or len(shape) != 2 or shape[0] != len(seen):
            given = type(rows).__name__ if shape is None else f"shape {shape}"
            raise InputError(
                f"features returned {given} for {len(seen)} observations; give an array or CSR array"
                f" of shape ({len(seen)}, d)"
            )
        return rows

    def __repr__(self) -> str:
        about = f", {self.description!r}" if self.description else ""
        return (
            f"SimulatedProblem({self.name!r}, observation={len(self._probe)},"
            f" actions={self.n_actions}, features={self.d}{about})"
        )

    # -- sampling ----------------------------------------------------------------------------------

    def rollout(self, n: int, seed: Seed = 0) -> Rollout:
        """`n` consecutive steps of the behaviour, as raw columns."""
        return self._simulate(n, _generators(seed, 1)[0])

    def observations(self, n: int, seed: Seed = 0, every: int = 1) -> Floats:
        """`n` observations that the behaviour encounters, one per `every` steps."""
        n, every = whole("n", n, 0), whole("every", every, 1)
        return np.ascontiguousarray(self.rollout(n * every, seed).observation[::every])

    def sample(
        self, n: int, seed: Seed = 0, scheme: str = "sequential", double: bool = False
    ) -> Transitions:
        """`n` transitions of the behaviour; the same seed gives the same rows.

        `scheme="iid"` shuffles the rows of a sequential roll-out and makes each a start: the state
        distribution is not known, so states cannot be drawn from it.
        `double=True` adds a second, independent successor to every row.
        """
        choice("scheme", scheme, ("sequential", "iid"))
        switch("double", double)
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
        self, observations: npt.ArrayLike, runs: int = 100, seed: Seed = 0, steps: int | None = None
    ) -> ValueEstimate:
        """Mean and standard error of `runs` returns of the target from each observation.

        A return is summed until termination or, with a discount below 1, until the discount of a
        reward is below 1e-8; `steps` overrides that. `horizon` plays no part: rewards beyond a
        truncation count as well.
        """
        self._needs_states("rollout_value")
        if steps is not None:
            steps = min(whole("steps", steps, 1), _FOREVER)
        first = np.ascontiguousarray(as_numbers("observations", observations))
        if first.ndim != 2 or first.shape[1] != len(self._probe):
            k = len(self._probe)
            raise InputError(f"observations must have shape (n, {k}), got {first.shape}")
        check_finite("observations", first)
        limit = _steps(self.discount) if steps is None else steps
        endless = steps is None and self.discount == 1.0
        *_, rng, probe = _generators(seed, 5)
        if endless and len(first):  # two runs tell what all of them would, long after
            self._check_ends(self._returns(probe, first[:1], limit, 1.0, np.empty((1, 2))), limit)
        runs = whole("runs", runs, 2, MAX_ROWS)  # two, for a standard error
        with in_memory("runs", runs):
            out = np.full((len(first), runs), np.nan)
        unfinished = self._returns(rng, first, limit, self.discount, out)
        if not np.isfinite(out).all():
            row = int(np.argmax(~np.isfinite(out).all(axis=1)))
            raise NoAnswerError(
                f"returns from observation {row} are not finite; the rewards are too large, or a"
                " returns= of your own does not fill all of out"
            )
        if endless:
            self._check_ends(unfinished, limit)
        return ValueEstimate.of(out)

    def _check_ends(self, unfinished: int, limit: int) -> None:
        if unfinished:
            raise NoAnswerError(
                f"{unfinished} undiscounted runs of the target had not ended after {limit} steps;"
                " pass steps= to cut them there, or a discount below 1"
            )

    # -- the simulator -----------------------------------------------------------------------------

    def _simulate(self, n: int, rng: np.random.Generator) -> Rollout:
        n = whole("n", n, 0, MAX_ROWS, "go on in parts")
        with in_memory("n", n):
            rows = Rollout.empty(n, len(self._probe))
        self._fill(rng, self.horizon or _FOREVER, False, rows.columns)
        return rows

    def _branch(self, observations: Floats, rng: np.random.Generator) -> Rollout:
        """One independent step from each of the given observations."""
        self._needs_states("double sampling")
        rows = Rollout.empty(*observations.shape)
        rows.observation[:] = observations
        self._fill(rng, _FOREVER, True, rows.columns)
        return rows

    def _needs_states(self, what: str) -> None:
        if self.stateful:
            raise InputError(
                f"{self.name} cannot be put into a given state, which {what} needs; write"
                " step(observation, action, rng) so that it starts from its observation"
            )


def _pairs(bounds: npt.ArrayLike) -> Floats:
    pairs = as_numbers("bounds", bounds)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not (pairs[:, 0] <= pairs[:, 1]).all():
        raise InputError("bounds must be one (low, high) pair an observation variable, low first")
    return pairs


def _theta(given: Any) -> Floats:
    theta = as_numbers("initial_theta", given)
    if theta.ndim != 1 or theta.size == 0 or not np.isfinite(theta).all():
        raise InputError(f"initial_theta must be d finite numbers, got shape {theta.shape}")
    return theta


def _generators(seed: Seed, count: int) -> list[np.random.Generator]:
    from o2td.sampling import streams

    return [np.random.Generator(bits) for bits in streams(seed, count)]


def _steps(discount: float) -> int:
    if discount == 0.0:
        return 1
    return _ENDLESS if discount == 1.0 else max(1, ceil(log(_NEGLIGIBLE) / log(discount)))
