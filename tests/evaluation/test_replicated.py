"""Learners refitted without some episodes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from o2td import TDRC
from o2td.evaluation.replicated import Bench, Cells, Replicated, States, folds_of, groups_of
from o2td.features import Fourier, Tabular

from .episodes import block_of
from .golden import RATIO, table
from .logs import line_log


def test_a_learner_that_diverges_without_some_episodes_has_no_interval():
    block, basis = block_of(line_log(60, 2)), States(Fourier(3, bounds=[(-4, 4)]).fit())

    def found_within(most: float) -> Replicated:
        return Bench(block, basis, most).learner(lambda: TDRC(step_size="auto"), "TDRC")

    free = found_within(np.inf)
    outermost = np.abs(free.replicates).max()
    assert outermost > abs(free.value)
    found = found_within((outermost + abs(free.value)) / 2.0)
    assert np.isnan(found.value)
    assert found.trouble.endswith("diverged on this log without some of its episodes")
    assert found_within(outermost).value == free.value


def test_groups_depend_on_keys_alone_and_differ_from_folds():
    key = np.random.default_rng(0).integers(0, 2**63, 5000).astype(np.uint64)
    group = groups_of(key)
    assert sorted(set(group)) == list(range(10))
    np.testing.assert_array_equal(group, folds_of(key * np.uint64(3) + np.uint64(1), 10))
    assert np.bincount(group).min() > 400
    both = np.bincount(group * 5 + folds_of(key, 5), minlength=50)
    assert both.min() > 50


def starts(block):
    """The same episodes; every third one has lost its rows."""
    lone = np.arange(block.count) % 3 == 0
    first = block.rows.take(block.first[:-1][lone])
    alone = SimpleNamespace(input=first.input, key=block.key[lone])
    alone.take = lambda some: SimpleNamespace(input=alone.input[some], key=alone.key[some])
    return replace(block.pick(~lone), lone=alone)


@pytest.mark.parametrize("kind", ["features", "cells", "many cells"])
def test_a_bench_is_the_log_without_a_group(kind):
    if kind == "features":
        whole = block_of(line_log(40, 2))
        basis = States(Fourier(2, bounds=[(-4, 4)]).fit())
        phi = basis.phi
    else:
        size = 6 if kind == "cells" else 65
        whole = block_of(table(4, 40)[RATIO])
        basis = Cells(Tabular(size).fit())
        phi = np.eye(size).__getitem__
    block = starts(whole)
    bench = Bench(block, basis)
    group, lone = groups_of(block.key), groups_of(block.lone.key)
    np.testing.assert_array_equal(bench.group, group)
    np.testing.assert_array_equal(bench.left_out, np.unique(group))
    for without in (None, int(group[0])):
        some = np.ones(block.count, bool) if without is None else group != without
        rest = np.ones(len(lone), bool) if without is None else lone != without
        first = block.rows.input[block.first[:-1]][some]
        mean = phi(np.concatenate([first, block.lone.input[rest]])).mean(axis=0)
        np.testing.assert_allclose(bench.start(without), mean, rtol=1e-12)
        part = block.pick(some)
        found = bench.transitions(None if without is None else some)
        np.testing.assert_array_equal(found.reward, part.rows.reward)
        np.testing.assert_array_equal(found.start, part.begin)
        np.testing.assert_array_equal(found.rho, part.rows.rho)
        np.testing.assert_array_equal(found.discount, part.rows.discount)
        here = found.phi.toarray() if found.sparse else np.asarray(found.phi)
        np.testing.assert_allclose(here, phi(part.rows.input))
        after = found.next_phi.toarray() if found.sparse else np.asarray(found.next_phi)
        going = ~part.rows.terminated
        np.testing.assert_allclose(after[going], phi(part.rows.next_input)[going])
        assert kind != "features" or not after[~going].any()


def test_a_single_group_is_not_left_out():
    block = block_of(line_log(6, 2))
    one = block.pick(groups_of(block.key) == groups_of(block.key)[0])
    bench = Bench(one, States(Fourier(1, bounds=[(-4, 4)]).fit()))
    assert len(bench.groups) == 1
    assert len(bench.left_out) == 0


@pytest.mark.parametrize("most", [np.inf, 1e-9])
def test_a_learner_passes_once_over_all_rows_and_over_all_but_each_group(most):
    block, basis = block_of(line_log(30, 4)), States(Fourier(2, bounds=[(-4, 4)]).fit())
    bench = Bench(block, basis, most)
    found = bench.learner(lambda: TDRC(step_size=0.01), "TDRC")
    n = len(block.rows)
    size = -(-n // 25)
    assert found.curve["rows"] == [min(n, (k + 1) * size) for k in range(-(-n // size))]
    learner = TDRC(step_size=0.01).partial_fit(bench.transitions())
    value = float(bench.start() @ learner.theta)
    assert found.curve["value"][-1] == pytest.approx(value, rel=1e-9)
    if most == 1e-9:
        assert found.trouble == "TDRC diverged on this log"
        assert np.isnan(found.value)
        assert len(found.replicates) == 0
        return
    assert found.value == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(found.theta, learner.theta, rtol=1e-9)
    assert found.features is basis.features
    left = []
    for g in np.unique(bench.group):
        rest = TDRC(step_size=0.01).partial_fit(bench.transitions(bench.group != g))
        left.append(float(bench.start(g) @ rest.theta))
    np.testing.assert_allclose(found.replicates, left, rtol=1e-9)
