"""A model whose sums over time are shared between the methods that need the same one.

Most methods with traces need one of two or three such sums, each a linear solve over states for
every feature; on large problems these solves are nearly all the work.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from typing import Any

import numpy as np

from o2td.arrays import Floats
from o2td.model import Model

_ROOM = 3 << 27  # bytes of sums that are cached


@dataclass(frozen=True, eq=False)
class SharedModel(Model):
    """A model that caches its most recent sums; replicas with other rewards share the cache."""

    kept: OrderedDict[bytes, Any] = field(default_factory=OrderedDict)

    @classmethod
    def of(cls, model: Model) -> SharedModel:
        """The same model, with a cache for sums."""
        return cls(**{entry.name: getattr(model, entry.name) for entry in fields(model)})

    def once(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """As `Model.once`, with read-only arrays, cached as long as there is room."""
        name = _digest((self.d, *key))  # a learner may widen the features
        if name not in self.kept:
            made = make()
            for array in _arrays(made):
                array.flags.writeable = False
            self.kept[name] = made
        self.kept.move_to_end(name)
        while len(self.kept) > 1 and sum(map(_size, self.kept.values())) > _ROOM:
            self.kept.popitem(last=False)
        return self.kept[name]


def _arrays(made: Any) -> list[Floats]:
    parts = made if isinstance(made, tuple) else (made,)
    return [part for part in parts if isinstance(part, np.ndarray)]


def _size(made: Any) -> int:
    return sum(array.nbytes for array in _arrays(made))


def _digest(key: tuple[Any, ...]) -> bytes:
    digest = blake2b()
    for part in key:
        if hasattr(part, "shape"):
            dense = np.ascontiguousarray(part.toarray() if hasattr(part, "toarray") else part)
            digest.update(repr(dense.shape).encode())
            digest.update(dense.data)
        else:
            digest.update(repr(part).encode())
    return digest.digest()
