"""Lanes of one family run together by its driver: one in `partial_fit`, many in `sweep`."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import numpy as np

from o2td.arrays import Floats
from o2td.kernels.packing import STEPS
from o2td.kernels.pending import Pending
from o2td.kernels.ring_buffer import RingBuffer
from o2td.kernels.settle import After, Ball, Lazy, Settle
from o2td.learners.family import GroupedLearner, Parts, stride
from o2td.learners.parameters import averaging
from o2td.learners.replicates import resample
from o2td.transitions import Transitions

__all__ = ["Group"]

_NONE = np.empty(0)
NO_RECORDS = RingBuffer.room(0, 1, 1)
SCRATCH = 1 << 20  # numbers per thread kept as row arrays for the next block
_kept = threading.local()


class Group:
    """Learners of one family and their stacked state; each learner's arrays are views of it.

    A learner takes one lane, plus one for each of its replicates.
    """

    def __init__(self, learners: Sequence[GroupedLearner]) -> None:
        self.learners = list(learners)
        self.family = learners[0].family
        self.owners = [learner for learner in learners for _ in range(learner._width)]
        self._own_lanes = list(_slices(learners))
        self.firsts = [own.start for _, own in self._own_lanes]  # not the replicates
        self.stride = stride(len(self.owners))
        self._memory = _NONE
        rows = self.family.rows + (("alpha_t",) if learners[0]._settles else ())
        self._constants = self.family.constants(self.owners)
        self._rows = tuple(name for name in rows if name not in self._constants)
        self._settings = self.family.settings(self.owners)
        if len(learners) == 1:
            self.arrays = learners[0]._arrays
            self.diverged = learners[0]._diverged
            return
        names = learners[0]._arrays
        self.arrays = {k: np.concatenate([x._arrays[k] for x in learners]) for k in names}
        self.diverged = np.concatenate([x._diverged for x in learners])
        for learner, own in self._own_lanes:
            learner._arrays = {k: v[own] for k, v in self.arrays.items()}
            learner._diverged = self.diverged[own]
            learner._unbind()

    def advance(
        self,
        block: Transitions,
        seen: Sequence[Transitions],
        first: int,
        every: int = 0,
        ring: RingBuffer | None = None,
    ) -> None:
        """Run every lane over the block; learner k reads ratio, reward and discount from `seen[k]`.

        Every `every` steps all theta are appended to the ring, `stride` rows per record.
        """
        rows = self._row_arrays(block.n)
        # A ratio near the largest number overflows here; the kernel then reports divergence.
        with np.errstate(over="ignore", invalid="ignore"):
            for (learner, own), stream in zip(self._own_lanes, seen, strict=True):
                first_of = own.start
                learner._fill_rows(stream, {name: array[first_of] for name, array in rows.items()})
                if own.stop - first_of > 1:
                    before = int(learner._carried[STEPS])
                    sizes = (*self.family.step_sizes, "alpha_t")
                    resample({k: v[own] for k, v in rows.items()}, sizes, stream, before, learner)
                learner._carried[STEPS] += block.n
        if len(self.owners) > len(seen):
            widths = (own.stop - own.start for _, own in self._own_lanes)
            seen = [one for one, width in zip(seen, widths, strict=True) for _ in range(width)]
        after = self._after(block, rows.pop("alpha_t", None))
        given = Parts(self.owners, block, seen, rows, self._settings, self.arrays, self._constants)
        lanes = self.family.lanes(given)
        self.family.driver(lanes, block, after)(
            block.rows("phi"),
            block.rows("next_phi"),
            lanes,
            self.diverged,
            block.n,
            first,
            every,
            NO_RECORDS if ring is None else ring,
        )
        if self._memory.size <= SCRATCH:
            _kept.memory, self._memory = self._memory, _NONE

    def _after(self, block: Transitions, alpha: Floats | None) -> After:
        """What happens to theta after each step; `alpha` (lanes, n) is needed if anything does."""
        some = self.owners
        pending = block.sparse and some[0].postpones
        if alpha is None and not pending:
            return After()
        settle = Settle(
            np.array([averaging(x.average) for x in some]),
            np.array([x._carried[STEPS] - block.n for x in some]),
            np.zeros((len(some), block.d)) if alpha is None else self.arrays["mean"],
        )
        if alpha is None or pending:
            return After(settle, None, Pending.room(block.d))
        if any(x.l1 > 0.0 or x.radius is not None for x in some):
            radius = [np.inf if x.radius is None else float(x.radius) for x in some]
            return After(settle, Ball(np.array([x.l1 for x in some]), np.array(radius), alpha))
        if block.sparse and not any(x.moves_all for x in some):
            return After(settle, None, Lazy(np.zeros(block.d), np.ones(1)))
        return After(settle)

    def _row_arrays(self, n: int) -> dict[str, Floats]:
        """Arrays (lanes, n) in memory that a thread reuses: touching fresh pages costs more.

        It is reserved until the block is done, since a step in plain Python may run other learners.
        """
        names, lanes = self._rows, len(self.owners)
        if self._memory is _NONE:
            self._memory = _kept.__dict__.pop("memory", _NONE)
        if self._memory.size < len(names) * lanes * n:
            self._memory = _NONE  # before the larger one is there
            self._memory = np.empty(len(names) * lanes * n)
        parts = self._memory[: len(names) * lanes * n].reshape(len(names), lanes, n)
        return dict(zip(names, parts, strict=True))


def _slices(learners: Sequence[GroupedLearner]) -> Iterator[tuple[GroupedLearner, slice]]:
    """Each learner with its lanes."""
    first = 0
    for learner in learners:
        after = first + learner._width
        yield learner, slice(first, after)
        first = after
