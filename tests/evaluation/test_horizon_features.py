"""Values over a number of steps from features of observations, against written-out recursions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import evaluation
from o2td.evaluation.horizon_features import StepsSystem, unclocked
from o2td.evaluation.survey import by_fold, folds_of
from o2td.evaluation.systems import FOLDS, FeatureSystem, States
from o2td.features import Polynomial
from tests.evaluation.episodes import block_of

STEPS, GAMMA = 12, 0.95
F = np.array([[0.8, 0.2], [-0.1, 0.7]])
PUSH = np.array([[0.6, 0.0], [-0.4, 0.3]])  # of each action
COST = np.array([1.0, -0.5])
NOISE, WANTED = 0.2, 0.7  # the target takes the first action with this probability


def linear_log(episodes: int, seed: int, steps: int = STEPS, level: float = 1.0) -> pd.DataFrame:
    """`x' = F x + push_a + noise`, reward `level + cost·x - |x|^2 / 5`, ended by a clock."""
    rng, parts = np.random.default_rng(seed), []
    x = rng.normal(size=(episodes, 2))
    for step in range(steps):
        action = rng.integers(2, size=episodes)
        ahead = x @ F.T + PUSH[action] + NOISE * rng.normal(size=x.shape)
        part = pd.DataFrame({"episode": range(episodes), "step": step, "action": action})
        part[["obs_0", "obs_1"]], part[["next_obs_0", "next_obs_1"]] = x, ahead
        part["reward"] = level + x @ COST - 0.2 * (x**2).sum(axis=1)
        part["behavior_prob"] = 0.5
        part["target_prob"] = np.where(action == 0, WANTED, 1.0 - WANTED)
        part["terminated"] = step == steps - 1
        parts.append(part)
        x = ahead
    return pd.concat(parts).sort_values(["episode", "step"], ignore_index=True)


def linear_value(steps: int = STEPS, level: float = 1.0) -> float:
    """The exact value, by a recursion of the state's mean and second moments."""
    chance = np.array([WANTED, 1.0 - WANTED])
    mean, second, total = np.zeros(2), np.eye(2), 0.0
    drift = chance @ PUSH
    for step in range(steps):
        total += GAMMA**step * (level + COST @ mean - 0.2 * np.trace(second))
        cross = F @ np.outer(mean, drift)
        pushes = sum(p * np.outer(push, push) for p, push in zip(chance, PUSH, strict=True))
        second = F @ second @ F.T + cross + cross.T + pushes + NOISE**2 * np.eye(2)
        mean = F @ mean + drift
    return float(total)


def by_hand(log: pd.DataFrame, steps: int) -> float:
    """Backward regressions on squares and products, by weighted least squares."""

    def phi(x: np.ndarray) -> np.ndarray:
        a, b = x.T
        return np.column_stack([np.ones(len(x)), a, b, a * a, a * b, b * b])

    log = log[log.step < steps]
    rho = np.sqrt(log.target_prob / log.behavior_prob).to_numpy()[:, None]
    here = phi(log[["obs_0", "obs_1"]].to_numpy())
    ahead = phi(log[["next_obs_0", "next_obs_1"]].to_numpy())
    known = ~log.terminated.to_numpy()
    paid = np.linalg.lstsq(rho * here, rho[:, 0] * log.reward.to_numpy(), rcond=None)[0]
    theta = np.zeros(6)
    for _ in range(steps):
        follows = (rho * ahead)[known] @ theta
        went = np.linalg.lstsq((rho * here)[known], GAMMA * follows, rcond=None)[0]
        theta = paid + went
    return float((here[(log.step == 0).to_numpy()] @ theta).mean())


@pytest.mark.parametrize("steps", [STEPS, 5])
def test_values_are_those_of_backward_regressions_written_out(steps: int) -> None:
    """With a shorter horizon the successors of the last rows are known."""
    log = linear_log(150, 0)
    asked = {"discount": GAMMA, "features": "polynomial:2", "horizon": steps, "lanes": 20}
    found = evaluation.evaluate(log, methods=["tstep"], **asked)["tstep"]
    assert found.value == pytest.approx(by_hand(log, steps), rel=1e-6)


