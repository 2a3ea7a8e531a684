from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from o2td import Transitions
from o2td.errors import InputError
from o2td.transitions import DenseRows, SparseRows

N, D, S = 6, 3, 4


def fields(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {
        "phi": rng.standard_normal((N, D)),
        "reward": rng.standard_normal(N),
        "next_phi": rng.standard_normal((N, D)),
        "discount": np.full(N, 0.9),
        "rho": np.ones(N),
        "start": np.arange(N) == 0,
        "state": np.arange(N),
        "next_state": np.arange(N) + 1,
        "target_prob": np.full(N, 0.5),
        "behavior_prob": np.full(N, 0.25),
        "interest": np.ones(N),
        "next_phi_2": rng.standard_normal((N, D)),
        "discount_2": np.full(N, 0.8),
        "rho_2": np.ones(N),
    }
    return given | changes


def table_fields(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    given: dict[str, Any] = {
        "table": rng.standard_normal((S, D)),
        "state": rng.integers(0, S, N),
        "reward": rng.standard_normal(N),
        "next_state": rng.integers(0, S, N),
        "discount": np.full(N, 0.9),
        "next_state_2": rng.integers(0, S, N),
    }
    return given | changes


def make(layout: str, **changes: Any) -> Transitions:
    if layout == "table":
        return Transitions.from_table(**table_fields(**changes))
    if layout == "table csr":
        table = sp.csr_array(table_fields()["table"])
        return Transitions.from_table(**table_fields(table=table, **changes))
    given = fields(**changes)
    if layout == "csr":
        for name in ("phi", "next_phi", "next_phi_2"):
            given[name] = sp.csr_array(given[name])
    return Transitions(**given)


LAYOUTS = ("dense", "csr", "table", "table csr")
each_layout = pytest.mark.parametrize("layout", LAYOUTS)


def dense(rows: Any) -> Any:
    return rows.toarray() if hasattr(rows, "toarray") else rows


# -- what is refused -------------------------------------------------------------------------------


def at(name: str, row: int, value: Any) -> dict[str, Any]:
    array = np.array(fields()[name])
    if array.dtype.kind in "iu" and isinstance(value, float):
        array = array.astype(float)
    array[row] = value
    return {name: array}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (at("phi", 2, np.nan), "phi has a value that is not finite, first in row 2"),
        (at("next_phi", 4, np.inf), "next_phi has a value that is not finite, first in row 4"),
        (at("next_phi_2", 1, np.nan), "next_phi_2 has a value that is not finite, first in row 1"),
        (at("reward", 3, np.nan), "reward is nan in row 3: it must be finite"),
        (at("discount", 5, 1.5), r"discount is 1\.5 in row 5: it must be in \[0, 1\]"),
        (at("discount", 0, -0.1), r"discount is -0\.1 in row 0"),
        (at("discount_2", 0, 2.0), "discount_2 is 2.0 in row 0"),
        (at("rho", 1, -1.0), r"rho is -1\.0 in row 1: it must be >= 0"),
        (at("rho", 1, np.inf), "rho is inf in row 1"),
        (at("rho_2", 1, -1.0), "rho_2 is -1.0 in row 1"),
        (at("target_prob", 2, 1.2), r"target_prob is 1\.2 in row 2"),
        (at("behavior_prob", 2, 0.0), r"behavior_prob is 0\.0 in row 2: an action that was taken"),
        (at("interest", 2, -1.0), r"interest is -1\.0 in row 2"),
        (at("state", 2, -1), "state is -1 in row 2"),
        (at("next_state", 2, -1), "next_state is -1 in row 2: .* or -1 where discount is 0"),
        ({"start": [0, 1, 2, 0, 0, 0]}, "start is 2 in row 2: marks are True or False"),
        ({"start": [True]}, r"start must have shape \(6,\), got \(1,\)"),
        ({"state": np.zeros(N)}, "state has dtype float64; states are integers"),
        ({"state": [0]}, r"state must have shape \(6,\)"),
        ({"reward": np.zeros(5)}, r"reward must be a scalar or have shape \(6,\), got \(5,\)"),
        ({"phi": np.zeros(N)}, r"phi must be two-dimensional .* got shape \(6,\)"),
        ({"phi": np.zeros((N, 0))}, "phi has no features"),
        ({"phi": np.full((N, D), "x")}, "phi has dtype"),
        ({"phi": np.zeros((N, D), dtype=complex)}, "phi has dtype complex128"),
        ({"reward": np.zeros(N, dtype=np.float16)}, "reward has dtype float16"),
        ({"next_phi": np.zeros((N, D + 1))}, r"next_phi must have the shape and layout of phi"),
        ({"next_phi": sp.csr_array((N, D))}, r"next_phi must have the shape and layout of phi"),
        ({"next_phi_2": None}, "pass next_phi_2"),
    ],
)
def test_the_error_names_field_and_row(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        Transitions(**fields(**changes))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"state": [0, 1, 2, 3, 4, 0]}, "state is 4 in row 4: the table has 4 rows"),
        ({"next_state": [0, 1, 2, 3, 9, 0]}, "next_state is 9 in row 4"),
        ({"next_state_2": [0, -1, 2, 3, 1, 0]}, "next_state_2 is -1 in row 1"),
        ({"next_state": None}, "next_state is missing"),
        ({"state": np.zeros((2, 3), dtype=int)}, "state must be one-dimensional"),
        (
            {"table": np.full((S, D), np.nan)},
            "table has a value that is not finite, first in row 0",
        ),
    ],
)
def test_tables_are_checked(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        Transitions.from_table(**table_fields(**changes))


def test_sparse_rows_are_checked() -> None:
    phi = sp.csr_array(fields()["phi"])
    phi.data[D * 3] = np.nan
    with pytest.raises(InputError, match="phi has a value that is not finite, first in row 3"):
        make("csr", phi=phi)


def test_ratios_that_overflow_are_refused() -> None:
    tiny = at("behavior_prob", 3, 5e-324)
    with pytest.raises(InputError, match=r"rho is inf in row 3: target_prob / behavior_prob"):
        Transitions(**fields(rho=None, **tiny))


# -- what is accepted ------------------------------------------------------------------------------


def test_successors_of_rows_that_end_are_ignored() -> None:
    discount, next_phi = np.full(N, 0.9), fields()["next_phi"]
    discount[2], next_phi[2] = 0.0, np.nan
    next_state = np.arange(N) + 1
    next_state[2] = -1
    batch = Transitions(**fields(discount=discount, next_phi=next_phi, next_state=next_state))
    assert batch.next_state is not None
    assert batch.next_state[2] == -1


def test_ratios_come_from_probabilities_unless_given() -> None:
    assert (Transitions(**fields(rho=None)).rho == 2.0).all()
    assert (Transitions(**fields()).rho == 1.0).all()
    assert (Transitions(**fields(rho=None, behavior_prob=None)).rho == 1.0).all()


def test_scalars_fill_every_row() -> None:
    batch = Transitions(np.ones((3, 1)), 1, np.ones((3, 1)), 0.5, rho=2)
    assert batch.reward.tolist() == [1.0] * 3
    assert batch.discount.tolist() == [0.5] * 3
    assert batch.rho.tolist() == [2.0] * 3
    assert not batch.start.any()


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, ">f8"])
def test_other_real_types_convert(dtype: Any) -> None:
    phi = np.array([[1, 0], [0, 1]], dtype=dtype)
    batch = Transitions(phi, np.zeros(2, dtype=dtype), phi, 0.5)
    assert batch.phi.dtype == batch.reward.dtype == np.float64
    np.testing.assert_array_equal(batch.phi, [[1, 0], [0, 1]])


