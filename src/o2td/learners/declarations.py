"""What a class of learners declares is checked when it is defined: a slip there ends in odd numbers.

Compiled code takes vectors and traces by their order and their addresses, so a name that stands
twice, or one of the arrays that every learner keeps, would be read as something else.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

from o2td.errors import InputError
from o2td.kernels.kept import CARRIED
from o2td.transitions import Transitions

__all__ = ["check_needs", "check_scalars", "check_step", "check_vectors", "reads_lambda"]

_LISTS = ("active", *(f"active_{letter}" for letter in "bcdefgh"))
_KEPT = ("bound", "size", "mean", "scalars", *_LISTS)  # arrays that every learner may keep
_FIELDS = frozenset(inspect.signature(Transitions.__init__).parameters) - {"self"}


def distinct(what: str, names: Any, taken: Collection[str] = ()) -> None:
    """Refuse anything but a tuple of different names, none of which is `taken`.

    >>> distinct("vectors of Mine", ("theta", "mean"), taken=("mean",))
    Traceback (most recent call last):
    o2td.errors.InputError: vectors of Mine: every learner has 'mean' already; choose ...
    """
    if not isinstance(names, tuple) or not all(isinstance(one, str) for one in names):
        raise InputError(f"{what}: give a tuple of names, such as ('theta',), not {names!r}")
    for k, one in enumerate(names):
        if not one.isidentifier():
            raise InputError(f"{what}: {one!r} is no name")
        if one in names[:k]:
            raise InputError(f"{what}: {one!r} stands there twice")
        if one in taken:
            raise InputError(f"{what}: every learner has {one!r} already; choose another name")


def check_vectors(name: str, vectors: Any, traces: Any = ()) -> None:
    """Refuse vectors and traces that cannot be what their class means."""
    distinct(f"traces of {name}", traces)
    if isinstance(vectors, property):  # they depend on the learner's parameters
        return
    distinct(f"vectors of {name}", vectors, _KEPT)
    if vectors[:1] != ("theta",):
        raise InputError(f"vectors of {name}: the first must be 'theta', got {vectors!r}")
    for one in set(traces) - set(vectors):
        raise InputError(f"traces of {name}: {one!r} is not among its vectors {vectors!r}")
    if len(traces) > len(_LISTS):
        raise InputError(f"traces of {name}: at most {len(_LISTS)}, got {len(traces)}")


def check_needs(name: str, needs: Any) -> None:
    """Refuse names of fields that rows do not have."""
    distinct(f"needs of {name}", needs)
    for one in set(needs) - _FIELDS:
        known = ", ".join(sorted(_FIELDS))
        raise InputError(f"needs of {name}: rows have no field {one!r}; they have {known}")


def check_step(name: str, step: Any, vectors: tuple[str, ...]) -> None:
    """Refuse a step that does not take the row, parameters, scalars, and these vectors.

    >>> check_step("Mine", lambda row, p, s, theta: None, ("theta",))
    >>> check_step("Mine", lambda row, p, theta: None, ("theta",))
    Traceback (most recent call last):
    o2td.errors.InputError: step of Mine: it must take 4 arguments, ...; it takes 3
    """
    plain = getattr(step, "py_func", step)
    if not callable(plain):
        raise InputError(f"step of {name}: it must be a function, got {type(step).__name__}")
    wanted = ("row", "p", "s", *vectors)
    try:
        given = inspect.signature(plain)
        given.bind(*wanted)
    except TypeError:
        raise InputError(
            f"step of {name}: it must take {len(wanted)} arguments, {', '.join(wanted)}; it takes"
            f" {len(given.parameters)}"
        ) from None


def check_scalars(name: str, scalars: Any) -> None:
    """Refuse scalars that are no tuple of different names, or that the driver carries itself."""
    distinct(f"scalars of {name}", scalars, CARRIED)


def reads_lambda(step: Any) -> bool:
    """Whether a step names `p.trace`, so that lambda must be one number."""
    code = getattr(getattr(step, "py_func", step), "__code__", None)
    return code is not None and "trace" in code.co_names
