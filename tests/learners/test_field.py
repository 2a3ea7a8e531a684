"""Learners of the field against slow plain loops on every layout; true-online TD exactly."""

from __future__ import annotations

import numpy as np
import pytest

import o2td
from o2td import Transitions, exact

from . import golden

A, W, LAM = 0.03, 0.02, 0.7
A_SIZE = A


def dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


class Rows:
    """Rows one by one, with what came before."""

    def __init__(self, batch):
        self.batch = batch

    def __iter__(self):
        phi, next_phi = dense(self.batch.phi), dense(self.batch.next_phi)
        gamma = rho = 0.0
        for t in range(self.batch.n):
            b = self.batch
            before = 0.0 if b.start[t] else gamma
            yield (
                phi[t],
                b.reward[t],
                next_phi[t],
                b.discount[t],
                b.rho[t],
                before,
                rho,
                b.interest[t],
            )
            gamma, rho = b.discount[t], b.rho[t]


def follow_on(lam):
    state = {"F": 0.0}

    def weight(before, rho_before, i):
        state["F"] = i + before * rho_before * state["F"]
        return lam * i + (1.0 - lam) * state["F"]

    return weight


def true_online(batch, emphasis=lambda before, rho_before, i: 1.0):
    theta, e = np.zeros((2, batch.d))
    old = 0.0
    for phi, r, phi2, g, rho, before, rho_before, i in Rows(batch):
        m = emphasis(before, rho_before, i)
        v, v2 = theta @ phi, g * (theta @ phi2)
        f = rho * before * LAM
        e = f * e + rho * A * m * (1.0 - f * (phi @ e)) * phi
        theta = theta + (r + v2 - v) * e + (e - A * m * rho * phi) * (v - old)
        old = v2 / g if g else 0.0
    return theta


def true_online_gradient(batch, hybrid):
    theta, w, e, z, zb, ew = np.zeros((6, batch.d))
    old = 0.0
    for phi, r, phi2, g, rho, before, rho_before, _ in Rows(batch):
        v, v2 = theta @ phi, theta @ phi2
        delta, d = r + g * v2 - v, v - old
        c, f, k = before * LAM, rho * before * LAM, rho_before * before * LAM
        e = f * e + rho * A * (1.0 - f * (phi @ e)) * phi
        z, zb = rho * (c * z + phi), c * zb + phi
        ew = k * ew + W * (1.0 - k * (phi @ ew)) * phi
        dphi = phi - g * phi2
        first = delta * e + (e - A * rho * phi) * d
        if hybrid:
            step = (first + A * ((z - zb) @ w) * dphi, rho * delta * ew - W * (zb @ w) * dphi)
        else:
            back = A * g * (1.0 - LAM) * (z @ w) * phi2
            step = (first - back, rho * delta * ew - W * (phi @ w) * phi)
        theta, w, old = theta + step[0], w + step[1], v2 if g else 0.0
    return theta


def emphatic(batch, weight):
    theta, z = np.zeros((2, batch.d))
    for t, (phi, r, phi2, g, rho, before, rho_before, i) in enumerate(Rows(batch)):
        z = before * rho_before * LAM * z + weight(t, before, rho_before, i) * phi
        theta = theta + A * rho * (r + g * (theta @ phi2) - theta @ phi) * z
    return theta


def truncated(length):
    past = []

    def weight(t, before, rho_before, i):
        past[:] = [before * rho_before * x for x in past]
        past.append(i)
        del past[: max(0, len(past) - length - 1)]
        return LAM * i + (1.0 - LAM) * sum(past)

    return weight


def restarted(period):
    state = {"F": 0.0}

    def weight(t, before, rho_before, i):
        state["F"] = i + (before * rho_before * state["F"] if t % period else 0.0)
        return state["F"] if t % period == period - 1 else 0.0

    return weight


def per_etd(batch):
    theta = np.zeros(batch.d)
    weight = restarted(4)
    for t, (phi, r, phi2, g, rho, before, rho_before, i) in enumerate(Rows(batch)):
        m = weight(t, before, rho_before, i)
        theta = theta + A * rho * (r + g * (theta @ phi2) - theta @ phi) * m * phi
    return theta


def gem(batch):
    theta, k, u, past = np.zeros((4, batch.d))
    for phi, r, phi2, g, rho, before, rho_before, i in Rows(batch):
        back = before * rho_before
        error, along, m = i + back * (past @ k) - phi @ k, phi @ u, max(0.0, phi @ k)
        theta = theta + A * rho * (r + g * (theta @ phi2) - theta @ phi) * m * phi
        u, k, past = u + W * (error - along) * phi, k + W * along * (phi - back * past), phi
    return theta


