"""What few callers meet: loaded sums joined, empty answers, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import o2td
from o2td import Transitions
from o2td.errors import InputError

TABLE = np.array([[1.0, 0.0], [0.5, 2.0], [0.0, 3.0], [-1.0, 1.0]])


def rows(state, reward=1.0, table=TABLE, **more):
    state = np.asarray(state)
    given = {"discount": 0.5, "rho": 0.8} | more
    return Transitions.from_table(table, state, reward, np.roll(state, -1), **given)


def saved(solver, tmp_path, name):
    solver.save(tmp_path / name)
    return type(solver).load(tmp_path / name)


@pytest.mark.parametrize("convert", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("seen", [([0, 1, 0], [1, 2, 3, 2]), ([2, 3], [0, 1]), ([0], [0])])
def test_solvers_that_were_saved_can_be_merged(tmp_path, convert, seen):
    """Each file holds the features of its own states only."""
    one, two = (rows(part, reward=k + 1.0, table=convert(TABLE)) for k, part in enumerate(seen))
    expected = o2td.SOTD().update(one).update(two)
    first = saved(o2td.SOTD().update(one), tmp_path, "one")
    second = saved(o2td.SOTD().update(two), tmp_path, "two")
    for merged in (first.merge(second), saved(first, tmp_path, "three")):
        assert merged.rows == expected.rows
        assert merged._sums.state.tolist() == sorted({*seen[0], *seen[1]})
        features = merged._sums.features()
        np.testing.assert_array_equal(
            features.toarray() if hasattr(features, "toarray") else features,
            TABLE[merged._sums.state],
        )
        np.testing.assert_allclose(merged.theta, expected.theta, rtol=1e-12)


def test_other_features_of_the_same_state_are_averaged_over_its_visits(tmp_path):
    one, two = rows([0, 1, 0]), rows([0, 2], table=2.0 * TABLE)
    first = saved(o2td.SOTD().update(one), tmp_path, "one")
    second = saved(o2td.SOTD().update(two), tmp_path, "two")
    sums = first.merge(second)._sums
    expected = {0: (2 * TABLE[0] + 2.0 * TABLE[0]) / 3, 1: TABLE[1], 2: 2.0 * TABLE[2]}
    np.testing.assert_allclose(sums.features(), [expected[k] for k in range(3)])


def test_all_rows_are_forgotten():
    solver = o2td.LSTD().update(rows([0, 1, 2]))
    assert solver.theta.any()
    assert solver.reset() is solver
    assert solver.rows == 0
    with pytest.raises(InputError, match="has seen no data; call fit or update first"):
        solver.solve()
    again = solver.update(rows([2, 3, 1]))
    np.testing.assert_array_equal(again.theta, o2td.LSTD().fit(rows([2, 3, 1])).theta)
    changed = o2td.LSTD().update(rows([0, 1, 2]))
    changed.set_params(trace=0.5)
    assert changed.rows == 0


def test_an_answer_without_rows_or_features_that_say_anything():
    nothing = o2td.LSTD(trace="auto").fit(rows([0, 1, 2], table=np.zeros((4, 2)))).solution
    assert (nothing.status, nothing.rank, nothing.condition) == ("no data", 0, np.inf)
    np.testing.assert_array_equal(nothing.theta, 0.0)
    assert nothing.residual == 0.0
    assert o2td.LSTD(trace="auto").selects
    assert not o2td.LSTD(trace=0.5).selects


def test_omega_is_solved_again_after_new_rows():
    solver = o2td.DiagonalSOTD().update(rows([0, 1, 2, 0]))
    first = solver.omega
    assert len(first) == len(solver.omega_state) == 3
    solver.update(rows([3, 2, 1, 3]))
    np.testing.assert_array_equal(solver.omega_state, [0, 1, 2, 3])
    assert len(solver.omega) == 4
    assert len(o2td.DiagonalSOTD().update(rows([0, 1], rho=0.0)).omega) == 0


def test_batches_that_a_solver_cannot_use():
    wide = random_array((3, 5000), density=0.001, rng=0, format="csr")
    batch = Transitions(wide, np.ones(3), wide, 0.5)
    with pytest.raises(InputError, match="phi has 5000 sparse features; MonteCarlo takes at most"):
        o2td.MonteCarlo().update(batch)
    with pytest.raises(InputError, match="needs a second successor; pass next_phi_2"):
        o2td.BellmanResidual("double").update(rows([0, 1, 2]))
    with pytest.raises(InputError, match=r"next_target_probs must have shape \(4, actions\)"):
        o2td.LSTDQ.next_features(TABLE, np.full((3, 2), 0.5))
    with pytest.raises(InputError, match=r"next_target_probs must have shape \(4, actions\)"):
        o2td.LSTDQ.next_features(TABLE, np.full(4, 0.5))
    plain = Transitions(TABLE, np.ones(4), TABLE, 0.5)
    single, whole = (
        o2td.BellmanResidual().update(plain),
        o2td.BellmanResidual().update(rows([0, 1])),
    )
    with pytest.raises(InputError, match="another kind of successors or states than earlier"):
        single.merge(whole)


def test_the_answer_of_least_norm_in_any_units():
    """A singular system whose rows and columns differ by factors of a million: A^+ b by definition."""
    rng = np.random.default_rng(0)
    scale_rows, scale_columns = 10.0 ** rng.integers(-6, 7, 6), 10.0 ** rng.integers(-6, 7, 6)
    core = rng.integers(-3, 4, (6, 3)) @ rng.integers(-3, 4, (3, 6))
    A = core * scale_rows[:, None] * scale_columns
    x = np.linalg.pinv(core) @ rng.normal(size=6) / scale_columns
    found = o2td.linear_algebra.solve(A, A @ x, 0.0, {}, rows=100)
    assert found.status != "ok" or found.rank == 3
    assert found.rank == 3
    np.testing.assert_allclose(A @ found.theta, A @ x, rtol=1e-6, atol=1e-8 * np.abs(A @ x).max())
    null = np.linalg.svd(core)[2][3:].T / scale_columns[:, None]
    null /= np.linalg.norm(null, axis=0)
    assert np.abs(null.T @ found.theta).max() < 1e-6 * np.linalg.norm(found.theta)
