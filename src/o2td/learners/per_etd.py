"""PER-ETD: emphatic TD whose follow-on trace is restarted periodically.

    F_t = i_t + gamma_t rho_{t-1} F_{t-1}, restarted every b rows
    M_t = F_t in the last of b rows, else 0

One row of every period updates theta, with a follow-on trace of b rows. The mean update is that of
truncated ETD of length b - 1, divided by b; the variance is polynomial in b, whereas ETD's may be
infinite. The paper's b counts the updates of F and is one less.

Guan, Xu & Liang (2022), "PER-ETD: a polynomially efficient emphatic temporal difference learning
method".
"""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from o2td.arguments import whole
from o2td.compiled import njit
from o2td.emphasis import Emphasis
from o2td.learners.base import Axes
from o2td.learners.step_sizes import StepSize
from o2td.learners.truncated_etd import LONGEST, TruncatedFollowOn
from o2td.learners.weighted import WeightedLearner
from o2td.model import Model
from o2td.transitions import Transitions

__all__ = ["PERETD", "Restarted"]

Floats = npt.NDArray[np.float64]


@njit(cache=True, nogil=True)
def _follow(
    rho: Any, discount: Any, start: Any, interest: Any, period: int, memory: Any, out: Any
) -> None:
    """`memory` holds rho gamma F of the previous row and the count of rows in this period."""
    carried, count = memory[0], memory[1]
    for t in range(len(out)):
        if start[t] or count == 0.0:
            carried = 0.0
        followed = interest[t] + carried
        carried = rho[t] * discount[t] * followed
        count += 1.0
        out[t] = 0.0
        if count >= period:
            out[t], count = followed, 0.0
    memory[0], memory[1] = carried, count


class Restarted(Emphasis):
    """The follow-on trace, restarted every `period` rows, of which only the last counts.

    >>> Restarted(4)
    Restarted(period=4)
    """

    def __init__(self, period: int = 5) -> None:
        self.period = whole("period", period, 1, LONGEST)

    def weigh(
        self, block: Transitions, memory: dict[str, Any], trace: float | Floats, out: Floats
    ) -> None:
        """F in the last row of each period."""
        carried = memory.setdefault("restarted", np.zeros(2))
        interest = np.ones(block.n) if block.interest is None else np.array(block.interest)
        columns = (block.rho, block.discount, block.start, interest)
        _follow(*columns, self.period, carried, out)

    def shapes(self, memory: dict[str, Any], d: int) -> dict[str, tuple[int, ...]]:
        """The previous row, and the count."""
        return {"restarted": (2,)}

    def expected(self, model: Model, trace: float | Floats) -> Floats:
        """The expectation of the truncated trace, in one row of each period."""
        return TruncatedFollowOn(self.period - 1).expected(model, 0.0) / self.period


class PERETD(WeightedLearner):
    """PER-ETD(0): `TD` with emphasis `Restarted(period)`, without eligibility traces.

    Parameters
    ----------
    period : int
        b, the number of rows between restarts, one more than the paper's b.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> e = np.eye(3)
    >>> batch = o2td.Transitions(e[:2], [0.0, 1.0], e[1:], [0.5, 0.0], rho=[2.0, 0.5])
    >>> o2td.PERETD(0.1, period=2).partial_fit(batch).theta
    array([0. , 0.1, 0. ])
    """

    fixed: ClassVar[tuple[str, ...]] = ("emphasis", "trace", "clip", "cut")
    counts_rows: ClassVar[bool] = True

    def __init__(
        self, step_size: StepSize = "auto", *, period: int = 5, **axes: Unpack[Axes]
    ) -> None:
        self.period = period
        super().__init__(step_size, emphasis=Restarted(period), **axes)
