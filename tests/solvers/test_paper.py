"""Where the paper disagrees with itself: what stage 1 of SOTD leaves open, and its aggregation."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import domains, exact

from . import reference
from .reference import garnet


@pytest.mark.parametrize("seed", range(5))
def test_from_zero_sotd_is_the_unweighted_bellman_residual_minimiser(seed):
    """Statement 3, more states than features: every iterate from zero and the minimum norm."""
    batch = garnet(seed, states=15, d=4).sample(500, seed=seed)
    expected = reference.bellman_residual(batch, weighted=False)
    direct = o2td.SOTD().fit(batch).theta
    np.testing.assert_allclose(direct, expected, rtol=1e-9)
    for solver in ("gradient", "nesterov"):
        for iterations in (1, 2, 7, 50):
            early = o2td.SOTD(solver=solver, max_iterations=iterations, tolerance=0.0).fit(batch)
            assert early.solution.status == "not converged"
            np.testing.assert_allclose(early.theta, expected, rtol=1e-6)
    solver = o2td.BellmanResidual("aggregated", weighted=False).fit(batch)
    np.testing.assert_allclose(solver.theta, expected, rtol=1e-9)


def test_another_start_gives_another_answer():
    batch = garnet(0, states=15, d=4).sample(500, seed=0)
    zero, td = (o2td.SOTD(start=start).fit(batch).theta for start in ("zero", "td"))
    assert np.linalg.norm(zero - td) > 1e-3 * np.linalg.norm(zero)


@pytest.mark.parametrize("start", ["zero", "td"])
def test_with_no_more_states_than_features_the_start_does_not_matter(start):
    batch = garnet(1, states=5, d=7).sample(500, seed=1)
    expected = o2td.SOTD(start="zero").fit(batch).theta
    np.testing.assert_allclose(o2td.SOTD(start=start).fit(batch).theta, expected, rtol=1e-7)


def test_normalised_aggregation_beats_lstd_and_the_printed_one_does_not_by_as_much():
    """Statement 4 in small: mean over MDPs of the MSE's ratio to that of LSTD."""
    ratios = {"normalized": [], "ordinary": []}
    for seed in range(12):
        problem = domains.random_mdp(states=100, features=51, seed=seed)
        batch = problem.sample(750, seed=seed)
        lstd = exact.mse(problem, o2td.LSTD().fit(batch).theta)
        for weighting, found in ratios.items():
            found.append(exact.mse(problem, o2td.SOTD(weighting).fit(batch).theta) / lstd)
    means = {weighting: np.mean(found) for weighting, found in ratios.items()}
    assert means["normalized"] < 0.95
    assert means["normalized"] < means["ordinary"] - 0.1


@pytest.mark.slow
def test_the_papers_random_mdp_at_full_size():
    """Statement 4 at 400 states and 201 features, 30 MDPs."""
    for n in (1000, 2000, 3000):
        mse = {"LSTD": [], "normalized": [], "ordinary": []}
        for seed in range(30):
            problem = domains.random_mdp(seed=seed)
            batch = problem.sample(n, seed=seed)
            mse["LSTD"].append(exact.mse(problem, o2td.LSTD().fit(batch).theta))
            for weighting in ("normalized", "ordinary"):
                theta = o2td.SOTD(weighting).fit(batch).theta
                mse[weighting].append(exact.mse(problem, theta))
        means = {name: np.mean(found) for name, found in mse.items()}
        assert means["normalized"] < 0.95 * means["LSTD"]
        assert means["normalized"] < means["ordinary"]
        if n > 1000:
            assert means["ordinary"] > means["LSTD"]
