"""The paper *O²TD: (Near)-Optimal Off-Policy TD Learning*, reproduced and judged.

Everything about this one paper: its experiments as TOML files in `specs`, its studies, its claims
and the page of `o2td reproduce`. It uses :mod:`o2td.experiments` and :mod:`o2td.report`, which know
nothing about it.

>>> from o2td import paper
>>> "fig-baird" in paper.specs()
True
"""

from __future__ import annotations

from importlib import import_module

# public name -> the module that holds it; imported on first use
_HOMES = {
    "FIGURES": "o2td.paper.catalogue",
    "spec": "o2td.paper.catalogue",
    "specs": "o2td.paper.catalogue",
    "STUDIES": "o2td.paper.studies",
    "reproduce": "o2td.paper.reproduction",
    "ReproductionReport": "o2td.paper.report",
    "build": "o2td.paper.report",
    "load": "o2td.paper.report",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'o2td.paper' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
