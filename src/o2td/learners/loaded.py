"""Learners in files: parameters as JSON, and what must hold before compiled code may touch the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from o2td import emphasis
from o2td.errors import InputError
from o2td.learners.cuts import Cut
from o2td.learners.step_sizes import PowerDecay, Rule

if TYPE_CHECKING:
    from o2td.learners.base import Learner


def check_loaded(learner: Learner) -> None:
    """Refuse (ValueError) parts that this learner would not have made itself.

    Kernels trust shapes and indices, so a forged file could otherwise have them write anywhere.
    """
    fresh, d = learner.clone(), 0
    if learner._arrays:
        if "bound" not in learner._arrays:  # of older files: the trace itself served as it
            largest = np.abs(learner._arrays.get("z", np.zeros(1))).max()
            learner._arrays["bound"] = np.full((1, 1), largest)
        d = learner._arrays["theta"].shape[1]
        fresh._allocate(d)
        if learner._arrays["active"].shape[1]:
            fresh._allocate_sparse()
    _compare(_parts(learner), {name: (a.shape, a.dtype) for name, a in _parts(fresh).items()})
    shapes = learner._shapes(d)
    if shapes is not None:
        number = np.dtype(np.float64)
        expected = {name: (shapes.get(name), number) for name in learner._memory}
        _compare(learner._memory, expected)
    for name, array in learner._arrays.items():
        if not np.issubdtype(array.dtype, np.integer):
            if not np.isfinite(array).all():
                raise ValueError(f"{name} is not finite")
        elif array.size and (array.min() < 0 or array.max() > d - (name != "size")):
            raise ValueError(f"{name} is out of range")
    for k, (name, trace) in enumerate(learner._lists()):
        if trace and learner._arrays[name].size:
            listed = np.zeros(d, dtype=np.bool_)
            count = learner._arrays["size"][0, k]
            listed[learner._arrays[name][0, :count]] = True
            # A list that names an index twice grows beyond its end.
            if listed.sum() != count or learner._arrays[trace][0, ~listed].any():
                raise ValueError(f"{name} does not list where {trace} is not zero")


def _parts(learner: Learner) -> dict[str, npt.NDArray[Any]]:
    return {"carried": learner._carried, "diverged": learner._diverged, **learner._arrays}


def _compare(held: dict[str, npt.NDArray[Any]], expected: dict[str, Any]) -> None:
    if held.keys() != expected.keys():
        raise ValueError(f"it holds {', '.join(sorted(held)) or 'nothing'}")
    for name, array in held.items():
        if (array.shape, array.dtype) != expected[name]:
            raise ValueError(f"{name} has the wrong shape or type")


def to_json(value: Any) -> Any:
    """A parameter as a JSON value."""
    if isinstance(value, PowerDecay):
        return {"power_decay": [value.c, value.p]}
    if isinstance(value, emphasis.Emphasis):
        return {"emphasis": type(value).__name__, "with": dict(value.__dict__)}
    for name, base in (("cut", Cut), ("rule", Rule)):
        if isinstance(value, base):
            return {name: type(value).__name__, "with": dict(value.__dict__)}
    if callable(value):
        raise InputError("a function of states cannot be saved: give trace as one number a state")
    return value.item() if isinstance(value, np.generic) else value


def from_json(value: Any) -> Any:
    """The parameter that `to_json` wrote."""
    if isinstance(value, dict) and "power_decay" in value:
        return PowerDecay(*value["power_decay"])
    for name, base in (("emphasis", emphasis.Emphasis), ("cut", Cut), ("rule", Rule)):
        if isinstance(value, dict) and name in value:
            known = {kind.__name__: kind for kind in base.__subclasses__()}
            return known[value[name]](**value["with"])
    return value