def gem_auto(batch, second=None):
    """Step sizes `2 / (S sqrt(1 + t / 1000))` of a row's own bounds, as its page says."""
    theta, k, u, past = np.zeros((4, batch.d))
    sizes = {"theta": [], "k": []}

    def chosen(name, size):
        sizes[name].append(size)
        t, mean = len(sizes[name]) - 1, np.sqrt(np.mean(np.square(sizes[name])))
        if not mean:
            return 0.0
        return min(2.0 / (mean * np.sqrt(1.0 + t / 1000.0)), 1.0 / size if size else np.inf)

    norm = np.linalg.norm
    for phi, r, phi2, g, rho, before, rho_before, i in Rows(batch):
        back, m = before * rho_before, max(0.0, phi @ k)
        error, along = i + back * (past @ k) - phi @ k, phi @ u
        w = chosen("k", norm(phi) * norm(phi - back * past) + phi @ phi)
        a = chosen("theta", rho * m * norm(phi) * (norm(phi) + g * norm(phi2)))
        w = w if second is None else second
        theta = theta + a * rho * (r + g * (theta @ phi2) - theta @ phi) * m * phi
        u, k, past = u + w * (error - along) * phi, k + w * along * (phi - back * past), phi
    return theta


def wis(batch, usage=3.0, eta=0.1):
    d = batch.d
    theta, e, v, moved, u = *np.zeros((4, d)), np.full(d, usage)
    old = 0.0
    for t, (phi, r, phi2, g, rho, before, _, _) in enumerate(Rows(batch)):
        c, less = before * LAM, 1.0 - eta * phi * phi
        u = less * u + rho * phi * phi + (rho - 1.0) * c * less * v
        v = c * rho * less * v + rho * phi * phi
        a = 1.0 / u
        e = rho * c * e + rho * (1.0 - rho * c * (phi @ e)) * a * phi
        old = theta @ phi if batch.start[t] else old
        v2, again = theta @ phi2 if g else 0.0, c * (moved - rho * (phi @ moved) * a * phi)
        theta = theta + (r + g * v2 - old) * e + rho * (old - theta @ phi) * a * phi
        theta = theta + (rho - 1.0) * again
        moved = rho * again + (r + v2 - old) * e
        old = v2
    return theta


def wis_gradient(batch, usage=3.0, eta=0.1):
    d = batch.d
    theta, w, e, v, u = *np.zeros((4, d)), np.full(d, usage)
    for phi, r, phi2, g, rho, before, _, _ in Rows(batch):
        c, less = before * LAM, 1.0 - eta * phi * phi
        u = less * u + rho * phi * phi + (rho - 1.0) * c * less * v
        v = c * rho * less * v + rho * phi * phi
        e = rho * (c * e + phi)
        delta = r + g * (theta @ phi2) - theta @ phi
        theta = theta + (delta * e - g * (1.0 - LAM) * (e @ w) * phi2) / u
        w = w + W * (delta * e - (w @ phi) * phi)
    return theta


def differential(batch):
    theta, z = np.zeros((2, batch.d))
    mean = 0.0
    for phi, r, phi2, g, rho, before, rho_before, _ in Rows(batch):
        z = before * rho_before * LAM * z + phi
        delta = r - mean + g * (theta @ phi2) - theta @ phi
        theta, mean = theta + A * rho * delta * z, mean + 0.5 * A * rho * delta
    return np.append(theta, mean)


def variance(batch, direct):
    theta, w, z, zw = np.zeros((4, batch.d))
    for phi, r, phi2, g, rho, before, rho_before, _ in Rows(batch):
        c = before * rho_before * LAM
        z, zw = c * z + phi, c * before * zw + phi
        v2 = theta @ phi2
        delta = r + g * v2 - theta @ phi
        own = delta**2 if direct else r * r + 2.0 * g * r * v2
        error = own + g * g * (w @ phi2) - w @ phi
        theta, w = theta + A * rho * delta * z, w + W * rho * error * zw
    return np.append(theta, w)


def proximal(batch, l1=0.002):
    def prox(x):
        return np.sign(x) * np.maximum(0.0, np.abs(x) - A * l1)

    theta, w, z, mean = np.zeros((4, batch.d))
    for t, (phi, r, phi2, g, rho, before, _, _) in enumerate(Rows(batch)):
        z = rho * (before * LAM * z + phi)
        dphi = phi - g * phi2

        def directions(theta, w, z=z, dphi=dphi, phi=phi, r=r):
            return (z @ w) * dphi, (r - dphi @ theta) * z - (phi @ w) * phi

        one = directions(theta, w)
        two = directions(prox(theta + A * one[0]), w + W * one[1])
        theta, w = prox(theta + A * two[0]), w + W * two[1]
        mean = mean + (theta - mean) * 8.0 / (t + 8.0)
    return mean


