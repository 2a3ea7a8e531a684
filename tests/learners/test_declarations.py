"""What classes of learners and rules declare: slips are refused when the class is defined."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numba import njit

import o2td
from o2td.checks import all_checks
from o2td.errors import InputError, ParameterError
from o2td.learners import StepLearner
from o2td.learners.step_learner import add, dot, follow, td_error
from o2td.learners.step_sizes import AlphaBound, Auto, Rule
from o2td.registry import LEARNERS

from .conftest import as_rows, as_table, random_rows

TABLE, BATCH = random_rows(300, d=4, states=9, double=False)
ROWS = as_rows(TABLE, BATCH)


def nothing(row, p, s, theta, u):
    pass


def learner(**declared):
    return type("Mine", (StepLearner,), {"step": staticmethod(nothing), **declared})


@pytest.mark.parametrize("name", ["mean", "bound", "size", "scalars", "active", "active_b"])
def test_a_vector_cannot_have_the_name_of_an_array_that_learners_keep(name):
    with pytest.raises(InputError, match=f"vectors of Mine: every learner has '{name}' already"):
        learner(vectors=("theta", name))


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"vectors": ("u", "theta")}, "vectors of Mine: the first must be 'theta'"),
        ({"vectors": ("theta", "u", "u")}, "vectors of Mine: 'u' stands there twice"),
        ({"vectors": "theta"}, r"vectors of Mine: give a tuple of names, such as \('theta',\)"),
        ({"vectors": ("theta", "a b")}, "vectors of Mine: 'a b' is no name"),
        ({"vectors": ("theta", "u"), "traces": ("q",)}, "traces of Mine: 'q' is not among"),
        ({"vectors": ("theta", *"abcdefghi"), "traces": tuple("abcdefghi")},
         "traces of Mine: at most 8, got 9"),
        ({"vectors": ("theta", "u"), "scalars": "value"}, "scalars of Mine: give a tuple"),
        ({"vectors": ("theta", "u"), "scalars": ("steps",)}, "every learner has 'steps' already"),
        ({"vectors": ("theta", "u"), "scalars": ("a", "a")}, "scalars of Mine: 'a' stands there twice"),
        ({"vectors": ("theta", "u"), "needs": ("ratio",)}, "needs of Mine: rows have no field 'ratio'"),
        ({"vectors": ("theta",)}, "it must take 4 arguments, row, p, s, theta; it takes 5"),
        ({"vectors": ("theta", "u"), "step": 3}, "step of Mine: it must be a function, got int"),
    ],
)  # fmt: skip
def test_slips_of_a_class_are_refused_by_name(declared, said):
    with pytest.raises(InputError, match=said):
        learner(**declared)


def test_the_order_of_a_step_is_vectors_and_then_traces():
    seen = []

    def step(row, p, s, theta, u, z):
        seen.append((len(theta), len(u), type(z).__name__))

    learner(vectors=("theta", "z", "u"), traces=("z",), step=staticmethod(step))(0.1).partial_fit(
        ROWS[:1]
    )
    assert seen == [(4, 4, "DenseTrace")]


def plain_typo(row, p, s, theta):
    theta[0] += p.typo


@pytest.mark.parametrize("step", [plain_typo, njit(plain_typo)])
def test_an_error_in_a_step_is_named_as_that(step):
    mine = learner(vectors=("theta",), step=staticmethod(step))
    with pytest.raises(InputError, match=r"step of Mine: it raised \w+ for these rows \(.*typo"):
        mine(0.1).partial_fit(ROWS)


def test_a_step_that_reads_lambda_takes_one_for_all_states():
    """Otherwise `p.trace` would be NaN, and the learner would blame the step size."""

    @njit
    def step(row, p, s, theta, z):
        follow(z, p.trace * row.rho_before * row.before, 1.0, row.phi)
        add(theta, row.alpha * row.rho * td_error(row, theta), z)

    declared = {"vectors": ("theta", "z"), "traces": ("z",), "step": staticmethod(step)}
    mine = learner(**declared)
    with pytest.raises(InputError, match="Mine takes one number as trace for all states"):
        mine(0.1, trace=[0.5] * 9)
    assert not learner(**declared, one_lambda=False).one_lambda
    found = mine(0.05, trace=0.5).partial_fit(ROWS).theta
    np.testing.assert_allclose(found, o2td.TD(0.05, trace=0.5).partial_fit(ROWS).theta, rtol=1e-12)


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_a_parameter_is_a_parameter_or_refused(name):
    """Under the class's own name, whichever base would have taken it."""
    kind = LEARNERS[name]
    others = {key for one in LEARNERS for key in LEARNERS[one].parameters()}
    others -= {*kind.parameters(), *kind.undefined}
    for other in sorted(others):
        with pytest.raises(ParameterError, match=rf"^{name} (has no parameter|sets) .?{other}"):
            kind(**{other: 0.5})
    with pytest.raises(
        TypeError, match=f"{name} takes step_size as positional argument, and 2 were"
    ):
        kind(0.1, 0.5)


