"""Moves along a trace that are only counted, as plain functions, against vectors written out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from o2td.kernels import pending
from o2td.kernels.access import SparseFeatures, SparseTrace

D = 7


class Row(NamedTuple):
    phi: SparseFeatures
    next_phi: SparseFeatures
    discount: float


def features(rng, present=True):
    indices = np.sort(rng.choice(D, 3, replace=False)).astype(np.int32)
    return SparseFeatures(rng.normal(size=3), indices, 0, 3 if present else 0)


def written_out(x):
    whole = np.zeros(D)
    whole[x.indices[: x.size]] = x.values[: x.size]
    return whole


class Both:
    """The same learner twice: as vectors, and with what is pending."""

    def __init__(self, rng, a):
        self.theta, self.w, self.u = rng.normal(size=(3, D))
        self.mean, self.z, self.a, self.t = self.theta.copy(), np.zeros(D), a, 0
        self.own = [x.copy() for x in (self.theta, self.w, self.u)]
        z = SparseTrace(np.zeros(D), np.zeros(D, np.int32), np.zeros(1, np.int64), 0)
        settle = SimpleNamespace(mean=self.mean[None].copy())
        self.lazy = pending.Pending.room(D)
        self.traces, self.kept_mean = pending.handed((z,), settle, 0, self.lazy), settle.mean[0]

    def step(self, rng, factor, discount, shift=0.0):
        row = Row(features(rng), features(rng, discount > 0.0), discount)
        phi, later = written_out(row.phi), written_out(row.next_phi)
        (z,), (theta, w, u) = self.traces, self.own
        pending.before(row, self.traces, theta, self.kept_mean, self.a, self.t, self.lazy)
        if shift:
            pending.lift(theta, w, u, z, shift, 1.0, False)
            self.theta = self.theta + shift * self.u
        found = pending.measured(row, theta, w, u, z, factor, 0.0)
        self.z = factor * self.z + phi
        products = [phi @ self.theta, later @ self.theta, phi @ self.w, self.z @ self.w]
        products += [phi @ self.u, later @ self.u, self.z @ self.z, phi @ phi]
        expected = [*products, np.sum((phi - discount * later) ** 2)]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        first, second, bend = rng.normal(size=3), rng.normal(size=2), rng.normal()
        pending.move(theta, w, u, row, z, first, second, bend)
        self.theta = self.theta + first[0] * self.z + first[1] * phi + first[2] * later
        self.w = self.w + second[0] * self.z + second[1] * phi
        self.u = self.u + bend * phi
        eta = min(1.0, self.a / (self.t + self.a)) if self.a > 0.0 else 1.0
        self.mean = self.mean + eta * (self.theta - self.mean)
        pending.follow(row, self.traces, theta, self.kept_mean, self.a, self.t, self.lazy)
        self.t += 1

    def compare(self):
        (z,), expected = self.traces, (self.theta, self.w, self.u)
        for own, vector in zip((*self.own, z.values), (*expected, self.z), strict=True):
            np.testing.assert_allclose(own, vector, rtol=1e-9, atol=1e-9)
        listed = z.indices[: z.sizes[0]]
        assert sorted(listed) == np.flatnonzero(z.values).tolist()
        np.testing.assert_array_equal(self.lazy.mark, 0.0)


@pytest.mark.parametrize("a", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("factor", [0.0, 1e-6, 0.3, 0.9, 1.0, -0.5, 2.0])
def test_vectors_are_what_they_would_be_without_waiting(a, factor):
    rng = np.random.default_rng(5)
    both = Both(rng, a)
    for t in range(24):
        if t % 12 == 0:
            pending.opened(both.own, both.traces, both.kept_mean, both.lazy)
        decay = 0.0 if t % 9 == 8 else factor
        both.step(rng, decay, 0.0 if t == 5 else 0.9, shift=0.5 if t % 4 == 3 else 0.0)
        if t == 7:
            pending.lift(*both.own, both.traces[0], 0.0, 1.0, True)
            both.compare()
        if t == 9:
            pending.lift(*both.own, both.traces[0], 0.0, 0.25, False)
            both.w = 0.25 * both.w
        if t % 12 == 11:
            pending.closed(both.own, both.traces, both.kept_mean, both.lazy)
            both.compare()
            np.testing.assert_allclose(both.kept_mean, both.mean, rtol=1e-8, atol=1e-8)


def test_entries_below_the_floor_are_dropped_when_moves_are_written():
    rng = np.random.default_rng(0)
    both = Both(rng, 1.0)
    pending.opened(both.own, both.traces, both.kept_mean, both.lazy)
    both.step(rng, 0.5, 0.9)
    z, size = both.traces[0], np.abs(both.z).max()
    pending.fold(both.own[0], both.own[1], z, 1e-3 * z.numbers.g, 0.9e-3 * size)
    assert z.sizes[0] == 1
    assert np.abs(z.values).max() == pytest.approx(1e-3 * size)
    np.testing.assert_allclose(both.own[0], both.theta)
    assert z.numbers.zz == pytest.approx(1e-6 * size**2)
    assert z.numbers.zw == pytest.approx(z.values @ both.w)


def test_an_entry_that_cancels_is_not_listed_twice():
    z = SparseTrace(np.zeros(D), np.zeros(D, np.int32), np.zeros(1, np.int64), 0)
    lazy, settle = pending.Pending.room(D), SimpleNamespace(mean=np.zeros((1, D)))
    traces, own = pending.handed((z,), settle, 0, lazy), tuple(np.zeros((3, D)))
    pending.opened(own, traces, settle.mean[0], lazy)
    for x in (1.0, -0.5, 1.0, 2.0):
        row = Row(
            SparseFeatures(np.array([x]), np.array([2], np.int32), 0, 1),
            features(np.random.default_rng(0), False),
            0.0,
        )
        pending.measured(row, *own, traces[0], 0.5, 0.0)
        pending.move(*own, row, traces[0], (1.0, 0.0, 0.0), (0.0, 0.0), 0.0)
    pending.closed(own, traces, settle.mean[0], lazy)
    assert z.sizes.tolist() == [1]
    assert z.values[2] == 2.5
    np.testing.assert_allclose(own[0][2], 1.0 + 0.0 + 1.0 + 2.5)


def test_a_share_that_gets_too_small_is_given_back():
    rng = np.random.default_rng(1)
    both = Both(rng, 1e12)
    pending.opened(both.own, both.traces, both.kept_mean, both.lazy)
    for _ in range(30):  # the share falls to 1e-12 and less of what it was each time
        both.step(rng, 0.5, 0.9)
    assert both.lazy.numbers["share"][0] > 1e-120
    pending.closed(both.own, both.traces, both.kept_mean, both.lazy)
    np.testing.assert_allclose(both.kept_mean, both.mean, rtol=1e-8, atol=1e-8)
