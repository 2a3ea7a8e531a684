"""Where the paper disagrees with itself, and what follows from it, measured on small problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td import (
    ETD,
    GTD2,
    O2TD,
    SOTD,
    TD,
    BellmanResidual,
    Transitions,
    domains,
    exact,
    metrics,
    sweep,
)
from o2td.emphasis import Omega
from o2td.paper.studies.geometry import diverging_cycle


def findings() -> dict[str, Any]:
    """One entry per place."""
    return {
        "ratio_inside": _ratio_inside(),
        "baird": _baird(),
        "stage_one": _stage_one(),
        "monte_carlo": _monte_carlo(),
        "cycle": _cycle(),
        "iid": _etd_on_iid_rows(),
        "spread": _spread_of_value(),
    }


def _ratio_inside() -> dict[str, float]:
    """E[rho dphi | s] against L Phi, with dphi as used and with dphi as defined (rho inside)."""
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
    """Errors on Baird's counterexample at the printed step sizes, mean of 20 runs."""
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
        # "The variance": the standard deviation of the error between runs, averaged over the run.
        apart = np.std(runs["rmse"], axis=0, ddof=1).mean(axis=1)
        found[form]["deviation"] = dict(zip(lanes, apart, strict=True))
        found["steps"] = result.steps
    return found


def _stage_one() -> dict[str, float]:
    """SOTD from zero against the unweighted Bellman-residual minimiser, and from another start."""
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


def _monte_carlo() -> dict[str, float]:
    """The relative difference between `X*^T R` and `Phi^T Xi V`."""
    problem = domains.garnet(seed=(13, 0))
    Phi, V = np.asarray(problem.features), exact.value(problem)
    left = exact.optimal_direction(problem).T @ problem.expected_reward(problem.target)
    right = Phi.T @ (problem.visits * V)
    return {"off": float(np.linalg.norm(left - right) / np.linalg.norm(right))}


def _cycle() -> dict[str, Any]:
    """Eigenvalues of the mean dynamics on the cycle, and GTD2 with the same weight."""
    problem = diverging_cycle()
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
    """ETD on independently drawn rows: every row a start, or the follow-on trace carried over."""
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
    """How much V varies between the states of the paper's random MDP, by form of the reward."""
    found = {}
    for form in ("state_action", "action_next"):
        problem = domains.random_mdp(seed=0, reward=form)
        V, xi = exact.value(problem), problem.visits
        found[form] = float(np.sqrt(xi @ (V - xi @ V) ** 2))
        found[f"{form}_mean"] = float(xi @ V)
    return found
