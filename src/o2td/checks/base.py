"""What a check is: a promise in one sentence, and code that tries to break it.

A check fails with `CheckError`, whose message is the promise and what was found instead. A check that
makes no sense for a subject raises `DoesNotApply` with the property of the subject that says so;
pytest and unittest report it as skipped.
"""

from __future__ import annotations

import hashlib
import pickle
import unittest
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import choice
from o2td.errors import InputError

Function = Callable[[Any], None]
KINDS = ("learners", "solvers", "domains", "sources")


class CheckError(AssertionError):
    """A promise that a subject does not keep."""


class DoesNotApply(unittest.SkipTest):
    """A check that makes no sense for this subject, and why."""


@dataclass(frozen=True)
class Check:
    """One promise that every member of a kind keeps.

    Parameters
    ----------
    kind : str
        "learners", "solvers", "domains" or "sources".
    name : str
        Of the function.
    promise : str
        The sentence that completes "expected that ...".
    function : callable
        Takes a subject, raises if the promise is broken.
    """

    kind: str
    name: str
    promise: str
    function: Function


@dataclass(frozen=True)
class BoundCheck:
    """A check of one subject: call it to run it.

    Raises `CheckError` if the promise is broken and `DoesNotApply` if it makes no sense.

    Parameters
    ----------
    check : Check
        What is checked.
    subject
        A learner, solver, problem or source.
    label : str
        Its name and settings.
    """

    check: Check
    subject: Any
    label: str

    @property
    def name(self) -> str:
        """The check's name."""
        return self.check.name

    @property
    def promise(self) -> str:
        """What is expected, in one sentence."""
        return self.check.promise

    def __call__(self) -> None:
        """Run the check."""
        try:
            with warnings.catch_warnings():
                # A setting that warns of itself (a UserWarning) is still held to its promises.
                warnings.simplefilter("ignore", UserWarning)
                self.check.function(self.subject)
        except DoesNotApply:
            raise
        except CheckError as found:
            raise CheckError(self._message(str(found))) from None
        except Exception as error:
            found_instead = f"{type(error).__name__}: {error}"
            raise CheckError(self._message(found_instead)) from error

    def _message(self, found: str) -> str:
        return f"{self.label}, {self.name}: expected that {self.promise}; found {found}"

    def __str__(self) -> str:
        return f"{self.label}-{self.name}"


@dataclass(frozen=True)
class Report:
    """Results of all checks: names of those that passed, and why others did not apply.

    Parameters
    ----------
    label : str
        Name and settings of what was checked.
    passed : tuple of str
        Names of the checks that passed.
    not_applicable : dict
        The others by name, with the reason.
    """

    label: str
    passed: tuple[str, ...]
    not_applicable: dict[str, str]

    def __str__(self) -> str:
        return f"{self.label}: {len(self.passed)} passed, {len(self.not_applicable)} not applicable"


_CHECKS: dict[str, list[Check]] = {kind: [] for kind in KINDS}


def promise(kind: str, sentence: str) -> Callable[[Function], Function]:
    """Register a function as the check of `sentence`, which completes "expected that ..."."""

    def register(function: Function) -> Function:
        _CHECKS[kind].append(Check(kind, function.__name__, sentence, function))
        return function

    return register


def checks_of(kind: str) -> list[Check]:
    """All checks of a `kind`, in the order of definition."""
    return list(_CHECKS[choice("kind", kind, KINDS)])


def bound(kind: str, subject: Any, label: str) -> Iterator[BoundCheck]:
    """All checks of a kind bound to one subject."""
    return (BoundCheck(check, subject, label) for check in checks_of(kind))


def run(kind: str, subject: Any, label: str) -> Report:
    """Run all checks of a kind on one subject; the first broken promise is raised."""
    passed: list[str] = []
    skipped: dict[str, str] = {}
    for check in bound(kind, subject, label):
        try:
            check()
            passed.append(check.name)
        except DoesNotApply as reason:
            skipped[check.name] = str(reason)
    return Report(label, tuple(passed), skipped)


def expect(condition: Any, found: str) -> None:
    """Fail with what was found unless the condition holds."""
    if not condition:
        raise CheckError(found)


def expect_equal(one: Any, two: Any, what: str) -> None:
    """Bitwise equality of two arrays."""
    one, two = np.asarray(one), np.asarray(two)
    same = one.shape == two.shape and one.tobytes() == two.tobytes()
    expect(same, f"{what} differ, by {_largest(one, two):.3g}")


def expect_close(one: Any, two: Any, what: str, tolerance: float = 1e-12) -> None:
    """Equality to `tolerance` of the largest entry; anything that is not finite fails."""
    one, two = np.asarray(one, dtype=np.float64), np.asarray(two, dtype=np.float64)
    expect(one.shape == two.shape, f"{what} of shapes {one.shape} and {two.shape}")
    scale = max(np.abs(one).max(initial=0.0), np.abs(two).max(initial=0.0))
    difference = _largest(one, two)
    expect(
        difference <= tolerance * scale, f"{what} that differ by {difference:.3g} of {scale:.3g}"
    )


def expect_refusal(call: Callable[[], Any], what: str, *named: str) -> None:
    """`call` raises InputError whose sentence names one of `named` (if any)."""
    try:
        call()
    except InputError as error:
        told = not named or any(name in str(error) for name in named)
        expect(told, f"{what} refused without naming {' or '.join(named)}: {error}")
    else:
        raise CheckError(f"{what} accepted")


def _largest(one: npt.NDArray[Any], two: npt.NDArray[Any]) -> float:
    if one.shape != two.shape:
        return np.inf
    difference = np.abs(one.astype(np.float64) - two).max(initial=0.0)
    return float(difference) if np.isfinite(difference) else np.inf


def repickled(subject: Any) -> Any:
    """The object as another process would receive it; its bytes never leave this one."""
    return pickle.loads(pickle.dumps(subject))  # noqa: S301


def fingerprint(subject: Any) -> str:
    """A digest of an object's state; what it leaves out of pickles does not count.

    >>> fingerprint([1, 2.0]) == fingerprint([1, 2.0]) != fingerprint([1, 2])
    True
    """
    digest = hashlib.sha256()
    _feed(digest, subject, set())
    return digest.hexdigest()


def _feed(digest: Any, value: Any, seen: set[int]) -> None:
    digest.update(type(value).__name__.encode())
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode() + value.tobytes())
    elif isinstance(value, dict):
        for key in sorted(value, key=repr):
            digest.update(repr(key).encode())
            _feed(digest, value[key], seen)
    elif isinstance(value, (list, tuple)):
        for entry in value:
            _feed(digest, entry, seen)
    elif isinstance(value, (str, bytes, int, float, bool, type(None), np.generic)):
        digest.update(repr(value).encode())
    elif id(value) not in seen and not callable(value):
        seen.add(id(value))
        try:
            state = value.__getstate__()
        except (TypeError, AttributeError, NotImplementedError) as error:
            raise InputError(f"subject: {type(value).__name__} has no state: {error}") from None
        _feed(digest, list(state) if isinstance(state, tuple) else state, seen)
