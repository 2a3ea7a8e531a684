"""What a family of learners provides, and what it may rely on.

A family is one object that defines everything specific to it: which numbers of each row its
compiled code reads (`rows`), which lanes may run together (`kind`), what distinguishes such lanes
(`settings`), how their state is passed to compiled code (`lanes`) and which driver runs them
(`driver`). Nothing else knows which families exist; a learner names its own in `family`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats, freeze
from o2td.kernels.lanes import drive
from o2td.kernels.settle import After
from o2td.kernels.vectors import WIDTH
from o2td.transitions import Transitions

__all__ = ["Family", "GroupedLearner", "Parts", "parts", "side_by_side", "streams", "stride"]

Arrays = dict[str, npt.NDArray[Any]]
Driver = Callable[..., None]

TOGETHER = 12  # lanes from which a pass for sixteen takes less time than one for each of them


class GroupedLearner(Protocol):
    """A learner as its family and its group see it."""

    _arrays: Arrays
    _carried: Floats
    _diverged: npt.NDArray[np.int64]
    _memory: Arrays
    average: bool | float
    l1: float
    radius: float | None
    moves_all: ClassVar[bool]
    postpones: ClassVar[bool]

    @property
    def _settles(self) -> bool: ...

    @property
    def _width(self) -> int: ...
    @property
    def _ahead(self) -> int: ...

    @property
    def family(self) -> Family:
        """The family that it belongs to."""

    def _fill_rows(self, block: Transitions, out: dict[str, Floats]) -> None: ...

    def _unbind(self) -> None: ...


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts that a family builds its lanes from: rows (lanes, n) or constants, settings, state."""

    learners: Sequence[Any]
    block: Transitions
    seen: Sequence[Transitions]
    rows: dict[str, Floats]
    settings: dict[str, Any]
    state: Arrays
    constants: dict[str, float]

    def common(self) -> dict[str, Any]:
        """Reward, discount, source, row arrays and settings: what most families pass on."""
        source, columns = streams(self.seen, ("reward", "discount"))
        return {"source": source, **columns, **self.rows, **self.settings}

    def named(self, *names: str) -> dict[str, Any]:
        """These arrays of the state."""
        return {name: self.state[name] for name in names}


class Family(ABC):
    """Base class of families; `rows` names the row arrays that members fill, each (lanes, n)."""

    rows: ClassVar[tuple[str, ...]] = ()
    step_sizes: ClassVar[tuple[str, ...]] = ("gain",)
    """Those of `rows` that a row's update is proportional to: replicates weigh rows by them."""

    def kind(self, learner: Any, batch: Transitions) -> Hashable:
        """Lanes of this family whose kinds are equal may run together."""
        return ()

    def settings(self, learners: Sequence[Any]) -> dict[str, Any]:
        """What distinguishes lanes from their first row on, or what a kind has in common."""
        return {}

    def constants(self, learners: Sequence[Any]) -> dict[str, float]:
        """Those of `rows` that hold one number throughout; nobody fills them."""
        return {}

    @abstractmethod
    def lanes(self, parts: Parts) -> Any:
        """The arrays as the family's compiled code reads them; all have an attribute `theta`."""

    def driver(self, lanes: Any, block: Transitions, after: After) -> Driver:
        """The driver that runs these lanes over the block: lane by lane, unless overridden."""
        if after.settle is None:
            driver: Driver = drive
            return driver
        from o2td.kernels.settle import drive_settled

        def settled(rows: Any, following: Any, lanes: Any, *others: Any) -> None:
            drive_settled(rows, following, lanes, *after, *others)

        return settled


def side_by_side(lanes: Any, block: Transitions) -> bool:
    """Whether there are enough lanes, and they share dense rows and discounts."""
    many = len(lanes.theta) >= TOGETHER and not block.sparse
    return many and bool((lanes.discount == lanes.discount[0]).all())


def stride(lanes: int) -> int:
    """Rows per record in the ring buffer: whole groups where lanes may run side by side."""
    return lanes if lanes < TOGETHER else -(-lanes // WIDTH) * WIDTH


def parts(members: list[int]) -> list[list[int]]:
    """Whole groups of lanes that run side by side, and the remaining lanes."""
    rest = len(members) % WIDTH
    cut = len(members) - (rest if rest < TOGETHER else 0)
    return [part for part in (members[:cut], members[cut:]) if part]


def streams(
    seen: Sequence[Transitions], names: Sequence[str]
) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[Any]]]:
    """Which stream each lane reads, and the named columns of every distinct one, (streams, n)."""
    source = np.zeros(len(seen), dtype=np.int64)
    if len(seen) == 1 or all(own is seen[0] for own in seen):
        return source, {name: getattr(seen[0], name)[None] for name in names}
    found: dict[tuple[int, ...], int] = {}
    for lane, own in enumerate(seen):
        key = tuple(id(getattr(own, name)) for name in names)
        source[lane] = found.setdefault(key, len(found))
    firsts = [seen[int(np.argmax(source == k))] for k in range(len(found))]
    if len(firsts) == 1:
        return source, {name: getattr(firsts[0], name)[None] for name in names}
    stacked = {name: freeze(np.stack([getattr(own, name) for own in firsts])) for name in names}
    return source, stacked
