"""The arrays that a learner stores: one lane for itself and one for each of its replicates."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.emphasis import Emphasis, Memory
from o2td.learners.parameters import initial
from o2td.learners.step_sizes import rule_of
from o2td.learners.step_sizes.rule import SECOND

__all__ = ["Lanes"]


class Lanes:
    """State by name; each array has one row per lane, the learner's own first."""

    vectors: ClassVar[tuple[str, ...]] = ("theta",)
    traces: ClassVar[tuple[str, ...]] = ()
    average: bool | float
    initial_theta: npt.ArrayLike | None
    _arrays: dict[str, npt.NDArray[Any]]
    _memory: Memory
    _diverged: npt.NDArray[np.int64]

    @property
    def _weighting(self) -> Emphasis:
        """The emphasis in force."""
        raise NotImplementedError

    @property
    def _settles(self) -> bool:
        """Whether anything happens after a step: averaging, l1-prox, projection."""
        raise NotImplementedError

    def _unbind(self) -> None:
        """The arrays have moved."""

    @property
    def _predicting(self) -> Floats:
        """The weights that predictions use."""
        if not self._arrays:
            return np.empty(0)
        found: Floats = self._arrays["mean" if self.average else "theta"][0]
        return found

    @property
    def _width(self) -> int:
        """Number of lanes: the learner and its replicates."""
        return len(self._diverged)

    @property
    def _ahead(self) -> int:
        """How many replicates, the last ones, take rows as the learner will in the end."""
        return 0

    def _shapes(self, d: int) -> dict[str, tuple[int, ...]] | None:
        """Shapes allowed in the memory of emphasis and step sizes; None if not known."""
        rules = self._rule_shapes(d)
        own = {name: array for name, array in self._memory.items() if name not in rules}
        known = self._weighting.shapes(own, d)
        return None if known is None else {**known, **rules}

    def _rule_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Shapes of what the step-size rules store."""
        found: dict[str, tuple[int, ...]] = {}
        for name, before in (("step_size", ""), ("second_step_size", SECOND)):
            value = getattr(self, name, None)
            if value is not None:
                found |= {before + k: v for k, v in rule_of(value).shapes(d).items()}
        if getattr(self, "second_step_size", 0.0) is None:  # a rule may serve both
            found |= {SECOND + name: shape for name, shape in found.items()}
        return found | ({"blocks": (3,)} if self._width > 1 else {})

    def _allocate(self, d: int) -> None:
        """Allocate arrays for d features: zeros, except theta, which is `initial_theta`."""
        width = self._width
        theta = None if self.initial_theta is None else initial(self.initial_theta, d)
        self._arrays = {name: np.zeros((width, d)) for name in self.vectors}
        if theta is not None:
            self._arrays["theta"][:] = theta
        self._arrays["bound"] = np.zeros((width, 1))  # on z, features of size one
        self._arrays["size"] = np.zeros((width, len(self._lists())), dtype=np.int64)
        if self._settles:
            self._arrays["mean"] = self._arrays["theta"].copy()
        self._forget_sparse()

    def _forget_sparse(self) -> None:
        """Empty the lists of `_allocate_sparse`: dense rows change traces without updating them."""
        none = np.zeros((self._width, 0), dtype=np.int32)
        for name, _ in self._lists():
            self._arrays[name] = none

    def _allocate_sparse(self) -> None:
        """Allocate lists of the indices at which each trace is not zero, for CSR rows."""
        self._unbind()
        d = self._arrays["theta"].shape[1]
        for k, (name, trace) in enumerate(self._lists()):
            self._arrays[name] = np.zeros((self._width, d), dtype=np.int32)
            for lane in range(self._width if trace else 0):
                index = np.flatnonzero(self._arrays[trace][lane])
                self._arrays[name][lane, : len(index)] = index
                self._arrays["size"][lane, k] = len(index)

    @classmethod
    def _lists(cls) -> list[tuple[str, str]]:
        """Names of the index lists, each with its trace; at least two, as in saved files."""
        return _lists_of(cls.traces)


@cache
def _lists_of(traces: tuple[str, ...]) -> list[tuple[str, str]]:
    names = ("active", *(f"active_{letter}" for letter in "bcdefgh"))
    return list(zip(names, (*traces, "", "")[: max(2, len(traces))], strict=False))
