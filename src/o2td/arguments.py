"""The door for arguments that are a single value: each kind is checked here, and nowhere else.

A function returns the value in the form that the rest of the code expects, or raises an
:class:`~o2td.errors.InputError` that names the argument, what was given and what is expected.
Arrays come in through `o2td.arrays`, seeds through `o2td.sampling`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from o2td.errors import InputError, O2TDError

__all__ = [
    "all_of",
    "answer_of",
    "as_float",
    "brief",
    "choice",
    "file_path",
    "function",
    "instance",
    "is_real",
    "is_whole",
    "listed",
    "number",
    "real",
    "shown",
    "some_path",
    "switch",
    "text",
    "unit",
    "whole",
]

Kind = TypeVar("Kind")

MAX_SHOWN = 60  # characters of a value in a message
MAX_SAID = 160  # characters of another error in a message
MAX_LISTED = 1_000_000
MAX_NAME = 255 - 32  # bytes of a file's name, and room for that of a temporary one
_INFINITY = float("inf")
_LARGEST = 1.7976931348623157e308


def shown(value: object) -> str:
    """`value` as a message shows it: one short line, whatever it is.

    >>> shown([1] * 100)
    '[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,...'
    """
    try:
        line = " ".join(repr(value).split())
    except Exception:  # a repr of the caller's own
        line = f"<{type(value).__name__}>"
    return line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 3] + "..."


def brief(error: BaseException) -> str:
    """What an error says, in one short line."""
    line = " ".join(str(error).split())
    return line if len(line) <= MAX_SAID else line[: MAX_SAID - 1] + "…"


def switch(name: str, value: object) -> bool:
    """`value`, which must be True or False.

    >>> switch("double", True)
    True
    """
    # NumPy's booleans are not `bool`; they are recognised by name, so that NumPy is not imported.
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise InputError(f"{name} must be True or False, got {shown(value)}")


def text(name: str, value: object) -> str:
    """`value`, which must be a text.

    >>> text("name", "walk")
    'walk'
    """
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text, got {shown(value)}")
    return value


def choice(name: str, value: object, known: Sequence[str]) -> str:
    """`value`, which must be one of the words `known`.

    >>> choice("form", "star", ("star", "survey"))
    'star'
    """
    if not isinstance(value, str) or value not in known:
        words = ", ".join(map(repr, known))
        raise InputError(f"{name} must be one of {words}; got {shown(value)}")
    return value


def whole(
    name: str, value: object, least: int | None = 0, most: int | None = None, remedy: str = ""
) -> int:
    """`value` as an int of at least `least`, and at most `most`.

    >>> whole("states", 3, 2)
    3
    """
    if is_whole(value):
        found = int(value)
        if (least is None or found >= least) and (most is None or found <= most):
            return found
    wanted = f" of at least {least}" if most is None else f" from {least} to {most}"
    hint = f"; {remedy}" if remedy else ""
    raise InputError(
        f"{name} must be a whole number{wanted * (least is not None)}, got {shown(value)}{hint}"
    )


def number(
    name: str,
    value: object,
    low: float = -_INFINITY,
    high: float = _INFINITY,
    *,
    above: float | None = None,
) -> float:
    """`value` as a finite number from `low` to `high`, or larger than `above`.

    >>> number("ridge", 1, low=0.0)
    1.0
    """
    found = as_float(value)
    inside = max(low, -_LARGEST) <= found <= min(high, _LARGEST)
    if inside and (above is None or found > above):
        return found
    bounds = ""
    if above is not None:
        bounds = f" above {above:g}"
    elif low > -_INFINITY:
        bounds = f" of at least {low:g}" if high == _INFINITY else f" in [{low:g}, {high:g}]"
    raise InputError(f"{name} must be a finite number{bounds}, got {shown(value)}")


def unit(name: str, value: object) -> float:
    """`value` as a number in [0, 1].

    >>> unit("trace", 0.5)
    0.5
    """
    found = as_float(value)
    if 0.0 <= found <= 1.0:
        return found
    raise InputError(f"{name} must be a number in [0, 1], got {shown(value)}")


def real(name: str, value: object) -> float:
    """`value` as a number that may be infinite, or too large for a float.

    >>> real("sell_above", 10**400)
    inf
    """
    found = as_float(value)
    if found != found:
        raise InputError(f"{name} must be a number, got {shown(value)}")
    return found


def as_float(value: object) -> float:
    """A real number as a float, infinite beyond the range of floats; NaN for anything else.

    Compare the answer, not what was given: NumPy warns where a small type meets a large bound.

    >>> as_float(1), as_float(10**400), as_float("1")
    (1.0, inf, nan)
    """
    if not is_real(value):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return _INFINITY if value > 0 else -_INFINITY


def instance(name: str, value: object, kind: type[Kind], wanted: str) -> Kind:
    """`value`, which must be of `kind`; `wanted` says in words what to pass.

    >>> instance("count", 3, int, "an integer")
    3
    """
    if not isinstance(value, kind):
        raise InputError(f"{name} must be {wanted}, got {shown(value)}")
    return value


def listed(name: str, value: object, wanted: str) -> list[Any]:
    """What `value` lists; a text, or what cannot be gone through, is no list.

    >>> listed("traces", (0.0, 0.9), "numbers")
    [0.0, 0.9]
    """
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        try:
            found = list(islice(value, MAX_LISTED + 1))
        except TypeError:  # an array without dimensions
            wanted = f"{wanted} in one dimension"
        else:
            if len(found) <= MAX_LISTED:
                return found
            wanted = f"at most {MAX_LISTED:,} {wanted}"
    raise InputError(f"{name} must be a list of {wanted}, got {shown(value)}")


def all_of(name: str, value: object, kind: type[Kind], wanted: str, least: int = 0) -> list[Kind]:
    """The items of `value`, at least this many, each of `kind`; `wanted` says what to pass.

    >>> all_of("counts", (1, 2), int, "integers")
    [1, 2]
    """
    found = listed(name, value, wanted)
    if len(found) < least:
        raise InputError(f"{name} must list at least {least} of {wanted}, got {shown(value)}")
    for one in found:
        if not isinstance(one, kind):
            raise InputError(f"{name} must be a list of {wanted}, but it has {shown(one)}")
    return found


def function(
    name: str, value: object, wanted: str = "a function", takes: int = 1
) -> Callable[..., Any]:
    """`value`, which must be something to call with `takes` arguments.

    >>> function("progress", print) is print
    True
    """
    if not callable(value) or value is object or not _takes(value, takes):
        raise InputError(f"{name} must be {wanted}, got {shown(value)}")
    return value


def answer_of(
    name: str, given: Callable[..., Any], *arguments: Any, on: Callable[[], str] | None = None
) -> Any:
    """`given(*arguments)`, of a function of the caller's: an error of its own is named as that.

    `on` says what it was called with, where the arguments do not.

    >>> answer_of("reset", len, 3)
    Traceback (most recent call last):
    o2td.errors.InputError: reset: it raised TypeError for 3 (...); fix it
    """
    try:
        return given(*arguments)
    except O2TDError:
        raise
    except Exception as error:
        what = ", ".join(map(shown, arguments)) if on is None else on()
        raise InputError(
            f"{name}: it raised {type(error).__name__} for {what} ({brief(error)}); fix it"
        ) from error


def _takes(value: Callable[..., Any], count: int) -> bool:
    from inspect import signature

    try:
        known = signature(value)
    except (TypeError, ValueError):  # something built in
        return True
    try:
        known.bind(*range(count))
    except TypeError:
        return False
    return True


def some_path(name: str, value: object) -> Path:
    """`value` as the path of a file or folder.

    >>> some_path("out", "results").name
    'results'
    """
    if isinstance(value, (str, os.PathLike)) and value != "":
        given = os.fspath(value)
        if isinstance(given, str) and "\0" not in given and _encodable(given):
            found = Path(given)
            if max(map(len, map(os.fsencode, found.parts)), default=0) > MAX_NAME:
                raise InputError(
                    f"{name} holds a name of more than {MAX_NAME} bytes: {shown(given)}"
                )
            return found
    raise InputError(f"{name} must be the path of a file or folder, got {shown(value)}")


def _encodable(given: str) -> bool:
    try:
        os.fsencode(given)
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False
    return True


def file_path(value: object) -> Path:
    """`value` as the path of a file: one that ends in a name.

    >>> file_path("models/td.npz").name
    'td.npz'
    """
    found = some_path("path", value)
    if not found.name or found.name == "..":
        raise InputError(f"path must end in the name of a file, got {shown(value)}")
    return found


def is_whole(value: object) -> TypeGuard[int]:
    """Whether `value` is a whole number.

    >>> is_whole(2), is_whole(2.0), is_whole(True)
    (True, False, False)
    """
    return type(value) is int or (isinstance(value, Integral) and not _no_number(value))


def is_real(value: object) -> TypeGuard[float]:
    """Whether `value` is a real number.

    >>> is_real(2), is_real(2.5), is_real(True)
    (True, True, False)
    """
    plain = type(value) is float  # most are, and asking an abstract class takes longer
    return plain or (isinstance(value, Real) and not _no_number(value))


def _no_number(value: object) -> bool:
    """True and False are whole numbers to Python, and durations are to NumPy."""
    return isinstance(value, bool) or type(value).__name__ == "timedelta64"
