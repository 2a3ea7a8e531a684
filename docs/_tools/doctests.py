"""Docstrings for the site: examples that stand outside an "Examples" section become code blocks.

Markdown would read `>>>` as three nested quotations. Parameters that mean the same in many functions
get their descriptions from `words.py`.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

from docs._tools.words import words


class Doctests(griffe.Extension):
    """Fences doctests while griffe reads the sources."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of every object once."""
        if obj.docstring is not None:
            part = f"{obj.path}.".split(".")[1]  # "" for the package itself
            names = [p.name for p in obj.parameters] if isinstance(obj, griffe.Function) else []
            told = listed(fenced(obj.docstring.value), part, names)
            obj.docstring.value = described(told, part)


_HEAD = "Parameters\n----------\n"
_ITEM = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)( : [^\n]*)?$")


def listed(docstring: str, part: str, names: list[str]) -> str:
    r"""The docstring with a list of the parameters that have shared descriptions, if it has no list.

    >>> listed("Sum.\n\nReturns\n-------\nfloat", "exact", ["problem", "other"])
    'Sum.\n\nParameters\n----------\nproblem\n    A finite problem.\n\nReturns\n-------\nfloat'
    """
    known = [name for name in names if words(part, name)]
    if _HEAD in docstring or not known:
        return docstring
    items = "".join(f"{name}\n    {words(part, name)}\n" for name in known)
    following = re.search(r"^\w+\n-{3,}$", docstring, re.M)
    end = following.start() if following else len(docstring)
    return f"{docstring[:end].rstrip()}\n\n{_HEAD}{items}\n{docstring[end:]}".rstrip()


def described(docstring: str, part: str = "") -> str:
    r"""The docstring with its parameters one by one, and shared descriptions where they have none.

    Paragraphs after the parameters are moved before them: a parser would take them for more
    parameters. Names that share a line each get their own, so that each shows its default.

    >>> described("Parameters\n----------\nstep_size : float\ntrace : float\n    x")
    'Parameters\n----------\nstep_size : float\n    alpha: a number, ...\ntrace : float\n    x\n'
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
    return before + words + mark + "".join(_one_by_one(*item, part) for item in items) + rest


def _one_by_one(line: str, about: list[str], part: str) -> str:
    names, colon, kind = line.partition(" : ")
    told = ""
    for name in names.split(", "):
        shared = words(part, name)
        own = about or ([f"    {shared}"] if shared else [])
        told += "\n".join([name + colon + kind, *own]) + "\n"
    return told


def fenced(docstring: str) -> str:
    r"""The docstring with fences around the examples before its "Examples" section.

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
