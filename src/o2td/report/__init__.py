"""Figures, tables and pages from tables and plain values, whatever their source; runs nothing.

:mod:`o2td.report.page` is the engine of every page, :mod:`o2td.report.experiment` draws any
experiment.
"""

from __future__ import annotations

from importlib import import_module

# public name -> its module; imported on first use, since a page needs no pictures
_HOMES = {
    "Page": "o2td.report.page",
    "Section": "o2td.report.page",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'o2td.report' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
