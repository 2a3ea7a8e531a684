"""One learner, several threads: it learns in one thread at a time, and the others get an error.

Compiled drivers release Python's lock, so two threads would write to one theta and leave a mixture
that no order of the rows gives. Whoever learns from a batch holds the learner's lock and marks its
packed state as busy, which `learn_one` looks at (`kernels.single_row`). A forked process has its
own copy of the learner; if the fork happened while another thread was learning, that copy is
halfway through a row and cannot be used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Self

import numpy as np

from o2td.arrays import Floats
from o2td.errors import InputError
from o2td.kernels.packing import BUSY, HEAD
from o2td.learners.changes import renew

__all__ = ["OneAtATime"]

_UNBOUND = np.zeros(HEAD)


class OneAtATime:
    """Holds the lock of a learner; copies and pickles get their own."""

    _busy: Any
    _carried: Floats  # another array after a reset
    _packed: Floats = _UNBOUND
    _step: Any
    steps: Any  # number of rows learned from

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Give every object a lock, including copies and loaded ones."""
        self = super().__new__(cls)
        self._busy = Lock()
        return self

    def _copied(self) -> Self:
        """A shallow copy with a lock of its own that `learn_one` has not been bound to."""
        own = type(self).__new__(type(self))
        own.__dict__ = {**self.__dict__, **own.__dict__, "_step": None, "_packed": _UNBOUND}
        return own

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Only this thread may learn, or forget, within this block."""
        self._hold()
        try:
            yield
        finally:
            self._release()

    def _hold(self) -> None:
        """Begin to learn."""
        if not self._busy.acquire(False):
            self._refuse()
        self._packed[BUSY] = 1.0

    def _release(self) -> None:
        """End learning."""
        self._packed[BUSY] = 0.0
        self._busy.release()

    def _unbind(self) -> None:
        """Note that the arrays have moved, so `learn_one` must pack them again.

        What was packed stays busy: a thread that is about to use it must not.
        """
        self._packed[BUSY] = 1.0
        self._step, self._packed = None, _UNBOUND

    def _at_rest(self) -> None:
        """Raise if the learner is in the middle of learning."""
        if self._busy.locked():
            self._refuse()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise if the learner learns or forgets while this block reads it: a mixture, or an error."""
        self._at_rest()
        renew(self)
        carried, steps = self._carried, self.steps
        try:
            yield
        finally:
            if self._busy.locked() or self._carried is not carried or self.steps != steps:
                self._refuse()

    def _refuse(self) -> None:
        raise InputError(
            f"{type(self).__name__} is learning in another thread (or was when this process was"
            " forked); give each thread a learner of its own, or a lock around this one"
        ) from None