def accelerated(batch, rank=8):
    """With the whole matrix, which a rank above d keeps."""
    d = batch.d
    theta, z, A, now = np.zeros(d), np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
    for t, (phi, r, phi2, g, rho, before, rho_before, _) in enumerate(Rows(batch)):
        z = before * rho_before * LAM * z + phi
        dphi = phi - g * phi2
        U, S, V = np.linalg.svd(now)
        inverse = np.where(1e-9 * S[0] < S, 1.0 / (S + 1.0 / A_SIZE), 0.0)
        move = (A_SIZE * np.eye(d) + V.T @ np.diag(inverse) @ U.T) @ (rho * z)
        theta = theta + (r - dphi @ theta) * move
        A += np.outer(rho * z, dphi)
        if t % rank == rank - 1:
            now = A.copy()
    return theta


CASES = {
    "ATD": (o2td.ATD(A, rank=8, trace=LAM), accelerated),
    "TrueOnlineTD": (o2td.TrueOnlineTD(A, trace=LAM), true_online),
    "TrueOnlineETD": (
        o2td.TrueOnlineETD(A, trace=LAM),
        lambda batch: true_online(batch, follow_on(LAM)),
    ),
    "TrueOnlineGTD": (
        o2td.TrueOnlineGTD(A, second_step_size=W, trace=LAM),
        lambda batch: true_online_gradient(batch, False),
    ),
    "TrueOnlineHTD": (
        o2td.TrueOnlineHTD(A, second_step_size=W, trace=LAM),
        lambda batch: true_online_gradient(batch, True),
    ),
    "TruncatedETD": (
        o2td.TruncatedETD(A, trace=LAM, length=3),
        lambda batch: emphatic(batch, truncated(3)),
    ),
    "PERETD": (o2td.PERETD(A, period=4), per_etd),
    "GEMETD": (o2td.GEMETD(A, second_step_size=W), gem),
    "GEMETD auto": (o2td.GEMETD("auto"), gem_auto),
    "GEMETD half auto": (
        o2td.GEMETD("auto", second_step_size=W),
        lambda batch: gem_auto(batch, W),
    ),
    "WISTD": (o2td.WISTD(usage=3.0, recency=0.1, trace=LAM), wis),
    "WISGTD": (
        o2td.WISGTD(second_step_size=W, usage=3.0, recency=0.1, trace=LAM),
        wis_gradient,
    ),
    "DifferentialTD": (o2td.DifferentialTD(A, rate=0.5, trace=LAM), differential),
    "VarianceTD direct": (
        o2td.VarianceTD(A, second_step_size=W, trace=LAM),
        lambda batch: variance(batch, True),
    ),
    "VarianceTD moment": (
        o2td.VarianceTD(A, second_step_size=W, trace=LAM, form="moment"),
        lambda batch: variance(batch, False),
    ),
    "ProximalGTD2MP": (o2td.ProximalGTD2MP(A, second_step_size=W, l1=0.002, trace=LAM), proximal),
}


def found(learner):
    more = {"DifferentialTD": lambda: [learner.average_reward], "VarianceTD": lambda: learner.w}
    return np.append(learner.theta, more.get(type(learner).__name__, list)())


