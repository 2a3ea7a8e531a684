"""Each episode's influence: baselines, blends of fits, and lanes, against written-out numbers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from o2td.errors import InputError
from o2td.evaluation.influence import (
    FOLDS,
    Baseline,
    CellSystem,
    Column,
    Fit,
    Histories,
    Influences,
    folds_of,
)

from .episodes import block_of
from .golden import RATIO, table
from .logs import line_log
from .study import studied

KINDS = ["states", "line"]


@pytest.fixture(scope="module", params=KINDS)
def made(request: Any) -> tuple[Any, Any]:
    """A study whose systems are fitted, of states or of chosen features, and its episodes."""
    log = table(3, 40)[RATIO] if request.param == "states" else line_log(60, 3)
    return studied(log, 0.9), block_of(log)


def rows_of(system: Any, block: Any, theta: Any) -> tuple[Any, Any]:
    """`V(s_0)` of each episode and the error of each row."""
    if isinstance(system, CellSystem):
        first, delta = system.differences(block, theta)
        return first, delta
    rows = system.basis.rows(block)
    return rows.first @ theta, rows.temporal_difference(theta)


def test_a_baseline_gives_each_start_the_value_fitted_to_the_other_folds(made: Any) -> None:
    study, block = made
    lead = study.choice.lead
    found = Baseline.of(lead, float(block.count))
    fold = folds_of(block.key, FOLDS)
    whole, values = lead.whole, []
    for e in range(block.count):
        theta = lead.solve(np.arange(FOLDS) != fold[e]).theta
        np.testing.assert_allclose(found.weights[:, fold[e]], lead.lift(theta), rtol=1e-12)
        values.append(rows_of(whole, block, lead.lift(theta))[0][e])
    assert found.mean == pytest.approx(np.mean(values), rel=1e-9)
    half = Baseline.of(lead, 2.0 * block.count)
    assert half.mean == pytest.approx(found.mean / 2.0, rel=1e-12)
    assert Baseline.of(lead, 0.0).mean == pytest.approx(found.mean * block.count, rel=1e-9)


def test_a_baseline_needs_a_system_and_a_number_of_starts(made: Any) -> None:
    lead = made[0].choice.lead
    for wrong in ("many", None, [1.0], float("nan")):
        with pytest.raises(InputError, match="opened"):
            Baseline.of(lead, wrong)
    with pytest.raises(InputError, match="system must be one that a fit has filled, got 3"):
        Baseline.of(3, 1.0)  # type: ignore[arg-type]


class Errors(Column):
    """The sum of a baseline's errors in an episode, and the value at its start."""

    def __init__(self, number: int) -> None:
        self.number = number

    def of(self, histories: Histories) -> Any:
        h = histories
        return h.first[self.number] + 10.0 * h.episodes.sums(h.weight * h.delta[self.number])

    def alone(self, count: int, first: list[Any]) -> Any:
        return -first[self.number]


def traced(study: Any, block: Any, keep: bool = True) -> tuple[Influences, list[int], list[Fit]]:
    """Two fits, a blend of both, and a column of a baseline's errors, over these episodes."""
    systems = [study.choice.lead, *study.choice.panel][:2]
    fits = [study.fitting.fit(one) for one in systems]
    found = Influences(2 * block.count, 1.5 * block.count, 0, 30, keep)
    asked = [found.blend([(1.0, fit)]) for fit in fits]
    asked.append(found.blend([(0.25, fits[0]), (0.75, fits[-1])]))
    baseline = Baseline.of(systems[0], float(block.count))
    assert [found.correct(baseline) for _ in range(2)] == [0, 0]
    asked.append(found.want(Errors(0)))
    return found, asked, fits


