"""Error bars: replicates are lanes whose rows count at random, and tell how far off a learner is."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import domains, exact
from o2td.errors import InputError
from o2td.learners import Learner
from o2td.learners.replicates import SPREAD, multipliers
from o2td.transitions import Transitions

LEARNERS = [
    o2td.TD(0.1, trace=0.5, average=True, replicates=5),
    o2td.TDRC(0.1, trace=0.5, average=3.0, replicates=5),
    o2td.ResidualGradient(0.1, average=True, replicates=5),
    o2td.TrueOnlineTD(0.1, trace=0.5, average=True, replicates=5),
    o2td.ARCTD(replicates=5),
]


def weights(start, lanes, parts=1):
    """Weights of these rows, worked out in so many parts."""
    memory, found, first = np.zeros(3), [], 0
    for part in np.array_split(np.asarray(start), parts):
        out = np.empty((lanes, len(part)))
        multipliers(np.ascontiguousarray(part), first, memory, out)
        found.append(out)
        first += len(part)
    return np.hstack(found)


def same(one, other, **tolerance):
    assert one._arrays.keys() == other._arrays.keys()
    for name, array in one._arrays.items():
        np.testing.assert_allclose(array, other._arrays[name], err_msg=name, **tolerance)


def test_weights_are_one_or_the_other_by_block_and_lane():
    start = np.zeros(5000, dtype=bool)
    start[::10] = True
    found = weights(start, 70)
    assert set(np.unique(found)) == {1.0 - SPREAD, 1.0 + SPREAD}
    by_episode = found.reshape(70, 500, 10)[:, 1:]  # of the first it is not known that it is one
    assert (by_episode == by_episode[:, :, :1]).all()
    signs = (by_episode[:, :, 0] - 1.0) / SPREAD
    assert np.abs(signs.mean(axis=1)).max() < 4.5 / np.sqrt(500)
    between = signs @ signs.T / 499 - np.eye(70)
    assert np.abs(between).max() < 5.5 / np.sqrt(500)
    np.testing.assert_array_equal(weights(start, 70, parts=37), found)


def test_without_episodes_blocks_grow_with_the_rows():
    found = weights(np.zeros(20_000, dtype=bool), 64, parts=3)
    ends = np.flatnonzero((found[:, 1:] != found[:, :-1]).any(axis=0)) + 1
    lengths = np.diff(ends)
    assert lengths.min() >= 2
    assert (np.diff(lengths) >= 0).all()
    assert lengths[-1] == pytest.approx(2.0 * 20_000 ** (1 / 3), abs=2)
    rare = np.zeros(20_000, dtype=bool)
    rare[[0, 5000]] = True
    assert 6 * lengths[-1] < np.diff(np.flatnonzero(np.diff(weights(rare, 64)[:6].sum(0)))).max()


def test_a_replicate_is_the_learner_with_its_steps_multiplied():
    batch = domains.garnet(seed=1).sample(400, seed=0)
    learner = o2td.TD(0.1, trace=0.5, average=True, replicates=3).partial_fit(batch)
    for lane, weight in enumerate(weights(batch.start, 3), start=1):
        theta = mean = z = np.zeros(batch.d)
        decay = 0.0
        for t in range(batch.n):
            phi = batch.phi[t]
            z = (0.0 if batch.start[t] else decay) * z + phi
            delta = batch.reward[t] + batch.discount[t] * batch.next_phi[t] @ theta - phi @ theta
            theta = theta + weight[t] * 0.1 * batch.rho[t] * delta * z
            mean = mean + (theta - mean) * min(1.0, 8.0 / (t + 8.0))
            decay = 0.5 * batch.rho[t] * batch.discount[t]
        np.testing.assert_allclose(learner._arrays["mean"][lane], mean, rtol=1e-9)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("layout", ["table", "dense", "csr"])
def test_any_split_file_or_sweep_gives_the_same(learner, layout, tmp_path):
    batch = domains.garnet(seed=2).sample(500, seed=3)
    if layout != "table":
        sparse = pytest.importorskip("scipy.sparse").csr_array
        as_rows = np.array if layout == "dense" else sparse
        columns = {name: getattr(batch, name) for name in ("reward", "discount", "rho", "start")}
        batch = Transitions(as_rows(batch.phi), next_phi=as_rows(batch.next_phi), **columns)
    whole = learner.clone().partial_fit(batch)
    plain = learner.clone(replicates=0).partial_fit(batch)
    np.testing.assert_array_equal(whole.theta, plain.theta)
    assert np.ptp(whole._arrays["mean"], axis=0).max() > 0.0
    half = learner.clone().partial_fit(batch[:217])
    half.save(tmp_path / "half.npz")
    resumed = Learner.load(tmp_path / "half.npz").partial_fit(batch[217:])
    same(resumed, half.partial_fit(batch[217:]), rtol=0.0)
    same(resumed, whole, rtol=1e-9, atol=1e-12)
    swept = o2td.sweep([plain.clone(), learner.clone()], batch, every=100)
    same(swept.learners[1], whole, rtol=1e-9, atol=1e-12)
    one = learner.clone()
    for t in range(40):
        row = batch[t : t + 1]
        one.learn_one(
            row.phi, row.reward[0], row.next_phi, row.discount[0], row.rho[0], row.start[0]
        )
    same(one, learner.clone().partial_fit(batch[:40]), rtol=1e-9, atol=1e-12)


def test_a_sweep_measures_learners_not_replicates():
    problem = domains.garnet(seed=2)
    batch, measured = problem.sample(300, seed=0), {"rmse": o2td.metrics.RMSE(problem)}
    some = [o2td.ARCTD(replicates=4), o2td.ARCTD(trace=0.0), o2td.ARCTD(replicates=13)]
    bare = [learner.clone(replicates=0) for learner in some]
    one, other = (o2td.sweep(x, batch, metrics=measured, every=100) for x in (some, bare))
    np.testing.assert_allclose(one.values["rmse"], other.values["rmse"], rtol=1e-12)


def test_intervals_are_as_wide_as_errors_are_large():
    """One feature, rewards of known spread: errors of 200 streams against what they say."""
    rng, one, n = np.random.default_rng(5), np.ones((1, 1)), 600
    off, said = [], []
    for _ in range(200):
        batch = Transitions(np.ones((n, 1)), rng.normal(2.0, 1.0, n), np.ones((n, 1)), discount=0.0)
        found = o2td.TD(0.05, average=True, replicates=64).fit(batch).predict(one, interval=0.95)
        assert found.low < found.value < found.high
        off.append(found.value[0] - 2.0)
        said.append((found.high - found.low)[0] / 2.0)
    assert 0.9 <= np.mean(np.abs(off) < said) <= 0.99
    assert np.sqrt(np.mean(np.square(off))) * 1.96 == pytest.approx(np.mean(said), rel=0.2)


def test_half_of_the_bias_of_dependent_rows_is_taken_off():
    """Episodes of two rows, the second as long as the first's noise says: the bias is known.

    From theta to `(1 - alpha (1 + c e)) ((1 - alpha) theta + alpha e)`, so its mean ends at
    `-alpha c / (2 - alpha)` and not at the limit, 0.
    """
    alpha, c, n = 0.1, 0.8, 40_000
    noise = np.random.default_rng(7).choice([-1.0, 1.0], n // 2)
    phi, reward, start = np.ones(n), np.zeros(n), np.arange(n) % 2 == 0
    reward[::2], phi[1::2] = noise, np.sqrt(1.0 + c * noise)
    batch = Transitions(phi[:, None], reward, phi[:, None], discount=0.0, start=start)
    found = o2td.TD(alpha, average=True, replicates=64).fit(batch).predict([[1.0]], interval=0.95)
    bias = -alpha * c / (2.0 - alpha)
    assert found.value[0] == pytest.approx(bias, rel=0.5)
    middle = (found.low + found.high)[0] / 2.0
    assert found.value[0] - middle == pytest.approx(0.5 * bias, rel=0.25)
    assert found.low < middle < found.value + abs(bias) < found.high


def test_half_of_the_replicates_have_the_traces_of_the_end():
    batch = domains.collision(seed=21).sample(10_000, seed=3)
    grows = o2td.ARCTD(replicates=12).partial_fit(batch)
    ends = o2td.ARCTD(trace=0.9, clip=3.0, replicates=8).partial_fit(batch)._arrays["mean"]
    lanes = grows._arrays["mean"]
    np.testing.assert_allclose(lanes[7:11], ends[1:5], rtol=1e-9)  # weighted
    np.testing.assert_allclose(lanes[11:], ends[[0, 8]], rtol=1e-9)  # whole and halved steps
    assert np.abs(lanes[1:7] - lanes[7:]).max() > 0.01
    fixed = o2td.ARCTD(trace=0.5, replicates=8).partial_fit(batch)
    assert len(np.unique(fixed._arrays["mean"], axis=0)) == 9


def test_the_last_replicate_learns_with_half_the_steps():
    batch = domains.garnet(seed=1).sample(2000, seed=0)
    lanes = o2td.TD(0.1, average=True, replicates=8).partial_fit(batch)._arrays["mean"]
    halved = o2td.TD(0.05, average=True).partial_fit(batch).theta
    np.testing.assert_allclose(lanes[-1], halved, rtol=1e-9)
    few = o2td.TD(0.1, average=True, replicates=7).partial_fit(batch)._arrays["mean"]
    np.testing.assert_allclose(few[1:], lanes[1:8], rtol=1e-9)


def test_intervals_reach_where_the_limit_will_be():
    """On Collision the limit moves by more than the noise while traces grow."""
    problem = domains.collision(seed=21)
    limit = problem.features @ exact.fixed_point(problem, o2td.ARCTD()).theta
    nearer = 0
    for stream in range(8):
        learner = o2td.ARCTD(replicates=64).partial_fit(problem.sample(10_000, seed=(77, stream)))
        found = learner.predict(problem.features, interval=0.95)
        middle = (found.low + found.high) / 2.0
        off, value = (np.sum((x - limit) ** 2 * problem.visits) for x in (middle, found.value))
        nearer += off < value
    assert nearer >= 6


def test_one_vector_gives_numbers_and_levels_nest():
    learner = o2td.ARCTD(replicates=16).partial_fit(domains.garnet(seed=1).sample(500, seed=0))
    phi = np.ones(8)
    wide, narrow = learner.predict(phi, interval=0.99), learner.predict(phi, interval=0.5)
    assert wide.value == narrow.value == learner.predict(phi)
    assert wide.low < narrow.low <= narrow.value <= narrow.high < wide.high


def test_a_replicate_that_diverges_leaves_no_bounds():
    batch = Transitions(np.ones((9, 1)), np.ones(9), np.ones((9, 1)), discount=0.0)
    learner = o2td.TD(1.99, average=True, replicates=8, initial_theta=2e149)
    learner.partial_fit(batch)
    assert learner.status.kind == "ok"
    assert np.isinf(learner.predict([[1.0]], interval=0.9).high).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: o2td.TD(replicates=8), "average=True"),
        (lambda: o2td.ATD(average=True, replicates=8), "ATD keeps no replicates"),
        (lambda: o2td.TD(average=True, replicates=1), "at least 2"),
        (lambda: o2td.TD(average=True, replicates=2.5), "whole number"),
        (lambda: learned(o2td.TD(average=True)).predict([[1.0]], 0.9), "replicates=64"),
        (lambda: learned(o2td.ARCTD(replicates=2)).predict([[1.0]], 1.0), "such as 0.95"),
        (lambda: learned(o2td.ARCTD(replicates=2)).predict([[1.0]], "all"), "interval"),
    ],
)
def test_refusals_name_the_remedy(make, words):
    with pytest.raises(InputError, match=words):
        make()


def learned(learner):
    """After one row."""
    return learner.partial_fit(Transitions([[1.0]], [1.0], [[1.0]], discount=0.5))
