"""Linear algebra of Markov chains: sums over time, and long-run shares of time.

`sum_t K^t B = (I - K)^-1 B`. Up to `DENSE_LIMIT` states this is dense LU; beyond that there is
never a dense (S, S) matrix: see `o2td.chain.sparse`. Every result is checked by its residual. A sum
that does not converge is refused because of the chain's structure, independent of rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.arrays import Bools, Floats
from o2td.chain.sparse import SparseInverse
from o2td.errors import InputError, NoAnswerError

__all__ = ["DENSE_LIMIT", "solve", "solve_transposed", "stationary_distribution"]


DENSE_LIMIT = 2000

_LEAK = 1e-12  # a row that sums to more than 1 - _LEAK counts as 1
_POWER_STEPS = 400


def solve(K: Any, B: Any) -> Floats:
    """`(I - K)^-1 B = sum_t K^t B`, for non-negative `K` (S, S) and `B` (S,) or (S, k).

    Raises `NoAnswerError` if the sum does not converge: an undiscounted set of states that is never
    left.

    >>> solve(np.array([[0.0, 0.5], [0.0, 0.5]]), np.array([0.0, 1.0]))
    array([1., 2.])
    """
    return _solve(K, B, transposed=False)


def solve_transposed(K: Any, B: Any) -> Floats:
    """`(I - K^T)^-1 B`: what flows into each state over time from inflow `B`.

    >>> solve_transposed(np.array([[0.0, 0.5], [0.0, 0.5]]), np.array([1.0, 0.0]))
    array([1., 1.])
    """
    return _solve(K, B, transposed=True)


def stationary_distribution(P: Any, start: Floats) -> Floats:
    """`xi`: the long-run share of time in each state of a chain that begins at `start`.

    Rows of `P` that sum to less than one restart from `start` with the rest of their probability.
    Periodic chains have a time average as well; transient and unreachable states have share 0.
    Raises `NoAnswerError` if more than one closed set of states can be reached, since the share
    then depends on chance.

    >>> stationary_distribution(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1.0, 0.0]))
    array([0.5, 0.5])
    >>> stationary_distribution(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([1.0, 0.0]))
    array([0.5, 0.5])
    """
    start = np.asarray(start, dtype=np.float64)
    P = _compact(P)
    leak = _leak(P)
    reached, closed = _closed_classes(P, start, leak)
    if len(closed) > 1:
        one, other = int(closed[0][0]), int(closed[1][0])
        raise NoAnswerError(
            f"the long-run distribution depends on chance: from start the chain is caught with"
            f" state {one} or with state {other}; start inside one of them, or let episodes end"
        )
    members = closed[0] if closed else reached
    inner = P[members][:, members]
    share = np.zeros(P.shape[0])
    if closed:
        share[members] = _irreducible(inner)
    else:
        share[members] = _restarting(inner, start[members], leak[members])
    return share


# -- sums over time --------------------------------------------------------------------------------


def _solve(K: Any, B: Any, transposed: bool) -> Floats:
    K = _compact(K)
    B = np.asarray(B.toarray() if hasattr(B, "toarray") else B, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or B.shape[:1] != K.shape[:1]:
        raise InputError(f"cannot solve a system of shape {K.shape} for values of shape {B.shape}")
    proven = _check_converges(K)
    inverse = _Dense(K) if isinstance(K, np.ndarray) else SparseInverse(K)
    if not proven and (inverse(np.ones(K.shape[0]), False) <= 0.0).any():
        raise NoAnswerError(
            "the sum over time does not converge: its weights grow from step to step;"
            " lower the discount, the trace or the decay"
        )
    return inverse(B, transposed)


def _compact(K: Any) -> Any:
    """Dense float64 up to `DENSE_LIMIT` states, CSR beyond; explicit zeros are removed."""
    if K.shape[0] <= DENSE_LIMIT:
        return np.asarray(K.toarray() if hasattr(K, "toarray") else K, dtype=np.float64)
    from scipy.sparse import csr_array

    sparse = csr_array(K, dtype=np.float64)
    if (sparse.data == 0.0).any():
        sparse = sparse.copy()
        sparse.eliminate_zeros()
    return sparse


def _row_sums(K: Any) -> Floats:
    return np.asarray(K.sum(axis=1), dtype=np.float64).ravel()


def _check_converges(K: Any) -> bool:
    """Whether the sum is known to converge; refuses if it is known not to.

    A non-negative `K` with row sums of at most one has a converging sum if and only if every state
    leads to one whose row sums to less than one.
    """
    entries = K if isinstance(K, np.ndarray) else K.data
    if not np.isfinite(entries).all():
        raise InputError("the chain has an entry that is not finite")
    total = _row_sums(K)
    if (entries < 0.0).any() or (total > 1.0 + _LEAK).any():
        return False
    leaking = total < 1.0 - _LEAK
    if not leaking.all():
        caught = ~_reachable(K.T, leaking)
        if caught.any():
            raise NoAnswerError(
                f"the sum over time from state {int(np.argmax(caught))} does not converge: from"
                " there nothing is discounted and no episode ends; give a discount below 1, or list"
                " in terminal the states where episodes end"
            )
    return True


class _Dense:
    """`(I - K)^-1` by LU, with the reciprocal condition number checked."""

    def __init__(self, K: Floats) -> None:
        from scipy.linalg import lapack

        A = np.eye(K.shape[0]) - K
        norm = float(np.abs(A).sum(axis=0).max())
        self._lu, self._pivots, info = lapack.dgetrf(A)
        rcond = 0.0 if info else float(lapack.dgecon(self._lu, norm)[0])
        if rcond < 1e-15:
            raise NoAnswerError(
                "the sum over time has no answer: the system is singular to working precision;"
                " give a discount below 1, or states where episodes end"
            )

    def __call__(self, B: Floats, transposed: bool) -> Floats:
        from scipy.linalg import lapack

        X: Floats = lapack.dgetrs(self._lu, self._pivots, B, trans=int(transposed))[0]
        return np.ascontiguousarray(X.reshape(B.shape))


# -- shares of time --------------------------------------------------------------------------------


def _leak(P: Any) -> Floats:
    """Probability of a restart from each state."""
    total = _row_sums(P)
    if (total > 1.0 + 1e-8).any():
        s = int(np.argmax(total > 1.0 + 1e-8))
        raise InputError(f"transition probabilities sum to {total[s]:g} from state {s}, above 1")
    return np.where(total < 1.0 - _LEAK, 1.0 - total, 0.0)


def _reachable(K: Any, sources: Bools) -> Bools:
    """States reachable from `sources` by positive entries, including these."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    graph, roots, n = csr_array(K), np.flatnonzero(sources), len(sources)
    # One more node leads to every source, so a single search suffices.
    indices = np.concatenate([graph.indices, roots])
    indptr = np.append(graph.indptr, len(indices))
    graph = csr_array((np.ones(len(indices)), indices, indptr), shape=(n + 1, n + 1))
    order = breadth_first_order(graph, n, return_predecessors=False)
    found = np.zeros(n + 1, dtype=np.bool_)
    found[order] = True
    return found[:-1]


