"""Where every method lands on one problem, exactly, and what finitely many rows make of it.

Left: the limit's error over the best, nothing sampled. Right: batch solvers from more and more rows.

    python examples/compare_methods.py [--domain collision] [--runs 20]
"""

from __future__ import annotations

import numpy as np
import shown

from o2td import LSETD, LSTD, SOTD, MonteCarlo, PluginOptimal, exact

SOLVERS = {
    "LSTD": LSTD,
    "LSTD λ=0.9": lambda: LSTD(0.9),
    "LSETD": LSETD,
    "SOTD": SOTD,
    "Monte Carlo": MonteCarlo,
    "plug-in": PluginOptimal,
}
ROWS = [100, 300, 1000, 3000, 10_000]


def main() -> None:
    """A table on the terminal, a figure with both halves."""
    given = shown.arguments("compare_methods")
    problem = shown.problem(given.domain)
    best = exact.rmse(problem, exact.best_approximation(problem))
    landed = [row for row in exact.analyze(problem) if row.rmse is not None]
    landed.sort(key=lambda row: row.rmse)
    figure, (left, right) = shown.figure(2, height=1.4 + 0.17 * len(landed))
    for y, row in enumerate(reversed(landed)):
        unstable = row.stable is False
        left.plot(row.rmse, y, "o", color="tab:red" if unstable else "tab:blue", ms=4)
    left.set_yticks(range(len(landed)), [row.method for row in reversed(landed)], fontsize=8)
    left.axvline(best, color="black", lw=0.9)
    left.grid(axis="x", alpha=0.3)
    left.set(
        title=f"limits on {given.domain}, exact",
        xlabel="RMSE (red: unstable; black line: best)",
        ylim=(-0.7, len(landed) - 0.3),
    )
    for row in landed:
        note = "  unstable" if row.stable is False else ""
        print(f"{row.method:34} RMSE {row.rmse:.4f}{note}")
    for name, make in SOLVERS.items():
        errors = np.empty((given.runs, len(ROWS)))
        for k in range(given.runs):
            batch = problem.sample(ROWS[-1], seed=(3, k))
            errors[k] = [exact.rmse(problem, make().fit(batch[:n]).theta) for n in ROWS]
        right.plot(ROWS, np.median(errors, axis=0), "o-", ms=3, label=name)
    right.axhline(best, color="black", lw=0.9, label="best approximation")
    right.grid(alpha=0.3)
    right.set(title="from finitely many rows", xscale="log", xlabel="rows")
    right.set_ylabel(f"RMSE, median of {given.runs} runs")
    right.set_ylim(bottom=0.0)
    shown.save(figure, right, given.out)


if __name__ == "__main__":
    main()
