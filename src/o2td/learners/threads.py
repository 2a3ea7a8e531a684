"""One learner, several threads: it learns in one thread at a time, and the others get an error.

Compiled steps release Python's lock, so two threads would write to one theta and leave a mixture
that no order of the rows gives. A forked process has its own copy of the learner; if the fork
happened while another thread was learning, that copy is halfway through a row and cannot be used.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Self

from o2td.errors import InputError

__all__ = ["OneAtATime"]


class OneAtATime:
    """Holds the lock of a learner; copies and pickles get their own."""

    _busy: Any

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Give every object a lock, including copies and loaded ones."""
        self = super().__new__(cls)
        self._busy = Lock()
        return self

    def _hold(self) -> None:
        """Begin to learn; `_busy.release()` ends learning."""
        if not self._busy.acquire(False):
            self._refuse()

    def _at_rest(self) -> None:
        """Raise if the learner is in the middle of learning."""
        if self._busy.locked():
            self._refuse()

    def _refuse(self) -> None:
        raise InputError(
            f"{type(self).__name__} is learning in another thread (or was when this process was"
            " forked); give each thread a learner of its own, or a lock around this one"
        )
