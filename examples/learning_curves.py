"""Learning curves: exact error against steps, every learner at the best of some step sizes.

Step sizes are chosen on other runs than those shown. Dashed lines are the exact limits, so that one
sees which method is still on its way and which has arrived at a worse place.

    python examples/learning_curves.py [--domain collision] [--steps 5000] [--runs 20]
"""

from __future__ import annotations

import numpy as np
import shown

import o2td
from o2td import exact

LEARNERS = {
    "TD": o2td.TD,
    "TD λ=0.9": lambda a, **k: o2td.TD(a, trace=0.9, **k),
    "TDRC": o2td.TDRC,
    "GTD2": o2td.GTD2,
    "ETD": o2td.ETD,
    "O2TD sample": o2td.O2TD,
}
SIZES = [2.0**-k for k in range(2, 14)]


def main() -> None:
    """Sweep, choose, draw."""
    given = shown.arguments("learning_curves")
    problem = shown.problem(given.domain)
    start = {"initial_theta": problem.initial_theta}
    lanes = [make(a, **start) for make in LEARNERS.values() for a in SIZES]
    metric = {"rmse": o2td.metrics.RMSE(problem)}
    every = max(1, given.steps // 100)
    runs = np.array(
        [
            o2td.sweep(lanes, problem.sample(given.steps, seed=(1, k)), metric, every).values[
                "rmse"
            ]
            for k in range(2 * given.runs)
        ]
    ).reshape(2, given.runs, len(LEARNERS), len(SIZES), -1)
    figure, axes = shown.figure()
    steps = every * np.arange(1, runs.shape[-1] + 1)
    for k, (name, make) in enumerate(LEARNERS.items()):
        best = int(np.argmin(runs[0, :, k].mean(axis=(0, 2))))
        curve = runs[1, :, k, best].mean(axis=0)
        limit = exact.fixed_point(problem, make(SIZES[best], **start))
        (line,) = axes.plot(steps, curve, label=f"{name}, α = {SIZES[best]:.3g}")
        if limit.stable:
            axes.axhline(limit.rmse, color=line.get_color(), lw=0.7, ls="--")
        told = f"{limit.rmse:.4f}" if limit.stable else "unstable"
        print(f"{name:12} step size {SIZES[best]:<9.4g} last RMSE {curve[-1]:.4f}  limit {told}")
    best_error = exact.rmse(problem, exact.best_approximation(problem))
    axes.axhline(best_error, color="black", lw=0.9, label="best approximation")
    axes.set(xlabel="step", ylabel=f"RMSE on {given.domain}, mean of {given.runs} runs")
    axes.set_title("dashed: where each method's limit is")
    axes.grid(alpha=0.3)
    axes.set_ylim(bottom=0.0)
    shown.save(figure, axes, given.out)


if __name__ == "__main__":
    main()
