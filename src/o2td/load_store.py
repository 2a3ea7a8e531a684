"""Read and write memory in compiled loops as C does with `restrict`.

The compiler must assume that a store to theta may change the features, and tests for it before every
row; for small d the tests cost as much as the row. `get_row`, `get_theta`, `put_theta`, ... access
contiguous arrays number by number and carry the promise that rows, theta, w and z never overlap (LLVM's
`alias.scope` and `noalias`). Indices are not checked and do not count from the end.

`rolled()` inside a loop prevents unrolling: it compiles to nothing, but the compiler does not copy it.
Loops over the few entries of a sparse row, if unrolled and vectorised as for long rows, took up to twice
as long, and their time depended on the address at which the code was loaded.

`peek` reads a number at an address: a list of addresses is one array, where a tuple of arrays takes
Numba a tenth of a second to unpack in each function that gets it.

`lesser` and `greater` are `min` and `max` of two numbers, which Numba would compile anew for every
function that calls them.

`post` writes a count that another thread reads with `posted`: a thread that has read it sees
everything written before it.

In Python all are plain functions; compiled code has forms of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable

__all__ = [
    "get_row",
    "get_theta",
    "get_w",
    "get_z",
    "greater",
    "lesser",
    "peek",
    "post",
    "posted",
    "put_theta",
    "put_w",
    "put_z",
    "rolled",
]

REGIONS = ("rows", "theta", "w", "z")
_WORD = 8  # bytes of a count or a number


def _promise(builder, access, own: str) -> None:
    """Mark a load or store as being in region `own` and touching no other."""
    module = builder.module

    def node(*parts: Any) -> Any:
        return module.add_metadata(
            [ir.MetaDataString(module, part) if isinstance(part, str) else part for part in parts]
        )

    domain = node("o2td")
    scopes = {name: node(f"o2td {name}", domain) for name in REGIONS}
    access.set_metadata("alias.scope", node(scopes[own]))
    access.set_metadata("noalias", node(*(scopes[name] for name in REGIONS if name != own)))


def _address(context, builder, array_type, array, index) -> Any:
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def _getter(own: str | None) -> Callable[[Any, Any], Any]:
    def get(array, index) -> Any:
        return array.reshape(-1)[index]

    @type_callable(get)
    def _typed(_) -> Any:
        return lambda array, index: array.dtype(array, types.intp)

    @lower_builtin(get, types.Array, types.intp)
    def _lowered(context, builder, signature, given) -> Any:
        place = _address(context, builder, signature.args[0], *given)
        if own is None:
            return builder.load_atomic(place, "acquire", _WORD)
        value = builder.load(place)
        _promise(builder, value, own)
        return value

    return get


def _putter(own: str | None) -> Callable[[Any, Any, Any], None]:
    def put(array, index, value) -> None:
        array.reshape(-1)[index] = value

    @type_callable(put)
    def _typed(_) -> Any:
        return lambda array, index, value: types.none(array, types.intp, array.dtype)

    @lower_builtin(put, types.Array, types.intp, types.Any)
    def _lowered(context, builder, signature, given) -> Any:
        to = _address(context, builder, signature.args[0], *given[:2])
        if own is None:
            builder.store_atomic(given[2], to, "release", _WORD)
        else:
            _promise(builder, builder.store(given[2], to), own)
        return context.get_dummy_value()

    return put


def rolled() -> None:
    """Do nothing; a loop that contains this call is neither unrolled nor vectorised."""


@type_callable(rolled)
def _typed(_) -> Any:
    return lambda: types.none


@lower_builtin(rolled)
def _lowered(context, builder, signature, given) -> Any:
    builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)
    return context.get_dummy_value()


def peek(address: int, index: int) -> float:
    """The number at this index from an address on."""
    return np.float64(ctypes.c_double.from_address(int(address) + _WORD * int(index)).value)


@type_callable(peek)
def _typed_peek(_) -> Any:
    return lambda address, index: types.float64(types.intp, types.intp)


@lower_builtin(peek, types.intp, types.intp)
def _lowered_peek(context, builder, signature, given) -> Any:
    place = builder.inttoptr(given[0], ir.DoubleType().as_pointer())
    return builder.load(builder.gep(place, [given[1]]))


def _chooser(choice: Callable[[Any, Any], Any], sign: str) -> Callable[[Any, Any], Any]:
    def choose(a, b) -> Any:
        return choice(a, b)

    @type_callable(choose)
    def _typed(_) -> Any:
        return lambda a, b: types.float64(types.float64, types.float64)

    @lower_builtin(choose, types.float64, types.float64)
    def _lowered(context, builder, signature, given) -> Any:
        a, b = given
        return builder.select(builder.fcmp_ordered(sign, b, a), b, a)

    return choose


lesser, greater = _chooser(min, "<"), _chooser(max, ">")
get_row = _getter("rows")
get_theta, put_theta = _getter("theta"), _putter("theta")
get_w, put_w = _getter("w"), _putter("w")
get_z, put_z = _getter("z"), _putter("z")
posted, post = _getter(None), _putter(None)