@pytest.mark.parametrize("order", ["F", "strided", "readonly"])
def test_any_memory_layout_is_read(order: str) -> None:
    expected = fields()["phi"]
    phi: Any = np.asfortranarray(expected)
    if order == "strided":
        phi = np.repeat(expected, 2, axis=0)[::2]
    elif order == "readonly":
        phi = expected.copy()
        phi.flags.writeable = False
    batch = Transitions(**fields(phi=phi))
    assert batch.phi.flags.c_contiguous
    np.testing.assert_array_equal(batch.phi, expected)


@each_layout
def test_empty_batches(layout: str) -> None:
    empty = make(layout)[:0]
    assert (len(empty), empty.d, empty.layout) == (0, D, layout.split()[0])
    assert empty.phi.shape == (0, D)


# -- no copies, no changes -------------------------------------------------------------------------


def test_arrays_are_shared_with_the_caller_and_read_only() -> None:
    given = fields()
    batch = Transitions(**given)
    for name in ("phi", "next_phi", "next_phi_2", "reward", "discount", "rho", "start", "state"):
        held = getattr(batch, name)
        assert np.shares_memory(held, given[name]), name
        with pytest.raises(ValueError, match="read-only"):
            held[0] = 0
        assert given[name].flags.writeable  # the caller's own array stays as it was


def test_sparse_and_table_arrays_are_shared() -> None:
    phi = sp.csr_array(fields()["phi"])
    batch = Transitions(phi, 0.0, phi, 0.9)
    assert np.shares_memory(batch.phi.data, phi.data)
    given = table_fields()
    batch = Transitions.from_table(**given)
    assert np.shares_memory(batch.table, given["table"])
    assert np.shares_memory(batch.state, given["state"])


