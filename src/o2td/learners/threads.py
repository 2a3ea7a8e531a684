"""One learner, several threads: it learns in one of them at a time, and tells the others.

Compiled steps run without Python's lock, so two threads would write into one theta and leave a mixture
that no order of the rows gives. A copy of the process made by a fork has a learner of its own; if it
was made while another thread was learning, that learner is half way through a row and stays refused.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Self

from o2td.errors import InputError

__all__ = ["OneAtATime"]


class OneAtATime:
    """Holds the lock of a learner; copies and pickles get one of their own."""

    _busy: Any

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Every object gets a lock, a copy or a loaded one as well."""
        self = super().__new__(cls)
        self._busy = Lock()
        return self

    def _hold(self) -> None:
        """Begin to learn; `_busy.release()` ends it."""
        if not self._busy.acquire(False):
            self._refuse()

    def _at_rest(self) -> None:
        """Refuse to show what is half learned."""
        if self._busy.locked():
            self._refuse()

    def _refuse(self) -> None:
        raise InputError(
            f"{type(self).__name__} is learning in another thread (or was when this process was"
            " forked); give each thread a learner of its own, or a lock around this one"
        )
