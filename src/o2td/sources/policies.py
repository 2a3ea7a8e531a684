"""Policies in the forms people have them, converted to action probabilities.

- a callable from a batch of observations (or states) to (n, A) probabilities,
- an object with `predict_proba`, as scikit-learn's classifiers have it,
- a PyTorch module: it is called with a tensor, and may return logits, probabilities or a
  distribution that has `probs`,
- an (S, A) array of the probabilities in each state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import listed
from o2td.arrays import Floats
from o2td.errors import InputError

SUM_ROUNDING = 1e-4  # tolerance of the sum of all actions' probabilities (float32 logs)


def probabilities_of(policy: Any, inputs: npt.NDArray[Any], name: str) -> Floats:
    """The (n, A) probabilities that a policy gives to the actions, checked.

    >>> probabilities_of(lambda x: np.full((len(x), 2), 0.5), np.zeros((1, 3)), "target")
    array([[0.5, 0.5]])
    >>> probabilities_of([[0.1, 0.9], [0.4, 0.6]], np.array([1, 1]), "target")
    array([[0.4, 0.6],
           [0.4, 0.6]])
    """
    module = hasattr(policy, "forward") and hasattr(policy, "parameters")
    if hasattr(policy, "predict_proba"):
        rows = inputs if inputs.ndim == 2 else inputs[:, None]
        matrix = numbers(policy.predict_proba(rows))
    elif module:
        matrix = numbers(policy(next(iter(policy.parameters())).new_tensor(inputs)))
    elif callable(policy):
        matrix = numbers(policy(inputs))
    else:
        matrix = _of_states(policy, inputs, name)
    if matrix.ndim != 2 or len(matrix) != len(inputs):
        raise InputError(
            f"{name}: the policy returned shape {matrix.shape} for {len(inputs)} rows; return (rows,"
            " actions)"
        )
    if module and np.isfinite(matrix).all() and not _chances(matrix).all():
        matrix = softmax(matrix)
    off = ~_chances(matrix)
    if off.any():
        shown = np.round(matrix[int(np.argmax(off))], 4).tolist()
        raise InputError(f"{name}: the policy returned {shown}; return probabilities that sum to 1")
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


def numbers(result: Any) -> Floats:
    """An array, a tensor or a distribution over actions as float64."""
    result = getattr(result, "probs", result)
    if hasattr(result, "detach"):
        result = result.detach().cpu().numpy()
    return np.asarray(result, dtype=np.float64)


def _of_states(table: Any, inputs: npt.NDArray[Any], name: str) -> Floats:
    table = np.asarray(table, dtype=np.float64)
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


def _chances(matrix: Floats) -> npt.NDArray[np.bool_]:
    """Which rows are probabilities of all actions."""
    whole: npt.NDArray[np.bool_] = np.abs(matrix.sum(axis=1) - 1.0) <= SUM_ROUNDING
    return whole & (matrix >= 0.0).all(axis=1)
