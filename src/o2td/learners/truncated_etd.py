"""Truncated emphatic TD: the follow-on trace reaches only a few rows back.

    F_t = sum_{k=0}^{n} (prod_{j=t-k}^{t-1} gamma_{j+1} rho_j) i_{t-k}
    M_t = lambda i_t + (1 - lambda) F_t

n = 0 is TD, n = infinity emphatic TD. The variance of F is finite and grows with n; the bias of the
limit relative to ETD's falls as gamma^n. `X` is ETD's with `f = sum_{k <= n} (P_gamma^T)^k (xi i)`.

Zhang & Whiteson (2022), "Truncated emphatic temporal difference methods for prediction and control".
"""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from o2td.arguments import whole
from o2td.compiled import njit
from o2td.emphasis import Emphasis
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import CutAxes
from o2td.learners.weighted import WeightedLearner
from o2td.model import Model
from o2td.transitions import Transitions

__all__ = ["TruncatedETD", "TruncatedFollowOn"]

Floats = npt.NDArray[np.float64]
LONGEST = 100_000


@njit(cache=True, nogil=True)
def _follow(rho: Any, discount: Any, start: Any, interest: Any, memory: Any, out: Any) -> None:
    """`out = F_t`; `memory` holds the products for the last rows, then the last rho gamma."""
    n = len(memory) - 2
    for t in range(len(out)):
        passed = 0.0 if start[t] else memory[n]
        for k in range(n - 1, 0, -1):
            memory[k] = passed * memory[k - 1]
        if n > 0:
            memory[0] = passed * memory[n + 1]
        total = interest[t]
        for k in range(n):
            total += memory[k]
        memory[n], memory[n + 1] = rho[t] * discount[t], interest[t]
        out[t] = total


class TruncatedFollowOn(Emphasis):
    """The follow-on trace of the last `length` rows.

    >>> TruncatedFollowOn(3)
    TruncatedFollowOn(length=3)
    """

    def __init__(self, length: int = 5) -> None:
        self.length = whole("length", length, 0, LONGEST)

    def weigh(
        self, block: Transitions, memory: dict[str, Any], trace: float | Floats, out: Floats
    ) -> None:
        """Sums of the last products."""
        carried = memory.setdefault("truncated", np.zeros(self.length + 2))
        interest = np.ones(block.n) if block.interest is None else np.array(block.interest)
        _follow(block.rho, block.discount, block.start, interest, carried, out)
        out[:] = trace * interest + (1.0 - trace) * out

    def shapes(self, memory: dict[str, Any], d: int) -> dict[str, tuple[int, ...]]:
        """The products, and the previous row."""
        return {"truncated": (self.length + 2,)}

    def expected(self, model: Model, trace: float | Floats) -> Floats:
        """`sum_{k <= n} (P_gamma^T)^k (xi i)`, divided by xi."""
        interest = model.visits * model.interest
        total = part = interest
        seen = np.where(model.visits > 0.0, model.visits, 1.0)
        flow = model.flow(model.rho * model.discount / seen[model.state])
        for _ in range(self.length):
            part = np.asarray(flow.T @ part)
            total = total + part
        return np.asarray(((trace * interest + (1.0 - trace) * total) / seen)[model.state])


class TruncatedETD(WeightedLearner):
    """Truncated emphatic TD: `TD` with emphasis `TruncatedFollowOn(length)`.

    Parameters
    ----------
    length : int
        How many rows back the follow-on trace reaches.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> e = np.eye(3)
    >>> batch = o2td.Transitions(e[:2], [0.0, 1.0], e[1:], [0.5, 0.0], rho=[2.0, 0.5])
    >>> o2td.TruncatedETD(0.1, length=0).partial_fit(batch).theta
    array([0.  , 0.05, 0.  ])
    >>> o2td.TruncatedETD(0.1, length=1).partial_fit(batch).theta
    array([0. , 0.1, 0. ])
    """

    fixed: ClassVar[tuple[str, ...]] = ("emphasis",)

    def __init__(
        self, step_size: StepSize = "auto", *, length: int = 5, **axes: Unpack[CutAxes]
    ) -> None:
        self.length = length
        super().__init__(step_size, emphasis=TruncatedFollowOn(length), **axes)
