"""LSTDQ: action values from features of (s, a), with the next action averaged under the target.

`A = sum_t phi(s_t, a_t) (phi(s_t, a_t) - gamma_{t+1} sum_a pi(a|s_{t+1}) phi(s_{t+1}, a))^T`, `b =
sum_t phi(s_t, a_t) r_{t+1}`. No ratios are needed, because the action taken is given and the next
one is averaged. Lagoudakis and Parr (2003).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import number, whole
from o2td.arrays import MAX_FEATURES, FeatureRows, as_array, as_numbers, as_rows, in_memory
from o2td.errors import InputError, NoAnswerError
from o2td.linear_algebra import Solution, solve
from o2td.model import Model
from o2td.solvers.base import Solver
from o2td.solvers.system import Side, System, product
from o2td.transitions import Transitions


class LSTDQ(Solver):
    """Least-squares temporal differences for action values.

    Pass `Transitions` whose `phi` are features of the state and action, and whose `next_phi` are
    those of the next state averaged over the target's actions. `LSTDQ.features` and
    `LSTDQ.next_features` build both from features of states, with one block per action.

    Parameters
    ----------
    ridge
        Added to the diagonal of `A`.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import LSTDQ, Transitions
    >>> one = np.ones((2, 1))
    >>> phi = LSTDQ.features(one, action=[0, 1], n_actions=2)
    >>> next_phi = LSTDQ.next_features(one, [[0.0, 1.0], [0.0, 1.0]])
    >>> LSTDQ().fit(Transitions(phi, [0.0, 1.0], next_phi, discount=0.5)).theta
    array([1., 2.])
    """

    statistics = (System,)
    solved_with = ("ridge",)
    of_actions = True

    def __init__(self, ridge: float = 0.0) -> None:
        self.ridge = number("ridge", ridge, low=0.0)

    @staticmethod
    def features(phi: FeatureRows, action: npt.ArrayLike, n_actions: int) -> Any:
        """`phi(s, a)` (n, A·d): the state's features in the block of the action, zero elsewhere."""
        rows = as_rows("phi", phi)
        taken = as_array("action", action)
        n_actions = whole("n_actions", n_actions, 1, MAX_FEATURES // rows.shape[1])
        if taken.shape != rows.shape[:1] or taken.dtype.kind not in "iu":
            raise InputError(f"action must be integers of shape {rows.shape[:1]}")
        bad = (taken < 0) | (taken >= n_actions)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"action is {taken[row]} in row {row}: it must be in 0..{n_actions - 1}"
            )
        with in_memory("n_actions", n_actions):
            return _blocks(rows, (taken[:, None] == np.arange(n_actions)).astype(np.float64))

    @staticmethod
    def next_features(next_phi: FeatureRows, next_target_probs: npt.ArrayLike) -> Any:
        """`sum_a pi(a|s') phi(s', a)` (n, A·d) from the target's probabilities (n, A)."""
        rows = as_rows("next_phi", next_phi)
        probs = as_numbers("next_target_probs", next_target_probs)
        if probs.ndim != 2 or probs.shape[0] != rows.shape[0]:
            raise InputError(f"next_target_probs must have shape ({rows.shape[0]}, actions)")
        bad = ~((probs >= 0.0).all(axis=1) & (probs.sum(axis=1) <= 1.0 + 1e-8))
        if bad.any():
            raise InputError(
                f"next_target_probs is not a distribution in row {int(np.argmax(bad))}:"
                " give probabilities that sum to 1 (or 0 where the episode has ended)"
            )
        return _blocks(rows, probs)

    def _collect(self, batch: Transitions) -> System:
        ones = np.ones(batch.n)
        return product(batch, Side(ones), Side(ones, 1.0, batch.discount), batch.reward)

    def _solve(self, sums: System) -> Solution:
        return solve(sums.A, sums.b, self.ridge, rows=sums.rows)

    def _limit(self, model: Model) -> Solution:
        raise NoAnswerError(
            "LSTDQ has no limit on a model of states: its features are of states and actions"
        )


def _blocks(rows: Any, weight: Any) -> Any:
    """Row t is the Kronecker product of `weight[t]` and `rows[t]`."""
    n, d = rows.shape
    if isinstance(rows, np.ndarray):
        return np.einsum("ta,tj->taj", weight, rows).reshape(n, weight.shape[1] * d)
    from scipy.sparse import csr_array, diags_array, hstack

    parts = [diags_array(weight[:, a]) @ rows for a in range(weight.shape[1])]
    blocks = csr_array(hstack(parts, format="csr"))
    blocks.eliminate_zeros()
    return blocks