def test_influences_of_fits_and_columns_by_their_formulas(made: Any) -> None:
    study, block = made
    found, asked, fits = traced(study, block)
    found.add(block)
    units, share, each = 2 * block.count, 2.0 / 1.5, []
    for fit in fits:
        system, theta = fit.system, fit.solution.theta
        whole, adjoint = system.whole, system.lift(system.adjoint())
        first, delta = rows_of(whole, block, system.lift(theta))
        if isinstance(whole, CellSystem):
            moved = whole.influence(block, theta, adjoint)[1]
        else:
            moved = whole.moved(block, whole.basis.rows(block).here @ adjoint, delta)
        each.append(share * (first - fit.value) + units * moved)
    each.append(0.25 * each[0] + 0.75 * each[-1])
    fold = folds_of(block.key, FOLDS)
    baseline = found.baselines[0]
    first, delta = rows_of(study.choice.lead.whole, block, baseline.weights)
    first = first[np.arange(block.count), fold]
    delta = delta[np.arange(len(block.rows)), fold[block.unit()]]
    weight = np.concatenate(
        [
            np.cumprod(block.rows.rho[a:b])
            for a, b in zip(block.first[:-1], block.first[1:], strict=True)
        ]
    )
    each.append(first + 10.0 * block.sums(weight * delta))
    for column, wanted in zip(asked, each, strict=True):
        np.testing.assert_allclose(found.latest(column), wanted, rtol=1e-7, atol=1e-9)
        spread = found.spread(column)
        assert spread.mean == pytest.approx(wanted.mean(), abs=1e-9)
        assert spread.values is not None
        np.testing.assert_allclose(spread.values, wanted - wanted.mean(), rtol=1e-7, atol=1e-8)
    np.testing.assert_array_equal(found.latest_keys(), block.key)
    numbers, keys, values = found.kept[0]
    np.testing.assert_array_equal(numbers, block.rows.episode[block.first[:-1]])
    np.testing.assert_array_equal(keys, block.key)
    assert values.shape == (block.count, len(asked))


def test_parts_merge_and_only_what_is_kept_has_its_values(made: Any) -> None:
    study, block = made
    half = np.arange(block.count) < 11
    whole, asked, _ = traced(study, block)
    whole.add(block)
    one, _, _ = traced(study, block)
    two, _, _ = traced(study, block)
    one.add(block.pick(half))
    two.add(block.pick(~half))
    assert one.latest(asked[0]).shape == (11,)
    one.merge(two)
    fresh, _, _ = traced(study, block, keep=False)
    fresh.merge(whole)
    for column in asked:
        for other in (one.spread(column), fresh.spread(column)):
            assert other.count == block.count
            assert other.mean == pytest.approx(whole.spread(column).mean, abs=1e-9)
            assert other.error == pytest.approx(whole.spread(column).error, rel=1e-6)
        assert fresh.spread(column).values is None
        np.testing.assert_allclose(
            one.spread(column).values, whole.spread(column).values, atol=1e-7
        )


def test_episodes_that_did_not_open_have_no_start_of_their_own(made: Any) -> None:
    study, block = made
    found, asked, fits = traced(study, block)
    found.add(replace(block, opens=np.arange(block.count) % 2 == 0))
    whole, _, _ = traced(study, block)
    whole.add(block)
    first = rows_of(fits[0].system.whole, block, fits[0].system.lift(fits[0].solution.theta))[0]
    start = 2.0 / 1.5 * (first - fits[0].value)
    start[::2] = 0.0
    np.testing.assert_allclose(whole.latest(asked[0]) - found.latest(asked[0]), start, atol=1e-8)


@pytest.mark.parametrize(
    ("narrow", "wide", "scale"),
    [(1.0, 3.0, 3.0), (3.0, 1.0, 1.0), (0.0, 1.0, 1.0), (2.0, 2.0, 1.0)],
)
def test_lanes_of_a_fit_are_stretched_where_its_influence_spreads_further(
    monkeypatch: pytest.MonkeyPatch, narrow: float, wide: float, scale: float
) -> None:
    own = 5.0 + narrow * np.array([-1.0, 1.0, -1.0, 1.0])
    lanes = wide * np.array([1.0, -1.0, 1.0, -1.0])
    spread: Any = SimpleNamespace(lanes=lanes)
    monkeypatch.setattr(Influences, "spread", lambda self, column: spread)
    found = Influences(4, 4.0, 0, 4)
    one, other = Fit(None, None, 5.0, own), Fit(None, None, 9.0)  # type: ignore[arg-type]
    influence, stretched = found.found(0, [(1.0, one)])
    assert influence is spread
    np.testing.assert_allclose(stretched, 5.0 + scale * (own - 5.0))
    np.testing.assert_allclose(found.found(0, [(1.0, other)])[1], 9.0 + lanes)
    both = found.found(0, [(0.25, one), (0.75, other)])[1]
    np.testing.assert_allclose(both, 8.0 + lanes)
