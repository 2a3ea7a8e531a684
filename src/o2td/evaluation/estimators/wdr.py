"""Weighted doubly robust: `V(s_0)` plus `sum_t g_t w_t delta_t / sum_e w_t` (Thomas and Brunskill 2016).

`V` is fitted on the other folds of episodes, unless the user gives one. A truncated episode is
continued by `V` of the final observation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from o2td.arrays import Floats
from o2td.evaluation.estimators.dr import DoublyRobust

if TYPE_CHECKING:
    from o2td.evaluation.importance import Weighed


class WeightedDoublyRobust(DoublyRobust):
    """`dr` with weights that are normalised at each step."""

    name = "wdr"
    title = "weighted doubly robust"

    def _share(self, weighed: Weighed) -> Floats:
        return weighed.units * weighed.horizon.inverse
