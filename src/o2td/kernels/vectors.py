"""Sixteen lanes side by side, in the processor's vector registers.

A matrix of sixteen lanes is (d, 16), flattened: a row of it holds one feature's number in every lane,
so a feature is read once for all of them and no sum runs across a vector. With `M_j` such a row,
`a`, `keep`, ... sixteen numbers, one per lane, and `x`, `y`, `e` rows of features that the lanes share:

    slide        M_j += a x_j                                   out = sum_j M_j e_j
    slide_both   M_j += a x_j + b y_j                           out = sum_j M_j e_j
    fade         M_j = keep M_j + a x_j + b y_j                 out = sum_j M_j e_j
    trail        Z_j = keep Z_j + m x_j,  M_j += a Z_j          out = sum_j M_j e_j
    squares      out = sum_i (sum_{j >= i} R_ij M_j)^2

each in one pass over M, with the sums in registers. The compiler does not vectorise such loops by
itself, so they are written out here with vectors that it splits to fit the processor. Sums run in
the order of j in every lane, whatever the others hold. Arrays must be contiguous and are not checked;
`x` begins at index i of its array, `y` at k, `e` at q. In Python these are plain functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable

__all__ = ["LINE", "WIDTH", "aligned", "fade", "slide", "slide_both", "squares", "trail"]

WIDTH = 16
LINE = 64  # bytes of a cache line: vectors that straddle two are slow
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_INDEX = ir.IntType(32)


def aligned(count: int, d: int) -> Any:
    """Zeros (count, 16 d), each row aligned to a cache line."""
    flat = np.zeros(count * WIDTH * d + LINE // 8)
    skip = -flat.ctypes.data % LINE // 8
    return flat[skip : skip + count * WIDTH * d].reshape(count, WIDTH * d)


def _part(x, i: int, d: int) -> Any:
    """Numbers i to i + d of an array, counted through all of its rows."""
    return x.reshape(-1)[i : i + d]


def slide(M, a, x, i: int, e, q: int, out, d: int) -> None:
    """`M_j += a x_j`, then `out = sum_j M_j e_j`."""
    rows = M.reshape(d, WIDTH)
    rows += a * _part(x, i, d)[:, None]
    out[:] = _part(e, q, d) @ rows


def slide_both(M, a, x, i: int, b, y, k: int, e, q: int, out, d: int) -> None:
    """`M_j += a x_j + b y_j`, then `out = sum_j M_j e_j`."""
    rows = M.reshape(d, WIDTH)
    rows += a * _part(x, i, d)[:, None] + b * _part(y, k, d)[:, None]
    out[:] = _part(e, q, d) @ rows


def fade(M, keep, a, x, i: int, b, y, k: int, e, q: int, out, d: int) -> None:
    """`M_j = keep M_j + a x_j + b y_j`, then `out = sum_j M_j e_j`."""
    rows = M.reshape(d, WIDTH)
    rows[:] = keep * rows + a * _part(x, i, d)[:, None] + b * _part(y, k, d)[:, None]
    out[:] = _part(e, q, d) @ rows


def trail(M, Z, keep, m, a, x, i: int, e, q: int, out, d: int) -> None:
    """`Z_j = keep Z_j + m x_j`, `M_j += a Z_j`, then `out = sum_j M_j e_j`."""
    rows, traces = M.reshape(d, WIDTH), Z.reshape(d, WIDTH)
    traces[:] = keep * traces + m * _part(x, i, d)[:, None]
    rows += a * traces
    out[:] = _part(e, q, d) @ rows


def squares(R, M, out, d: int) -> None:
    """`out = sum_i (sum_{j >= i} R_ij M_j)^2` with R (d, d), flattened."""
    with np.errstate(over="ignore", invalid="ignore"):
        out[:WIDTH] = np.square(np.triu(R.reshape(d, d)) @ M.reshape(d, WIDTH)).sum(axis=0)


class _Writer:
    """Emits the instructions of one of these functions: arguments by number, vectors, loops."""

    def __init__(self, context, builder, signature, given) -> None:
        self._context, self.builder = context, builder
        self._types, self.given = signature.args, given

    def number(self, value: int) -> Any:
        return ir.Constant(self.given[-1].type, value)

    def at(self, which: int, *offsets: Any) -> Any:
        """The address of an array's first number, plus offsets."""
        array = self._context.make_array(self._types[which])
        place = array(self._context, self.builder, self.given[which]).data
        for offset in offsets:
            place = self.builder.gep(place, [offset])
        return place

    def load(self, place) -> Any:
        return self.builder.load(self.builder.bitcast(place, _VECTOR.as_pointer()), align=8)

    def store(self, value, place) -> None:
        self.builder.store(value, self.builder.bitcast(place, _VECTOR.as_pointer()), align=8)

    def copies(self, place) -> Any:
        """The number at an address, sixteen times."""
        empty = ir.Constant(_VECTOR, ir.Undefined)
        one = self.builder.insert_element(empty, self.builder.load(place), ir.Constant(_INDEX, 0))
        first = ir.Constant(ir.VectorType(_INDEX, WIDTH), [0] * WIDTH)
        return self.builder.shuffle_vector(one, empty, first)

    def product(self, x, y) -> Any:
        return self.builder.fmul(x, y, flags=("contract",))

    def add(self, total, x, y) -> Any:
        """`total + x y`, rounded once if the processor can."""
        return self.builder.fadd(total, self.product(x, y), flags=("contract",))

    def zero(self) -> Any:
        """Room for a vector of zeros; the compiler puts it in a register."""
        zeros = ir.Constant(_VECTOR, [0.0] * WIDTH)
        room = cgutils.alloca_once(self.builder, _VECTOR)
        self.builder.store(zeros, room)
        return room

    def row(self, j) -> Any:
        """The address of row j of a matrix of lanes."""
        return self.builder.mul(j, self.number(WIDTH))


