"""ARCTD: against a plain loop, its theory, scales, and problems on which TD diverges."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import o2td
from o2td import Transitions, domains, exact
from o2td.paper.studies import FAMILIES


def _plain(batch, trace=None, theta=None):
    """The algorithm as its page states it, in plain NumPy."""
    d = batch.d
    theta = np.zeros(d) if theta is None else np.array(theta, dtype=float)
    mean, w, z, u = theta.copy(), np.zeros(d), np.zeros(d), np.zeros(d)
    flat = apart = rises = held = due = 0.0
    L = N = Z = high = low = longest = ahead = before = last = 0.0
    pace, path, check, past, level, square = 1.0, 0.0, 50, theta, 0.0, 0.0
    for t in range(batch.n):
        phi, g, rho, r = batch.phi[t], batch.discount[t], batch.rho[t], batch.reward[t]
        later = batch.next_phi[t] if g > 0.0 else np.zeros(d)
        grown = min(5.0, np.sqrt(1.0 + t / 3000.0))
        passed = (1.0 - 0.5 / grown) * min(3.0, last) if trace is None else trace * min(1.0, last)
        decay = 0.0 if batch.start[t] else passed * before
        z, flat = decay * z + phi, decay * flat + phi @ u
        if t >= due:
            held, due = 0.0, t + 1 + min(t / 16.0, max(8.0, d / 8.0))
            if t >= check:
                if path > 0.0:
                    far = np.sum((theta - past) ** 2)
                    slower = pace * (far / (0.2 * path)) ** 0.2
                    faster = pace * (far / (0.5 * path)) ** 0.2
                    pace = max(1.0 / 128.0, min(1.0, slower), min(slower, faster))
                    pace = min(pace, np.sqrt(1.0 + t / 100.0))
                path, check, past = 0.0, 1.5 * t, theta
        last = rho
        high, low = max(high, r), min(low, r)
        ahead = 1.0 + (0.0 if batch.start[t] else before) * ahead
        before, longest = g, max(longest, ahead)
        bounded = np.clip(later @ theta, low * longest, high * longest)
        delta = r + g * bounded - phi @ theta
        dphi = phi - g * later
        N += (phi @ phi - N) / (t + 1)
        apart, rises = (
            apart + (dphi @ dphi - apart) / (t + 1),
            rises + ((dphi @ u) ** 2 - rises) / (t + 1),
        )
        K = min(4.0 * N, 0.03 * apart / rises) / np.sqrt(1.0 + t / 1000.0) if rises > 0.0 else 0.0
        level += 5.0 / (t + 5.0) * (phi @ theta - level)
        square += 5.0 / (t + 5.0) * ((phi @ theta) ** 2 - square)
        if 0.1 * level**2 < square - level**2:
            K *= 0.1 * level**2 / (square - level**2)
        length = np.sqrt(z @ z + K * flat**2)
        size = rho * length * np.sqrt(dphi @ dphi + K * (dphi @ u) ** 2)
        L += (size**2 - L) / (t + 1)
        Z += (z @ z - Z) / (t + 1)
        if np.sqrt(L) + 2.0 * N > 0.0:
            both = phi @ phi + N
            alpha = 3.5 * pace / ((np.sqrt(L) + 2.0 * N) * np.sqrt(1.0 + t / 100.0))
            share = min(1.0, 1.5 * N / Z) / 2.0
            reach = rho * length * np.sqrt(phi @ phi + K * (phi @ u) ** 2)
            reach = size if bounded == later @ theta else max(size, reach)
            alpha = min(alpha, 1.0 / both, 2.0 / (reach + share * both))
            phi_w, z_w = phi @ w, z @ w
            held += alpha * rho * delta * K * flat
            path += (alpha * rho * delta * length) ** 2
            theta = theta + alpha * rho * delta * (z + K * flat * u)
            theta = theta + alpha * share * (rho * z_w * dphi - phi_w * phi)
            if abs(1.0 - phi @ u) > 1e-3:
                u = u + 2.0 * (1.0 - phi @ u) * phi / both
            w = w + alpha * (rho * delta * z - phi_w * phi - N * w)
        mean = mean + (theta - held * u - mean) * min(1.0, 4.0 / (t + 4.0))
    return mean


@pytest.mark.parametrize("problem", [domains.garnet(seed=1), domains.collision(seed=2)])
@pytest.mark.parametrize("layout", ["table", "dense", "csr"])
def test_it_is_what_its_page_says(problem, layout):
    batch = plain = problem.sample(800, seed=4)
    expected = _plain(batch)
    if layout != "table":
        form = np.asarray if layout == "dense" else sp.csr_array
        batch = Transitions(
            form(batch.phi),
            batch.reward,
            form(np.where(batch.discount[:, None] > 0.0, batch.next_phi, 0.0)),
            batch.discount,
            rho=batch.rho,
            start=batch.start,
        )
    near = 1e-9
    least = near * np.abs(expected).max()
    found = o2td.ARCTD().partial_fit(batch).theta
    np.testing.assert_allclose(found, expected, rtol=near, atol=least)
    fixed = o2td.ARCTD(trace=0.5).partial_fit(batch).theta
    np.testing.assert_allclose(fixed, _plain(plain, trace=0.5), rtol=near, atol=least)


def test_its_mean_dynamics_are_the_average_of_its_steps():
    problem = domains.garnet(seed=3)
    batch, d = problem.sample(200_000, seed=0), problem.d
    dynamics = o2td.ARCTD().mean_dynamics(exact.model(problem))
    rng = np.random.default_rng(0)
    theta, w = rng.normal(size=d), rng.normal(size=d)
    phi, rho, z = batch.phi, batch.rho, np.zeros(d)
    dphi = phi - batch.discount[:, None] * batch.next_phi
    traces = np.empty_like(phi)
    for t in range(batch.n):
        traces[t] = z = z + phi[t]
        z = 0.9 * batch.discount[t] * min(3.0, rho[t]) * z
    delta = batch.reward - dphi @ theta
    push, own = (rho * delta)[:, None] * traces, (phi @ w)[:, None] * phi
    turn = (rho * (traces @ w))[:, None] * dphi
    N, Z = np.mean(np.sum(phi**2, axis=1)), np.mean(np.sum(traces**2, axis=1))
    share = min(1.0, 1.5 * N / Z) / 2.0
    steps = np.hstack([push + share * (turn - own), push - own - N * w])
    expected = dynamics.b - dynamics.A @ np.concatenate([theta, w])
    blocks = steps.reshape(200, 1000, 2 * d).mean(axis=1)
    error = blocks.std(axis=0, ddof=1) / np.sqrt(200)
    assert (np.abs(blocks.mean(axis=0) - expected) < 5.0 * error + 1e-9).all()


def test_it_ends_at_its_limit():
    problem = domains.garnet(seed=5, peak=1)
    limit = exact.fixed_point(problem, o2td.ARCTD())
    assert limit.stable
    theta = o2td.ARCTD().partial_fit(problem.sample(300_000, seed=1)).theta
    off = problem.features @ (theta - limit.theta)
    assert np.sqrt(np.average(off**2, weights=problem.visits)) < 0.1 * limit.rmse + 0.05


@pytest.mark.parametrize("form", ["star", "survey"])
def test_baird(form):
    problem = domains.baird(form)
    learner, first = (
        o2td.ARCTD(initial_theta=problem.initial_theta),
        exact.rmse(problem, problem.initial_theta),
    )
    worst = 0.0
    for part in problem.sample(50_000, seed=0).chunks(500):
        learner.partial_fit(part)
        worst = max(worst, exact.rmse(problem, learner.theta))
    assert exact.rmse(problem, learner.theta) < 0.1
    assert worst < 10.0 * first


def _scaled(batch, scale, reward=1.0):
    return Transitions(
        batch.phi * scale,
        batch.reward * reward,
        batch.next_phi * scale,
        batch.discount,
        rho=batch.rho,
    )


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_scales_of_all_features_and_of_rewards_do_not_matter(scale):
    batch = domains.garnet(seed=2).sample(3000, seed=0)
    plain = o2td.ARCTD().partial_fit(batch).theta
    theta = o2td.ARCTD().partial_fit(_scaled(batch, scale)).theta
    np.testing.assert_allclose(theta * scale, plain, rtol=1e-9)
    theta = o2td.ARCTD().partial_fit(_scaled(batch, 1.0, scale)).theta
    np.testing.assert_allclose(theta, plain * scale, rtol=1e-9)


def test_scales_one_by_one_and_copies_cost_no_stability():
    batch = domains.garnet(seed=2).sample(20_000, seed=0)
    largest = batch.reward.max() / (1.0 - 0.95)
    for scale in (10.0 ** np.array([6, -6, 3, -3, 0, 6, -6, 0]), np.r_[1e6, np.ones(7)]):
        learner = o2td.ARCTD().partial_fit(_scaled(batch, scale))
        assert learner.status.kind == "ok"
        assert np.abs(learner.predict(batch.phi[:100] * scale)).max() < 2.0 * largest
    twice = Transitions(
        np.hstack([batch.phi, batch.phi]),
        batch.reward,
        np.hstack([batch.next_phi, batch.next_phi]),
        batch.discount,
        rho=batch.rho,
    )
    one, two = o2td.ARCTD().partial_fit(batch), o2td.ARCTD().partial_fit(twice)
    np.testing.assert_allclose(two.predict(twice.phi[:50]), one.predict(batch.phi[:50]), rtol=1e-9)


def test_an_offset_of_rewards_moves_values_by_its_return():
    problem = domains.garnet(seed=2, peak=1)
    batch = problem.sample(100_000, seed=0)
    other = Transitions(
        batch.phi, batch.reward + 3.0, batch.next_phi, batch.discount, rho=batch.rho
    )
    one, two = (o2td.ARCTD().partial_fit(x).predict(problem.features) for x in (batch, other))
    np.testing.assert_allclose(two - one, 60.0, rtol=0.03)


def test_problems_on_which_td_diverges_stay_bounded():
    seed = found = 0
    while found < 10:
        problem = domains.garnet(states=12, features=6, peak=4, discount=0.99, seed=seed)
        seed += 1
        if exact.fixed_point(problem, o2td.TD(0.01)).stable:
            continue
        found += 1
        learner = o2td.ARCTD().partial_fit(problem.sample(20_000, seed=seed))
        assert learner.status.kind == "ok"
        assert np.abs(learner.predict(problem.features)).max() < 1e4


def test_steps_stay_large_where_nothing_is_random():
    """Neither maze nor target is random, and every state has its feature: only the average lags."""
    problem = FAMILIES["Dyna maze"](1, 0)
    zero = exact.rmse(problem, np.zeros(problem.d))
    learner, errors = o2td.ARCTD(), []
    for part in problem.sample(40_000, seed=0).chunks(10_000):
        errors.append(exact.rmse(problem, learner.partial_fit(part).theta) / zero)
    assert errors[0] < 3e-3  # steps that shrink leave 1e-2
    assert errors[3] < 2.0 * errors[0] / 4.0**4
    assert exact.rmse(problem, learner.last_theta) < 1e-9 * zero


@pytest.mark.parametrize("given", [{}, {"trace": 0.95, "clip": None}, {"average": False}])
def test_csr_rows_give_what_dense_ones_do_however_they_are_split(given):
    """Moves along a trace wait there; large and small ratios write them at once."""
    rng, n, d = np.random.default_rng(3), 2000, 30
    phi, later = np.where(rng.random((2, n, d)) < 0.1, rng.normal(size=(2, n, d)), 0.0)
    rho = rng.choice([0.0, 1e-9, 0.5, 1.0, 2.0], n, p=[0.05, 0.05, 0.3, 0.4, 0.2])
    numbers = rng.normal(size=n), np.where(rng.random(n) < 0.02, 0.0, 0.95)
    marks = {"rho": rho, "start": rng.random(n) < 0.01}
    dense = Transitions(phi, numbers[0], later, numbers[1], **marks)
    csr = Transitions(sp.csr_array(phi), numbers[0], sp.csr_array(later), numbers[1], **marks)
    expected, whole = (o2td.ARCTD(**given).partial_fit(rows) for rows in (dense, csr))
    parts = o2td.ARCTD(**given)
    for part in csr.chunks(37):
        parts.partial_fit(part)
    for found in (whole, parts):
        for name in ("theta", "last_theta", "w"):
            known = getattr(expected, name)
            least = 1e-12 * np.abs(known).max()
            np.testing.assert_allclose(getattr(found, name), known, rtol=1e-12, atol=least)


def _fixed(batch, alpha, trace, clip, theta):
    """With a given step size nothing is sought along u: regularised, clipped TD with a trace."""
    d = batch.d
    theta, w, z, mean = theta.copy(), np.zeros(d), np.zeros(d), theta.copy()
    N = Z = high = low = longest = ahead = before = last = 0.0
    for t in range(batch.n):
        phi, g, rho, r = batch.phi[t], batch.discount[t], batch.rho[t], batch.reward[t]
        later = batch.next_phi[t] if g > 0.0 else np.zeros(d)
        before = 0.0 if batch.start[t] else before
        z = trace * min(clip, last) * before * z + phi
        high, low, ahead = max(high, r), min(low, r), 1.0 + before * ahead
        longest, before, last = max(longest, ahead), g, rho
        delta = r + g * np.clip(later @ theta, low * longest, high * longest) - phi @ theta
        N, Z = N + (phi @ phi - N) / (t + 1), Z + (z @ z - Z) / (t + 1)
        share = 0.5 * min(1.0, 1.5 * N / Z) if Z > 0.0 else 0.5
        if N > 0.0:
            phi_w, z_w = phi @ w, z @ w
            theta = theta + alpha * rho * delta * z
            theta = theta + alpha * share * (rho * z_w * (phi - g * later) - phi_w * phi)
            w = w + alpha * (rho * delta * z - phi_w * phi - N * w)
        mean = mean + (theta - mean) * min(1.0, 4.0 / (t + 4.0))
    return theta, w, mean


@pytest.mark.parametrize("alpha", [0.02, 0.3])
@pytest.mark.parametrize(("trace", "clip"), [(0.0, 1.0), (0.8, 1.0), (0.6, 2.5)])
def test_with_a_step_size_of_its_own_it_is_clipped_td_with_a_regularised_second_vector(
    alpha, trace, clip
):
    rng, n, d = np.random.default_rng(6), 90, 3
    phi, later = 0.6 * rng.normal(size=(2, n, d))
    phi[:2] = 0.0  # nothing is known yet
    given = {"rho": rng.choice([0.0, 0.5, 1.0, 3.0], size=n), "start": rng.random(n) < 0.1}
    discount = np.where(rng.random(n) < 0.1, 0.0, 0.9)
    batch = Transitions(phi, 0.3 * rng.normal(size=n), later, discount, **given)
    first = 4.0 * rng.normal(size=d)  # beyond what the first rewards allow
    learner = o2td.ARCTD(alpha, trace=trace, clip=clip, initial_theta=first)
    assert learner.w.size == 0
    for part in (batch[:31], batch[31:]):
        learner.partial_fit(part)
    theta, w, mean = _fixed(batch, alpha, trace, clip, first)
    np.testing.assert_allclose(learner.last_theta, theta, rtol=1e-9)
    np.testing.assert_allclose(learner.w, w, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(learner.theta, mean, rtol=1e-9)
