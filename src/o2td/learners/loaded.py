"""Saved learners: parameters as JSON, and the checks needed before compiled code reads the rest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from o2td import archive, emphasis
from o2td.cuts import Cut
from o2td.errors import FormatError, InputError
from o2td.learners.step_sizes import PowerDecay, Rule
from o2td.registry import LEARNERS

if TYPE_CHECKING:
    from o2td.learners.base import Learner

AnyLearner = TypeVar("AnyLearner", bound="Learner")


def write(learner: Learner, path: str | os.PathLike[str]) -> None:
    """Write parameters and state to an `.npz`."""
    with learner._reading():
        given = {k: to_json(v) for k, v in learner.get_params().items() if k != "initial_theta"}
        header = {"algorithm": type(learner).__name__, "parameters": given}
        arrays = {f"arrays.{k}": v.copy() for k, v in learner._arrays.items()}
        arrays |= {f"memory.{k}": np.array(v) for k, v in learner._memory.items()} | {
            "diverged": learner._diverged.copy(),
            "carried": learner._carried.copy(),
        }
    if learner.initial_theta is not None:
        arrays["initial_theta"] = np.asarray(learner.initial_theta, dtype=np.float64)
    archive.save(path, "learner", header, arrays)


def read(cls: type[AnyLearner], path: str | os.PathLike[str]) -> AnyLearner:
    """Read the learner that `write` wrote; it must be a `cls`."""
    header, arrays = archive.load(path, "learner")
    try:
        name = str(header["algorithm"])
        # A class need not be registered to load what it saved itself.
        kind: Any = cls if name == cls.__name__ else LEARNERS[name]
        given = {k: from_json(v) for k, v in header["parameters"].items()}
        theta = arrays.pop("initial_theta", None)
        if theta is not None and theta.ndim == 0:
            theta = theta.item()
        learner = kind(**given, initial_theta=theta)
        learner._diverged, learner._carried = arrays.pop("diverged"), arrays.pop("carried")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"{os.fspath(path)}: not the state of a learner ({error})") from None
    if not isinstance(learner, cls):
        raise FormatError(f"{os.fspath(path)} holds a {kind.__name__}, not a {cls.__name__}")
    for name, array in arrays.items():
        home, _, field = name.partition(".")
        (learner._arrays if home == "arrays" else learner._memory)[field] = array
    try:
        check_loaded(learner)
    except (KeyError, IndexError, TypeError, ValueError, MemoryError) as error:
        raise FormatError(f"{os.fspath(path)}: not the state of a learner ({error})") from None
    return learner


def check_loaded(learner: Learner) -> None:
    """Reject (ValueError) state that this learner could not have produced.

    Kernels trust shapes and indices, so a forged file could otherwise make them write anywhere.
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
    for k, (name, trace) in enumerate(learner._lists() if learner._arrays else ()):
        if trace and learner._arrays[name].size:
            for lane, count in enumerate(learner._arrays["size"][:, k]):
                listed = np.zeros(d, dtype=np.bool_)
                listed[learner._arrays[name][lane, :count]] = True
                # A list that names an index twice grows beyond its end.
                if listed.sum() != count or learner._arrays[trace][lane, ~listed].any():
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
        raise InputError("a function of states cannot be saved: give trace as one number per state")
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
