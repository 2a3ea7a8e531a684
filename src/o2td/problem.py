"""A finite prediction problem: an MDP, a behaviour, a target, a discount and features.

Everything is held by pairs: one entry for each (s, a, s') with positive probability, so that sparse
problems of any size never build an (S, A, S) array. Terminal states are never occupied: a transition
into one has discount 0 and the next row starts anew from `start`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from o2td import chain
from o2td.arguments import choice, switch, text, whole
from o2td.arrays import Bools, Floats, Seed, as_rows, check_finite, in_memory, own
from o2td.errors import InputError
from o2td.mdp import (
    by_pair,
    normalised,
    numbers,
    policy_table,
    rounding,
    start_shares,
    terminal_mask,
    triples,
)
from o2td.transitions import Transitions

Small = npt.NDArray[np.int32]


MAX_ROWS = 1 << 34  # rows of one sample: more would not fit into memory


class Pairs(NamedTuple):
    """Every (s, a, s') of positive probability from a non-terminal state, sorted by s, a, s'."""

    state: Small
    action: Small
    next_state: Small
    probability: Floats
    reward: Floats
    discount: Floats


class Problem:
    """Predict the value of `target` from data of `behavior`.

    Parameters
    ----------
    transition : (S, A, S) array, or A sparse (S, S) matrices
        `P(s'|s, a)`.
    reward : (S,), (S, A) or (S, A, S) array, or A sparse (S, S) matrices
        Expected reward; by (s, a, s') where it has three axes.
    discount : scalar, (S,) or (S, A, S) array, or A sparse (S, S) matrices
        A vector is read as the discount of *entering* a state.
    behavior, target : (S, A) array
        Rows sum to one. A row of zeros in `target` says that the target is not followed there: the
        ratio is 0, rewards of such rows are not used, and metrics leave the state out (`active`). The
        second vector w of gradient TD moves in such rows all the same, and so does theta in HTD and in
        GTD2's expanded form; with `skip_zero_ratio=True` neither does.
    features : (S, d) array or CSR array
        `phi(s)`, one row per state.
    start : (S,) array, optional
        Where trajectories (re)start; uniform over the non-terminal states if None.
    terminal : (S,) array of bool, or state indices, optional
        States in which an episode ends and another begins; none if None.
    interest : (S,) array, optional
        How much each state matters to emphatic methods; 1 if None.
    initial_theta : (d,) array, optional
        Where the domain's authors let learners begin.
    name, description : str
        Shown by `repr`.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import Problem
    >>> P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    >>> one = np.ones((2, 1))  # a single action
    >>> problem = Problem(P, np.array([[0.0], [1.0]]), 0.9, one, one, np.eye(2))
    >>> problem.sample(3, seed=0).reward.tolist() in ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0])
    True
    """

    def __init__(
        self,
        transition: Any,
        reward: npt.ArrayLike,
        discount: npt.ArrayLike,
        behavior: Any,
        target: Any,
        features: Any,
        start: npt.ArrayLike | None = None,
        terminal: npt.ArrayLike | None = None,
        interest: npt.ArrayLike | None = None,
        initial_theta: npt.ArrayLike | None = None,
        name: str = "problem",
        description: str = "",
    ) -> None:
        self.name, self.description = text("name", name), text("description", description)
        position, probability, self.n_states, self.n_actions = triples("transition", transition)
        size = (self.n_states, self.n_actions)
        self.terminal = terminal_mask(terminal, self.n_states)
        self.behavior = policy_table("behavior", behavior, size, self.terminal, may_be_zero=False)
        self.target = policy_table("target", target, size, self.terminal, may_be_zero=True)
        self.active: Bools = ~self.terminal & (self.target.sum(axis=1) > 0.0)
        self._check_support()
        used = self.behavior + self.target
        given = (position, probability, size, self.terminal, used, rounding(transition))
        probability = normalised(*given)
        kept = (probability > 0.0) & ~self.terminal[position // (size[0] * size[1])]
        self.pairs = self._pairs(position[kept], probability[kept], reward, discount)
        self.features = own(as_rows("features", features), features)
        self._largest = check_finite("features", self.features)
        if self.features.shape[0] != self.n_states:
            raise InputError(
                f"features has {self.features.shape[0]} rows for {self.n_states} states;"
                " give one row per state (terminal ones included)"
            )
        self.start = start_shares(start, self.terminal)
        self.interest = (
            np.ones(self.n_states)
            if interest is None
            else numbers("interest", interest, (self.n_states,), low=0.0).copy()
        )
        for array in (self.behavior, self.target, self.start, self.interest):
            array.flags.writeable = False
        self.initial_theta = (
            None
            if initial_theta is None
            else numbers("initial_theta", initial_theta, (self.features.shape[1],))
        )

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.features.shape[1])

    @staticmethod
    def simulated(
        reset: Callable[..., Any],
        step: Callable[..., Any],
        behavior: Callable[..., Any],
        target: Callable[..., Any],
        features: Any,
        discount: float,
        **options: Any,
    ) -> Any:
        """A problem with continuous states, known only by its simulator: see `SimulatedProblem`."""
        from o2td.simulated import SimulatedProblem

        return SimulatedProblem(reset, step, behavior, target, features, discount, **options)

    def __repr__(self) -> str:
        about = f", {self.description!r}" if self.description else ""
        return (
            f"Problem({self.name!r}, states={self.n_states}, actions={self.n_actions},"
            f" features={self.d}{about})"
        )

    # -- matrices ----------------------------------------------------------------------------------

    def transition_matrix(self, policy: Floats) -> Any:
        """`P(s, s') = sum_a policy(a|s) P(s'|s, a)`; terminal rows are zero."""
        return self._matrix(self._weight(policy))

    def discounted_matrix(self, policy: Floats) -> Any:
        """`P_gamma(s, s') = sum_a policy(a|s) P(s'|s, a) gamma(s, a, s')`."""
        return self._matrix(self._weight(policy) * self.pairs.discount)

    def expected_reward(self, policy: Floats) -> Floats:
        """`R(s) = sum_a policy(a|s) sum_s' P(s'|s, a) r(s, a, s')`."""
        weight = self._weight(policy) * self.pairs.reward
        return np.bincount(self.pairs.state, weight, self.n_states).astype(np.float64)

    def surviving_matrix(self, policy: Floats) -> Any:
        """`P(s, s')` without terminal successors: what a row lacks restarts from `start`.

        The restarts stay implicit, since written out they would fill a sparse matrix.
        """
        matrix = self.transition_matrix(policy)
        if not self.terminal.any():
            return matrix
        if isinstance(matrix, np.ndarray):
            matrix[:, self.terminal] = 0.0
            return matrix
        from scipy.sparse import csr_array, diags_array

        return csr_array(matrix @ diags_array((~self.terminal).astype(np.float64)))

    @cached_property
    def visits(self) -> Floats:
        """`xi`: the behaviour's long-run share of time in each state, restarts included."""
        return chain.stationary_distribution(self.surviving_matrix(self.behavior), self.start)

    # -- sampling ----------------------------------------------------------------------------------

    def sample(
        self, n: int, seed: Seed = 0, scheme: str = "sequential", double: bool = False
    ) -> Transitions:
        """`n` transitions of the behaviour; the same seed gives the same rows on any machine.

        `scheme="sequential"` walks from `start`; `"iid"` draws each state from `visits` (`xi`), so
        every row is a start. `double=True` adds a second, independent successor to every row.
        """
        from o2td.sampling import draw_states, streams

        choice("scheme", scheme, ("sequential", "iid"))
        n = whole("n", n, 0, MAX_ROWS, "sample in parts")
        first, second, third = streams(seed, 3)
        switch("double", double)
        with in_memory("n", n):
            if scheme == "sequential":
                drawn = self._sampler.walk(n, first, restarts=third)
            else:
                drawn = self._sampler.steps_from(draw_states(self.visits, n, third), first)
            return self._rows_of(drawn, second if double else None)

    def _rows_of(self, drawn: Any, again: Any) -> Transitions:
        """The drawn steps as transitions, with a second successor drawn from `again` if given."""
        columns = {
            "state": drawn.state,
            "reward": self._column("reward", drawn),
            "next_state": drawn.next_state,
            "discount": self._column("discount", drawn),
            "rho": np.take(self._ratio, drawn.row),
            "start": drawn.start,
            "target_prob": np.take(self.target, drawn.row),
            "behavior_prob": np.take(self.behavior, drawn.row),
        }
        if (self.interest != 1.0).any():
            columns["interest"] = self.interest[drawn.state]
        if again is not None:
            other = self._sampler.steps_from(drawn.state, again)
            columns["next_state_2"] = other.next_state
            columns["discount_2"] = self._column("discount", other)
            columns["rho_2"] = np.take(self._ratio, other.row)
        return Transitions.unchecked(self.features, self._largest, **columns)

    @cached_property
    def _sampler(self) -> Any:
        from o2td.sampling import Sampler

        chances = (self._row, self.pairs.next_state, self.pairs.probability)
        return Sampler(self.behavior, *chances, self.start, self.terminal)

    @property
    def ratio(self) -> Floats:
        """`rho(s, a) = target / behavior` (S, A), 0 where the behaviour does not go."""
        return self._ratio.reshape(self.n_states, self.n_actions)

    @cached_property
    def _ratio(self) -> Floats:
        """`rho(s, a)`, flat."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(self.behavior > 0.0, self.target / self.behavior, 0.0)
        if not np.isfinite(ratio).all():
            s, a = (int(k) for k in np.argwhere(~np.isfinite(ratio))[0])
            raise InputError(
                f"target / behavior overflows in state {s} under action {a}"
                f" (behavior {self.behavior[s, a]:g}); give behavior more probability there"
            )
        return ratio.ravel()

    @property
    def _row(self) -> npt.NDArray[np.int64]:
        return self.pairs.state.astype(np.int64) * self.n_actions + self.pairs.action

    @cached_property
    def _by_action(self) -> dict[str, Floats | None]:
        """Reward and discount by (s, a), flat, where s' makes no difference: small tables are fast."""
        found: dict[str, Floats | None] = {}
        for name in ("reward", "discount"):
            value, table = getattr(self.pairs, name), np.zeros(self.n_states * self.n_actions)
            table[self._row] = value
            found[name] = table if (table[self._row] == value).all() else None
        return found

    def _column(self, name: str, drawn: Any) -> Floats:
        table = self._by_action[name]
        at = (getattr(self.pairs, name), drawn.pair) if table is None else (table, drawn.row)
        return np.asarray(np.take(*at))

    # -- construction ------------------------------------------------------------------------------

    def _weight(self, policy: Any) -> Floats:
        if policy is not self.behavior and policy is not self.target:
            policy = numbers("policy", policy, (self.n_states, self.n_actions))
        return np.asarray(policy[self.pairs.state, self.pairs.action] * self.pairs.probability)

    def _matrix(self, weight: Floats) -> Any:
        s, t, n = self.pairs.state, self.pairs.next_state, self.n_states
        if n <= chain.DENSE_LIMIT:
            flat = s.astype(np.int64) * n + t
            return np.bincount(flat, weight, minlength=n * n).reshape(n, n)
        from scipy.sparse import coo_array

        return coo_array((weight, (s, t)), shape=(n, n)).tocsr()

    def _pairs(
        self,
        position: npt.NDArray[np.int64],
        probability: Floats,
        reward: npt.ArrayLike,
        discount: npt.ArrayLike,
    ) -> Pairs:
        n, m = self.n_states, self.n_actions
        state, rest = np.divmod(position, n * m)
        action, next_state = np.divmod(rest, n)
        where = (position, state, action, next_state)
        r = by_pair("reward", reward, n, m, *where, entered=False)
        g = by_pair("discount", discount, n, m, *where, entered=True)
        g = np.where(self.terminal[next_state], 0.0, g)
        if ((g < 0.0) | (g > 1.0)).any():
            s = int(state[int(np.argmax((g < 0.0) | (g > 1.0)))])
            raise InputError(f"discount must be in [0, 1]; it is not, first from state {s}")
        return Pairs(
            state.astype(np.int32),
            action.astype(np.int32),
            next_state.astype(np.int32),
            probability,
            r,
            g,
        )

    def _check_support(self) -> None:
        bad = (self.target > 0.0) & (self.behavior <= 0.0) & ~self.terminal[:, None]
        if bad.any():
            s, a = (int(k) for k in np.argwhere(bad)[0])
            raise InputError(
                f"behavior never takes action {a} in state {s} but target does (probability"
                f" {self.target[s, a]:g}): no data can tell its value; give behavior some probability"
            )
