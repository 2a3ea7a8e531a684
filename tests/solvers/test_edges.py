"""Edges that a changed line would move unnoticed: found by mutating the solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td import Transitions, domains
from o2td.errors import InputError
from o2td.linear_algebra import solve


def test_choices_are_checked_by_every_solver_that_has_them() -> None:
    kinds = (o2td.PluginOptimal, o2td.SOTD, o2td.DiagonalSOTD, o2td.BellmanResidual, o2td.DantzigTD)
    for kind in kinds:
        with pytest.raises(InputError, match="weighting"):
            kind(weighting="odd")


def test_actions_have_one_integer_a_row() -> None:
    phi = np.ones((3, 2))
    for action in ([0, 1], [0.0, 1.0, 0.0]):
        with pytest.raises(InputError, match="action must be integers"):
            o2td.LSTDQ.features(phi, action, 2)


def test_emphasis_ends_with_the_discount_also_between_parts() -> None:
    """After a row with discount 0 no follow-on weight is left, whatever `decay` says."""
    rng = np.random.default_rng(0)
    discount = np.full(8, 0.9)
    discount[3] = 0.0
    batch = Transitions(
        rng.normal(size=(8, 2)), rng.normal(size=8), rng.normal(size=(8, 2)), discount,
        rho=rng.uniform(0.5, 1.5, 8), start=[True, *[False] * 7],
    )  # fmt: skip
    whole = o2td.LSETD(trace=0.5, decay=0.5).fit(batch)
    parts = o2td.LSETD(trace=0.5, decay=0.5).update(batch[:4])
    parts.merge(o2td.LSETD(trace=0.5, decay=0.5).update(batch[4:]))
    np.testing.assert_allclose(parts.solve().theta, whole.theta, rtol=1e-12)


def test_a_direct_answer_counts_no_iterations() -> None:
    batch = Transitions(np.eye(2), [1.0, 2.0], np.eye(2), discount=0.5)
    assert o2td.LSTD().fit(batch).solution.iterations == 0


def test_a_closed_set_without_discount_has_the_smallest_of_its_values() -> None:
    """`v_0 - v_1 = 1`, and nothing says how large they are."""
    batch = Transitions.from_table(np.eye(2), [0, 1], [1.0, -1.0], [1, 0], discount=1.0)
    solver = o2td.PluginOptimal().fit(batch)
    np.testing.assert_allclose(solver.theta, [0.5, -0.5], atol=1e-12)


def test_numbers_and_choices_out_of_range_are_refused() -> None:
    for make in (
        lambda: o2td.BellmanResidual(sampling="odd"),
        lambda: o2td.BellmanResidual(ridge=-1.0),
        lambda: o2td.SOTD(solver="odd"),
        lambda: o2td.SOTD(start="odd"),
        lambda: o2td.SOTD(max_iterations=0),
        lambda: o2td.SOTD(ridge=-1.0),
        lambda: o2td.SOTD(tolerance=-1.0),
        lambda: o2td.LSTD(trace=1.5),
        lambda: o2td.DantzigTD(epsilon=-1.0),
        lambda: o2td.DiagonalSOTD(tolerance=-1.0),
    ):
        with pytest.raises(InputError):
            make()


def test_a_single_state_is_data() -> None:
    batch = Transitions.from_table(np.ones((1, 1)), [0], [1.0], [0], discount=0.5)
    solver = o2td.DantzigTD(epsilon=0.0, denoise=True).fit(batch)
    assert solver.solution.status == "ok"
    assert solver.theta[0] == pytest.approx(2.0)


def test_no_features_are_no_trouble() -> None:
    answer = solve(np.zeros((0, 0)), np.zeros(0))
    assert (answer.status, answer.rank, answer.condition, answer.residual) == ("ok", 0, 1.0, 0.0)


@pytest.mark.parametrize("solver", ["gradient", "nesterov"])
def test_when_an_iteration_stops_does_not_depend_on_the_unit(solver: str) -> None:
    batch = domains.boyan_chain().sample(400, seed=0)
    made = o2td.SOTD(solver=solver, tolerance=1e-4, max_iterations=100_000)
    assert batch.state is not None
    fitted = [
        made.clone().fit(
            Transitions(
                unit * batch.phi, batch.reward, unit * batch.next_phi, batch.discount,
                rho=batch.rho, start=batch.start, state=batch.state,
            )
        )
        for unit in (1.0, 2.0**-10, 2.0**10)
    ]  # fmt: skip
    steps = {one.solution.iterations for one in fitted}
    assert len(steps) == 1
    assert 10 < steps.pop() < 100_000


def test_sparse_successors_that_do_not_count_are_not_read() -> None:
    """Where the discount is 0 they may hold anything."""
    phi = csr_array(np.eye(3))
    later = csr_array(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [np.nan, np.inf, 1.0]]))
    batch = Transitions(phi, [1.0, 1.0, 1.0], later, [0.9, 0.9, 0.0])
    expected = [2.71, 1.9, 1.0]
    for trace in (0.0, 0.7):
        np.testing.assert_allclose(o2td.LSTD(trace=trace).fit(batch).theta, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("solver", "remedy"), [(o2td.LSTD(trace=0.5), "pass trace=0"), (o2td.LSETD(), "take LSTD")]
)
def test_sums_too_large_for_sparse_features_name_what_works(solver: Any, remedy: str) -> None:
    phi = csr_array(([1.0], ([0], [0])), shape=(1, 5000))
    batch = Transitions(phi, [1.0], phi, discount=0.5)
    with pytest.raises(InputError, match=f"5000 sparse features.*{remedy}"):
        solver.fit(batch)
    assert o2td.LSTD().fit(batch).theta[0] == pytest.approx(2.0)


def test_the_row_of_a_table_that_is_no_mean_is_named_as_it_is_counted() -> None:
    table = np.array([[1.0, 0.0], [0.5, 0.5], [0.7, 0.7]])
    rows = Transitions.from_table(table, np.array([0, 1, 2]), np.ones(3), np.array([1, 2, 0]), 0.5)
    with pytest.raises(InputError, match=r"table is not a row of weights in row 2 \(sum 1.4"):
        o2td.Averager().fit(rows)
