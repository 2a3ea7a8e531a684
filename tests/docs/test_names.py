"""Every public name has a docstring with an example, and what builds the site keeps its own."""

from __future__ import annotations

import ast
import doctest
import functools
import inspect
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

import o2td

from .blocks import ROOT, blocks

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


@functools.cache
def _used() -> frozenset[str]:
    """Names in the code of the reference pages' hand-written parts, which `test_blocks` runs.

    Not those in strings and comments, nor in what is printed.
    """
    found: set[str] = set()
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        for block in blocks(page):
            code = {"python": [block.text], "pycon": _inputs(block.text)}.get(block.language, [])
            for node in (node for text in code for node in ast.walk(ast.parse(text))):
                if isinstance(node, ast.Attribute):
                    found.add(node.attr)
                elif isinstance(node, ast.Name):
                    found.add(node.id)
    return frozenset(found)


def _inputs(text: str) -> list[str]:
    return [example.source for example in doctest.DocTestParser().get_examples(text)]


@pytest.mark.parametrize("name", sorted(public()))
def test_has_an_example(name: str) -> None:
    """In its docstring, in one of its methods', or on its reference page."""
    value = getattr(public()[name], "py_func", public()[name])
    assert inspect.getdoc(value), f"{name} has no docstring"
    members = vars(value).values() if inspect.isclass(value) else ()
    texts = [inspect.getdoc(value), *(getattr(member, "__doc__", None) for member in members)]
    shown = any(_inputs(text or "") for text in texts)
    assert shown or name.rpartition(".")[2] in _used(), f"{name} has no example"


def test_examples_fit_on_the_page() -> None:
    """88 letters are what a laptop shows of a docstring's example without scrolling."""
    wide = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                for example in doctest.DocTestParser().get_examples(ast.get_docstring(node) or ""):
                    typed = [f">>> {line}" for line in example.source.split("\n")]
                    lines = [*typed, *example.want.split("\n")]
                    wide += [f"{path.name}: {line}" for line in lines if len(line) > 88]
    assert wide == []


@pytest.mark.parametrize("name", ["values", "mathml", "doctests", "words", "pictures"])
def test_the_tools_keep_their_examples(name: str) -> None:
    done = doctest.testmod(import_module(f"docs._tools.{name}"), optionflags=doctest.ELLIPSIS)
    assert done.attempted > 0
    assert done.failed == 0