@pytest.mark.parametrize("layout", golden.LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_reference(case, layout):
    learner, plain = CASES[case]
    batch = golden.rows(layout)
    expected = plain(batch)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(
        found(learner.clone().partial_fit(batch)), expected, rtol=1e-10, atol=1e-12
    )
    parts = learner.clone()
    for part in batch.chunks(37):
        parts.partial_fit(part)
    np.testing.assert_allclose(found(parts), expected, rtol=1e-10, atol=1e-12)


def on_policy_stream(n=60, d=5, seed=0):
    """Episodes whose rows follow on one another, with discounts that differ."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n + 1, d))
    discount = rng.choice([0.0, 0.7, 0.9, 1.0], p=[0.1, 0.3, 0.3, 0.3], size=n)
    start = np.append(True, discount[:-1] == 0.0)
    return Transitions(phi[:-1], rng.normal(size=n), phi[1:], discount, start=start)


def online_lambda_return(batch, alpha, lam):
    """Theta after every row, each time from the episode's beginning (van Seijen et al. 2016)."""
    thetas = [np.zeros(batch.d)]
    begin = 0
    for t in range(batch.n):
        if batch.start[t]:
            begin = t
        theta = thetas[begin]
        ahead = [batch.next_phi[k] @ thetas[k] for k in range(t + 1)]
        for k in range(begin, t + 1):
            G = batch.reward[t] + batch.discount[t] * ahead[t]
            for j in range(t - 1, k - 1, -1):
                G = batch.reward[j] + batch.discount[j] * ((1.0 - lam) * ahead[j] + lam * G)
            theta = theta + alpha * (G - batch.phi[k] @ theta) * batch.phi[k]
        thetas.append(theta)
    return thetas[1:]


@pytest.mark.parametrize("lam", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("kind", [o2td.TrueOnlineTD, o2td.TrueOnlineHTD])
def test_true_online_td_is_the_online_lambda_return_row_by_row(kind, lam):
    batch = on_policy_stream()
    learner = kind(0.05, trace=lam)
    plain = o2td.TD(0.05, trace=lam)
    apart = 0.0
    for t, expected in enumerate(online_lambda_return(batch, 0.05, lam)):
        learner.partial_fit(batch[t : t + 1])
        apart = max(apart, np.abs(plain.partial_fit(batch[t : t + 1]).theta - expected).max())
        np.testing.assert_allclose(learner.theta, expected, rtol=0, atol=1e-12)
    assert (apart > 1e-3) == (lam > 0.0)  # TD(lambda) itself is only near


@pytest.mark.parametrize("length", [0, 2, 200])
def test_truncated_emphasis_goes_from_td_to_etd(length):
    problem = o2td.domains.collision(seed=1)
    td, etd, own = (
        exact.fixed_point(problem, learner).theta
        for learner in (o2td.TD(), o2td.ETD(), o2td.TruncatedETD(length=length))
    )
    near = {0: td, 200: etd}.get(length)
    if near is None:
        assert np.abs(own - td).max() > 1e-3 < np.abs(own - etd).max()
    else:
        np.testing.assert_allclose(own, near, rtol=1e-6)


def test_per_etd_lands_where_truncated_etd_does():
    problem = o2td.domains.collision(seed=1)
    one = exact.fixed_point(problem, o2td.PERETD(period=4)).theta
    two = exact.fixed_point(problem, o2td.TruncatedETD(length=3)).theta
    np.testing.assert_allclose(one, two, rtol=1e-9)


def test_differential_td_finds_the_average_reward_of_the_target():
    """Two states, two actions: the target always takes the action that pays 1 in either state."""
    transition = np.full((2, 2, 2), 0.5)
    reward = np.array([[0.0, 1.0], [0.5, 3.0]])
    problem = o2td.Problem(
        transition,
        reward,
        discount=0.9,
        behavior=np.full((2, 2), 0.5),
        target=np.array([[0.0, 1.0], [0.0, 1.0]]),
        features=np.array([[1.0], [-1.0]]),
    )
    rows = problem.sample(60_000, seed=0).retargeted(discount=1.0)
    rho = problem.sample(60_000, seed=0).rho
    learner = o2td.DifferentialTD(o2td.PowerDecay(0.5, 0.6)).partial_fit(rows)
    assert rho.max() == 2.0
    assert learner.average_reward == pytest.approx(2.0, abs=0.1)


def test_variance_is_that_of_returns():
    problem = o2td.domains.random_walk()
    batch = problem.sample(40_000, seed=0)
    plain = batch.retargeted(rho=1.0)
    returns: dict[int, list[float]] = {}
    G = 0.0
    for t in range(batch.n - 1, -1, -1):
        G = batch.reward[t] + batch.discount[t] * G
        returns.setdefault(int(batch.state[t]), []).append(G)
    table = np.asarray(batch.table)
    states = [s for s, seen in returns.items() if len(seen) > 2000]
    expected = np.array([np.var(returns[s][5:]) for s in states])
    for form in ("direct", "moment"):
        learner = o2td.VarianceTD(o2td.PowerDecay(1.0, 0.7), form=form).partial_fit(plain)
        np.testing.assert_allclose(learner.variance(table[states]), expected, atol=0.16)


@pytest.mark.parametrize(
    ("make", "name", "least", "most"),
    [
        (lambda rank: o2td.ATD(rank=rank), "rank", 1, 8),
        (lambda length: o2td.TruncatedETD(length=length), "length", 0, 100_000),
        (lambda period: o2td.PERETD(period=period), "period", 1, 100_000),
    ],
)
def test_counts_are_whole_numbers_within_bounds(make, name, least, most):
    assert getattr(make(np.int64(most)), name) == most
    assert getattr(make(least), name) == least
    for wrong in (least - 1, most + 1, 2.5, True, "3", None):
        with pytest.raises(o2td.errors.InputError, match=f"{name} must be a whole number"):
            make(wrong)
