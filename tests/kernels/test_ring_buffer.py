"""Records of theta, in turn in the same memory, and the errors that are worked out from them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from o2td.kernels.metric_values import metric_values
from o2td.kernels.ring_buffer import RingBuffer, append
from o2td.kernels.vectors import WIDTH


def expected(theta, R, center, constant):
    """Of theta (records, lanes, d); what is no number or too large is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = np.square((theta - center) @ R.T).sum(axis=-1) + constant
    return np.sqrt(np.where(square < 1e300, np.maximum(square, 0.0), np.inf))


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("lanes", [1, 3, 11, 16, 20, 32])
@pytest.mark.parametrize("turned", [False, True])
def test_errors_of_the_last_records_that_fit(d, lanes, turned):
    rng = np.random.default_rng([d, lanes])
    R, center, constant = np.triu(rng.normal(size=(d, d))), rng.normal(size=d), 0.25
    stride = -(-lanes // WIDTH) * WIDTH if turned or lanes > 12 else lanes
    kept, total = 7, 10
    theta = rng.normal(size=(total, lanes, d))
    theta[4, 0], theta[5, -1] = 1e200, np.nan
    ring = RingBuffer.room(kept, stride, d)
    which = rng.permutation(lanes + 2)[:lanes]
    values = np.full((lanes + 2, 2, total + 1), -1.0)
    for k in range(total):
        given = theta[k]
        if turned:
            whole = np.zeros((stride, d))
            whole[:lanes] = given
            given = whole.reshape(-1, WIDTH, d).transpose(0, 2, 1).reshape(-1, WIDTH * d)
        append(np.ascontiguousarray(given), turned, ring)
        assert ring.written[0] == k + 1
    for low, high in [
        (total - kept, 5),
        (5, total + 1),
    ]:  # the one after the last is not written yet
        metric_values(ring, low, high, which, R.ravel(), center, constant, 1, values)
    right = expected(theta, R, center, constant)[total - kept :]
    np.testing.assert_allclose(values[which, 1, total - kept : total], right.T, rtol=1e-12)
    values[which, 1, total - kept : total] = -1.0
    assert (values == -1.0).all()


def test_rows_and_columns_give_the_same_bits():
    rng = np.random.default_rng(0)
    R, center = np.triu(rng.normal(size=(9, 9))).ravel(), rng.normal(size=9)
    theta = rng.normal(size=(2 * WIDTH, 9))
    ring = RingBuffer.room(2, 2 * WIDTH, 9)
    append(theta, False, ring)
    columns = theta.reshape(2, WIDTH, 9).transpose(0, 2, 1)
    append(np.ascontiguousarray(columns.reshape(2, -1)), True, ring)
    values = np.zeros((2 * WIDTH, 1, 2))
    metric_values(ring, 0, 2, np.arange(2 * WIDTH), R, center, 0.0, 0, values)
    np.testing.assert_array_equal(values[:, 0, 0], values[:, 0, 1])
    assert (values > 0.0).all()


def test_a_constant_that_rounding_made_too_small_gives_zero():
    ring = RingBuffer.room(1, 1, 2)
    append(np.ones((1, 2)), False, ring)
    values = np.full((1, 1, 1), -1.0)
    metric_values(ring, 0, 1, np.array([0]), np.eye(2).ravel(), np.zeros(2), -1e9, 0, values)
    assert values[0, 0, 0] == 0.0


def test_without_room_nothing_is_noted():
    ring = RingBuffer.room(0, 4, 3)
    append(np.ones((4, 3)), False, ring)
    assert ring.written[0] == 0


def test_what_another_thread_reads_is_what_was_noted_before():
    """Each record is a thousand equal numbers; the reader must never see two records mixed."""
    d, records = 1000, 20_000
    ring, values = RingBuffer.room(records, 1, d), np.full((1, 1, records), -1.0)
    R, center = np.eye(d).ravel(), np.zeros(d)
    done = threading.Event()

    def read():
        at = 0
        while at < records and not done.is_set():
            high = int(ring.written[0])
            metric_values(ring, at, high, np.array([0]), R, center, 0.0, 0, values)
            at = high

    reader = threading.Thread(target=read)
    reader.start()
    for k in range(records):
        append(np.full((1, d), float(k)), False, ring)
    reader.join(60)
    done.set()
    np.testing.assert_allclose(values[0, 0], np.arange(records) * np.sqrt(d), rtol=1e-12)
