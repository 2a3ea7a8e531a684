"""The same updates in C, compiled on the spot for this machine and called through ctypes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.errors import O2TDError
from o2td.transitions import Transitions

__all__ = ["FLAGS", "Native", "compiler", "load"]

Floats = npt.NDArray[np.float64]
FLAGS = ("-O3", "-march=native", "-ffast-math", "-fPIC")

_COUNTS = [("n", ctypes.c_int64), ("d", ctypes.c_int64)]
_COMMON = [(name, ctypes.c_void_p) for name in ("reward", "discount", "rho", "start")]


class _Dense(ctypes.Structure):
    _fields_ = [
        *_COUNTS,
        *((name, ctypes.c_void_p) for name in ("phi", "next", "at", "next_at")),
        *_COMMON,
    ]


class _Sparse(ctypes.Structure):
    _fields_ = [
        *_COUNTS,
        *((name, ctypes.c_void_p) for name in ("data", "next_data", "index", "next_index")),
        *((name, ctypes.c_void_p) for name in ("ptr", "next_ptr")),
        *_COMMON,
    ]


class Native:
    """The loaded updates. `bind(name, batch)` returns a function of `(alpha, alpha_w, theta, w)`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def bind(self, name: str, batch: Transitions) -> Callable[[float, float, Floats, Floats], None]:
        """The update `name` over every row of the batch, its arguments prepared beforehand."""
        stream, keep = _stream(batch)
        function = self._library[f"{name}_{'sparse' if batch.sparse else 'dense'}"]
        function.restype = None
        function.argtypes = [type(stream), *2 * [ctypes.c_double], *2 * [ctypes.c_void_p]]

        def run(alpha: float, alpha_w: float, theta: Floats, w: Floats) -> None:
            function(stream, alpha, alpha_w, theta.ctypes.data, w.ctypes.data)

        run.keep = keep  # type: ignore[attr-defined]  # the arrays that `stream` points into
        return run


def compiler() -> str | None:
    """The C compiler: `$CC`, else `cc`, `gcc` or `clang`; None if there is none."""
    return next(
        (path for name in (os.environ.get("CC"), "cc", "gcc", "clang") if (path := _which(name))),
        None,
    )


def load() -> Native | None:
    """Compile the sources that come with the package and load them; None without a compiler."""
    program = compiler()
    if program is None:
        return None
    with as_file(files(__package__) / "c") as sources, tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "updates.so"
        objects = [str(Path(folder) / f"{path.stem}.o") for path in sorted(sources.glob("*.c"))]
        for path, item in zip(sorted(sources.glob("*.c")), objects, strict=True):
            _run(program, *FLAGS, "-c", "-o", item, str(path))
        # linked without -ffast-math, whose start-up code would flush this process's subnormals
        _run(program, "-shared", "-o", str(target), *objects)
        return Native(ctypes.CDLL(str(target)))


def _run(program: str, *arguments: str) -> None:
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), "no reason")
        raise O2TDError(f"{program} does not compile the C updates: {first}")


def _which(name: str | None) -> str | None:
    return shutil.which(name) if name else None


def _stream(batch: Transitions) -> tuple[Any, list[Any]]:
    rows: Any = batch.rows("phi")
    following: Any = batch.rows("next_phi")
    common = [batch.reward, batch.discount, batch.rho, batch.start]
    arrays: list[Any]
    if batch.sparse:
        arrays = [rows.data, following.data, rows.indices, following.indices]
        arrays += [rows.indptr, following.indptr, *common]
        return _Sparse(batch.n, batch.d, *map(_address, arrays)), arrays
    index = [rows.at, following.at] if batch.layout == "table" else [None, None]
    arrays = [rows.matrix, following.matrix, *index, *common]
    return _Dense(batch.n, batch.d, *map(_address, arrays)), arrays


def _address(array: npt.NDArray[Any] | None) -> int | None:
    return None if array is None else array.ctypes.data