def test_a_class_of_ones_own_may_take_parameters_by_position():
    class Mine(o2td.TD):
        def __init__(self, step_size=0.1, power=1.0, **axes):
            self.power = power
            super().__init__(step_size, **axes)

    assert Mine(0.1, 0.5, trace=0.2).power == 0.5
    with pytest.raises(ParameterError, match="Mine takes step_size and power as positional"):
        Mine(0.1, 0.5, 0.2)


def test_a_number_that_was_loaded_is_shown_as_one(tmp_path):
    given = o2td.TD(0.1, initial_theta=0.3).partial_fit(ROWS)
    given.save(tmp_path / "td.npz")
    assert (
        repr(o2td.TD.load(tmp_path / "td.npz"))
        == repr(given)
        == "TD(step_size=0.1, initial_theta=0.3)"
    )


# -- step-size rules -------------------------------------------------------------------------------

PAIRS = [
    (AlphaBound(0.1), None),
    (AlphaBound(0.1), AlphaBound(0.05)),
    ("auto", AlphaBound(0.05)),
    (AlphaBound(0.1), "auto"),
    ("auto", Auto()),
]
TWO = sorted(name for name in LEARNERS if "second_step_size" in LEARNERS[name].parameters())


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_rules_of_two_step_sizes_remember_apart(name, pair, tmp_path):
    """Any split of the rows gives the same, and so does a learner saved half way."""

    def make():
        return LEARNERS[name](pair[0], second_step_size=pair[1])

    whole, parts = make().partial_fit(ROWS), make()
    for lo, hi in pairwise([0, 1, 2, 50, 51, 299, 300]):
        parts.partial_fit(ROWS[lo:hi])
        if hi == 51:
            parts.save(tmp_path / "parts.npz")
            parts = type(parts).load(tmp_path / "parts.npz")
    np.testing.assert_allclose(parts.theta, whole.theta, rtol=1e-10, atol=1e-13)


def test_a_second_rule_does_not_change_the_first():
    """Against plain NumPy: two bounds that fall on their own."""
    learned = o2td.TDC(AlphaBound(0.3), second_step_size=AlphaBound(0.02)).partial_fit(ROWS)
    theta, w, first, second = np.zeros(4), np.zeros(4), 0.3, 0.02
    for t in range(ROWS.n):
        phi, rho, gamma = ROWS.phi[t], ROWS.rho[t], ROWS.discount[t]
        next_phi = ROWS.next_phi[t] if gamma > 0.0 else np.zeros(4)
        along = rho * phi @ (phi - gamma * next_phi)
        if along > 0.0:
            first, second = min(first, 1.0 / along), min(second, 1.0 / along)
        delta = ROWS.reward[t] + gamma * next_phi @ theta - phi @ theta
        move = rho * (delta * phi - gamma * (phi @ w) * next_phi)
        w += second * (rho * delta - phi @ w) * phi
        theta += first * move
    np.testing.assert_allclose(learned.theta, theta, rtol=1e-10)


