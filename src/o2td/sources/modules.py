"""PyTorch modules, called as policies and value models are called when nobody trains them.

A module gets a tensor on its own device: states as whole numbers, which an embedding looks up, and
observations in the dtype of its weights. Dropout and batch statistics are switched off during the
call and no gradients are kept; afterwards every layer is in the mode that it was in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.errors import InputError

__all__ = ["ask_module", "is_module", "precision_of"]


def is_module(model: Any) -> bool:
    """Whether this is a PyTorch module, which is callable but wants tensors."""
    return all(hasattr(model, name) for name in ("forward", "parameters", "modules"))


def ask_module(module: Any, inputs: npt.NDArray[Any], name: str) -> Any:
    """The module's answer for a batch of states (n,) or observations (n, k): a tensor."""
    import torch

    weights = list(chain(module.parameters(), module.buffers()))
    kinds = [one.dtype for one in weights if one.is_floating_point()]
    kind = kinds[0] if kinds else torch.get_default_dtype()
    if inputs.ndim == 1 and np.issubdtype(inputs.dtype, np.integer):
        kind = torch.long
    device = weights[0].device if weights else None
    with _at_rest(module), torch.no_grad():
        answer = module(torch.tensor(inputs, dtype=kind, device=device))
    answer = getattr(answer, "probs", answer)
    if not isinstance(answer, torch.Tensor):
        raise InputError(
            f"{name}: the module returned a {type(answer).__name__}; wrap it in a function that"
            " returns one tensor, a row for each row of the batch"
        )
    return answer


def precision_of(answer: Any) -> float:
    """The spacing of numbers next to 1 in a tensor's dtype."""
    import torch

    return float(torch.finfo(answer.dtype).eps) if answer.is_floating_point() else 0.0


@contextmanager
def _at_rest(module: Any) -> Iterator[None]:
    """Evaluation mode, and each layer's own mode afterwards."""
    modes = [(layer, layer.training) for layer in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for layer, training in modes:
            layer.training = training
