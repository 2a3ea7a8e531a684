"""Every parameter of every public name, and of its methods, has words."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from docs._tools.words import SHARED, words

from .test_names import public

_HEAD = re.compile(r"^Parameters\n-+\n", re.M)
_ITEM = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)( : [^\n]*)?$")


def section(doc: str) -> dict[str, str]:
    """What the section "Parameters" says about each."""
    head = _HEAD.search(doc)
    if head is None:
        return {}
    lines = re.split(r"^\w+\n-{3,}$", doc[head.end() :], flags=re.M)[0].split("\n")
    said: dict[str, str] = {}
    names: list[str] = []
    for line in lines:
        if item := _ITEM.match(line):
            names = [name.strip("*") for name in item[1].split(", ")]
            said |= dict.fromkeys(names, "")
        elif line.startswith(" "):
            said |= {name: said[name] + line.strip() for name in names}
    return said


def callables(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The name itself and, of a class, its public methods, also those of o2td's classes below it."""
    value = getattr(value, "py_func", value)
    yield name, value
    own = [c for c in getattr(value, "__mro__", ()) if c.__module__.startswith("o2td.")]
    for key, member in (item for c in own for item in vars(c).items()):
        function = getattr(member, "__func__", member)
        if not key.startswith("_") and inspect.isfunction(function):
            yield f"{name}.{key}", function


def wordless(value: Any) -> list[str]:
    """Parameters with words neither in the docstring nor in the table of shared ones."""
    try:
        names = list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []
    doc = inspect.getdoc(value) or ""
    if inspect.isclass(value) and re.search(r"[Mm]ade by `", doc):
        return []  # by a function, whose parameters have words
    about = (inspect.getdoc(sys.modules[value.__module__]) or "") if inspect.isclass(value) else ""
    said = section(doc)
    part = value.__module__.split(".")[1]
    # A class is what a reader looks up: only what every learner or solver has is left to the table.
    given = "" if inspect.isclass(value) and part not in ("learners", "solvers") else part
    return [
        name
        for name in names
        if name not in ("self", "cls")
        and not said.get(name)
        and not re.search(rf"`{name}\b", doc)
        and f"| `{name}` |" not in about
        and not (given and words(given, name))
    ]


@pytest.mark.parametrize("name", sorted(public()))
def test_every_parameter_has_words(name: str) -> None:
    missing = {who: lost for who, f in callables(name, public()[name]) if (lost := wordless(f))}
    assert missing == {}


def test_shared_words_are_about_something() -> None:
    """No word is left in the table for a parameter that nothing has any more."""
    used = set()
    for name, value in public().items():
        for _, function in callables(name, value):
            try:
                used |= {
                    (function.__module__.split(".")[1], parameter)
                    for parameter in inspect.signature(function).parameters
                }
            except (TypeError, ValueError):
                continue
    names = {parameter for _, parameter in used}
    for key in SHARED:
        part, colon, name = key.rpartition(":")
        assert ((part, name) in used) if colon else (name in names), key


def test_what_has_no_words_is_noticed() -> None:
    def function(first: int, second: int, theta: float) -> None:
        """Sum.

        Parameters
        ----------
        first : int
        second : int
            The other.
        """

    function.__module__ = "o2td.exact"
    assert wordless(function) == ["first"]
