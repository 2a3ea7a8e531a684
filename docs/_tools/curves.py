"""The paper's figures, stored from a reproduction: docs/data/curves.json.

`python -m docs._tools.claims FOLDER` stores them with the claims. Only the paper's methods, at the
printed step sizes: the mean over runs at some fifty steps, with its 95 % interval, or the median where
single runs carry the mean.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from docs._tools.measure import ROOT

CURVES = ROOT / "docs" / "data" / "curves.json"
METHODS = ("ETD", "O2TD printed", "O2TD sample", "GTD2", "LSTD", "SOTD ordinary", "SOTD normalized")
FIGURES = {
    "2": ("fig-sotd", "Comparison between SOTD and LSTD on 400-State Random MDP Domain"),
    "3": ("fig-baird", "Baird Domain"),
    "4": ("fig-random-seq", "Random MDP with Sequential Sampling"),
    "5": ("fig-random-iid", "Random MDP with Random Sampling"),
    "6": ("fig-car-seq", "Mountain car with Sequential Sampling"),
    "7": ("fig-car-iid", "Mountain car with Random Sampling"),
}
_POINTS = 50
_SPIKE = 3.0  # a mean this many times the median rests on single runs


def take(results: Any) -> dict[str, Any]:
    """Every figure's curves by method and error, and what else pages quote from the same runs."""
    found = {number: _figure(results, name) for number, (name, _) in FIGURES.items()}
    tuned = results.scores("fig-car-seq", "tuned", "area").filter(metric="rmse")
    car = {name: float(np.mean(_of(tuned, name))) for name in ("O2TD sample", "TD", "ETD", "GTD2")}
    return {"figures": found, "car_tuned": car}


def _of(table: Any, algorithm: str) -> Any:
    return table.filter(algorithm=algorithm)["value"].to_numpy()


def _figure(results: Any, name: str) -> dict[str, Any]:
    """One figure; for Baird's counterexample the star form, which the paper's source draws."""
    table, runs, about = results.curves(name, "shown"), results.runs(name), results.about(name)
    domains = table["domain"].unique(maintain_order=True).to_list() if "domain" in table else []
    star = [domain for domain in domains if "star" in domain]
    if star:
        table, runs = table.filter(domain=star[0]), runs.filter(domain=star[0])
    curves: dict[str, Any] = {}
    for metric in ("rmspbe", "rmse"):
        for method in METHODS:
            own = table.filter(algorithm=method, metric=metric).sort("step")
            if len(own):
                single = runs.filter(algorithm=method, metric=metric)
                curves.setdefault(metric, {})[method] = _curve(own, single)
    return {"runs": about["runs"], "curves": curves}


def _curve(own: Any, runs: Any) -> dict[str, Any]:
    """The means at some steps, or the medians if single runs carry a mean."""
    from o2td.report.statistics import median

    kept = np.unique(np.linspace(0, len(own) - 1, _POINTS).astype(int))
    rows = {name: own[name].to_numpy()[kept] for name in ("step", "mean", "low", "high")}
    middle = np.array([median(runs.filter(step=n)["value"].to_numpy()) for n in rows["step"]])
    spiked = bool((rows["mean"] > _SPIKE * middle[:, 0]).any())
    if spiked:
        rows |= dict(zip(("mean", "low", "high"), middle.T, strict=True))
    found = {name: [_short(x) for x in values] for name, values in rows.items()}
    return {**found, "median": True} if spiked else found


def _short(value: Any) -> float | None:
    return float(f"{float(value):.4g}") if np.isfinite(value) else None


def kept() -> dict[str, Any]:
    """What is in the file."""
    found: dict[str, Any] = json.loads(CURVES.read_text(encoding="utf-8"))
    return found
