"""The parts of an MDP as users write them, checked and brought to one form.

Transitions, rewards and discounts become values at flat positions `(s * A + a) * S + s'`; policies
and starts become probabilities that sum to one. An error names the argument, the first state that is
wrong and what is expected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arrays import Bools, Floats, as_array
from o2td.errors import InputError
from o2td.sparse import as_coo

ROUNDING = 1e-8  # how far from one a row of probabilities may sum
_NARROW = 1e-5  # the same for float32, which has seven digits


def rounding(value: Any) -> float:
    """How far from one a row of these probabilities may sum; they are normalised afterwards."""
    parts = value if isinstance(value, (list, tuple)) else [value]
    return _NARROW if any(getattr(x, "dtype", None) == np.float32 for x in parts) else ROUNDING


def triples(name: str, value: Any) -> tuple[npt.NDArray[np.int64], Floats, int, int]:
    """Flat positions `(s * A + a) * S + s'` (sorted) and values of the entries that are not zero."""
    if isinstance(value, (list, tuple)) and len(value) and hasattr(value[0], "tocoo"):
        n, m = value[0].shape[0], len(value)
        positions, values = [], []
        for a, matrix in enumerate(value):
            if not hasattr(matrix, "tocoo") or matrix.dtype.kind not in "biuf":
                told = getattr(matrix, "dtype", type(matrix).__name__)
                raise InputError(
                    f"{name}[{a}] is not a sparse matrix of real numbers but {type(matrix).__name__},"
                    f" {told}; give all of them as such, or one array (S, A, S)"
                )
            if matrix.shape != (n, n):
                raise InputError(f"{name}[{a}] has shape {matrix.shape}, expected ({n}, {n})")
            entries = as_coo(f"{name}[{a}]", matrix)
            row, column = entries.row, entries.col
            positions.append((row.astype(np.int64) * m + a) * n + column)
            values.append(np.asarray(entries.data, dtype=np.float64))
        position, data = np.concatenate(positions), np.concatenate(values)
        order = np.argsort(position, kind="stable")
        position, data = position[order], data[order]
        kept = data != 0.0
        position, data = position[kept], data[kept]
        if (np.diff(position) == 0).any():
            raise InputError(f"{name} has duplicate entries; call sum_duplicates() first")
    else:
        array = as_array(name, value)
        if array.ndim != 3 or array.shape[0] != array.shape[2] or array.size == 0:
            raise InputError(
                f"{name} must have shape (S, A, S) or be a list of A sparse (S, S) matrices,"
                f" got {array.shape}"
            )
        array = numbers(name, array, array.shape)
        n, m = array.shape[:2]
        position = np.flatnonzero(array)
        data = array.ravel()[position]
    if not np.isfinite(data).all() or (name == "transition" and (data < 0.0).any()):
        bad = int(position[int(np.argmax(~np.isfinite(data) | (data < 0.0)))])
        raise InputError(f"{name} has a negative or non-finite entry from state {bad // (n * m)}")
    return position, data, n, m


def by_pair(
    name: str,
    value: Any,
    n: int,
    m: int,
    position: Any,
    state: Any,
    action: Any,
    next_state: Any,
    entered: bool,
) -> Floats:
    """The value at each pair of what is given as a scalar, by state, (s, a) or (s, a, s')."""
    if isinstance(value, (list, tuple)) and len(value) and hasattr(value[0], "tocoo"):
        where, data, n_given, m_given = triples(name, value)
        if (n_given, m_given) != (n, m):
            raise InputError(
                f"{name} has {m_given} matrices of {n_given} states, expected {m} of {n}"
            )
        found = np.minimum(np.searchsorted(where, position), max(len(where) - 1, 0))
        if len(where) == 0:
            return np.zeros(len(position))
        return np.where(where[found] == position, data[found], 0.0)
    shape = as_array(name, value).shape
    if shape not in ((), (n,), (n, m), (n, m, n)):
        raise InputError(
            f"{name} has shape {shape}; expected a scalar, ({n},), ({n}, {m}) or ({n}, {m}, {n})"
        )
    array = numbers(name, value, shape)
    if array.ndim == 0:
        return np.full(len(position), float(array))
    if array.ndim == 1:
        return np.asarray(array[next_state if entered else state])
    return np.asarray(array[state, action] if array.ndim == 2 else array.ravel()[position])


def numbers(name: str, value: Any, shape: tuple[int, ...], low: float = -np.inf) -> Floats:
    """A float64 array of this shape, all finite and at least `low`."""
    array = as_array(name, value)
    if array.dtype.kind not in "biuf" or array.dtype == np.float16:
        raise InputError(f"{name} has dtype {array.dtype}; pass real numbers as float64")
    if array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}, expected {shape}")
    array = np.ascontiguousarray(array, dtype=np.float64).reshape(shape)
    bad = ~np.isfinite(array) | (array < low)
    if bad.any():
        first = tuple(int(k) for k in np.argwhere(bad)[0])
        raise InputError(
            f"{name} is {array[first]!s} at {first}; it must be finite"
            + ("" if low == -np.inf else f" and >= {low:g}")
        )
    return array


