"""What every solver promises: files, refusals, singular systems, small memory."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import o2td
from o2td import Transitions
from o2td.errors import FormatError, InputError
from o2td.registry import SOLVERS

from .test_merge import SOLVERS as MADE
from .test_merge import layouts, same_sums, stream


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("layout", ["dense", "csr", "table"])
def test_a_saved_solver_goes_on_as_if_it_had_never_stopped(name, layout, tmp_path):
    batch = layouts(stream(4, True))[layout]
    solver = MADE[name]().update(batch[:31])
    solver.save(tmp_path / "a.npz")
    loaded = type(solver).load(tmp_path / "a.npz")
    assert loaded.get_params() == solver.get_params()
    same_sums(loaded, solver)
    np.testing.assert_array_equal(loaded.theta, solver.theta)
    same_sums(loaded.update(batch[31:]), solver.update(batch[31:]))
    np.testing.assert_allclose(loaded.theta, solver.theta, rtol=1e-9, atol=1e-12)


def test_an_unused_solver_is_saved_too(tmp_path):
    o2td.LSTD(trace=0.5).save(tmp_path / "a.npz")
    assert o2td.LSTD.load(tmp_path / "a.npz").get_params()["trace"] == 0.5
    with pytest.raises(FormatError, match="expected 'solver SOTD'"):
        o2td.SOTD.load(tmp_path / "a.npz")


@pytest.mark.parametrize("name", MADE)
def test_files_with_other_content_are_refused(name, tmp_path):
    from o2td import archive

    solver = MADE[name]().fit(stream(5, False))
    solver.save(tmp_path / "a.npz")
    kind = f"solver {type(solver).__name__}"
    header, arrays = archive.load(tmp_path / "a.npz", kind)
    widest = max(arrays, key=lambda key: arrays[key].ndim)
    for bad in (
        {**header, "statistics": "Other"},
        {**header, "parameters": {"no": 1}},
        {"parameters": {}},
    ):
        archive.save(tmp_path / "b.npz", kind, bad, arrays)
        with pytest.raises((FormatError, InputError)):
            type(solver).load(tmp_path / "b.npz")
    for wrong in (np.ones(3), np.ones((7, 7, 7))):
        archive.save(tmp_path / "b.npz", kind, header, {**arrays, widest: wrong})
        with pytest.raises(FormatError):
            type(solver).load(tmp_path / "b.npz")


def test_the_registry_has_all():
    names = "Averager BellmanResidual DantzigTD DiagonalSOTD LSETD LSTD LSTDQ MonteCarlo"
    assert [n for n in SOLVERS if n in f"{names} PluginOptimal SOTD".split()] == [
        *names.split(),
        "PluginOptimal",
        "SOTD",
    ]
    assert SOLVERS["lstd"] is o2td.LSTD


@pytest.mark.parametrize("name", MADE)
def test_no_rows_no_data_and_no_call(name):
    solver = MADE[name]()
    with pytest.raises(InputError, match="no data"):
        solver.theta  # noqa: B018
    batch = stream(6, False)
    empty = solver.fit(batch[:0])
    assert (empty.solution.status, empty.theta.tolist()) == ("no data", [0.0] * 4)
    again = solver.update(batch)
    np.testing.assert_array_equal(again.theta, MADE[name]().fit(batch).theta)


@pytest.mark.parametrize("name", MADE)
def test_rows_without_ratio_teach_nothing(name):
    batch = stream(7, False)
    silent = Transitions.from_table(
        batch.table,
        batch.state,
        batch.reward,
        batch.next_state,
        batch.discount,
        rho=0.0,
        next_state_2=batch.next_state_2,
    )
    solver = MADE[name]().fit(silent)
    if name in ("LSTDQ",):
        assert solver.solution.status == "ok"
    else:
        assert not solver.theta.any()


@pytest.mark.parametrize("name", MADE)
def test_a_batch_that_overflows_is_refused_and_changes_nothing(name):
    batch = stream(8, False)
    solver = MADE[name]().update(batch)
    before = solver.theta.copy()
    huge = Transitions.from_table(
        batch.table,
        batch.state,
        np.full(batch.n, 1e308),
        batch.next_state,
        batch.discount,
        rho=1e10,
        next_state_2=batch.next_state_2,
    )
    if name != "LSTDQ":
        with pytest.raises(InputError, match="overflow"):
            solver.update(huge)
    with pytest.raises(InputError, match="pass Transitions"):
        solver.update(batch.phi)
    assert solver.rows == batch.n
    np.testing.assert_array_equal(solver.theta, before)


def test_sums_that_overflow_together_are_refused():
    phi = np.ones((1, 1))
    batch = Transitions(phi, 1.5e308, phi, 0.0, state=[0], next_state=[-1])
    for solver in (o2td.LSTD(), o2td.SOTD(), o2td.MonteCarlo(), o2td.LSTD(trace=0.5)):
        solver.update(batch)
        with pytest.raises(InputError, match="overflow"):
            solver.update(batch)
        assert solver.rows == 1
        assert solver.theta[0] == 1.5e308


@pytest.mark.parametrize("name", ["LSTD", "LSTD traced", "LSETD", "SOTD", "BellmanResidual"])
def test_repeated_features_give_the_smallest_answer_and_say_so(name):
    batch = stream(9, False, n=200)
    twice = np.hstack([batch.table, batch.table[:, :1]])
    wide = Transitions.from_table(
        twice, batch.state, batch.reward, batch.next_state, batch.discount, rho=batch.rho
    )
    solver = MADE[name]().fit(wide)
    assert solver.solution.status == "minimum norm"
    assert solver.solution.rank == 4
    assert solver.theta[0] == pytest.approx(solver.theta[4], rel=1e-6)
    single = MADE[name]().fit(
        Transitions.from_table(
            batch.table, batch.state, batch.reward, batch.next_state, batch.discount, rho=batch.rho
        )
    )
    np.testing.assert_allclose(solver.predict(twice), single.predict(batch.table), rtol=1e-6)


@pytest.mark.parametrize("name", ["LSTD", "LSETD traced", "SOTD", "SOTD ordinary", "PluginOptimal"])
def test_features_in_other_units_change_theta_and_no_prediction(name):
    batch = stream(11, False, n=200)
    units = np.array([1e-12, 1.0, 1e9, 1e-5])
    names = ("state", "reward", "next_state", "discount", "rho")
    vectors = {key: getattr(batch, key) for key in names}
    plain, other = (
        MADE[name]().fit(Transitions.from_table(table, **vectors))
        for table in (batch.table, batch.table * units)
    )
    np.testing.assert_allclose(other.theta * units, plain.theta, rtol=1e-6)
    assert other.solution.status == plain.solution.status == "ok"


def test_many_sparse_features_keep_the_matrix_sparse():
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    n, d = 1000, 8000
    cells = rng.integers(0, 200, size=n + 1) * 40
    phi = csr_array((np.ones(n + 1), cells, np.arange(n + 2)), shape=(n + 1, d))
    batch = Transitions(phi[:-1], rng.normal(size=n), phi[1:], 0.9)
    solver = o2td.LSTD().fit(batch)
    assert not isinstance(solver._sums.A, np.ndarray)
    assert solver.solution.status == "minimum norm"
    small = Transitions(
        phi[:-1, ::40].toarray(), batch.reward, phi[1:, ::40].toarray(), batch.discount
    )
    dense = o2td.LSTD().fit(small)
    np.testing.assert_allclose(solver.theta[::40], dense.theta, rtol=1e-5, atol=1e-6)
    assert np.count_nonzero(solver.theta) <= 200
    regular = o2td.LSTD(ridge=1.0).fit(batch)
    assert regular.solution.status == "ok"
    np.testing.assert_allclose(
        regular.theta[::40], o2td.LSTD(ridge=1.0).fit(small).theta, rtol=1e-9, atol=1e-12
    )
    with pytest.raises(InputError, match="trace=0"):
        o2td.LSTD(trace=0.5).fit(batch)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: o2td.LSTD(trace=1.5), r"trace must be a number in \[0, 1\], got 1.5"),
        (lambda: o2td.LSTD(trace=float("nan")), "trace must be .* got nan"),
        (lambda: o2td.LSTD(trace="x"), "must be a number"),
        (lambda: o2td.LSTD(ridge=-1.0), "ridge must be .* at least 0, got -1.0"),
        (lambda: o2td.LSTD(rho_on="x"), "must be one of"),
        (lambda: o2td.LSETD(decay=2.0), "decay must be .* got 2.0"),
        (lambda: o2td.SOTD(weighting="x"), "must be one of"),
        (lambda: o2td.SOTD(solver="x"), "must be one of"),
        (lambda: o2td.SOTD(start="x"), "must be one of"),
        (
            lambda: o2td.SOTD(max_iterations=0),
            "max_iterations .* at least 1, got 0",
        ),
        (lambda: o2td.BellmanResidual("single", weighted=False), "aggregated"),
        (lambda: o2td.BellmanResidual(sampling="x"), "must be one of"),
        (lambda: o2td.MonteCarlo("x"), "must be one of"),
        (lambda: o2td.DantzigTD(epsilon=-1), "epsilon must be .* got -1"),
        (lambda: o2td.LSTDQ(ridge=True), "ridge must be a finite number .* got True"),
    ],
)
def test_bad_parameters_are_refused(make, why):
    with pytest.raises(InputError, match=why):
        make()


def test_predict_takes_rows_of_any_kind():
    from scipy.sparse import csr_array

    solver = o2td.LSTD().fit(stream(10, False))
    rows = np.random.default_rng(0).normal(size=(3, 4))
    expected = rows @ solver.theta
    np.testing.assert_allclose(solver.predict(rows), expected)
    np.testing.assert_allclose(solver.predict(csr_array(rows)), expected)
    assert solver.predict(rows[1]) == pytest.approx(expected[1])
    with pytest.raises(InputError, match="3 features, theta has 4"):
        solver.predict(rows[:, :3])


def test_repr_shows_the_parameters():
    assert repr(o2td.LSTD(0.5)) == "LSTD(trace=0.5)"
    assert repr(o2td.Averager()) == "Averager()"


@pytest.mark.slow
def test_accumulation_runs_at_half_the_rate_of_a_plain_product():
    """Both on one thread, best of several: other work on the machine slows both."""
    code = """
