"""Every public name has a docstring with an example, and what builds the site keeps its own."""

from __future__ import annotations

import doctest
import inspect
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

import o2td

from .blocks import ROOT, blocks

sys.path.insert(0, str(ROOT / "docs"))

MODULES = [m for m in o2td._MODULES.values() if (s := find_spec(m)) is not None and s.origin]


def public() -> dict[str, Any]:
    """Classes and functions of `o2td` and of its public modules, by full name."""
    found = {f"o2td.{name}": getattr(o2td, name) for name in o2td._HOMES}
    for module in MODULES:
        held = import_module(module)
        found |= {f"{module}.{name}": getattr(held, name) for name in held.__all__}
    return {
        name: value
        for name, value in found.items()
        if inspect.isclass(value) or inspect.isroutine(value) or hasattr(value, "py_func")
    }


def _pages() -> str:
    """The code of the reference pages' hand-written parts, which `test_blocks` runs."""
    parts = sorted((ROOT / "docs" / "reference").glob("*.md"))
    return "\n".join(block.text for part in parts for block in blocks(part))


@pytest.mark.parametrize("name", sorted(public()))
def test_has_an_example(name: str) -> None:
    """In its docstring, in one of its methods', or on its reference page."""
    value = getattr(public()[name], "py_func", public()[name])
    assert inspect.getdoc(value), f"{name} has no docstring"
    members = vars(value).values() if inspect.isclass(value) else ()
    words = [inspect.getdoc(value), *(getattr(member, "__doc__", None) for member in members)]
    shown = any(">>>" in (text or "") for text in words)
    short = name.rpartition(".")[2]
    assert shown or re.search(rf"\b{short}\b", _pages()), f"{name} has no example"


@pytest.mark.parametrize("name", ["values", "mathml", "doctests", "pictures"])
def test_the_tools_keep_their_examples(name: str) -> None:
    done = doctest.testmod(import_module(f"_tools.{name}"), optionflags=doctest.ELLIPSIS)
    assert done.attempted > 0
    assert done.failed == 0