@each_layout
def test_slices_are_views(layout: str) -> None:
    batch = make(layout)
    part = batch[2:5]
    assert len(part) == 3
    for name in ("reward", "discount", "rho", "start", "state", "next_state"):
        assert np.shares_memory(getattr(part, name), getattr(batch, name)), name
        np.testing.assert_array_equal(getattr(part, name), getattr(batch, name)[2:5])
    if layout == "dense":
        assert np.shares_memory(part.phi, batch.phi)
    if layout.startswith("table"):
        assert part.table is batch.table
    np.testing.assert_array_equal(dense(part.phi), dense(batch.phi)[2:5])
    np.testing.assert_array_equal(dense(part.next_phi), dense(batch.next_phi)[2:5])
    np.testing.assert_array_equal(dense(part.next_phi_2), dense(batch.next_phi_2)[2:5])


@each_layout
@given(cuts=st.lists(st.integers(0, N), max_size=4))
@settings(max_examples=20, deadline=None)
def test_any_split_concatenates_to_the_whole(layout: str, cuts: list[int]) -> None:
    batch = make(layout)
    edges = [0, *sorted(cuts), N]
    parts = [batch[a:b] for a, b in pairwise(edges)]
    same(Transitions.concatenate(parts), batch)


@each_layout
@pytest.mark.parametrize("size", [1, 4, 6, 100])
def test_chunks_cover_every_row_once(layout: str, size: int) -> None:
    batch = make(layout)
    parts = list(batch.chunks(size))
    assert all(len(part) <= size for part in parts)
    same(Transitions.concatenate(parts), batch)


def same(one: Transitions, other: Transitions) -> None:
    assert (one.n, one.d, one.layout) == (other.n, other.d, other.layout)
    for name in (
        *("reward", "discount", "rho", "start", "state", "next_state", "target_prob"),
        *("behavior_prob", "interest", "next_state_2", "discount_2", "rho_2"),
    ):
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        if a is not None:
            np.testing.assert_array_equal(a, b, err_msg=name)
    for name in ("phi", "next_phi", "next_phi_2"):
        np.testing.assert_array_equal(dense(getattr(one, name)), dense(getattr(other, name)))


def test_what_cannot_be_concatenated() -> None:
    with pytest.raises(InputError, match="at least one"):
        Transitions.concatenate([])
    with pytest.raises(InputError, match="batch 1 has layout csr"):
        Transitions.concatenate([make("dense"), make("csr")])
    other = make("table", table=np.zeros((S, D)))
    with pytest.raises(InputError, match="another feature table"):
        Transitions.concatenate([make("table"), other])
    with pytest.raises(InputError, match="interest is given in some batches and missing"):
        Transitions.concatenate([make("dense"), make("dense", interest=None)])
    equal = Transitions.concatenate([make("table"), make("table")])  # equal tables are one table
    assert len(equal) == 2 * N


@pytest.mark.parametrize("index", [0, slice(0, 4, 2), slice(None, None, -1), [0, 1]])
def test_only_slices_of_consecutive_rows(index: Any) -> None:
    with pytest.raises(InputError, match="consecutive rows"):
        make("dense")[index]


def test_chunk_sizes_are_positive() -> None:
    with pytest.raises(InputError, match="at least 1"):
        make("dense").chunks(0)


# -- what kernels read -----------------------------------------------------------------------------


def make_whole(batch: Transitions, which: str) -> Any:
    return batch.table if batch.layout == "table" else getattr(batch, f"_{which}")


@each_layout
@pytest.mark.parametrize("which", ["phi", "next_phi", "next_phi_2"])
def test_rows_for_kernels(layout: str, which: str) -> None:
    batch = make(layout)[1:5]
    rows = batch.rows(which)
    expected = dense(getattr(batch, which))
    if isinstance(rows, DenseRows):
        found = rows.matrix[rows.at]
    else:
        assert isinstance(rows, SparseRows)
        found = np.zeros((len(rows.at), rows.d))
        for t, i in enumerate(rows.at):
            entries = slice(rows.indptr[i], rows.indptr[i + 1])
            found[t, rows.indices[entries]] = rows.data[entries]
        assert np.shares_memory(rows.data, make_whole(batch, which).data)
    np.testing.assert_array_equal(found, expected)
    assert batch.sparse == isinstance(rows, SparseRows)


def test_repr_and_table_gather() -> None:
    batch = make("table")
    assert repr(batch) == "Transitions(n=6, d=3, layout='table')"
    np.testing.assert_array_equal(batch.phi, batch.table[batch.state])
    assert make("table", next_state_2=None).next_phi_2 is None


def test_duplicate_sparse_entries_are_summed_in_a_copy() -> None:
    phi = sp.csr_array((np.ones(2), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    batch = Transitions(phi, 0.0, phi, 0.9)
    np.testing.assert_array_equal(batch.phi.toarray(), [[2.0, 0.0]])
    assert phi.nnz == 2
