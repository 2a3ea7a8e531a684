"""Parameters by name, as in scikit-learn's estimators: learners, solvers and feature maps have them."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, Self

from o2td.errors import InputError

__all__ = ["Parameterized", "defaults_of"]


class Parameterized:
    """Base class of what the parameters of its constructor define, each an attribute.

    >>> class Line(Parameterized):
    ...     def __init__(self, slope=1.0, level=0.0):
    ...         self.slope, self.level = slope, level
    >>> Line().set_params(slope=2.0)
    Line(slope=2.0)
    """

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
        self._forget()
        return self

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


def _same(value: Any, default: Any) -> bool:
    """Whether a parameter has its default value, so that it need not be shown."""
    plain = isinstance(value, (bool, int, float, str, tuple, list))
    return value is default or (type(value) is type(default) and plain and value == default)
