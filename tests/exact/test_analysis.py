from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import o2td
from o2td import domains, exact
from o2td.errors import InputError
from o2td.exact import analysis
from o2td.registry import LEARNERS, SOLVERS, Registry

from .conftest import make_problem


def test_every_registered_method_appears() -> None:
    rows = exact.analyze(make_problem(seed=1), traces=(0.0,))
    shown = {row.method.split("(")[0] for row in rows}
    assert shown == {*LEARNERS.names(), *SOLVERS.names()}
    for row in rows:
        assert (row.rmse is None) <= bool(row.reason)
        assert row.amplification is None or row.amplification >= 1.0


def test_figures_are_those_of_the_fixed_point() -> None:
    problem = make_problem(seed=2)
    heard = []
    rows = {row.method: row for row in exact.analyze(problem, (0.0, 0.5), heard.append)}
    ahead = len(heard) - len(rows)
    assert heard[ahead:] == list(rows)
    assert sorted(heard[:ahead]) == sorted(
        f"direction of {name}" for name in exact.directions(problem, 0.5)
    )
    landed = exact.fixed_point(problem, o2td.TD(trace=0.5))
    row = rows["TD(trace=0.5)"]
    assert (row.rmse, row.stable) == (pytest.approx(landed.rmse), landed.stable)
    assert row.max_step_size == pytest.approx(landed.max_step_size)
    X = exact.directions(problem, trace=0.5)
    assert row.amplification == pytest.approx(exact.amplification(problem, X["TD(0.5)"]))
    assert rows["LSTD(trace=0.5)"].rmse == pytest.approx(row.rmse)
    assert rows["LSTD"].rmspbe == pytest.approx(0.0, abs=1e-9)


def test_methods_that_land_on_the_best_approximation_amplify_nothing() -> None:
    rows = {row.method: row for row in exact.analyze(make_problem(seed=2), (0.5,))}
    for name in ("MonteCarlo", "PluginOptimal"):
        assert rows[name].amplification == 1.0
        assert rows[name].suboptimality == pytest.approx(1.0)
    assert sum(row.amplification == 1.0 for row in rows.values()) == 2


@pytest.mark.parametrize("progress", [3, "print", object])
def test_progress_is_told_to_a_function(progress: Any) -> None:
    with pytest.raises(InputError, match="progress must be a function"):
        exact.analyze(make_problem(seed=2), progress=progress)


def test_directions_that_are_not_tabulated_are_found_by_probing() -> None:
    """VTrace has `X = (I - lambda P_c^T)^-1 Xi Phi`, `P_c = sum_a b min(1, rho) P gamma`."""
    problem = make_problem(seed=3)
    rows = {row.method: row for row in exact.analyze(problem, (0.9,))}
    p, xi = problem.pairs, exact.state_distribution(problem)
    b, pi = problem.behavior[p.state, p.action], problem.target[p.state, p.action]
    K = np.zeros((problem.n_states, problem.n_states))
    np.add.at(K, (p.state, p.next_state), np.minimum(b, pi) * p.probability * p.discount)
    X = np.linalg.solve(np.eye(len(K)) - 0.9 * K.T, xi[:, None] * problem.features)
    found = rows["VTrace(trace=0.9)"]
    assert found.amplification == pytest.approx(exact.amplification(problem, X), rel=1e-8)
    assert found.rmse == pytest.approx(
        exact.rmse(problem, exact.oblique_fixed_point(problem, X)), rel=1e-8
    )


def test_methods_without_a_direction_say_so() -> None:
    rows = {row.method: row for row in exact.analyze(make_problem(seed=3), (0.0,))}
    assert rows["O2TD"].amplification is None
    assert "no direction X" in rows["O2TD"].reason
    assert rows["Averager"].rmse is None
    assert rows["Averager"].reason


def test_what_the_theory_of_a_learner_holds_fixed_is_said() -> None:
    rows = {row.method: row for row in exact.analyze(make_problem(seed=3), (0.9,))}
    assert "traces and step size are held fixed" in rows["ARCTD(trace=0.9)"].reason
    assert rows["TD(trace=0.9)"].reason == ""


def test_large_problems_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """There a third look at where a method lands would change the reason alone."""
    looks = []

    class Counted(o2td.O2TD):
        def mean_dynamics(self, model: Any) -> Any:
            looks.append(model)
            return super().mean_dynamics(model)

    mine, empty = Registry("learners"), Registry("solvers")
    mine.register("Counted", Counted)
    monkeypatch.setattr(analysis, "LEARNERS", mine)
    monkeypatch.setattr(analysis, "SOLVERS", empty)
    monkeypatch.setattr(analysis, "_PROBED", 5)
    monkeypatch.setattr(analysis, "_CHOICES", {})
    (row,) = exact.analyze(make_problem(seed=3), (0.0,))
    assert row.amplification is None
    assert "over 5 states not searched" in row.reason
    assert len(looks) == 2


def test_methods_of_others_join_by_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine:
        initial_theta = None

        def mean_dynamics(self, model: object) -> object:
            return o2td.TD().mean_dynamics(model)  # type: ignore[arg-type]

    class Silent:
        pass

    mine, empty = Registry("learners"), Registry("solvers")
    mine.register("Mine", Mine)
    mine.register("Silent", Silent)
    monkeypatch.setattr(analysis, "LEARNERS", mine)
    monkeypatch.setattr(analysis, "SOLVERS", empty)
    problem = domains.collision(seed=0)
    rows = {row.method: row for row in exact.analyze(problem)}
    assert rows["Mine"].rmse == pytest.approx(exact.fixed_point(problem, o2td.TD()).rmse)
    assert rows["Silent"].reason == "it gives no mean dynamics"


def test_each_direction_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    original = analysis.amplification
    monkeypatch.setattr(
        analysis, "amplification", lambda p, X: made.append(X.sum()) or original(p, X)
    )
    problem = make_problem(seed=2)
    exact.analyze(problem, (0.0, 0.9))
    names = {*exact.directions(problem, 0.0), *exact.directions(problem, 0.9)}
    assert len(made) == len(names) - 1  # the best one is known without being made


def test_every_option_that_changes_where_a_method_lands_is_tried_with_every_choice():
    found = {name for name, _ in analysis.variants(LEARNERS, (0.0, 0.5))}
    found |= {name for name, _ in analysis.variants(SOLVERS, (0.0, 0.5))}
    assert {"TD", "TD(trace=0.5)", "LSTD", "LSTD(trace=0.5)"} <= found
    for option, choices in analysis._CHOICES.items():
        shown = {name.partition(f"{option}=")[2] for name in found if f"{option}=" in name}
        assert len({one.rstrip(")").partition(",")[0] for one in shown}) == len(choices) - 1


def test_a_learner_without_a_fixed_point_is_said_to_have_none() -> None:
    problem = make_problem(seed=2)

    class Drifts:
        def mean_dynamics(self, model: Any) -> SimpleNamespace:
            return SimpleNamespace(A=np.zeros((problem.d, problem.d)), b=np.ones(problem.d))

    finder = analysis._Amplification(problem, (0.0,), lambda *_: None)
    found = analysis._learner(problem, "Drifts", Drifts(), finder)
    assert found.reason == "its mean dynamics have no fixed point"
    assert (found.stable, found.max_step_size) == (False, 0.0)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_what_is_near_is_so_whatever_its_size(size: float) -> None:
    one = size * np.array([3.0, 4.0])
    for share, near in ((0.0, True), (0.9e-7, True), (1.1e-7, False), (1e-3, False)):
        assert analysis._near(one + share * size * np.array([4.0, -3.0]), one) == near