def test_the_exact_value_of_a_linear_system_is_covered() -> None:
    hits = []
    for seed in range(12):
        log = linear_log(150, 100 + seed)
        answer = evaluation.evaluate(log, discount=GAMMA, horizon=STEPS, lanes=100)
        assert answer.recommended.method == "tstep"
        assert answer.verdict == "trust"
        hits.append(answer.recommended.covers(linear_value(), widened=True))
    assert sum(hits) >= 10


def test_a_clock_that_was_found_leaves_the_question_open() -> None:
    log = linear_log(200, 1)
    found = evaluation.evaluate(log, discount=GAMMA, lanes=50)
    assert (found.verdict, found.recommended.method) == ("caution", "tstep")
    assert f"horizon={STEPS}" in found.reasons[0]
    assert found.recommended.covers(linear_value(), widened=True)
    assert not found["lstd"].covers(linear_value())
    said = re.search(r"it would be ([0-9.]+);", found.reasons[0])
    assert said is not None
    assert float(said[1]) == pytest.approx(linear_value(400), rel=0.2)


def test_influence_agrees_with_episodes_drawn_again() -> None:
    """The standard error against the spread of values that were computed from resampled logs."""
    log = linear_log(100, 2)
    asked = {"discount": GAMMA, "features": "polynomial:2", "horizon": STEPS}
    found = evaluation.evaluate(log, methods=["tstep"], lanes=0, **asked)["tstep"]
    rng, values = np.random.default_rng(0), []
    rows = [part for _, part in log.groupby("episode")]
    for _ in range(150):
        drawn = [rows[k] for k in rng.integers(len(rows), size=len(rows))]
        values.append(by_hand(pd.concat(drawn, ignore_index=True), STEPS))
    assert found.standard_error == pytest.approx(np.std(values), rel=0.2)


def test_negative_weights_show_a_target_that_goes_where_the_log_has_no_rows() -> None:
    asked = {"discount": GAMMA, "horizon": STEPS, "methods": ["tstep"], "lanes": 50}
    near, far = (evaluation.evaluate(log, **asked) for log in (linear_log(150, 3), drifting()))
    assert near.verdict == "trust"
    assert far.verdict == "caution"
    assert any("is negative" in reason for reason in far.reasons)


def drifting() -> pd.DataFrame:
    """A target that always pushes one way, where the log rarely does."""
    rng, parts = np.random.default_rng(5), []
    x = rng.normal(size=(150, 1))
    for step in range(STEPS):
        action = (rng.random(150) < 0.1).astype(int)
        ahead = 0.95 * x + action[:, None] - 0.1 + 0.2 * rng.normal(size=x.shape)
        part = pd.DataFrame({"episode": range(150), "step": step, "action": action})
        part["obs_0"], part["next_obs_0"], part["reward"] = x[:, 0], ahead[:, 0], x[:, 0]
        part["behavior_prob"] = np.where(action == 1, 0.1, 0.9)
        part["target_prob"] = np.where(action == 1, 0.95, 0.05)
        part["terminated"] = step == STEPS - 1
        parts.append(part)
        x = ahead
    return pd.concat(parts).sort_values(["episode", "step"], ignore_index=True)


def test_features_are_chosen_as_if_no_clock_ended_episodes() -> None:
    block = unclocked(block_of(linear_log(60, 6), 1.0), STEPS)
    assert len(block.rows) == 60 * (STEPS - 1)
    assert not block.rows.terminated.any()
    assert block.rows.discount.max() == pytest.approx(1.0 - 1.0 / STEPS)


