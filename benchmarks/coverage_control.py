"""How far off is the recommended estimate with `features="auto"`, and does its interval say so?

    python -m benchmarks.coverage_control --sets 40 --first 30000

Cart-pole (a linear controller; 30 % random pushes in the log, 5 % under the target; 300 episodes) and
mountain car (energy pumping; 30 % in the log, 10 % under the target; 200 episodes), discount 0.99; the
truth comes from roll-outs. Also LSTD(0) with an order-9 Fourier basis on mountain car, whose interval
by itself almost never covers.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from benchmarks.coverage_common import (
    cart_pole,
    cart_pole_value,
    mountain_car,
    mountain_car_value,
    run_all,
)
from o2td import evaluation

CASES: dict[str, tuple[Any, ...]] = {
    "cart-pole, auto": (cart_pole, 300, "auto", 0.6),
    "mountain car, auto": (mountain_car, 200, "auto", 1.0),
    "mountain car, fourier:9": (mountain_car, 200, "fourier:9", None),
}
METHODS = ["lstd", "wpdis", "dr", "wdr"]


def truth_of(name: str) -> float:
    if name.startswith("cart"):
        return cart_pole_value(40_000, 0.05, 0.99)[0]
    return mountain_car_value(200_000)[0]


def study(name: str, sets: int, first: int = 0) -> dict[str, Any]:
    make, episodes, features, _ = CASES[name]
    truth = truth_of(name)
    off: dict[str, list[float]] = {}
    inside, widened, approximation, width, words, seconds = [], [], [], [], [], []
    lifts, above = [], []
    for k in range(first, first + sets):
        log = make(episodes, [k, 53])
        begun = time.time()
        answer = evaluation.evaluate(log, 0.99, features=features, methods=METHODS, seed=k)
        seconds.append(time.time() - begun)
        best = answer.recommended
        off.setdefault("recommended", []).append(best.value - truth)
        for method in METHODS:
            off.setdefault(method, []).append(answer[method].value - truth)
        inside.append(best.covers(truth))
        widened.append(best.covers(truth, widened=True))
        approximation.append(best.approximation_error)
        width.append((best.high - best.low) / 2)
        words.append((best.method, best.verdict))
        lifts.append(answer.lift is not None and answer.lift.verdict == "trust")
        above.append(answer.require("lift > 0").holds is True)
        print(
            f"{name}, set {k}: {best.method} {best.value - truth:+.3f} ±{width[-1]:.3f}"
            f" ±{best.approximation_error or 0.0:.3f} {best.verdict}",
            file=sys.stderr,
            flush=True,
        )
    return {
        "truth": truth,
        **{f"rmse {m}": float(np.sqrt(np.square(v).mean())) for m, v in off.items()},
        "bias": float(np.mean(off["recommended"])),
        "interval covers": float(np.mean(inside)),
        "with approximation error": float(np.mean(widened)),
        "half-width": float(np.mean(width)),
        "approximation error": float(np.mean(approximation)),
        "lift trusted": float(np.mean(lifts)),
        "lift > 0 holds": float(np.mean(above)),
        "words": {str(pair): words.count(pair) for pair in sorted(set(words))},
        "seconds a set": float(np.mean(seconds)),
    }


if __name__ == "__main__":
    run_all(__doc__ or "", 40, CASES, study)
