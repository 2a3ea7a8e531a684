"""Docstrings for the site: examples that stand outside an "Examples" section become code blocks.

Markdown would read `>>>` as a quotation in a quotation in a quotation.
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
            obj.docstring.value = fenced(obj.docstring.value)


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