def test_sums_of_parts_merge_into_those_of_the_whole() -> None:
    def filled(parts: list[np.ndarray]) -> StepsSystem:
        plain = FeatureSystem(States(Polynomial(1).fit(np.array([[-3.0, -3.0], [3.0, 3.0]]))))
        made = StepsSystem(plain, STEPS, 0.9)
        for which in parts:
            one = ordered.pick(which)
            for system in (plain, made):
                system.add(one, made.basis.rows(one), folds_of(one.key, FOLDS), None)
        return made

    ordered = by_fold(block_of(linear_log(30, 3), 0.9))
    every = np.arange(ordered.count)
    # As a requested horizon does, keep the successors of some last rows.
    rows = ordered.rows
    further = rows.next_input + (rows.terminated & (ordered.unit() % 2 == 0))[:, None]
    ordered = replace(ordered, rows=replace(rows, next_observation=further))
    whole, none = filled([every >= 0]), filled([])
    one, two = filled([every % 3 == 0]), filled([every % 3 != 0])
    assert whole.cut.any()
    assert whole.onward.any()
    for mine, others in ((one, two), (one, filled([])), (none, whole)):
        own = mine.plain
        mine.merge(others)
        assert mine.plain is own  # which is merged by itself
        own.merge(others.plain)
    for found in (one, none):
        for name in ("folds", "cut", "onward", "starts", "opened"):
            np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-11)
        np.testing.assert_allclose(found.solve().theta, whole.solve().theta, rtol=1e-9)


def test_sums_are_those_of_the_written_out_products() -> None:
    block = by_fold(block_of(linear_log(30, 3), GAMMA))
    rows = block.rows
    last = rows.step == STEPS - 1
    further = rows.next_input + (last & (block.unit() % 2 == 0))[:, None]
    block = replace(block, rows=replace(rows, next_observation=further))
    phi = States(Polynomial(2).fit(np.array([[-3.0, -3.0], [3.0, 3.0]])))
    plain = FeatureSystem(phi)
    system = StepsSystem(plain, STEPS, GAMMA, ridge=1e-6)
    for one in (plain, system):
        one.add(block, phi.rows(block), folds_of(block.key, FOLDS), None)
    here, ahead = phi.phi(rows.input), GAMMA * phi.phi(further)
    z = rows.rho[:, None] * here
    gone = ~last | (block.unit() % 2 == 0)
    ridge = 1e-6 * np.diagonal(z.T @ here).mean() * np.eye(here.shape[1])
    g = np.linalg.solve(z.T @ here + ridge, z.T @ rows.reward)
    M = np.linalg.solve(z[gone].T @ here[gone] + ridge, z[gone].T @ ahead[gone])
    theta = np.zeros(len(g))
    for _ in range(STEPS):
        theta = g + M @ theta
    np.testing.assert_allclose(system.solve().theta, theta, rtol=1e-9)


def fitted(
    log: pd.DataFrame, steps: int, ridge: float = 0.0, known: bool = True
) -> tuple[StepsSystem, Any, Any]:
    """A system on squares and products, its rows, and its block; half of the ends are none."""
    block = by_fold(block_of(log, GAMMA))
    rows = block.rows
    if known:
        further = rows.next_input + (rows.terminated & (block.unit() % 2 == 0))[:, None]
        block = replace(block, rows=replace(rows, next_observation=further))
    phi = States(Polynomial(2).fit(np.array([[-3.0, -3.0], [3.0, 3.0]])))
    plain = FeatureSystem(phi)
    system = StepsSystem(plain, steps, GAMMA, ridge)
    for one in (plain, system):
        one.add(block, phi.rows(block), folds_of(block.key, FOLDS), None)
    return system, phi.rows(block), block


def weighted(log: pd.DataFrame, episode: int, by: float) -> pd.DataFrame:
    """The same with the ratios of one episode times a number."""
    return log.assign(target_prob=np.where(log.episode == episode, by, 1.0) * log.target_prob)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("parts", [None, [0, 1, 3, 4]])