def _closed_classes(P: Any, start: Floats, leak: Floats) -> tuple[Any, list[Any]]:
    """States reached from `start`, and the closed classes among them."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    reached = np.flatnonzero(_reachable(P, start > 0.0))
    graph = csr_array(P)[reached][:, reached].tocoo()
    n_classes, label = connected_components(graph.tocsr(), directed=True, connection="strong")
    row, column = graph.coords
    closed = np.ones(n_classes, dtype=np.bool_)
    closed[label[row][label[row] != label[column]]] = False
    closed[label[leak[reached] > 0.0]] = False
    classes = [reached[label == k] for k in np.flatnonzero(closed)]
    return reached, sorted(classes, key=lambda members: int(members[0]))


def _restarting(Q: Any, start: Floats, leak: Floats) -> Floats:
    """Visits in one episode, normalised: `(I - Q^T)^-1 start`."""
    if not isinstance(Q, np.ndarray):
        share = _power(Q, start, leak)
        if share is not None:
            return share
    return _normalised(solve_transposed(Q, start))


def _irreducible(P: Any) -> Floats:
    """The stationary distribution of one closed class: visits between returns to a state `k`."""
    n = P.shape[0]
    if n == 1:
        return np.ones(1)
    share = np.full(n, 1.0 / n)
    if not isinstance(P, np.ndarray):
        found = _power(P, share, np.zeros(n))
        if found is not None:
            return found
    k = 0
    for _ in range(3):
        share = _normalised(solve_transposed(_without_column(P, k), _unit(n, k)))
        # A rarely visited state is a poor reference.
        if share[k] * 100.0 > share.max():
            break
        k = int(np.argmax(share))
    return share


def _power(Q: Any, start: Floats, leak: Floats) -> Floats | None:
    """Power iteration of the lazy chain, which is aperiodic; None if it converges slowly."""
    share, backward = start, Q.T.tocsr()
    for _ in range(_POWER_STEPS):
        step = backward @ share + (leak @ share) * start - share
        share = share + 0.5 * step
        if np.abs(step).sum() < 1e-14:
            return _normalised(share)
    return None


def _without_column(P: Any, k: int) -> Any:
    keep = 1.0 - _unit(P.shape[0], k)
    if isinstance(P, np.ndarray):
        return P * keep
    from scipy.sparse import diags_array

    cut = P @ diags_array(keep)
    cut.eliminate_zeros()
    return cut


def _unit(n: int, k: int) -> Floats:
    unit = np.zeros(n)
    unit[k] = 1.0
    return unit


def _normalised(share: Floats) -> Floats:
    share = np.maximum(share, 0.0)
    return np.asarray(share / share.sum())
