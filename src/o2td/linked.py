"""Numba's compiler with less to do, for functions that make no arrays and for those that they call.

What Numba does for functions in general is in part not needed here, and a first use takes about a
quarter less time without it. What the functions compute is the same.

A function that only other compiled functions call is optimised once, there: Numba optimises each
by itself, with all that it calls, and makes machine code of it, before a caller takes it in, where
both happen again. And what has neither expressions of whole arrays nor closures nor references to
count does without the passes that look for them.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager
from numba.core.typed_passes import InlineOverloads, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes, InlineInlinables, WithLifting

__all__ = ["CalledCompiler", "LeanCompiler", "LinkedCompiler"]

UNUSED = (InlineOverloads, NopythonRewrites, InlineClosureLikes, InlineInlinables, WithLifting)


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


class LeanCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler without passes that have nothing to do."""

    def define_pipelines(self) -> Any:
        """Numba's passes, except for `UNUSED`."""
        lean = PassManager("lean")
        for each, purpose in super().define_pipelines()[0].passes:
            if each not in UNUSED:
                lean.add_pass(each, purpose)
        lean.finalize()
        return [lean]


class CalledCompiler(LeanCompiler, LinkedCompiler):
    """Both: for functions that other lean ones call."""
