"""Experiments as data: a spec is planned, run into a store, and read back as results.

>>> from o2td import experiments
>>> spec = experiments.load_spec('''
... name = "walk"
... steps = 100
... runs = 20
... metrics = ["rmse"]
... domain.name = "random_walk"
... algorithms = [{ name = "TD", grid = { step_size = [0.01, 0.1] } }]
... ''')
>>> len(experiments.plan(spec))
2
"""

from __future__ import annotations

from importlib import import_module

# public name -> the module that holds it; imported on first use, as reading needs no algorithms
_HOMES = {
    "Spec": "o2td.experiments.spec",
    "load_spec": "o2td.experiments.spec",
    "plan": "o2td.experiments.planning",
    "Store": "o2td.experiments.store",
    "Results": "o2td.experiments.loading",
    "load": "o2td.experiments.loading",
    "results": "o2td.experiments.tables",
    "scores": "o2td.experiments.tables",
    "sensitivity": "o2td.experiments.tables",
    "study": "o2td.experiments.tables",
    "summary": "o2td.experiments.tables",
    "run": "o2td.experiments.running",
    "Measurement": "o2td.experiments.studies",
    "StudyPlan": "o2td.experiments.studies",
    "run_studies": "o2td.experiments.studies",
    "tune": "o2td.experiments.tuning",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'o2td.experiments' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
