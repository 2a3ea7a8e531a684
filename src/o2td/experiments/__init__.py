"""Experiments as data: spec, plan, run, store; the paper's own as TOML files in `specs`.

>>> from o2td import experiments
>>> "fig-baird" in experiments.paper_specs()
True
"""

from __future__ import annotations

from importlib import import_module

# public name -> the module that holds it; imported on first use, as reading needs no algorithms
_HOMES = {
    "Spec": "o2td.experiments.spec",
    "load_spec": "o2td.experiments.spec",
    "paper_spec": "o2td.experiments.spec",
    "paper_specs": "o2td.experiments.spec",
    "plan": "o2td.experiments.planning",
    "Store": "o2td.experiments.store",
    "results": "o2td.experiments.records",
    "scores": "o2td.experiments.records",
    "sensitivity": "o2td.experiments.records",
    "study": "o2td.experiments.records",
    "summary": "o2td.experiments.records",
    "run": "o2td.experiments.running",
    "run_studies": "o2td.experiments.studying",
    "tune": "o2td.experiments.tuning",
    "reproduce": "o2td.experiments.reproduction",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'o2td.experiments' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
