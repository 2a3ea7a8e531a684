"""Numba's compiler with less to do: what compiled code computes is the same."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from o2td.compiled import jitable, njit
from o2td.linked import LinkedCompiler


def total(x):  # type: ignore[no-untyped-def]
    """A sum in a loop, of an array made on the way, which a caller must free."""
    doubled = 2.0 * x
    found = 0.0
    for j in range(len(doubled)):
        found += doubled[j]
    if found < 0.0:
        raise ValueError("negative")
    return found


def distance(x, y):  # type: ignore[no-untyped-def]
    """Makes no arrays."""
    found = 0.0
    for j in range(len(x)):
        found += abs(x[j] - y[j]) if x[j] > 0.1 else y[j] ** 2
    return found


plain, linked = numba.njit(total), numba.njit(pipeline_class=LinkedCompiler)(total)
part = jitable(lambda x: linked(x) + 1.0)


def test_a_caller_gets_the_same_numbers_and_errors() -> None:
    x = np.random.default_rng(0).random(1001)
    assert njit()(lambda x: linked(x))(x) == plain(x)
    assert njit()(lambda x: part(x))(x) == plain(x) + 1.0
    with pytest.raises(ValueError, match="negative"):
        njit()(lambda x: part(x))(-x)


def test_only_the_caller_becomes_machine_code() -> None:
    caller = njit()(lambda x: linked(x))
    caller(np.ones(3))
    (inner,), (outer,) = linked.overloads.values(), caller.overloads.values()
    assert inner.library.get_pointer_to_function(inner.fndesc.llvm_func_name) == 0
    assert outer.library.get_pointer_to_function(outer.fndesc.llvm_func_name) != 0
    assert inner.fndesc.llvm_func_name in str(inner.library.get_llvm_str())


def test_lean_passes_compute_the_same() -> None:
    x = np.random.default_rng(0).random(1001)
    lean = njit(allocates=False)(distance)
    assert lean(x, 2.0 * x) == numba.njit(distance)(x, 2.0 * x)
    (found,) = lean.overloads.values()
    (passes,) = found.metadata["pipeline_times"].values()
    assert any("native_lowering" in each for each in passes)
    assert not any("nopython_rewrites" in each for each in passes)


def test_only_what_makes_no_arrays_is_compiled_by_lean_passes() -> None:
    makes = njit()(lambda x: (x * x + x).sum())
    assert makes(np.arange(4.0)) == 20.0
    (found,) = makes.overloads.values()
    (passes,) = found.metadata["pipeline_times"].values()
    assert any("nopython_rewrites" in each for each in passes)
