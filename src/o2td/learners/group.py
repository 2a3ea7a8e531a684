"""Lanes of one family run together by the compiled driver: one in `partial_fit`, many in `sweep`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arrays import freeze
from o2td.kernels.lanes import (
    GradientLanes,
    ResidualLanes,
    WeightedLanes,
    drive,
)
from o2td.kernels.notes import Notes
from o2td.kernels.packing import STEPS
from o2td.kernels.vectors import WIDTH
from o2td.learners.base import Learner
from o2td.transitions import Transitions

Floats = npt.NDArray[np.float64]

TOGETHER = 12  # lanes from which a pass for sixteen takes less time than one for each of them
ROW_ARRAYS = {
    "weighted": ("gain", "weight", "decay"),
    "gradient": ("gain", "second_gain", "weight", "decay", "decay_b"),
    "residual": ("gain",),
}


def parts(members: list[int]) -> list[list[int]]:
    """Whole groups of lanes side by side, and a rest of too few for one."""
    rest = len(members) % WIDTH
    cut = len(members) - (rest if rest < TOGETHER else 0)
    return [part for part in (members[:cut], members[cut:]) if part]


class Group:
    """Learners of one family and their stacked state; lane k's arrays are views of row k."""

    def __init__(self, learners: Sequence[Learner]) -> None:
        self.learners = list(learners)
        self.family = learners[0].family
        self._memory = np.empty(0)
        self._kinds = self._kinds_of_lanes()
        if len(learners) == 1:
            self.arrays = learners[0].arrays
            self.diverged = learners[0].diverged
            return
        names = learners[0].arrays
        self.arrays = {k: np.concatenate([x.arrays[k] for x in learners]) for k in names}
        self.diverged = np.concatenate([x.diverged for x in learners])
        for lane, learner in enumerate(learners):
            learner.arrays = {k: v[lane : lane + 1] for k, v in self.arrays.items()}
            learner.diverged = self.diverged[lane : lane + 1]
            learner.unbind()

    def advance(
        self,
        block: Transitions,
        seen: Sequence[Transitions],
        first: int,
        every: int = 0,
        notes: Notes | None = None,
    ) -> None:
        """Every lane over the block; lane k reads ratio, reward and discount from `seen[k]`.

        Every `every` steps all theta are noted, `stride` rows a record.
        """
        rows = self._row_arrays(block.n)
        # A ratio near the largest number overflows here; the kernel then reports divergence.
        with np.errstate(over="ignore", invalid="ignore"):
            for lane, (learner, own) in enumerate(zip(self.learners, seen, strict=True)):
                learner.fill_rows(own, {name: array[lane] for name, array in rows.items()})
                learner.carried[STEPS] += block.n
        lanes = self._lanes(rows, block, seen)
        driver: Any = drive
        if self._together(block, lanes):
            from o2td.kernels.side import drive_side as driver
        driver(
            block.rows("phi"),
            block.rows("next_phi"),
            lanes,
            self.diverged,
            block.n,
            first,
            every,
            Notes.room(0, self.stride, block.d) if notes is None else notes,
        )

    @property
    def stride(self) -> int:
        """Rows that a record takes in the notes: whole groups where lanes may be side by side."""
        lanes = len(self.learners)
        return lanes if lanes < TOGETHER else -(-lanes // WIDTH) * WIDTH

    def _row_arrays(self, n: int) -> dict[str, Floats]:
        """Arrays (lanes, n) in the same memory for every block: fresh pages cost more than they hold."""
        names, lanes = ROW_ARRAYS[self.family], len(self.learners)
        if self._memory.size < len(names) * lanes * n:
            self._memory = np.empty(len(names) * lanes * n)
        parts = self._memory[: len(names) * lanes * n].reshape(len(names), lanes, n)
        return dict(zip(names, parts, strict=True))

    def _kinds_of_lanes(self) -> dict[str, npt.NDArray[Any]]:
        """What tells the lanes of a family apart, as the kernels read it."""
        members: Any = self.learners
        if self.family == "weighted":
            return {
                "inner": np.array([x.weighting.inner for x in members]),
                "traced": np.array([x.traced for x in members]),
            }
        if self.family == "gradient":
            return {
                "member": np.array([x.member() for x in members], dtype=np.float64),
                "traced": np.array([x.traced for x in members]),
                "mirror": np.array([x.mirror for x in members]),
            }
        return {}

    def _together(self, block: Transitions, lanes: Any) -> bool:
        """Side by side where several lanes share dense rows and discounts, else lane by lane."""
        return not (
            self.family not in ("weighted", "gradient")
            or len(self.learners) < TOGETHER
            or block.sparse
            or not (lanes.discount == lanes.discount[0]).all()
            or (self.family == "gradient" and (lanes.traced.any() or lanes.mirror.any()))
        )

    def _lanes(
        self, rows: dict[str, Floats], block: Transitions, seen: Sequence[Transitions]
    ) -> Any:
        sources: dict[tuple[int, int], int] = {}
        source = np.empty(len(seen), dtype=np.int64)
        for lane, own in enumerate(seen):
            key = (id(own.reward), id(own.discount))
            source[lane] = sources.setdefault(key, len(sources))
        firsts = [int(np.argmax(source == k)) for k in range(len(sources))]
        if len(firsts) == 1:
            reward, discount = (getattr(seen[0], k)[None] for k in ("reward", "discount"))
        else:
            reward, discount = (
                freeze(np.stack([getattr(seen[k], name) for k in firsts]))
                for name in ("reward", "discount")
            )
        common = {"reward": reward, "discount": discount, "source": source, **rows, **self._kinds}
        state = self.arrays
        if self.family == "weighted":
            return WeightedLanes(
                **common, **{k: state[k] for k in ("theta", "z", "bound", "active", "size")}
            )
        if self.family == "gradient":
            names = ("theta", "w", "z", "zb", "bound", "active", "active_b", "size")
            return GradientLanes(**common, **{k: state[k] for k in names})
        doubled: Any = self.learners[0]
        which, name = doubled.second_successor(block)
        discounts = [getattr(own, name) for own in seen]
        return ResidualLanes(
            **common,
            second=block.rows(which),
            discount_2=np.stack(discounts),
            theta=state["theta"],
        )
