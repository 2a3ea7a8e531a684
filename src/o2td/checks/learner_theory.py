"""Checks of learners against their theory: symmetries, and mean dynamics against their own steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td import exact
from o2td.checks.base import DoesNotApply, expect, expect_close, expect_equal, promise
from o2td.checks.data import needs_second, problem, rows_for, sampled, stream
from o2td.checks.learner_rows import constant, made, weights
from o2td.errors import NoAnswerError
from o2td.learners.base import Learner
from o2td.transitions import Transitions

TINY = 1e-9  # a step size at which thousands of steps hardly move the weights
CHUNKS, ROWS = 40, 5000  # the drift is averaged over this many chunks of this many rows
SIGMAS = 6.0


@promise("learners", "weights are linear in the rewards when they begin at zero")
def linear_in_rewards(learner: Learner) -> None:
    """Scaled by 4 (exactly), and added."""
    if not learner.linear or learner.l1 > 0.0 or learner.radius is not None:
        raise DoesNotApply("is not linear in the rewards")
    fields = stream()
    other = np.random.default_rng(3).normal(size=90)
    one, two, both, scaled = (
        weights(constant(learner).partial_fit(rows_for(learner, fields, reward=reward)))
        for reward in (fields["reward"], other, fields["reward"] + other, 4.0 * fields["reward"])
    )
    expect_close(scaled, 4.0 * one, "weights of four times the rewards")
    expect_close(both, one + two, "weights of added rewards", 1e-11)


@promise("learners", "without rewards, weights that begin at zero stay zero")
def zero_rewards(learner: Learner) -> None:
    """Exactly."""
    for layout in ("dense", "csr"):
        rows = rows_for(learner, stream(), layout, reward=0.0)
        result = weights(made(learner).partial_fit(rows))
        expect(not result.any(), f"{layout} weights {result}")


@promise("learners", 'with step_size="auto" predictions do not depend on the features\' scale')
def scale_free(learner: Learner) -> None:
    """Applies if the mean dynamics scale: `A(c phi) = c^2 A(phi)`."""
    if "step_size" not in learner.get_params():
        raise DoesNotApply("has no step_size")
    automatic = made(learner, step_size="auto", second_step_size=None)
    model = exact.model(problem())
    plain = mean_dynamics(automatic).A
    wide = automatic.mean_dynamics(replace(model, phi=8.0 * model.phi)).A
    if not np.allclose(wide, 64.0 * plain, rtol=1e-9, atol=1e-9 * np.abs(plain).max()):
        raise DoesNotApply("its own mean dynamics depend on the features' scale")
    fields = stream()
    results = []
    for scale in (1.0, 2.0**-20, 3.7, 2.0**30):
        table = scale * fields["table"]
        own = {name: getattr(learner, name) / scale**2 for name in learner.own_step_sizes}
        learned = automatic.clone(**own).partial_fit(rows_for(learner, fields, table=table))
        results.append(learned.predict(table))
    for other in results[1:]:
        expect_close(other, results[0], "predictions", 1e-9)


@promise("learners", "mean dynamics are finite matrices A (k, k) and b (k,) with k from d to 2 d")
def dynamics_shapes(learner: Learner) -> None:
    """Theta first, then w."""
    dynamics = mean_dynamics(constant(learner))
    size = len(dynamics.b)
    expect(dynamics.d == problem().d, f"d = {dynamics.d} for {problem().d} features")
    expect(dynamics.d <= size <= 2 * dynamics.d, f"b of length {size}")
    expect(dynamics.A.shape == (size, size), f"A of shape {dynamics.A.shape} and b of {size}")
    expect(np.isfinite(dynamics.A).all() and np.isfinite(dynamics.b).all(), "entries not finite")
    again = mean_dynamics(constant(learner))
    expect_equal(dynamics.A, again.A, "A and A once more")


@promise("learners", "the average of its steps is alpha (b - A x), within six standard errors")
def drift(learner: Learner) -> None:
    """200,000 consecutive rows with a step size so small that x hardly moves."""
    dynamics = mean_dynamics(constant(learner))
    start = np.linspace(-1.0, 1.0, dynamics.d)
    learned = still(learner, start)
    _excite(learned)
    x, mean, error = measured_drift(learned, len(dynamics.b))
    _expect_drift(mean, dynamics.b - dynamics.A @ x, error, dynamics.b)


@promise("learners", "its limit is a rest point: started there, its average step is zero")
def rest_at_limit(learner: Learner) -> None:
    """Within six standard errors."""
    dynamics = mean_dynamics(constant(learner))
    if len(dynamics.b) not in (dynamics.d, 2 * dynamics.d):
        raise DoesNotApply("moves more than theta and w, which alone can be started at the limit")
    limit = exact.fixed_point(problem(), constant(learner)).theta
    if limit is None:
        raise DoesNotApply("its mean dynamics have no fixed point")
    x, mean, error = measured_drift(still(learner, limit), len(dynamics.b))
    _expect_drift(mean, np.zeros_like(x), error, dynamics.b)


def mean_dynamics(learner: Learner) -> Any:
    """On the checks' own problem; a separate second step size would not shrink with the first."""
    if getattr(learner, "second_step_size", None) is not None:
        learner = learner.clone(second_step_size=None)
    try:
        return learner.mean_dynamics(exact.model(problem()))
    except NoAnswerError as error:
        raise DoesNotApply(f"has no mean dynamics here: {error}") from None


def still(learner: Learner, start: Any) -> Learner:
    """The learner at `start`, with tiny step sizes."""
    if "step_size" not in learner.get_params():
        raise DoesNotApply("has no step_size")
    return made(learner, step_size=TINY, second_step_size=None, initial_theta=start)


def _excite(learned: Learner) -> None:
    """Move the second vector away from zero, by rewards inversely proportional to the step size."""
    rows = sampled(50, seed=1, double=needs_second(learned))
    learned.partial_fit(rows.retargeted(reward=rows.reward / TINY))


def measured_drift(
    learned: Learner, size: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The weights, their mean step over the step size, and its standard error."""
    rows: Transitions = sampled((CHUNKS + 1) * ROWS, double=needs_second(learned))
    # The first chunk only fills the memory of traces and emphasis.
    learned.partial_fit(rows[:ROWS])
    x = weights(learned)[:size].copy()
    steps, before = np.empty((CHUNKS, size)), x
    for k, part in enumerate(rows[ROWS:].chunks(ROWS)):
        after = weights(learned.partial_fit(part))[:size].copy()
        steps[k] = (after - before) / (TINY * ROWS)
        before = after
    error = steps.std(axis=0, ddof=1) / np.sqrt(CHUNKS)
    return x, steps.mean(axis=0), error


def _expect_drift(mean: Any, theory: Any, error: Any, scale: Any) -> None:
    # The weights move slightly: by TINY times the rows, in units of their drift.
    moved = TINY * ROWS * CHUNKS * (np.abs(theory).max() + np.abs(scale).max())
    allowed = SIGMAS * error + moved
    off = np.abs(mean - theory) - allowed
    worst = int(np.argmax(off))
    expect(
        off[worst] <= 0.0,
        f"entry {worst} drifts by {mean[worst]:.5g} ± {error[worst]:.2g}, not {theory[worst]:.5g}",
    )