@pytest.mark.parametrize("name", ["ARCTD", "GEMETD", "TD", "TDRC"])
def test_auto_is_the_rule_that_the_word_stands_for(name):
    word, rule = (LEARNERS[name](size).partial_fit(ROWS) for size in ("auto", Auto()))
    np.testing.assert_array_equal(word.theta, rule.theta)
    assert repr(word) == repr(rule)


@njit
def by_feature(row, p, s, theta, beta, z):
    follow(z, row.decay, row.emphasis, row.phi)
    delta = td_error(row, theta)
    for j in range(len(beta)):
        beta[j] += p.rate
    add(theta, row.alpha * row.alpha_w * delta, z)


class Counted(Rule):
    """A rule with a vector and parameters of its own, and a step size from what rows measure."""

    vectors = ("beta",)
    step = staticmethod(by_feature)

    def __init__(self, size, rate):
        self.size, self.rate = size, rate

    def fill(self, gauge, out):
        with np.errstate(divide="ignore"):
            np.minimum(self.size, 0.5 / gauge.measured.square, out=out)


@pytest.mark.parametrize(
    "rows",
    [ROWS, as_table(TABLE, BATCH), as_rows(TABLE, BATCH, sparse=True)],
    ids=["dense", "table", "csr"],
)
def test_a_rule_by_feature_of_ones_own(rows):
    """Its own parameters reach its step, and it may measure rows."""
    learned = o2td.TD(Counted(0.02, 0.25), trace=0.4).partial_fit(rows)
    same = o2td.TD(o2td.learners.SwiftBound(0.02), trace=0.4).partial_fit(rows)
    np.testing.assert_allclose(learned.theta, same.theta, rtol=1e-10)
    np.testing.assert_array_equal(learned._arrays["beta"][0], np.full(4, 0.25 * rows.n))


def test_slips_of_a_rule_are_refused_by_name():
    for declared, said in (
        ({"vectors": ("beta",)}, "step of Own: it must be a function, got NoneType"),
        (
            {"vectors": ("z",), "step": staticmethod(by_feature)},
            "vectors of Own: 'z' stands there twice",
        ),
        (
            {"vectors": ("mean",), "step": staticmethod(by_feature)},
            "every learner has 'mean' already",
        ),
        ({"vectors": ("a", "b"), "step": staticmethod(by_feature)}, "it must take 7 arguments"),
    ):
        with pytest.raises(InputError, match=said):
            type("Own", (Rule,), declared)


@njit
def third_step(row, p, s, theta, u):
    add(theta, row.alpha * row.rho * td_error(row, theta), row.phi)
    add(u, p.third * (row.reward - dot(row.phi, u)), row.phi)


class Third(StepLearner):
    """TD(0), and a vector with a step size of its own."""

    vectors = ("theta", "u")
    own_step_sizes = ("third",)
    undefined = ("second_step_size", "clip", "cut", "trace", "emphasis")
    step = staticmethod(third_step)

    def __init__(self, step_size="auto", *, third=0.1, **axes):
        self.third = third
        super().__init__(step_size, **axes)

    def mean_dynamics(self, model):
        return o2td.TD().mean_dynamics(model)


class Unscaled(Third):
    """The same, which does not say so."""

    own_step_sizes = ()


def test_a_further_step_size_is_scaled_by_the_checks():
    """At a number for features of one size, u would diverge on features 2^30 times as large."""
    scaled, unscaled = (
        {
            str(check.subject): check
            for check in all_checks("learners", kind)
            if "scale_free" in str(check)
        }
        for kind in (Third, Unscaled)
    )
    for name in ("Third()", "Third(average=True)"):
        scaled[name]()
        with pytest.raises(Exception, match="predictions"):
            unscaled[f"Unscaled{name.removeprefix('Third')}"]()
