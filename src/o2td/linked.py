"""Compile functions that only other compiled functions call: they are optimised once, there.

Numba optimises each function by itself, with all that it calls, and makes machine code of it, before
a caller takes it in, where both happen again. Functions that Python never calls need neither, and
a first use takes about a fifth less time. What the caller computes is the same.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

__all__ = ["LinkedCompiler"]


class LinkedCode(JITCodeLibrary):  # type: ignore[misc]
    """The code of one function and of those that it calls, to be taken in by a caller."""

    def _optimize_final_module(self) -> None:
        """Leave this to the caller."""

    def _finalize_final_module(self) -> None:
        """Leave out machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code."""
        return 0

    @property
    def codegen(self) -> LinkedCode:
        """Who is asked to give this code its environment."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Give nothing: an environment is read by code that Python calls."""


class LinkedCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, with `LinkedCode` as its result: an option `pipeline_class` of `njit`."""

    def define_pipelines(self) -> Any:
        """Numba's passes, on our code."""
        state = self.state
        state.library = LinkedCode(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()