def policy_table(
    name: str, value: Any, shape: tuple[int, int], terminal: Bools, may_be_zero: bool
) -> Floats:
    """Probabilities of actions by state; zero in terminal states."""
    policy = numbers(name, value, shape, low=0.0)
    total = policy.sum(axis=1)
    wrong = (np.abs(total - 1.0) > rounding(value)) & ~terminal
    if may_be_zero:
        wrong &= total != 0.0
    if wrong.any():
        s = int(np.argmax(wrong))
        raise InputError(
            f"{name} sums to {total[s]:.10g} in state {s}; its probabilities must sum to 1"
        )
    policy = policy / np.where(total > 0.0, total, 1.0)[:, None]
    return np.where(terminal[:, None], 0.0, policy)


def terminal_mask(value: Any, n: int) -> Bools:
    """A mask of the terminal states, given as one or as indices."""
    if value is None:
        return np.zeros(n, dtype=np.bool_)
    array = as_array("terminal", value)
    if array.shape == (0,):
        return np.zeros(n, dtype=np.bool_)
    if array.dtype == np.bool_ and array.shape == (n,):
        mask = array.copy()
    elif array.dtype.kind in "iu" and array.ndim == 1 and ((array >= 0) & (array < n)).all():
        mask = np.zeros(n, dtype=np.bool_)
        mask[array] = True
    else:
        raise InputError(f"terminal must be a mask of shape ({n},) or a list of state indices")
    if mask.all():
        raise InputError("terminal covers every state; leave at least one to start from")
    return mask


def start_shares(value: Any, terminal: Bools) -> Floats:
    """Where trajectories start: uniform over the non-terminal states if not given."""
    if value is None:
        return np.asarray(~terminal / (~terminal).sum())
    start = numbers("start", value, terminal.shape, low=0.0)
    if abs(start.sum() - 1.0) > rounding(value) or (start[terminal] > 0.0).any():
        raise InputError(
            f"start sums to {start.sum():.10g}; it must sum to 1 over non-terminal states"
        )
    return start.copy() if rounding(value) == ROUNDING else np.asarray(start / start.sum())


def normalised(
    position: Any,
    probability: Floats,
    size: tuple[int, int],
    terminal: Bools,
    used: Floats,
    tolerance: float = ROUNDING,
) -> Floats:
    """The probabilities with rounding taken out, so that each row in use sums to one."""
    n, m = size
    total: Any = np.bincount(position // n, probability, minlength=n * m).reshape(n, m)
    wrong = (np.abs(total - 1.0) > tolerance) & ~terminal[:, None] & (used > 0.0)
    if wrong.any():
        s, a = (int(k) for k in np.argwhere(wrong)[0])
        raise InputError(
            f"transition sums to {total[s, a]:.10g} from state {s} under action {a}; probabilities must"
            " sum to 1 (list the state in terminal if episodes end there)"
        )
    total = np.where((used > 0.0) & (total > 0.0), total, 1.0).ravel()
    return np.asarray(probability / total[position // n])
