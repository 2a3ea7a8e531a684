"""The places where the paper disagrees with itself, measured on problems small enough to do it now."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td import (
    ETD,
    GTD2,
    LSTD,
    O2TD,
    SOTD,
    TD,
    BellmanResidual,
    Problem,
    Transitions,
    domains,
    exact,
    metrics,
    sweep,
)
from o2td.emphasis import Omega

SAMPLES = (1000, 2000, 3000)


def findings() -> dict[str, Any]:
    """One entry a contradiction, numbered as in the chapter."""
    return {
        "ratio_inside": _ratio_inside(),
        "baird": _baird(),
        "stage_one": _stage_one(),
        "sotd": _sotd_against_lstd(),
        "monte_carlo": _monte_carlo(),
        "cycle": _cycle(),
        "iid": _etd_on_iid_rows(),
        "spread": _spread_of_value(),
    }


def _ratio_inside() -> dict[str, float]:
    """1. E[rho dphi | s] against L Phi, with dphi as used and with dphi as defined (rho inside)."""
    problem = domains.garnet(seed=(13, 0))
    model = exact.model(problem)
    Phi = np.asarray(problem.features)
    dphi = Phi[model.state] - model.discount[:, None] * Phi[model.next_state]
    wanted = Phi - problem.discounted_matrix(problem.target) @ Phi
    found = {}
    for name, power in (("without", 1), ("with", 2)):
        mass = model.probability * model.rho**power
        mean = np.zeros_like(Phi)
        np.add.at(mean, model.state, mass[:, None] * dphi)
        off = mean / problem.visits[:, None] - wanted
        found[name] = float(np.linalg.norm(off) / np.linalg.norm(wanted))
    return found


def _baird() -> dict[str, Any]:
    """2. Errors on Baird's counterexample at the printed step sizes, mean of 20 runs."""
    lanes = {
        **{
            f"O2TD {reading}": O2TD(0.006, omega=reading)
            for reading in ("printed", "sample", "state")
        },
        "GTD2": GTD2(0.005, second_step_size=0.02),
    }
    found: dict[str, Any] = {}
    for form in ("star", "survey"):
        problem = domains.baird(form=form)
        errors = {"rmse": metrics.rmse(problem), "rmspbe": metrics.rmspbe(problem)}
        started = [lane.clone(initial_theta=problem.initial_theta) for lane in lanes.values()]
        runs: dict[str, list[Any]] = {name: [] for name in errors}
        for run in range(20):
            result = sweep(started, problem.sample(5000, seed=(1, run)), errors, every=100)
            for name in errors:
                runs[name].append(result.values[name])
        curves = {name: np.mean(values, axis=0) for name, values in runs.items()}
        found[form] = {
            name: dict(zip(lanes, mean[:, -1], strict=True)) for name, mean in curves.items()
        }
        found[form]["curve"] = dict(zip(lanes, curves["rmse"], strict=True))
        found["steps"] = result.steps
    return found


def _stage_one() -> dict[str, float]:
    """3. SOTD from zero against the unweighted Bellman-residual minimiser, and from another start."""
    problem = domains.garnet(seed=(13, 0))
    batch = problem.sample(2000, seed=3)
    zero = SOTD().fit(batch).theta
    residual = BellmanResidual(sampling="aggregated", weighted=False).fit(batch).theta
    td = SOTD(start="td").fit(batch).theta
    size = np.linalg.norm(zero)
    return {
        "states": problem.n_states,
        "features": problem.d,
        "residual": float(np.linalg.norm(zero - residual) / size),
        "td": float(np.linalg.norm(zero - td) / size),
    }


def _sotd_against_lstd(problems: int = 8) -> dict[str, Any]:
    """4. MSE of SOTD over that of LSTD on the paper's random MDP, by rows and by aggregation."""
    solvers = {
        "LSTD": LSTD,
        "ordinary": lambda: SOTD(weighting="ordinary"),
        "normalized": SOTD,
    }
    errors = {name: np.zeros(len(SAMPLES)) for name in solvers}
    for k in range(problems):
        problem = domains.random_mdp(seed=(31, k))
        batch = problem.sample(SAMPLES[-1], seed=(32, k))
        for name, build in solvers.items():
            for i, n in enumerate(SAMPLES):
                error = exact.mse(problem, build().fit(batch[:n]).theta)
                errors[name][i] += error / problems
    return {
        "rows": SAMPLES,
        "problems": problems,
        "mse": errors,
        "ratio": {name: errors[name] / errors["LSTD"] for name in ("ordinary", "normalized")},
    }


def _monte_carlo() -> dict[str, float]:
    """5. `X*^T R = Phi^T Xi V`, as a relative difference."""
    problem = domains.garnet(seed=(13, 0))
    Phi, V = np.asarray(problem.features), exact.value(problem)
    left = exact.optimal_direction(problem).T @ problem.expected_reward(problem.target)
    right = Phi.T @ (problem.visits * V)
    return {"off": float(np.linalg.norm(left - right) / np.linalg.norm(right))}


def cycle() -> Problem:
    """Three states in a ring, on-policy, no reward: O2TD's state reading is unstable on it."""
    P = np.zeros((3, 1, 3))
    for s in range(3):
        P[s, 0, (s + 1) % 3] = 1.0
    one = np.ones((3, 1))
    features = np.array([[-1.0, 2.0], [-2.0, 2.0], [2.0, 0.0]])
    return Problem(P, np.zeros(3), 0.9, one, one, features, name="cycle")


def _cycle() -> dict[str, Any]:
    """6. Eigenvalues of the mean dynamics on the cycle, and what GTD2 makes of the same weight."""
    problem = cycle()
    learners = {
        "TD": TD(0.1),
        "O2TD": O2TD(0.1, omega="state"),
        "repaired": GTD2(0.1, emphasis=Omega("state")),
    }
    found: dict[str, Any] = {}
    for name, learner in learners.items():
        point = exact.fixed_point(problem, learner)
        values = np.sort(point.eigenvalues.real)[::-1]
        found[name] = {"eigenvalues": values, "stable": point.stable, "least": float(values.min())}
    return found


def _etd_on_iid_rows() -> dict[str, float]:
    """7. ETD on rows drawn independently: every row a start, or the follow-on trace carried over."""
    problem = domains.garnet(seed=(13, 0))
    rows = problem.sample(2000, seed=5, scheme="iid")
    td = TD(0.01).partial_fit(rows).theta
    starts = ETD(0.01).partial_fit(rows).theta
    joined = Transitions.from_table(
        problem.features, rows.state, rows.reward, rows.next_state, rows.discount, rho=rows.rho
    )
    carried = ETD(0.01).partial_fit(joined).theta
    size = np.linalg.norm(td)
    return {
        "starts": float(np.linalg.norm(starts - td) / size),
        "carried": float(np.linalg.norm(carried - td) / size),
    }


def _spread_of_value() -> dict[str, float]:
    """How much V varies between the states of the paper's random MDP, by the form of its reward."""
    found = {}
    for form in ("state_action", "action_next"):
        problem = domains.random_mdp(seed=0, reward=form)
        V, xi = exact.value(problem), problem.visits
        found[form] = float(np.sqrt(xi @ (V - xi @ V) ** 2))
        found[f"{form}_mean"] = float(xi @ V)
    return found
