"""Docstrings for the site: examples that stand outside an "Examples" section become code blocks.

Markdown would read `>>>` as a quotation in a quotation in a quotation. And parameters that many
classes share, and that need no words in each of them, get theirs here.
"""

from __future__ import annotations

import re
from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Fences doctests while griffe reads the sources."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of every object once."""
        if obj.docstring is not None:
            obj.docstring.value = described(fenced(obj.docstring.value))


SHARED = {
    "step_size": 'alpha; "auto" is 0.1 over the largest squared norm of features so far.',
    "initial_theta": "Where learning starts; zero if left out.",
    "emphasis": "The weight of a row; uniform if left out.",
    "ridge": "Added to the diagonal of the equations.",
}
_HEAD = "Parameters\n----------\n"
_ITEM = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)( : [^\n]*)?$")


def described(docstring: str) -> str:
    r"""The docstring with its parameters one by one, with words for the shared ones that have none.

    Paragraphs that follow the parameters go before them: a reader of sections would take them for
    more parameters. Of names that share a line each gets its own, so that each shows its default.

    >>> described("Parameters\n----------\nstep_size : float\ntrace : float\n    x")
    'Parameters\n----------\nstep_size : float\n    alpha; "auto" is ...\ntrace : float\n    x\n'
    >>> described("Sum.\n\nParameters\n----------\na, b : int\n    Terms.\n\nMore words.")
    'Sum.\n\nMore words.\n\nParameters\n----------\na : int\n    Terms.\nb : int\n    Terms.\n'
    """
    before, mark, after = docstring.partition(_HEAD)
    if not mark:
        return docstring
    section, rest = after, ""
    if following := re.search(r"^\w+\n-{3,}$", after, re.M):
        section, rest = after[: following.start()], "\n" + after[following.start() :]
    items: list[tuple[str, list[str]]] = []
    prose: list[str] = []
    for line in section.rstrip().split("\n"):
        if _ITEM.match(line):
            items.append((line, []))
        elif line.startswith(" ") and items and not prose:
            items[-1][1].append(line)
        elif line or prose:
            prose.append(line)
    words = "\n".join(prose) + "\n\n" if prose else ""
    return before + words + mark + "".join(_one_by_one(*item) for item in items) + rest


def _one_by_one(line: str, about: list[str]) -> str:
    names, colon, kind = line.partition(" : ")
    told = ""
    for name in names.split(", "):
        own = about or ([f"    {SHARED[name]}"] if name in SHARED else [])
        told += "\n".join([name + colon + kind, *own]) + "\n"
    return told


def fenced(docstring: str) -> str:
    r"""The docstring with fences around examples, up to its "Examples" section.

    >>> fenced("Sum.\n\n>>> 1 + 1\n2\n\nMore.")
    'Sum.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore.'
    """
    head, mark, rest = docstring.partition("Examples\n--------\n")
    done: list[str] = []
    inside = False
    for line in head.split("\n"):
        starts = re.match(r">>> ", line) is not None
        if starts and not inside:
            done.append("```pycon")
            inside = True
        elif inside and not line.strip():
            done.append("```")
            inside = False
        done.append(line)
    if inside:
        done.append("```")
    return "\n".join(done) + mark + rest
