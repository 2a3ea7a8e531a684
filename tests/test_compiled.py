"""What `o2td.compiled` adds to Numba: a quiet collector, and functions that allocate nothing."""

from __future__ import annotations

import gc

import numba
import numpy as np
import pytest

from o2td.compiled import njit, overload, put_off

seen: list[bool] = []


def probe(x: float) -> float:
    """Typed while its caller compiles."""
    return x


@overload(probe)
def _probe(x):  # type: ignore[no-untyped-def]
    seen.append(gc.isenabled())
    return lambda x: x


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_waits_while_a_function_compiles_and_is_left_as_it_was(on: bool) -> None:
    seen.clear()
    before = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        given = 2.0 if on else 2  # another type: what is known for one is not typed again
        assert njit()(lambda x: probe(x) + 1)(given) == 3
        assert gc.isenabled() is on
    finally:
        (gc.enable if before else gc.disable)()
    assert seen
    assert not any(seen)


def test_the_collector_is_on_again_after_an_error() -> None:
    with pytest.raises(numba.TypingError):
        njit()(lambda x: x.nothing)(2.0)
    assert gc.isenabled()


def test_a_function_that_promised_to_allocate_nothing_may_not() -> None:
    def total(n: int) -> float:
        return np.ones(n).sum()

    assert njit()(total)(3) == 3.0
    with pytest.raises(numba.core.errors.NumbaError, match="returning of array"):
        njit(allocates=False)(total)(3)


def test_what_is_put_off_is_plain_until_enough_was_done() -> None:
    @put_off(10)
    @njit()
    def compiled(n: int) -> bool:
        return is_compiled(n)

    assert [compiled(size, 0) for size in (4, 6, 1, 0)] == [False, False, True, True]


def is_compiled(n: int) -> bool:
    return False


@overload(is_compiled)
def _is_compiled(n):  # type: ignore[no-untyped-def]
    return lambda n: True
