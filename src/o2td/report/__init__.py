"""Figures, tables and pages from stored results: reads the store, never runs anything.

:func:`build` makes the reproduction's report; :mod:`o2td.report.page` is the engine of its page and
serves any other report.
"""

from __future__ import annotations

from importlib import import_module

# public name -> the module that holds it; imported on first use, as a page needs no pictures
_HOMES = {
    "Report": "o2td.report.reproduction",
    "Results": "o2td.report.data",
    "build": "o2td.report.reproduction",
    "Page": "o2td.report.page",
    "Section": "o2td.report.page",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'o2td.report' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
