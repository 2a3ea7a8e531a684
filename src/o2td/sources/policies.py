"""Policies in the forms people have them, converted to action probabilities.

- a callable from a batch of observations (or states) to (n, A) probabilities,
- an object with `predict_proba`, as scikit-learn's classifiers have it,
- a PyTorch module that returns logits, probabilities or a distribution that has `probs`,
- an (S, A) array of the probabilities in each state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import answer_of, listed, shown
from o2td.arrays import Floats
from o2td.errors import InputError
from o2td.sources.modules import ask_module, is_module, precision_of

SUM_ROUNDING = 1e-4  # tolerance of the sum of all actions' probabilities (float32 logs)


def probabilities_of(policy: Any, inputs: npt.NDArray[Any], name: str) -> Floats:
    """The (n, A) probabilities that a policy gives to the actions, checked.

    >>> probabilities_of(lambda x: np.full((len(x), 2), 0.5), np.zeros((1, 3)), "target")
    array([[0.5, 0.5]])
    >>> probabilities_of([[0.1, 0.9], [0.4, 0.6]], np.array([1, 1]), "target")
    array([[0.4, 0.6],
           [0.4, 0.6]])
    """
    precision = None  # of a module's numbers
    if hasattr(policy, "predict_proba"):
        rows = inputs if inputs.ndim == 2 else inputs[:, None]
        matrix = numbers(answer_of(name, policy.predict_proba, rows), name)
    elif is_module(policy):
        answer = answer_of(name, ask_module, policy, inputs, name)
        matrix, precision = numbers(answer, name), precision_of(answer)
    elif callable(policy):
        matrix = numbers(answer_of(name, policy, inputs), name)
    else:
        matrix = _of_states(policy, inputs, name)
    if matrix.ndim != 2 or len(matrix) != len(inputs):
        raise InputError(
            f"{name}: the policy returned shape {matrix.shape} for {len(inputs)} rows; return (rows,"
            " actions)"
        )
    if precision is not None and np.isfinite(matrix).all():
        matrix = _of_scores(matrix, precision)
    off = ~_chances(matrix)
    if off.any():
        found = np.round(matrix[int(np.argmax(off))], 4).tolist()
        raise InputError(f"{name}: the policy returned {found}; return probabilities that sum to 1")
    return matrix


def action_order(target: Any, behavior: Any, given: Sequence[Any] | None) -> list[Any] | None:
    """The log's names of the actions in the policy's order, if they are given."""
    for order in (given, getattr(target, "classes_", None), getattr(behavior, "classes_", None)):
        if order is not None:
            names = [
                one.item() if getattr(one, "ndim", 1) == 0 else one
                for one in listed("actions", order, "what the log calls each action")
            ]
            if not all(isinstance(one, (str, int, float)) for one in names):
                raise InputError("actions must be one list of what the log calls each action")
            return names
    return None


def softmax(scores: Floats) -> Floats:
    """Probabilities in proportion to the exponentials of the scores in each row."""
    scores = scores - scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def numbers(result: Any, name: str) -> Floats:
    """An array, a tensor or a distribution over actions as float64; a masked array is refused."""
    result = getattr(result, "probs", result)
    if isinstance(result, np.ma.MaskedArray):
        raise InputError(
            f"{name}: the numbers are a masked array; pass a plain one, with a number everywhere"
        )
    if hasattr(result, "detach"):
        result = result.detach().cpu().double().numpy()
    try:
        return np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, MemoryError):
        raise InputError(f"{name}: {shown(result)} is not an array of numbers") from None


def _of_states(table: Any, inputs: npt.NDArray[Any], name: str) -> Floats:
    table = numbers(table, name)
    if table.ndim != 2:
        raise InputError(
            f"{name}: an array of shape {table.shape}; pass (states, actions), or a callable"
        )
    if inputs.ndim != 1:
        raise InputError(f"{name}: an array of probabilities needs a log with states")
    if len(inputs) and inputs.max() >= len(table):
        raise InputError(
            f"{name}: state {inputs.max()} is in the log, the array has {len(table)} rows"
        )
    found: Floats = table[inputs]
    return found


def _of_scores(matrix: Floats, precision: float) -> Floats:
    """Logits as probabilities; what already is probabilities, to sum to 1 beyond its precision."""
    if _chances(matrix, max(precision, SUM_ROUNDING)).all():
        return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))
    return softmax(matrix)


def _chances(matrix: Floats, rounding: float = SUM_ROUNDING) -> npt.NDArray[np.bool_]:
    """Which rows are probabilities of all actions."""
    whole: npt.NDArray[np.bool_] = np.abs(matrix.sum(axis=1) - 1.0) <= rounding
    return whole & (matrix >= 0.0).all(axis=1)
