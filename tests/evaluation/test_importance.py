from __future__ import annotations

import numpy as np
import pytest

from o2td.evaluation.estimators import make

from .episodes import block_of
from .logs import line_log
from .study import traced


@pytest.fixture(scope="module")
def log():
    return line_log(30, 3)


def brute(block):
    """Weights and discounted rewards of each episode as lists."""
    found = []
    for low, high in zip(block.first[:-1], block.first[1:], strict=True):
        rows = block.rows
        weight = np.cumprod(rows.rho[low:high])
        gone = np.cumprod(np.r_[1.0, rows.discount[low : high - 1]])
        found.append((weight, gone * rows.reward[low:high]))
    return found


def test_importance_sampling_family_against_plain_loops(log):
    study, _ = traced(log)
    weighed = study.weighed
    plain = brute(block_of(log))
    last = np.array([w[-1] for w, _ in plain])
    total = np.array([r.sum() for _, r in plain])
    assert make("is").value(study) == pytest.approx((last * total).mean())
    assert make("wis").value(study) == pytest.approx((last * total).sum() / last.sum())
    each = np.array([(w * r).sum() for w, r in plain])
    assert make("pdis").value(study) == pytest.approx(each.mean())
    longest = max(len(w) for w, _ in plain)
    wide = np.array([np.r_[w, np.full(longest - len(w), w[-1])] for w, _ in plain])
    reward = np.array([np.r_[r, np.zeros(longest - len(r))] for _, r in plain])
    expected = ((wide * reward).sum(axis=0) / wide.sum(axis=0)).sum()
    assert make("wpdis").value(study) == pytest.approx(expected)
    sizes = wide.sum(axis=0) ** 2 / (wide**2).sum(axis=0)
    np.testing.assert_allclose(weighed.horizon.effective_size, sizes)


def test_influence_of_the_family_is_what_plain_loops_say(log):
    study, found = traced(log)
    names = ("is", "wis", "pdis", "wpdis")
    columns = np.column_stack([make(name).make_column(study).of(found) for name in names])
    plain = brute(found.episodes)
    last = np.array([w[-1] for w, _ in plain])
    total = last * np.array([r.sum() for _, r in plain])
    each = np.array([(w * r).sum() for w, r in plain])
    value = total.sum() / last.sum()
    np.testing.assert_allclose(columns[:, 0], total - total.mean(), atol=1e-12)
    np.testing.assert_allclose(columns[:, 1], (total - value * last) / last.mean(), atol=1e-12)
    np.testing.assert_allclose(columns[:, 2], each - each.mean(), atol=1e-12)
    np.testing.assert_allclose(columns.mean(axis=0)[:4], 0.0, atol=1e-12)