import time
import numpy as np
import o2td
rng = np.random.default_rng(0)
phi, later = rng.random((50_000, 201)), rng.random((50_000, 201))
batch = o2td.Transitions(phi, 1.0, later, 0.9, rho=rng.random(50_000))
def best(call):
    times = []
    for _ in range(8):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)
print(best(lambda: np.dot(phi.T, later)) / best(lambda: o2td.LSTD().update(batch)))
"""
    one = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=one)
    assert float(done.stdout) > 0.5, done.stderr


# Not `ru_maxrss`: that begins with what the process that started this one has.
LARGE = """
import re, sys
import numpy as np
import o2td
rng = np.random.default_rng(0)
S, d, n = 100_000, 200, 400_000
table = rng.random((S, d))
state, later = rng.integers(S, size=n), rng.integers(S, size=n)
state[:S] = np.arange(S)
batch = o2td.Transitions.from_table(
    table, state, rng.normal(size=n), later, 0.9, rho=rng.random(n) * 2
)
solver = eval(sys.argv[1])
for part in batch.chunks(100_000):
    solver.update(part)
solver.solve()
assert solver.solution.status != "no data"
with open("/proc/self/status") as status:
    print(int(re.search(r"VmHWM:\\s*([0-9]+)", status.read())[1]) / 2**20)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "made",
    [
        "o2td.SOTD()",
        "o2td.SOTD(start='td', solver='nesterov', max_iterations=500)",
        "o2td.DiagonalSOTD(max_iterations=5)",
        "o2td.DiagonalSOTD(nonnegative=True, max_iterations=5)",
        "o2td.BellmanResidual(weighted=False)",
        "o2td.PluginOptimal()",
        "o2td.LSTD(trace=0.9)",
        "o2td.MonteCarlo()",
    ],
)
def test_a_hundred_thousand_states_fit_in_two_gigabytes(made):
    done = subprocess.run(
        [sys.executable, "-c", LARGE, made], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 2.0
