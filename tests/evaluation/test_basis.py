"""Features of rows, from a table or a map."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import coo_array, csr_array

from o2td.errors import InputError
from o2td.evaluation.basis import Actions, States, apply, describe, table_of
from o2td.features import Polynomial, Tabular

from .episodes import block_of
from .golden import RATIO, table
from .logs import line_log


def test_features_are_rows_of_a_table_or_what_a_map_returns():
    table, states = np.arange(6.0).reshape(3, 2), np.array([2, 0])
    np.testing.assert_array_equal(apply(table, states), table[states])
    np.testing.assert_array_equal(apply(lambda s: table[s] + 1.0, states), table[states] + 1.0)
    with pytest.raises(InputError, match="state 3 is in the log, the table has 3 rows"):
        apply(table, np.array([0, 3]))
    with pytest.raises(InputError, match=r"a table of features needs a log with states"):
        apply(table, np.zeros((2, 1)))
    for wrong in (lambda s: table, lambda s: s * 1.0, lambda s: [[1.0]]):
        with pytest.raises(InputError, match=r"features: returned shape .* for 2 rows"):
            apply(wrong, states)
    with pytest.raises(InputError, match="not a finite number for 5; correct the feature map"):
        apply(lambda s: np.where(s[:, None] == 5, np.inf, table[:1]), np.array([1, 5]))
    with pytest.raises(InputError, match="not a finite number for some input"):
        apply(lambda s: csr_array(np.full((2, 2), np.nan)), states)


@pytest.mark.parametrize(
    "kind",
    [
        *(pd.DataFrame, pl.DataFrame, np.ndarray.tolist, csr_array, coo_array),
        *(lambda rows, dtype=dtype: rows.astype(dtype) for dtype in (np.float16, np.int8, ">f4")),
    ],
)
def test_numbers_of_any_container_are_features(kind: Any) -> None:
    numbers, states = np.arange(6.0).reshape(3, 2), np.array([2, 0, 1])
    found = States(lambda s: kind(numbers[s])).phi(states)
    assert (type(found), found.dtype, found.flags.c_contiguous) == (np.ndarray, np.float64, True)
    np.testing.assert_array_equal(found, numbers[states])
    if kind is not np.ndarray.tolist:
        np.testing.assert_array_equal(States(table_of(kind(numbers))).phi(states), found)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda x: x.astype(str), "has dtype <U"),
        (lambda x: x.astype(object), "has dtype object"),
        (lambda x: x * 1j, "has dtype complex128"),
        (lambda x: csr_array(x * 1j), "has dtype complex128"),
        (lambda x: None, "has dtype object"),
        (lambda x: [[1.0], [1.0, 2.0]], "is not an array of numbers"),
        (lambda x: np.ma.masked_array(x, mask=True), "is a masked array"),
        (lambda x: x[:, :0], "returned no features; return at least one column"),
        (lambda x: np.ones((2, len(set(x.ravel())))), "1 columns for some rows and 2 for others"),
    ],
)
def test_what_is_no_features_is_refused(answer: Any, said: str) -> None:
    basis = States(answer)
    with pytest.raises(InputError, match=f"^features: .*{said}"):
        [basis.phi(np.array(x)) for x in ([[1.0], [2.0]], [[1.0], [1.0]])]


def rows_of(kind: str) -> tuple[Any, Any, Any]:
    """Rows of features, and the features here and ahead of each row by themselves."""
    if kind == "states":
        block = block_of(table(2, 20, ending=0.05, steps=6)[RATIO], 0.9)
        theta = np.random.default_rng(0).normal(size=(6, 3))
        return block, States(theta), theta.__getitem__
    log = line_log(12, 3, steps=9)
    log.loc[log.index % 5 == 2, "next_obs_0"] += 1.0  # not where the next row is
    block = block_of(log, 0.9)
    phi = Polynomial(2, bounds=[(-4, 4)]).fit().transform
    return block, States(phi), phi


@pytest.mark.parametrize("kind", ["states", "line"])
def test_errors_of_rows_are_those_of_their_own_features_and_successors(kind: str) -> None:
    block, basis, phi = rows_of(kind)
    rows, found = block.rows, basis.rows(block)
    n, d = len(rows), found.here.shape[1]
    theta = np.random.default_rng(1).normal(size=(d, 2))
    assert 0 < len(found.other) < n
    here, ahead = phi(rows.input), np.zeros((n, d))
    for t in range(n):
        if not rows.terminated[t]:
            ahead[t] = rows.discount[t] * phi(rows.next_input[t : t + 1])[0]
    np.testing.assert_allclose(found.here, here)
    np.testing.assert_allclose(found.first, here[block.first[:-1]])
    np.testing.assert_allclose(found.right[:, :d], here - ahead, atol=1e-12)
    np.testing.assert_array_equal(found.right[:, d], rows.reward)
    for one in (theta, theta[:, 0]):
        each = rows.reward[:, None] if one.ndim == 2 else rows.reward
        delta = each + ahead @ one - here @ one
        np.testing.assert_allclose(found.temporal_difference(one), delta, atol=1e-9)
        again = found.temporal_difference(one, here @ one)
        np.testing.assert_allclose(again, delta, atol=1e-9)
    both = basis.both(block)
    np.testing.assert_allclose(both[0], here)
    going = ~rows.terminated
    np.testing.assert_allclose(both[1][going] * rows.discount[going, None], ahead[going])
    assert not both[1][~going].any()
    some = np.array([2, 0])
    part = found.some(some)
    np.testing.assert_allclose(part.here, here[:, some])
    np.testing.assert_allclose(
        part.temporal_difference(theta[:2]),
        rows.reward[:, None] + (ahead - here)[:, some] @ theta[:2],
        atol=1e-9,
    )
    assert found.some(slice(None)) is found


@pytest.mark.parametrize("known", [True, False])
def test_action_values_go_on_with_the_targets_actions_where_these_are_known(known: bool) -> None:
    log = line_log(12, 3, steps=9)
    block = block_of(log, 0.9)
    rows = block.rows
    chance = rows.next_target_probs.copy()
    if not known:
        chance[::7, 1] = np.nan
    block = replace(block, rows=replace(rows, next_target_probs=chance))
    phi = Polynomial(1, bounds=[(-4, 4)]).fit().transform
    basis = Actions(States(phi), 2)
    found = basis.rows(block)
    theta = np.random.default_rng(2).normal(size=4)
    by_action = theta.reshape(2, 2)
    for t in range(len(rows)):
        here = phi(rows.input[t : t + 1])[0] @ by_action[rows.action[t]]
        after = 0.0
        if not rows.terminated[t]:
            each = by_action @ phi(rows.next_input[t : t + 1])[0]
            after = rows.discount[t] * each @ chance[t]
        wanted = rows.reward[t] + after - here if np.isfinite(chance[t]).all() else 0.0
        assert found.temporal_difference(theta)[t] == pytest.approx(wanted, abs=1e-9)
    start = block.first[:-1]
    values = np.einsum("na,nd,ad->n", rows.target_probs[start], phi(rows.input[start]), by_action)
    np.testing.assert_allclose(found.first @ theta, values, rtol=1e-9)
    assert (found.keep is None) == np.isfinite(chance).all()
    lone = SimpleNamespace(target_probs=rows.target_probs[start], input=rows.input[start])
    np.testing.assert_allclose(basis.first(lone) @ theta, values, rtol=1e-9)
    with pytest.raises(InputError, match="action values need actions"):
        basis.rows(replace(block, rows=replace(rows, target_probs=None)))


def test_maps_are_described_in_one_line_without_long_arrays() -> None:
    assert describe(np.zeros((3, 2))) == "table of 3 states by 2 features"
    assert describe(len) == "len"
    assert describe(Tabular(4).fit()) == "tabular(n_states=4)"
    assert describe(Polynomial(2, bounds=[(0, 1)])).startswith("polynomial(degree=2")
    assert "bounds" not in describe(Polynomial(2, bounds=[(0, 1)]))
    named = SimpleNamespace(get_params=lambda: {"a": None, "clip": 1}, feature="bare")
    assert describe(named) == "bare"
    centred = SimpleNamespace(get_params=lambda: {"a": 2, "width": 1}, centers=[1, 2, 3])
    assert describe(centred) == "SimpleNamespace(3 centres, a=2)"


def test_so_many_features_of_a_row_and_no_more() -> None:
    for width in (2048, 2049):
        basis = States(np.zeros((3, width)))
        if width == 2048:
            assert basis.phi(np.array([0, 2])).shape == (2, 2048)
            continue
        with pytest.raises(InputError, match="2049 features per row; evaluate takes at most 2048"):
            basis.phi(np.array([0, 2]))
