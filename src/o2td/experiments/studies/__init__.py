"""Studies: measurements that are exact or too special for a spec, stored beside the runs.

Each is a function `(first, last, seed) -> records` over problems first..last; a part of it is one
file in the store, so that an interrupted study goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from o2td.experiments.studies.cost import cost
from o2td.experiments.studies.geometry import geometry
from o2td.experiments.studies.landing import nearness, stability
from o2td.experiments.studies.published import published
from o2td.experiments.studies.records import Record
from o2td.experiments.studies.theory import theory

__all__ = ["STUDIES", "Record", "Study"]


class Study(NamedTuple):
    """What to run, on how many problems by profile, how many of them a part."""

    run: Callable[[int, int, int], Iterator[Record]]
    quick: int
    full: int
    part: int
    seed: int

    def problems(self, profile: str) -> int:
        """The number of problems in a profile."""
        return self.full if profile == "full" else self.quick


STUDIES: dict[str, Study] = {
    "geometry": Study(geometry, 1, 1, 1, 11),
    "theory": Study(theory, 100, 200, 20, 12),
    "nearness": Study(nearness, 200, 200, 20, 13),
    "stability": Study(stability, 200, 1000, 50, 14),
    "published": Study(published, 200, 1000, 50, 16),
    "cost": Study(cost, 1, 1, 1, 15),
}