def test_influence_of_rows_is_the_derivative_of_the_value_in_their_ratios(
    known: bool, parts: list[int] | None
) -> None:
    log = linear_log(25, 7)

    def value(by: float, episode: int) -> float:
        one, _, _ = fitted(weighted(log, episode, by), STEPS, known=known)
        made = one if parts is None else one.part(one.basis, np.array(parts), 1e-7)
        return float(made.start() @ made.solve().theta)

    system, rows, block = fitted(log, STEPS, known=known)
    made = system if parts is None else system.part(system.basis, np.array(parts), 1e-7)
    solution = made.solve()
    light = made.light()
    first, moved = light.influence(block, rows, solution.theta, made.adjoint())
    here = rows.first[:, slice(None) if parts is None else parts]
    np.testing.assert_allclose(first, here @ solution.theta, rtol=1e-9)
    names = log.episode.unique()
    starts = log[log.step == 0].reset_index(drop=True)
    for episode in (0, 13):
        place = np.flatnonzero(
            (
                block.rows.input[block.first[:-1]] == starts[["obs_0", "obs_1"]].to_numpy()[episode]
            ).all(1)
        )[0]
        slope = (value(1.0 + 1e-5, names[episode]) - value(1.0 - 1e-5, names[episode])) / 2e-5
        assert moved[place] == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_what_is_said_of_a_fit_over_some_steps() -> None:
    rng, log = np.random.default_rng(8), drifting()
    log["obs_1"], log["next_obs_1"] = rng.normal(size=(2, len(log)))
    system, _, block = fitted(log, 6, known=False)
    g, M, paid, _ = system._regressions(None)
    found = system.solve()
    assert (found.status, found.residual) == ("ok", 0.0)
    assert found.condition == pytest.approx(np.linalg.cond(paid))
    assert found.rank == 6
    assert system.label == f"{system.basis.name}, 6 steps"
    endless = system.start() @ np.linalg.solve(np.eye(6) - M, g)
    assert system.endless() == pytest.approx(endless, rel=1e-12)
    reach, each = np.zeros(6), system.start()
    for _ in range(6):
        reach, each = reach + each, M.T @ each
    weight = block.rows.rho * (system.basis.phi(block.rows.input) @ np.linalg.solve(paid.T, reach))
    share = -weight[weight < 0.0].sum() / np.abs(weight).sum()
    assert share > 0.0
    assert system.extrapolated(block) == pytest.approx(share, rel=1e-9)
    none = replace(block, rows=replace(block.rows, rho=np.zeros(len(block.rows))))
    assert system.extrapolated(none) == 0.0
    some = np.arange(FOLDS) != 3
    np.testing.assert_allclose(
        paid - system._regressions(some)[2],
        np.einsum("kij->ij", system.folds[~some])
        + 1e-9 * np.eye(6) * np.diagonal(system.folds[~some].sum(axis=0)).mean(),
        rtol=1e-9,
    )


def test_values_that_explode_are_no_values() -> None:
    log = linear_log(40, 9)
    far = log.assign(next_obs_0=3.0 * log.obs_0 + 1.0, next_obs_1=3.0 * log.obs_1)
    system, _, _ = fitted(far, 4000, known=False)
    assert system.endless() == np.inf
    found = system.solve()
    assert found.status == "overflow"
    assert found.rank == 0
    assert np.isnan(found.theta).all()
    assert len(found.theta) == 6
    assert (found.condition, found.residual) == (np.inf, np.inf)
    assert np.isfinite(fitted(far, 4, known=False)[0].solve().theta).all()


def test_one_step_has_no_successors_to_leave_out() -> None:
    block = block_of(linear_log(20, 6), 1.0)
    assert unclocked(block, 1) is block
    two = unclocked(block, 2)
    assert len(two.rows) == 20
    assert two.rows.discount.max() == 0.5
    assert unclocked(block_of(linear_log(20, 6), 0.3), 5).rows.discount.max() == 0.3


def test_the_least_ridge_is_there_whatever_is_asked() -> None:
    plain = FeatureSystem(States(Polynomial(1).fit(np.array([[-3.0, -3.0], [3.0, 3.0]]))))
    assert StepsSystem(plain, 3, 0.9).ridge == 1e-9
    assert StepsSystem(plain, 3, 0.9, 1e-3).ridge == 1e-3
    part = StepsSystem(plain, 3, 0.9).part(plain.basis, np.array([0, 2]), 1e-5)
    assert (part.ridge, part.d) == (1e-5, 2)
