"""Sensitivity curves: mean error over a run against the step size, without and with traces.

A wide valley forgives. A curve that leaves through the top, where errors are larger than at the
start, or ends has runs that diverge at the next step size.

    python examples/sensitivity.py [--domain collision] [--steps 5000] [--runs 20]
"""

from __future__ import annotations

from functools import partial

import numpy as np
import shown

import o2td

LEARNERS = {"TD": o2td.TD, "TDC": o2td.TDC, "TDRC": o2td.TDRC, "GTD2": o2td.GTD2, "ETD": o2td.ETD}
SIZES = [2.0**-k for k in range(15)]


def main() -> None:
    """One sweep for all settings, then a panel a trace."""
    given = shown.arguments("sensitivity")
    problem = shown.problem(given.domain)
    makers = {
        (name, trace): partial(make, trace=trace, initial_theta=problem.initial_theta)
        for trace in (0.0, 0.9)
        for name, make in LEARNERS.items()
    }
    lanes = [make(a) for make in makers.values() for a in SIZES]
    metric = {"rmse": o2td.metrics.RMSE(problem)}
    every = max(1, given.steps // 100)
    error = np.zeros(len(lanes))
    for k in range(given.runs):
        batch = problem.sample(given.steps, seed=(2, k))
        error += o2td.sweep(lanes, batch, metric, every).values["rmse"].mean(axis=1) / given.runs
    table = dict(zip(makers, error.reshape(len(makers), -1), strict=True))
    figure, panels = shown.figure(2)
    for (name, trace), row in table.items():
        panels[int(trace > 0)].plot(
            SIZES, np.where(np.isfinite(row), row, np.nan), "o-", ms=4, label=name
        )
        best = int(np.argmin(row))
        print(f"{name:5} λ={trace:<4} best step size {SIZES[best]:<9.4g} mean RMSE {row[best]:.4f}")
    start = np.zeros(problem.d) if problem.initial_theta is None else problem.initial_theta
    ceiling = 1.05 * o2td.exact.rmse(problem, start)
    for axes, trace in zip(panels, (0.0, 0.9), strict=True):
        axes.set_xscale("log", base=2)
        axes.set(title=f"λ = {trace:g}", xlabel="step size", ylim=(0.0, ceiling))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel(f"RMSE on {given.domain}, mean over {given.steps:,} steps")
    shown.save(figure, panels[1], given.out)


if __name__ == "__main__":
    main()
