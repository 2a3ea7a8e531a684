"""`njit` for a package that may lie anywhere: compiled code is kept where that is possible.

Numba keeps it next to the source, in `NUMBA_CACHE_DIR`, or in the cache folder of the home
directory, and refuses to define a function where it finds none of them, as in a read-only
container. Here such a function is compiled anew in each process, and one line says so. What an
earlier version has kept, and this one cannot read because a type has moved, is compiled anew, too.
"""

from __future__ import annotations

import functools
import gc
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.extending import overload as numba_overload
from numba.extending import register_jitable

from o2td.errors import InputError
from o2td.linked import CalledCompiler, LeanCompiler

__all__ = [
    "NotKeptWarning",
    "by_kind",
    "jitable",
    "kind",
    "njit",
    "overload",
    "put_off",
    "refuse_uncompiled",
]

LEAN = {"no_cfunc_wrapper": True}  # no form for callers in C: a tenth of the time to compile
NUMBERS = {**LEAN, "_nrt": False, "pipeline_class": LeanCompiler}  # makes no arrays
CALLED = {**LEAN, "pipeline_class": CalledCompiler}  # by other compiled functions only


class NotKeptWarning(RuntimeWarning):
    """Compiled code cannot be kept, so every process compiles its own."""


def njit(*signatures: Any, **options: Any) -> Callable[[Any], Any]:
    """`numba.njit`, without its cache where there is no place for one.

    A function that makes no arrays says so by `allocates=False`: it need not count references to
    those that it is given, and compiles in less time. It must return numbers only.

    >>> @njit(nogil=True)
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """
    kept = options.pop("cache", False)
    allocates = options.pop("allocates", True)
    options = {**(LEAN if allocates else NUMBERS), **options}

    def decorate(function: Any) -> Any:
        if kept and (_has_home() or _beside(function)):
            try:
                kept_one = numba.njit(*signatures, cache=True, **options)(function)
                return _undisturbed(_forgiving(kept_one))
            except RuntimeError as error:
                if "no locator available" not in str(error):
                    raise
        if kept and Path(function.__code__.co_filename).is_file():  # none is kept of a console's
            _say()
        return _undisturbed(numba.njit(*signatures, **options)(function))

    return decorate


def overload(function: Any, jit_options: dict[str, Any] | None = None) -> Callable[[Any], Any]:
    """`numba.extending.overload`, for other compiled functions only.

    >>> def double(x):
    ...     return 2 * x
    >>> overload(double)(lambda x: lambda x: x + x)(1.0)(3)
    6
    """
    made: Callable[[Any], Any] = numba_overload(function, {**(jit_options or {}), **CALLED})
    return made


def jitable(function: Any = None, **options: Any) -> Any:
    """`numba.extending.register_jitable`, for other compiled functions only.

    >>> @jitable
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    """
    if function is None:
        return functools.partial(jitable, **options)
    return register_jitable(**options, **CALLED)(function)


def put_off(work: int) -> Callable[[Any], Any]:
    """Run a compiled function in plain Python until `work` is done, which its first argument counts.

    For functions whose results do not depend on who computes them, such as draws from tables: a
    few rows take less time than their compilation.

    >>> @put_off(1000)
    ... @njit(nogil=True)
    ... def double(x):
    ...     return 2 * x
    >>> double(1, 21)
    42
    """

    def decorate(compiled: Any) -> Callable[..., Any]:
        plain, done = getattr(compiled, "py_func", compiled), 0

        @functools.wraps(plain)
        def call(size: int, *given: Any) -> Any:
            nonlocal done
            done += size if done <= work else 0
            return (plain if done <= work else compiled)(*given)

        return call

    return decorate


def kind(x: Any) -> Any:
    """The class of a tuple, in Python as well as where code is compiled and x is its type.

    >>> kind((1, 2))
    <class 'tuple'>
    """
    return getattr(x, "instance_class", type(x))


def by_kind(choose: Any = None, **options: Any) -> Any:
    """A function of which there are several, and `choose` returns the one for given arguments.

    What it returns takes arguments of the same names. In compiled code `choose` is given types, and
    `options` are those of compilation.

    >>> @by_kind
    ... def double(x):
    ...     return (lambda x: x + x) if kind(x) is float else (lambda x: 2 * x)
    >>> double(21)
    42
    """
    if choose is None:
        return functools.partial(by_kind, **options)

    @functools.wraps(choose)
    def chosen(*arguments: Any) -> Any:
        return choose(*arguments)(*arguments)

    overload(chosen, options)(choose)
    return chosen


def refuse_uncompiled() -> None:
    """Raise if compilation is off: what a learner's loop does is chosen by the types of its arrays.

    >>> refuse_uncompiled()
    """
    if numba.config.DISABLE_JIT:
        raise InputError(
            "NUMBA_DISABLE_JIT is set, and learners exist as compiled code only; unset it"
        )


def _forgiving(dispatcher: Any) -> Any:
    """Let it forget what it cannot read: Numba unpickles old signatures before it sees their age."""
    cache = getattr(dispatcher, "_cache", None)
    if cache is None:  # compilation is off: NUMBA_DISABLE_JIT, or the study of mutants
        return dispatcher
    load = cache.load_overload

    def load_overload(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except (ImportError, AttributeError):
            cache.flush()
            return None

    cache.load_overload = load_overload
    return dispatcher


def _undisturbed(dispatcher: Any) -> Any:
    """Compile with the cyclic garbage collector off: it would visit all of Numba's objects often."""
    given = getattr(dispatcher, "compile", None)
    if given is None:  # compilation is off
        return dispatcher

    def compile_(signature: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            return given(signature)
        finally:
            if collects:
                gc.enable()

    dispatcher.compile = compile_
    return dispatcher


def _has_home() -> bool:
    """Whether Numba's fallback is a real folder: without a home it would make one called `~` here."""
    given = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    return bool(given) or not os.path.expanduser("~").startswith("~")  # noqa: PTH111


def _beside(function: Any) -> bool:
    """Whether compiled code can be kept next to the source of this function."""
    return _writable(str(Path(function.__code__.co_filename).parent))


@functools.cache
def _writable(folder: str) -> bool:
    return os.access(Path(folder) / "__pycache__", os.W_OK) or os.access(folder, os.W_OK)


@functools.cache
def _say() -> None:
    """One line, once in a process: a file and a line would say nothing."""
    warnings.warn_explicit(
        "compiled code cannot be kept here, so each process compiles its own, for some seconds at"
        " every first use: set NUMBA_CACHE_DIR to a folder that can be written to",
        NotKeptWarning,
        filename="o2td",
        lineno=1,
        module="o2td",
        registry={},
    )
