"""Parameters assigned to a solver are checked, and sums of other parameters are not mixed."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import domains, solvers
from o2td.errors import InputError
from o2td.registry import SOLVERS

PROBLEM = domains.random_walk()
ROWS, MORE = PROBLEM.sample(80, seed=0), PROBLEM.sample(80, seed=1)
WRONG = [
    ("LSTD", "trace", 2.0),
    ("LSTD", "trace", ROWS),
    ("LSTD", "ridge", -1),
    ("LSTD", "ridge", None),
    ("LSTD", "rho_on", "nope"),
    ("LSETD", "trace", "x"),
    ("LSETD", "decay", 2),
    ("SOTD", "weighting", "nope"),
    ("SOTD", "max_iterations", 0),
    ("DiagonalSOTD", "tolerance", -1),
    ("MonteCarlo", "ratios", "nope"),
    ("DantzigTD", "epsilon", -1),
    ("BellmanResidual", "sampling", 3),
    ("PluginOptimal", "weighting", None),
    ("DifferentialLSTD", "ridge", -1),
    ("LSTDQ", "ridge", "x"),
]
USES = {
    "fit": lambda x: x.fit(ROWS),
    "update": lambda x: x.update(ROWS),
    "solve": lambda x: x.solve(),
    "theta": lambda x: x.theta,
    "predict": lambda x: x.predict(ROWS.phi),
    "merge": lambda x: x.merge(x.clone()),
    "merge into": lambda x: type(x)().merge(x),
    "limit": lambda x: x.limit(None),
    "save": lambda x: x.save("never.npz"),
    "reset": lambda x: x.reset(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(("kind", "name", "value"), WRONG)
def test_what_the_constructor_refuses_is_refused_at_the_next_use(kind, name, value, use):
    for solver in (SOLVERS[kind](), SOLVERS[kind]().update(ROWS)):
        rows = solver.rows
        setattr(solver, name, value)
        with pytest.raises(InputError, match=name):
            USES[use](solver)
        assert solver.rows == rows


OTHERS = {
    "trace": 0.9,
    "ridge": 2.0,
    "rho_on": "target",
    "weighting": "ordinary",
    "start": "td",
    "solver": "gradient",
    "tolerance": 1e-3,
    "max_iterations": 3,
    "epsilon": 0.5,
    "denoise": True,
    "nonnegative": True,
    "sampling": "aggregated",
    "weighted": False,
    "ratios": "trajectory",
    "truncated": "drop",
    "decay": 0.5,
}
EACH = [(kind, name) for kind in SOLVERS for name in SOLVERS[kind].parameters()]


@pytest.mark.filterwarnings("ignore:rho_on")
@pytest.mark.parametrize(("kind", "name"), EACH)
def test_a_parameter_changes_where_the_sums_do_not_depend_on_it(kind, name):
    whole = SOLVERS[kind](**{name: OTHERS[name]}).update(ROWS).update(MORE)
    solver = SOLVERS[kind]().update(ROWS)
    before = solver.theta
    setattr(solver, name, OTHERS[name])
    if name in SOLVERS[kind].solved_with:
        one = SOLVERS[kind](**{name: OTHERS[name]}).fit(ROWS)
        np.testing.assert_array_equal(solver.theta, one.theta)
        np.testing.assert_array_equal(solver.update(MORE).theta, whole.theta)
        return
    for use in ("update", "solve", "theta", "predict", "save"):
        with pytest.raises(InputError, match=f"80 rows, which depend on {name}: reset"):
            USES[use](solver)
    other = solver.clone().update(ROWS).update(MORE)
    np.testing.assert_array_equal(other.theta, whole.theta)
    np.testing.assert_array_equal(solver.fit(ROWS).update(MORE).theta, whole.theta)
    again = SOLVERS[kind]().update(ROWS)
    setattr(again, name, OTHERS[name])
    setattr(again, name, getattr(SOLVERS[kind](), name))  # as before
    np.testing.assert_array_equal(again.theta, before)


def test_set_params_forgets_rows():
    solver = solvers.LSTD().fit(ROWS).set_params(trace=0.5)
    assert solver.rows == 0
    assert solver.fit(ROWS).trace == 0.5


def test_a_changed_solver_is_saved(tmp_path):
    solver = solvers.LSTD().fit(ROWS)
    solver.ridge = 1
    solver.save(tmp_path / "model.npz")
    loaded = solvers.LSTD.load(tmp_path / "model.npz")
    assert loaded.get_params() == solver.get_params() == solvers.LSTD(ridge=1.0).get_params()
    np.testing.assert_array_equal(loaded.theta, solver.theta)
