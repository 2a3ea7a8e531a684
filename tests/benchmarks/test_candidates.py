"""Estimates that were tried and left out: each against another way to the same number."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.honesty import candidates
from benchmarks.honesty.tables import marked, random_table
from o2td import evaluation


def test_they_are_what_they_are_called():
    rng = np.random.default_rng(11)
    task = random_table(rng)
    log = marked(task.sample(300, rng), "truncated")
    rows = candidates.Rows(log, task.discount)
    methods = "lstdq,pdis,wis"
    answer = evaluation.evaluate(log, discount=task.discount, methods=methods, lanes=20)
    assert candidates.mwl(rows) == pytest.approx(answer["lstdq"].value, rel=1e-5)
    longest = int(log.step.max())
    assert candidates.sope(rows, longest) == pytest.approx(answer["pdis"].value)
    assert candidates.sope(rows, 0) == pytest.approx(candidates.mis(rows))
    same = log.assign(episode=0, step=0)  # one length: every row an episode of its own
    same = same.assign(episode=np.arange(len(log)), terminated=True, truncated=False)
    alone = candidates.Rows(same, task.discount)
    found = evaluation.evaluate(same, discount=task.discount, methods="wis", lanes=20)
    assert candidates.phwis(alone) == pytest.approx(found["wis"].value)
