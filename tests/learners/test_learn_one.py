"""Row by row is the same as a batch, for every learner, on its fast path and off it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from o2td import Transitions, learners
from o2td.errors import InputError
from o2td.learners import ETD, GTD2, HTD, MEMBERS, O2TD, TD, PowerDecay

from .conftest import as_rows, random_rows

CASES = [
    *(member(step_size=0.05) for member in MEMBERS),
    *(TD(0.05, trace=0.8), TD("auto"), TD(PowerDecay(0.2, 0.5), trace=0.3), O2TD(0.05, trace=0.6)),
    *(
        ETD(0.01, trace=0.7),
        ETD(0.01, decay=0.4),
        O2TD(0.05, omega="state"),
        O2TD(0.05, omega="printed"),
    ),
    *(
        GTD2(0.05, second_step_size=0.1, trace=0.7),
        HTD(0.05, second_step_size=0.1, trace=0.7),
        learners.GTD2MP(0.05, trace=0.5),
    ),
    *(
        learners.TDRC(0.05, trace=0.4),
        learners.VTrace(0.05, trace=0.9),
        learners.ABTD(0.05, zeta=0.9),
    ),
]


def feed(learner, table, batch, rows, interest=False):
    for t in rows:
        fields = {"state": batch["state"][t]} if "state" in repr(learner) else {}
        rho = batch["target_prob"][t] / batch["behavior_prob"][t]
        if learner.needs:
            fields |= {k: batch[k][t] for k in ("target_prob", "behavior_prob")}
        learner.learn_one(
            table[batch["state"][t]],
            batch["reward"][t],
            table[batch["next_state"][t]],
            batch["discount"][t],
            rho,
            bool(batch["start"][t]),
            **fields,
        )


@pytest.mark.parametrize("learner", CASES, ids=repr)
def test_learn_one_is_partial_fit(learner):
    table, batch = random_rows(60, double=False)
    batch["interest"] = np.ones(60)
    batch["discount"][::7] = 1.0
    expected = learner.clone().partial_fit(as_rows(table, batch)).theta
    one = learner.clone()
    feed(one, table, batch, range(60))
    np.testing.assert_allclose(one.theta, expected, rtol=1e-12, atol=1e-14)
    assert one.steps == 60

    mixed = learner.clone().partial_fit(as_rows(table, batch)[:20])
    feed(mixed, table, batch, range(20, 40))
    mixed.partial_fit(as_rows(table, batch)[40:])
    np.testing.assert_allclose(mixed.theta, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "learner", [TD(0.1, trace=0.5), ETD(0.1), GTD2(0.1), O2TD(0.1, omega="moments")], ids=repr
)
def test_a_copy_taken_between_rows_is_independent(learner):
    table, batch = random_rows(20, double=False)
    feed(learner, table, batch, range(10))
    before = learner.theta.copy()
    other = copy.deepcopy(learner)
    feed(other, table, batch, range(10, 20))
    np.testing.assert_array_equal(learner.theta, before)
    feed(learner, table, batch, range(10, 20))
    np.testing.assert_array_equal(learner.theta, other.theta)


@pytest.mark.parametrize(
    "learner", [TD(0.1), TD(0.1, trace=0.5), ETD(0.1), GTD2(0.1), GTD2(0.1, trace=0.5)], ids=repr
)
@pytest.mark.parametrize(
    "bad",
    [
        {"phi": [np.nan, 0.0]},
        {"phi": [1.0, 0.0, 0.0]},
        {"phi": [1j, 0.0]},
        {"phi": np.ones((2, 2))},
        {"next_phi": [np.inf, 0.0]},
        {"reward": np.nan},
        {"discount": 1.5},
        {"rho": -1.0},
        {"rho": np.nan},
        {"next_phi": None},
    ],
    ids=str,
)
def test_bad_rows_are_refused_and_change_nothing(learner, bad):
    learner = learner.clone()
    good = {"phi": np.ones(2), "reward": 1.0, "next_phi": np.ones(2), "discount": 0.5, "rho": 1.0}
    learner.learn_one(**good).learn_one(**good)
    state = pickle.dumps((learner._arrays, learner._carried, learner._memory))
    with pytest.raises(InputError):
        learner.learn_one(**{**good, **bad})
    assert pickle.dumps((learner._arrays, learner._carried, learner._memory)) == state


def test_other_types_are_converted():
    plain, other = TD(0.1), TD(0.1)
    for _ in range(3):
        plain.learn_one(np.array([1.0, 2.0]), 1.0, np.array([0.0, 1.0]), 0.5)
        frozen = np.array([0.0, 1.0])
        frozen.flags.writeable = False
        other.learn_one(np.array([1, 2], dtype=np.int64), 1, frozen[::1], np.float32(0.5))
    np.testing.assert_allclose(plain.theta, other.theta, rtol=1e-14)


def test_divergence_is_reported_row_by_row():
    learner = TD(10.0)
    for _ in range(2000):
        learner.learn_one(np.array([1.0]), 1.0, np.array([5.0]), 1.0)
    assert learner.status.kind == "diverged"
    assert np.isfinite(learner.theta).all()
    assert 0 < learner.status.step < 2000


@pytest.mark.parametrize(
    "learner", [TD(10.0), TD(10.0, trace=0.5), ETD(10.0), GTD2(10.0)], ids=repr
)
def test_after_divergence_no_row_moves_it_whichever_way_it_comes(learner):
    wild = {"phi": np.ones(1), "reward": 1.0, "next_phi": np.full(1, 5.0), "discount": 1.0}
    calm = {"phi": np.full(1, 1e-3), "reward": 1.0, "next_phi": np.zeros(1), "discount": 0.0}
    while learner.status.kind != "diverged":
        learner.learn_one(**wild)
    before = learner.theta, learner.steps, learner.status.step
    batch = Transitions(np.ones((200, 1)), 1.0, np.full((200, 1), 5.0), 1.0)
    whole = learner.clone().partial_fit(batch)
    assert (whole.steps, whole.status.step) == before[1:] == (before[1],) * 2
    for _ in range(3):
        learner.learn_one(**calm)
        assert (learner.theta, learner.steps, learner.status.step) == before


@pytest.mark.parametrize("learner", [TD(0.1), GTD2(0.1)], ids=repr)
def test_a_step_size_changed_between_rows_counts_from_the_next_one_on(learner):
    table, batch = random_rows(30, double=False)
    rows, one = as_rows(table, batch), learner.clone()
    whole = learner.clone().partial_fit(rows[:20])
    feed(one, table, batch, range(20))
    one.step_size = whole.step_size = 0.02
    feed(one, table, batch, range(20, 30))
    np.testing.assert_allclose(one.theta, whole.partial_fit(rows[20:]).theta, rtol=1e-12)


def test_a_parameter_of_a_class_of_ones_own_counts_from_the_next_row_on():
    class Own(learners.TDC):
        def __init__(self, step_size, *, kappa=0.0, **axes):
            self.kappa = kappa
            super().__init__(step_size, **axes)

        def member(self):
            return super().member()._replace(kappa=self.kappa)

    table, batch = random_rows(30, double=False)
    own, known = Own(0.05, kappa=0.5), learners.TDRC(0.05, regularizer=0.5)
    feed(own, table, batch, range(20))
    own.kappa = 3.0
    feed(own, table, batch, range(20, 30))
    known.partial_fit(as_rows(table, batch)[:20])
    known.regularizer = 3.0
    np.testing.assert_allclose(own.theta, known.partial_fit(as_rows(table, batch)[20:]).theta)


@pytest.mark.parametrize("kind", [TD, GTD2])
def test_a_member_that_fills_rows_in_its_own_way_is_the_same_row_by_row(kind):
    class Halved(kind):
        def _fill_rows(self, block, out):
            super()._fill_rows(block, out)
            out["gain"] /= 2.0

    table, batch = random_rows(20, double=False)
    one = Halved(0.1)
    feed(one, table, batch, range(20))
    expected = Halved(0.1).partial_fit(as_rows(table, batch)).theta
    np.testing.assert_allclose(one.theta, expected, rtol=1e-12)


@pytest.mark.parametrize("learner", [TD(0.1), ETD(0.1), GTD2(0.1)], ids=repr)
def test_a_successor_too_large_is_refused_also_where_theta_is_zero(learner):
    row = {"phi": np.ones(1), "reward": 0.0, "discount": 0.5}
    learner.learn_one(next_phi=np.ones(1), **row)
    with pytest.raises(InputError, match="scale them"):
        learner.learn_one(next_phi=np.full(1, 1e160), **row)
    assert learner.steps == 1


# -- the fast path ---------------------------------------------------------------------------------


FAST = [
    *(TD(0.05), TD(0.05, trace=0.8), ETD(0.01, trace=0.7), ETD(0.01, decay=0.4), O2TD(0.05)),
    *(O2TD(0.05, trace=0.6), learners.GTD(0.05, second_step_size=0.1, trace=0.7)),
    *(GTD2(0.05, second_step_size=0.1), GTD2(0.05, second_step_size=0.1, trace=0.7)),
    *(learners.TDC(0.05, second_step_size=0.1, trace=0.7), learners.TDRC(0.05, trace=0.4)),
    *(HTD(0.05, second_step_size=0.1, trace=0.7), learners.GTD2MP(0.05, trace=0.5)),
    learners.TDCMP(0.05, second_step_size=0.1, trace=0.5),
]


@pytest.mark.parametrize("learner", FAST, ids=repr)
def test_the_fast_path_is_taken_and_leaves_the_same_state(learner, monkeypatch):
    """After the first row no row may need a batch; all vectors and what is carried are compared."""
    table, batch = random_rows(12, d=4, seed=3, double=False)
    batch["interest"], batch["start"][6] = np.ones(12), True
    rows = as_rows(table, batch)
    expected, one = learner.clone().partial_fit(rows), learner.clone()
    feed(one, table, batch, range(1))

    def slow(*_):
        pytest.fail("a row was learned through a batch")

    monkeypatch.setattr(one, "_learn_row", slow)
    feed(one, table, batch, range(1, 12))
    assert one.steps == 12
    for name in one.vectors:
        if (one._traced and name != "zb") or not name.startswith("z") or isinstance(one, HTD):
            found, right = one._arrays[name], expected._arrays[name]
            np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-14, err_msg=name)
    monkeypatch.undo()
    table, batch = random_rows(7, d=4, seed=4, double=False)
    batch["interest"] = np.ones(7)
    batch["start"][0] = False  # what is carried from the last row counts
    more = as_rows(table, batch)
    one.partial_fit(more)
    expected.partial_fit(more)
    np.testing.assert_allclose(one.theta, expected.theta, rtol=1e-11, atol=1e-14)
