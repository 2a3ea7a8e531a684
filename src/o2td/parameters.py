"""Parameters by name, as in scikit-learn's estimators: learners, solvers and feature maps have them."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from functools import cache
from typing import Any, Self

from o2td.errors import InputError, ParameterError

__all__ = [
    "Parameter",
    "Parameterized",
    "Valued",
    "defaults_of",
    "refuse_unknown",
    "whole_signature",
]


class Parameter:
    """An ordinary attribute, except that what it was before is noted when another value is assigned.

    The next use checks the new value as the constructor would. It has no `__get__`, so reading it
    is as fast as reading a plain attribute.
    """

    def __init__(self, name: str, stale: str) -> None:
        self._name = name
        self._stale = stale  # an attribute that was made of the parameters and must be made anew

    def __set__(self, owner: Any, value: Any) -> None:
        own = owner.__dict__
        if self._name in own:
            before = own.get("_assigned")
            if before is None:
                before = own["_assigned"] = {}
            before.setdefault(self._name, own[self._name])
            own[self._stale] = None
        own[self._name] = value


class Valued:
    """Base class of small objects that are what their attributes are: equal where those are equal."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *sorted(self.__dict__.items())))

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items())
        return f"{type(self).__name__}({inside})"


class Parameterized:
    """Base class of what the parameters of its constructor define, each an attribute.

    >>> class Line(Parameterized):
    ...     def __init__(self, slope=1.0, level=0.0):
    ...         self.slope, self.level = slope, level
    >>> Line().set_params(slope=2.0)
    Line(slope=2.0)
    """

    _assigned: dict[str, Any] | None = None
    """Parameters assigned since they were last checked, with the values before."""

    @classmethod
    def parameters(cls) -> list[str]:
        """Names of the constructor's parameters."""
        return list(defaults_of(cls))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as given to the constructor."""
        return {name: getattr(self, name) for name in self.parameters()}

    def set_params(self, **parameters: Any) -> Self:
        """Change `parameters` and forget what was learned."""
        given = self.get_params()
        for name in parameters:
            if name not in given:
                known = ", ".join(given) or "none"
                raise InputError(f"{type(self).__name__} has no parameter {name!r}; it has {known}")
        changed = {**given, **parameters}
        type(self)(**changed)  # refuses what is wrong before anything changes
        type(self).__init__(self, **changed)
        self._assigned = None
        self._forget()
        return self

    def _as_assigned(self) -> Self:
        """A new one with the parameters as they are now, which the constructor checks."""
        made = type(self)(**self.get_params())
        for name in self._assigned or ():
            if name not in defaults_of(type(self)) and differ(
                vars(self)[name], vars(made).get(name)
            ):
                raise InputError(f"{type(self).__name__} sets {name} itself: it cannot be assigned")
        return made

    def _adopt(self, made: Self, state: Collection[str]) -> None:
        """Take over the parameters of `made` and what it derived from them: all but `state`."""
        own = self.__dict__
        own.update((name, value) for name, value in vars(made).items() if name not in state)
        own["_assigned"] = None

    def _forget(self) -> None:
        """Forget what was learned, if the constructor does not."""

    def clone(self, **parameters: Any) -> Self:
        """A new one that has learned nothing; `parameters` replace those of this one."""
        given = {
            name: value
            for name, default in defaults_of(type(self)).items()
            if (value := getattr(self, name)) is not default  # the constructor knows the others
        }
        return type(self)(**given | parameters)

    def __repr__(self) -> str:
        defaults, given = defaults_of(type(self)), self.get_params().items()
        shown = (f"{name}={value!r}" for name, value in given if not _same(value, defaults[name]))
        return f"{type(self).__name__}({', '.join(shown)})"


def defaults_of(kind: Any) -> dict[str, Any]:
    """Parameters and their defaults, cached because a sweep clones many learners.

    >>> defaults_of(lambda slope=1.0: slope)
    {'slope': 1.0}
    """
    return _defaults_of(kind)


@cache
def _defaults_of(kind: Any) -> dict[str, Any]:
    parameters = inspect.signature(kind).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters}


def whole_signature(kind: Any) -> inspect.Signature:
    """The full signature of a class whose constructor passes `**axes` on to its base."""
    if kind.__init__ is object.__init__:
        return inspect.Signature()
    left_out = {*getattr(kind, "fixed", ()), *getattr(kind, "undefined", ())}
    given = list(inspect.signature(kind.__init__).parameters.values())[1:]
    own = [parameter for parameter in given if parameter.name not in left_out]
    if not own or own[-1].kind is not inspect.Parameter.VAR_KEYWORD:
        return inspect.Signature(own)
    base = next(
        x for x in kind.__mro__ if "__init__" in vars(x) and x.__init__ is not kind.__init__
    )
    if base is object:
        return inspect.Signature(own)
    names = {parameter.name for parameter in own} | left_out
    more = [x for x in inspect.signature(base).parameters.values() if x.name not in names]
    keywords = [x.replace(kind=inspect.Parameter.KEYWORD_ONLY) for x in more]
    return inspect.Signature([*own[:-1], *keywords])


def refuse_unknown(kind: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Refuse parameters that a class does not have, and too many by position, under its name."""
    known, name = list(defaults_of(kind)), kind.__name__
    for one in (n for n in named if n not in known and n not in getattr(kind, "undefined", ())):
        if one in getattr(kind, "fixed", ()):
            raise ParameterError(f"{name} sets {one} itself: leave it out")
        raise ParameterError(
            f"{name} has no parameter {one!r}; it has {', '.join(known) or 'none'}"
        )
    most = [x for x in inspect.signature(kind).parameters.values() if x.kind is not x.KEYWORD_ONLY]
    if len(given) > len(most):
        by_position = " and ".join(x.name for x in most) or "no parameter"
        by_name = ", ".join(known[len(most) :])
        raise ParameterError(
            f"{name} takes {by_position} as positional argument{'s' * (len(most) > 1)}, and"
            f" {len(given)} were given" + (f": give {by_name} by name" if by_name else "")
        )


def differ(value: Any, other: Any) -> bool:
    """Whether two values of a parameter differ; what cannot be compared does."""
    if value is other:
        return False
    try:
        return not bool(value == other)
    except Exception:  # arrays, and types of the caller's own
        return True


def _same(value: Any, default: Any) -> bool:
    """Whether a parameter has its default value, so that it need not be shown."""
    plain = isinstance(value, (bool, int, float, str, tuple, list))
    return value is default or (type(value) is type(default) and plain and value == default)
