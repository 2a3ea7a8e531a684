from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2

from o2td import Problem, Transitions, domains, exact
from o2td.errors import InputError, NoAnswerError

S, A = 5, 2
FALSE_ALARM = 1e-6


def parts(seed: int = 0, **changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(S), (S, A))
    P[P < 0.1] = 0.0
    P /= P.sum(axis=2, keepdims=True)
    given: dict[str, Any] = {
        "transition": P,
        "reward": rng.standard_normal((S, A, S)),
        "discount": 0.9,
        "behavior": rng.dirichlet(np.ones(A), S),
        "target": rng.dirichlet(np.ones(A), S),
        "features": rng.standard_normal((S, 3)),
    }
    return given | changes


def sparse(array: Any) -> list[Any]:
    return [sp.csr_array(array[:, a]) for a in range(A)]


# -- what is refused -------------------------------------------------------------------------------


def altered(name: str, index: Any, value: float) -> dict[str, Any]:
    array = np.array(parts()[name])
    array[index] = value
    return {name: array}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (
            altered("transition", (2, 1, 0), 0.7),
            "transition sums to .* from state 2 under action 1",
        ),
        (altered("transition", (2, 1, 0), -0.1), "transition has a negative .* from state 2"),
        (altered("transition", (2, 1, 0), np.nan), r"transition is nan at \(2, 1, 0\)"),
        ({"transition": np.eye(S)}, r"transition must have shape \(S, A, S\)"),
        ({"transition": sparse(parts()["transition"])[:1]}, "behavior has shape"),
        ({"transition": [sp.eye_array(S), sp.eye_array(S + 1)]}, r"transition\[1\] has shape"),
        (altered("behavior", 3, 0.7), r"behavior sums to 1\.4 in state 3"),
        (altered("target", (1, 0), -1.0), r"target is -1\.0 at \(1, 0\)"),
        (altered("target", 1, 0.2), r"target sums to 0\.4 in state 1"),
        ({"discount": 1.1}, r"discount must be in \[0, 1\]"),
        ({"discount": np.ones((2, 2))}, "discount has shape"),
        ({"reward": np.ones(3)}, "reward has shape"),
        ({"reward": np.full(S, np.inf)}, "reward is inf"),
        ({"features": np.ones((S - 1, 2))}, "features has 4 rows for 5 states"),
        ({"features": np.full((S, 1), np.nan)}, "features has a value that is not finite"),
        ({"start": np.full(S, 0.5)}, r"start sums to 2\.5"),
        ({"start": np.eye(S)[0], "terminal": [0]}, "non-terminal states"),
        ({"terminal": [S]}, "terminal must be a mask"),
        ({"terminal": list(range(S))}, "terminal covers every state"),
        ({"interest": -np.ones(S)}, "interest"),
        ({"initial_theta": np.ones(2)}, r"initial_theta has shape \(2,\)"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        Problem(**parts(**changes))


def test_support_violation() -> None:
    behavior = parts()["behavior"]
    behavior[4] = [1.0, 0.0]
    with pytest.raises(InputError, match="never takes action 1 in state 4 but target does"):
        Problem(**parts(behavior=behavior))
    ends = Problem(**parts(behavior=behavior, terminal=[4]))  # nobody acts in a terminal state
    assert ends.behavior[4].sum() == 0.0


def test_rows_of_actions_that_nobody_takes_may_be_anything() -> None:
    P = parts()["transition"]
    P[0, 1] = 0.0
    only_first = parts()["behavior"]
    only_first[0] = [1.0, 0.0]
    Problem(**parts(transition=P, behavior=only_first, target=only_first))


def test_rounding_in_probabilities_is_taken_out() -> None:
    P = parts()["transition"] * (1.0 + 4e-9)
    problem = Problem(**parts(transition=P, behavior=parts()["behavior"] * (1.0 - 4e-9)))
    total = problem.transition_matrix(problem.behavior).sum(axis=1)
    np.testing.assert_allclose(total, 1.0, rtol=0, atol=1e-15)


# -- matrices --------------------------------------------------------------------------------------


def test_matrices_against_sums_over_the_arrays() -> None:
    given = parts(discount=np.linspace(0.1, 0.9, S))
    problem = Problem(**given)
    P, pi = given["transition"], given["target"]
    joint = pi[:, :, None] * P
    np.testing.assert_allclose(problem.transition_matrix(pi), joint.sum(axis=1))
    entered = (joint * given["discount"]).sum(axis=1)
    np.testing.assert_allclose(problem.discounted_matrix(pi), entered)
    np.testing.assert_allclose(
        problem.expected_reward(pi), (joint * given["reward"]).sum(axis=(1, 2))
    )


def test_sparse_input_is_the_same_problem() -> None:
    given = parts(discount=np.random.default_rng(3).random((S, A, S)))
    one = Problem(**given)
    given |= {name: sparse(given[name]) for name in ("transition", "reward", "discount")}
    other = Problem(**given)
    for a, b in zip(one.pairs, other.pairs, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.sample(50, seed=1).state, other.sample(50, seed=1).state)


def test_duplicate_sparse_entries_are_refused() -> None:
    double = sp.coo_array((np.full(2, 0.5), (np.zeros(2, int), np.zeros(2, int))), shape=(1, 1))
    one = np.ones((1, 1))
    with pytest.raises(InputError, match="duplicate"):
        Problem([double], 0.0, 0.9, one, one, one)


def test_large_problems_stay_sparse() -> None:
    n = 3000
    ring = sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    one = np.ones((n, 1))
    problem = Problem([ring], np.ones(n), 0.9, one, one, one)
    assert sp.issparse(problem.transition_matrix(problem.target))
    np.testing.assert_allclose(problem.visits, 1.0 / n)
    assert problem.sample(10).next_phi.shape == (10, 1)


def test_terminal_states_are_never_occupied() -> None:
    problem = Problem(**parts(terminal=[1, 3], start=np.eye(S)[0]))
    assert problem.visits[[1, 3]].sum() == 0.0
    ends = np.isin(problem.pairs.next_state, [1, 3])
    assert (problem.pairs.discount[ends] == 0.0).all()
    assert not np.isin(problem.pairs.state, [1, 3]).any()
    batch = problem.sample(2000, seed=0)
    assert batch.next_state is not None
    assert batch.state is not None
    after = np.isin(batch.next_state, [1, 3])
    np.testing.assert_array_equal(batch.start[1:], after[:-1])
    assert (batch.state[batch.start] == 0).all()
    assert batch.start[0]


# -- sampling --------------------------------------------------------------------------------------


def chi_square(count: Any, expected: Any) -> None:
    """Cells of at least 5 expected rows; false alarms one in a million."""
    big = expected >= 5.0
    assert count[expected == 0.0].sum() == 0
    pooled = np.append(count[big], count[~big].sum())
    wanted = np.append(expected[big], expected[~big].sum())
    pooled, wanted = pooled[wanted > 0], wanted[wanted > 0]
    statistic = ((pooled - wanted) ** 2 / wanted).sum()
    assert chi2.sf(statistic, len(wanted) - 1) > FALSE_ALARM


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("terminal", [None, [2]])
def test_iid_rows_agree_with_the_matrices(seed: int, terminal: Any) -> None:
    """Rows are independent, so counts of (s, a, s') follow a multinomial law exactly."""
    problem = Problem(**parts(seed=seed, terminal=terminal))
    n = 100_000
    batch = problem.sample(n, seed=(seed, 7), scheme="iid", double=True)
    p = problem.pairs
    assert batch.start.all()
    for next_state, rho, discount in (
        (batch.next_state, batch.rho, batch.discount),
        (batch.next_state_2, batch.rho_2, batch.discount_2),
    ):
        # (s, s', rho) tells the action, because ratios differ between actions
        keys, index = _pair_of(problem, batch.state, next_state, rho)
        assert np.isin(keys, np.arange(len(p.state))).all()
        np.testing.assert_array_equal(discount, p.discount[index])
        count = np.bincount(index, minlength=len(p.state))
        weight = problem.behavior[p.state, p.action] * p.probability
        chi_square(count, n * exact.state_distribution(problem)[p.state] * weight)
    assert batch.target_prob is not None
    assert batch.behavior_prob is not None
    np.testing.assert_allclose(batch.rho, batch.target_prob / batch.behavior_prob)
    index = _pair_of(problem, batch.state, batch.next_state, batch.rho)[1]
    np.testing.assert_array_equal(batch.reward, p.reward[index])


def _pair_of(problem: Problem, state: Any, next_state: Any, rho: Any) -> tuple[Any, Any]:
    p = problem.pairs
    ratio = problem.target[p.state, p.action] / problem.behavior[p.state, p.action]
    table = {
        (int(s), int(t), float(r)): k
        for k, (s, t, r) in enumerate(zip(p.state, p.next_state, ratio, strict=True))
    }
    rows = zip(state.tolist(), next_state.tolist(), rho.tolist(), strict=True)
    index = np.array([table[key] for key in rows])
    return index, index


@pytest.mark.parametrize("terminal", [None, [2]])
def test_sequential_rows_agree_with_the_matrices(terminal: Any) -> None:
    """Given the state, the pair (action, successor) is drawn independently of all before."""
    problem = Problem(**parts(seed=4, terminal=terminal))
    batch = problem.sample(100_000, seed=11)
    assert batch.state is not None
    p = problem.pairs
    index = _pair_of(problem, batch.state, batch.next_state, batch.rho)[1]
    count = np.bincount(index, minlength=len(p.state))
    visited = np.bincount(batch.state, minlength=S)
    weight = problem.behavior[p.state, p.action] * p.probability
    for s in np.flatnonzero(visited):
        of_state = p.state == s
        chi_square(count[of_state], visited[s] * weight[of_state])
    # Shares of states: rows depend on each other, so a wide margin instead of a test.
    np.testing.assert_allclose(visited / 100_000, problem.visits, atol=0.01)
    if terminal is None:
        np.testing.assert_array_equal(batch.state[1:], batch.next_state[:-1])  # type: ignore[index]


def test_second_successors_are_independent_of_the_first() -> None:
    """Among rows from one state, (s', s'_2) follows the product law; false alarms 1e-6."""
    problem = Problem(**parts(seed=1))
    batch = problem.sample(100_000, seed=3, double=True)
    assert batch.state is not None
    assert batch.next_state is not None
    assert batch.next_state_2 is not None
    P = problem.transition_matrix(problem.behavior)
    for s in range(S):
        rows = batch.state == s
        cell = batch.next_state[rows] * S + batch.next_state_2[rows]
        chi_square(np.bincount(cell, minlength=S * S), rows.sum() * np.outer(P[s], P[s]).ravel())


def digest(batch: Any) -> str:
    rows = np.column_stack(
        [batch.state, batch.next_state, batch.start, np.round(batch.rho * 2**20)]
    ).astype("<i8")
    return hashlib.sha256(rows.tobytes()).hexdigest()[:16]


def simple() -> Problem:
    """Probabilities that binary fractions hold exactly, so that no machine may differ."""
    P = np.zeros((4, 2, 4))
    P[:, 0] = [0.5, 0.25, 0.125, 0.125]
    P[:, 1] = [0.0, 0.0, 0.25, 0.75]
    behavior, target = np.full((4, 2), 0.5), np.tile([0.25, 0.75], (4, 1))
    return Problem(P, np.zeros(4), 0.5, behavior, target, np.eye(4), terminal=[3])


def test_rows_are_the_same_on_every_machine() -> None:
    problem = simple()
    assert digest(problem.sample(1000, seed=0)) == "cc7c9c30e145330a"
    assert digest(problem.sample(1000, seed=0, scheme="iid")) == "a43199cfb1d4aa8e"
    assert digest(problem.sample(1000, seed=(3, 1, 4))) == "8c2c695165722579"


def test_seeds_name_streams() -> None:
    problem = simple()
    first = digest(problem.sample(500, seed=5))
    assert first == digest(problem.sample(500, seed=5))
    assert first == digest(problem.sample(500, seed=[5]))
    sequence = np.random.SeedSequence(5)
    assert digest(problem.sample(500, seed=sequence)) == digest(problem.sample(500, seed=sequence))
    assert len({digest(problem.sample(500, seed=(5, run))) for run in range(20)}) == 20
    # A second successor does not disturb the walk.
    assert first == digest(problem.sample(500, seed=5, double=True))
    # More rows of the same seed go on where fewer ended.
    assert digest(problem.sample(900, seed=5)[:500]) == first


@pytest.mark.parametrize("seed", [-1, 1.5, "x", [-1], None])
def test_seeds_that_name_nothing_are_refused(seed: Any) -> None:
    with pytest.raises(InputError, match="seed"):
        simple().sample(3, seed=seed)


def test_wrong_requests_are_refused() -> None:
    with pytest.raises(InputError, match="scheme"):
        simple().sample(3, scheme="shuffled")
    with pytest.raises(InputError, match="n must be a whole number from 0"):
        simple().sample(-1)
    one = np.ones((2, 1))
    apart = Problem(np.eye(2)[:, None], 0.0, 0.9, one, one, one)
    with pytest.raises(NoAnswerError, match="depends on chance"):
        apart.sample(3, scheme="iid")
    assert len(simple().sample(0)) == 0


def test_interest_is_passed_on_only_where_it_says_something() -> None:
    assert Problem(**parts()).sample(5).interest is None
    interest = np.arange(5.0)
    batch = Problem(**parts(interest=interest)).sample(20, seed=1)
    np.testing.assert_array_equal(batch.interest, interest[batch.state])  # type: ignore[index]


def test_names_and_sizes() -> None:
    problem = Problem(**parts(name="mine"))
    assert (problem.n_states, problem.n_actions, problem.d) == (S, A, 3)
    assert repr(problem) == "Problem('mine', states=5, actions=2, features=3)"


def test_a_ratio_that_overflows_is_refused_when_rows_are_drawn():
    transition = np.ones((1, 2, 1))
    behavior, target = [[1.0, 5e-324]], [[0.5, 0.5]]
    problem = Problem(transition, np.zeros((1, 2)), 0.9, behavior, target, np.ones((1, 1)))
    with pytest.raises(InputError, match=r"target / behavior overflows in state 0 under action 1"):
        problem.sample(10)


def test_sampled_rows_pass_every_check_of_rows():
    """The sampler's rows are not checked one by one: here they are."""
    for make in (domains.garnet, domains.collision, domains.random_walk, domains.baird):
        for scheme in ("sequential", "iid"):
            batch = make().sample(500, seed=3, scheme=scheme, double=True)
            names = ("state", "reward", "next_state", "discount", "rho", "start", "target_prob")
            names += ("behavior_prob", "interest", "next_state_2", "discount_2", "rho_2")
            given = {name: getattr(batch, name) for name in names}
            again = Transitions.from_table(batch.table, **given)
            assert again.largest == batch.largest
            for name in names:
                np.testing.assert_array_equal(getattr(again, name), getattr(batch, name))
                column = getattr(batch, name)
                assert column is None or not column.flags.writeable


def test_nobody_changes_a_problem_from_outside() -> None:
    phi, start, interest = np.eye(2), np.array([1.0, 0.0]), np.ones(2)
    one = np.ones((2, 1))
    P = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    problem = Problem(P, np.ones(2), 0.5, one, one, phi, start=start, interest=interest)
    phi[0, 0] = start[0] = interest[0] = 5.0
    assert (problem.features[0, 0], problem.start[0], problem.interest[0]) == (1.0, 1.0, 1.0)
    for array in (problem.features, problem.start, problem.interest, problem.target):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_probabilities_of_float32_are_normalised() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(30), (30, 2)).astype(np.float32)
    policy = rng.dirichlet(np.ones(2), 30).astype(np.float32)
    start = rng.dirichlet(np.ones(30)).astype(np.float32)
    problem = Problem(P, np.zeros(30), 0.9, policy, policy, np.eye(30), start=start)
    np.testing.assert_allclose(
        problem.transition_matrix(problem.target).sum(axis=1), 1.0, rtol=1e-14
    )
    assert problem.start.sum() == pytest.approx(1.0, abs=1e-14)
    with pytest.raises(InputError, match=r"sums to 1\.0000001 from"):
        Problem(
            P.astype(float) * (1 + 1e-7) / P.astype(float).sum(2, keepdims=True),
            np.zeros(30),
            0.9,
            np.full((30, 2), 0.5),
            np.full((30, 2), 0.5),
            np.eye(30),
        )


def test_matrices_of_different_kinds_are_refused() -> None:
    from scipy.sparse import eye_array

    half, phi = np.full((2, 2), 0.5), np.eye(2)
    for second in (np.eye(2), eye_array(2) * (1.0 + 1.0j)):
        with pytest.raises(InputError, match=r"transition\[1\] is not a sparse matrix of real"):
            Problem([eye_array(2), second], np.zeros(2), 0.5, half, half, phi)
    Problem([eye_array(2)] * 2, np.zeros(2), 0.5, half, half, phi, terminal=[])
    with pytest.raises(InputError, match="whole number"):
        Problem([eye_array(2)] * 2, np.zeros(2), 0.5, half, half, phi, start=[1, 0]).sample(True)
