"""Parameters assigned to a learner that exists are checked, and count from the next row on."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from o2td import domains, exact, learners, sweep
from o2td.errors import InputError
from o2td.learners import (
    ABTD,
    ATD,
    ETD,
    GTD2,
    O2TD,
    PERETD,
    TD,
    TDC,
    TDCMP,
    TDRC,
    TruncatedETD,
    VarianceTD,
)
from o2td.learners.step_sizes import TIDBD, AlphaBound, PowerDecay

from .conftest import LAYOUTS, as_rows, random_rows

PROBLEM = domains.random_walk()
ROWS = PROBLEM.sample(60, seed=0)

USES = {
    "partial_fit": lambda x: x.partial_fit(ROWS),
    "fit": lambda x: x.fit(ROWS),
    "learn_one": lambda x: x.learn_one(np.array(ROWS.phi[0]), 1.0, np.array(ROWS.phi[1]), 0.9),
    "theta": lambda x: x.theta,
    "predict": lambda x: x.predict(ROWS.phi),
    "reset": lambda x: x.reset(),
    "clone": lambda x: x.clone(),
    "sweep": lambda x: sweep([x], ROWS),
    "limit": lambda x: exact.fixed_point(PROBLEM, x),
    "save": lambda x: x.save("never.npz"),
}

WRONG = [
    (TD, "trace", 2),
    (TD, "trace", -1),
    (TD, "l1", -1),
    (TD, "l1", "x"),
    (TD, "step_size", "x"),
    (TD, "step_size", -0.1),
    (TD, "average", -5),
    (TD, "emphasis", 3),
    (TD, "cut", "nope"),
    (TD, "clip", 0),
    (TD, "radius", -1),
    (TD, "replicates", -3),
    (TDRC, "regularizer", -1),
    (TDC, "second_step_size", -1),
    (ATD, "rank", ROWS),
    (PERETD, "period", 0),
    (GTD2, "form", "nope"),
]


@pytest.mark.parametrize(
    ("kind", "name", "value", "use"),
    [(*one, use) for one in WRONG for use in USES if (one[0], use) != (ATD, "limit")],
)  # ATD has no limit
def test_what_the_constructor_refuses_is_refused_at_the_next_use(kind, name, value, use):
    for learner in (kind(0.1), kind(0.1).partial_fit(ROWS)):
        before = learner.steps, learner.last_theta
        setattr(learner, name, value)
        with pytest.raises(InputError, match=name):
            USES[use](learner)
        assert learner.steps == before[0]
        vars(learner).update(learner._assigned)  # as it was
        learner._assigned = None
        np.testing.assert_array_equal(learner.last_theta, before[1])


LATE = [
    (TD, "average", True),
    (TD, "l1", 0.1),
    (TDCMP, "l1", 2**64),
    (TD, "radius", 1.0),
    (TD, "step_size", TIDBD()),
    (TD, "initial_theta", 1.0),
    (ATD, "rank", 2),
    (TruncatedETD, "length", 3),
    (VarianceTD, "form", "moment"),
]


@pytest.mark.parametrize(("kind", "name", "value"), LATE)
def test_what_the_state_depends_on_changes_before_the_first_row_only(kind, name, value):
    whole = kind(0.1, **{name: value}) if name != "step_size" else kind(value)
    whole.partial_fit(ROWS)
    learner = kind(0.1)
    setattr(learner, name, value)
    np.testing.assert_array_equal(learner.partial_fit(ROWS).theta, whole.theta)
    learner = kind(0.1).partial_fit(ROWS)
    setattr(learner, name, value)
    for use in ("partial_fit", "learn_one", "predict", "theta", "save"):
        with pytest.raises(InputError, match=f"60 rows and cannot change {name}.*reset"):
            USES[use](learner)
    np.testing.assert_array_equal(learner.clone().partial_fit(ROWS).theta, whole.theta)
    np.testing.assert_array_equal(copy.deepcopy(learner).fit(ROWS).theta, whole.theta)
    np.testing.assert_array_equal(learner.reset().partial_fit(ROWS).theta, whole.theta)


def test_replicates_and_their_average_change_before_the_first_row_only():
    learner = TD(0.1)
    learner.replicates, learner.average = 4, True
    assert learner.partial_fit(ROWS).predict(ROWS.phi, interval=0.9).value.shape == (60,)
    learner.replicates = 8
    with pytest.raises(InputError, match="cannot change replicates"):
        learner.predict(ROWS.phi, interval=0.9)
    learner.replicates = 4  # as before
    learner.predict(ROWS.phi, interval=0.9)
    learner.average = False
    with pytest.raises(InputError, match="replicates=4 of TD need averaged"):
        learner.predict(ROWS.phi)


def test_what_a_learner_sets_itself_cannot_be_assigned():
    learner = ETD(0.1)
    learner.emphasis = "uniform"
    with pytest.raises(InputError, match="ETD sets emphasis itself"):
        learner.partial_fit(ROWS)


CHANGES = [
    (TD, {}, {"trace": 0.9}),
    (TD, {"trace": 0.9}, {"trace": 0.0}),
    (TD, {}, {"trace": [0.5] * 40}),
    (GTD2, {}, {"trace": 0.9}),
    (GTD2, {"trace": 0.9}, {"trace": 0.0}),
    (TD, {"trace": 0.5}, {"emphasis": "follow-on"}),
    (ETD, {"trace": 0.5}, {"trace": 0.9}),
    (TD, {"emphasis": "omega:state"}, {"emphasis": "omega:sample"}),
    (TD, {"emphasis": "omega:sample"}, {"emphasis": "follow-on"}),
    (TD, {"step_size": 0.05}, {"step_size": np.float32(0.5)}),
    (TD, {"step_size": "auto"}, {"step_size": 1}),
    (TD, {"step_size": AlphaBound()}, {"step_size": 0.05}),
    (TDRC, {}, {"regularizer": 2.0}),
    (TDC, {}, {"second_step_size": 0.5}),
    (TD, {"trace": 0.9}, {"clip": 1}),
    (ABTD, {"zeta": 0.9}, {"zeta": 0.4}),
    (ETD, {}, {"decay": 0.5}),
    (O2TD, {}, {"omega": "printed"}),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("kind", "first", "then"), CHANGES)
def test_a_change_at_a_start_is_as_if_the_learner_had_been_made_with_it(kind, first, then, layout):
    """With traces and emphasis restarted, what remains is theta, and w."""
    batch = as_rows_of(layout)
    given = {"step_size": 0.05, **first}
    learner = kind(**given).partial_fit(batch[:30])
    for name, value in then.items():
        setattr(learner, name, value)
    fresh = kind(**{**given, **then}, initial_theta=learner.last_theta)
    w = learner._arrays.get("w")
    if w is not None:
        fresh._allocate(batch.d)
        fresh._arrays["w"][:] = w
    after = batch[30:]
    np.testing.assert_allclose(
        learner.partial_fit(after).theta, fresh.partial_fit(after).theta, rtol=1e-12
    )


def as_rows_of(layout):
    """Rows of which the one in the middle is a start."""
    table, batch = random_rows(60, double=False)
    batch["start"][30] = True
    return LAYOUTS[layout](table, batch)


def test_a_trace_that_was_off_begins_with_the_next_row():
    table, batch = random_rows(60, double=False)
    rows = as_rows(table, batch)
    on = TD(0.05, trace=0.9).partial_fit(rows[:20])
    on.trace = 0.0
    on.partial_fit(rows[20:40])
    on.trace = [0.9] * 40
    theta = on.last_theta
    fresh = TD(0.05, trace=[0.9] * 40, initial_theta=theta)
    np.testing.assert_allclose(
        on.partial_fit(rows[40:]).theta, fresh.partial_fit(rows[40:]).theta, rtol=1e-12
    )


@pytest.mark.parametrize(("kind", "first", "then"), CHANGES)
def test_a_changed_learner_is_saved_copied_and_sent(kind, first, then, tmp_path):
    learner = kind(**{"step_size": 0.05, **first}).partial_fit(ROWS)
    for name, value in then.items():
        setattr(learner, name, value)
    others = [copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))]  # noqa: S301
    learner.save(tmp_path / "model.npz")
    others.append(learners.Learner.load(tmp_path / "model.npz"))
    learner.partial_fit(ROWS)
    for other in others:
        np.testing.assert_array_equal(other.partial_fit(ROWS).theta, learner.theta)
    row = ROWS[:1]
    given = [np.array(row.phi[0]), row.reward[0], np.array(row.next_phi[0]), row.discount[0]]
    more = {k: getattr(row, k)[0] for k in ("state", "target_prob", "behavior_prob")}
    one = others[0].learn_one(*given, start=bool(row.start[0]), **more)
    np.testing.assert_allclose(one.theta, learner.partial_fit(row).theta, rtol=1e-12)


def test_a_class_of_ones_own_that_assigns_after_its_base_works_as_before():
    class Own(TD):
        def __init__(self, step_size=0.1, *, speed=1.0, **axes):
            super().__init__(step_size, **axes)
            self.speed = speed
            self.trace = 0.5 * speed

    learner, whole = Own(speed=1.0).partial_fit(ROWS), TD(0.1, trace=0.5).partial_fit(ROWS)
    np.testing.assert_array_equal(learner.theta, whole.theta)


def test_numbers_are_those_of_the_constructor():
    learner = TD(0.1)
    learner.step_size, learner.trace = np.float32(0.5), 1
    assert learner.partial_fit(ROWS).get_params() == TD(0.5, trace=1.0).get_params()
    assert type(learner.step_size) is type(learner.trace) is float
    learner.step_size = PowerDecay(0.5, 0.5)
    assert learner.partial_fit(ROWS).step_size == PowerDecay(0.5, 0.5)