def _moving(writer: _Writer, M: int, change, e: int, q: int, out: int) -> None:
    """The loop shared by all that move M and multiply it by e; `change(j, M_j)` is the new M_j."""
    total = writer.zero()
    with cgutils.for_range(writer.builder, writer.given[-1]) as loop:
        place = writer.at(M, writer.row(loop.index))
        moved = change(loop.index, writer.load(place))
        writer.store(moved, place)
        weight = writer.copies(writer.at(e, writer.given[q], loop.index))
        writer.builder.store(writer.add(writer.builder.load(total), moved, weight), total)
    writer.store(writer.builder.load(total), writer.at(out))


def _write_slide(writer: _Writer) -> None:
    M, a, x, i, e, q, out = range(7)
    steps = writer.load(writer.at(a))

    def change(j, old) -> Any:
        return writer.add(old, steps, writer.copies(writer.at(x, writer.given[i], j)))

    _moving(writer, M, change, e, q, out)


def _write_slide_both(writer: _Writer) -> None:
    M, a, x, i, b, y, k, e, q, out = range(10)
    first, second = (writer.load(writer.at(which)) for which in (a, b))

    def change(j, old) -> Any:
        moved = writer.add(old, first, writer.copies(writer.at(x, writer.given[i], j)))
        return writer.add(moved, second, writer.copies(writer.at(y, writer.given[k], j)))

    _moving(writer, M, change, e, q, out)


def _write_fade(writer: _Writer) -> None:
    M, keep, a, x, i, b, y, k, e, q, out = range(11)
    kept, first, second = (writer.load(writer.at(which)) for which in (keep, a, b))

    def change(j, old) -> Any:
        moved = writer.product(kept, old)
        moved = writer.add(moved, first, writer.copies(writer.at(x, writer.given[i], j)))
        return writer.add(moved, second, writer.copies(writer.at(y, writer.given[k], j)))

    _moving(writer, M, change, e, q, out)


def _write_trail(writer: _Writer) -> None:
    M, Z, keep, m, a, x, i, e, q, out = range(10)
    kept, weight, steps = (writer.load(writer.at(which)) for which in (keep, m, a))

    def change(j, old) -> Any:
        place = writer.at(Z, writer.row(j))
        entry = writer.product(kept, writer.load(place))
        entry = writer.add(entry, weight, writer.copies(writer.at(x, writer.given[i], j)))
        writer.store(entry, place)
        return writer.add(old, steps, entry)

    _moving(writer, M, change, e, q, out)


def _write_squares(writer: _Writer) -> None:
    """Take two rows of R at a time: every M_j that is read serves both."""
    R, M, out, d = range(4)
    builder, n, one = writer.builder, writer.given[d], writer.number(1)
    total = writer.zero()

    def add_square(row) -> None:
        value = builder.load(row)
        builder.store(writer.add(builder.load(total), value, value), total)

    def add_entries(rows: list[tuple[Any, Any]], j) -> None:
        column = writer.load(writer.at(M, writer.row(j)))
        for row, begin in rows:
            entry = writer.copies(writer.at(R, builder.add(begin, j)))
            builder.store(writer.add(builder.load(row), entry, column), row)

    rows = [writer.zero(), writer.zero()]
    zeros = ir.Constant(_VECTOR, [0.0] * WIDTH)
    even = builder.and_(n, writer.number(-2))
    with cgutils.for_range_slice(builder, writer.number(0), even, writer.number(2), inc=True) as (
        i,
        _,
    ):
        after = builder.add(i, one)
        begins = [builder.mul(i, n), builder.mul(after, n)]
        for row in rows:
            builder.store(zeros, row)
        add_entries([(rows[0], begins[0])], i)
        with cgutils.for_range_slice(builder, after, n, one, inc=True) as (j, _):
            add_entries(list(zip(rows, begins, strict=True)), j)
        for row in rows:
            add_square(row)
    with builder.if_then(builder.icmp_signed("<", even, n)):
        last = builder.sub(n, one)
        builder.store(zeros, rows[0])
        add_entries([(rows[0], builder.mul(last, n))], last)
        add_square(rows[0])
    writer.store(builder.load(total), writer.at(out))


def _compile(function: Callable[..., None], write: Callable[[_Writer], None], kinds: str) -> None:
    """Give a function its compiled form; `kinds` has one letter per argument: array or index."""
    given = [types.Array if kind == "a" else types.intp for kind in kinds]

    @type_callable(function)
    def _typed(_) -> Any:
        def typer(*given: Any) -> Any:
            pairs = zip(given, kinds, strict=True)
            return types.none(*(x if kind == "a" else types.intp for x, kind in pairs))

        typer.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return typer

    @lower_builtin(function, *given)
    def _lowered(context, builder, signature, values) -> Any:
        write(_Writer(context, builder, signature, values))
        return context.get_dummy_value()


_compile(slide, _write_slide, "aaaiaiai")
_compile(slide_both, _write_slide_both, "aaaiaaiaiai")
_compile(fade, _write_fade, "aaaaiaaiaiai")
_compile(trail, _write_trail, "aaaaaaiaiai")
_compile(squares, _write_squares, "aaai")
