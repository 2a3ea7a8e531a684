"""O2TD(lambda): weighted TD with the weight that brings `omega rho phi dphi^T` nearest to `phi phi^T`.

    omega = argmin |omega rho phi dphi^T - phi phi^T|_F,    theta += alpha rho_t delta_t z_t

The diagonal approximation of `X* = L^-T Xi Phi`: `X = (I - lambda P_gamma^T)^-1 Omega Xi Phi` for
the state and moments readings. The printed and sample readings have no X, because omega then also
weights the successors; the printed one cancels the ratio. Not stable in general: the tests have a
three-state cycle as a counterexample. `GTD2(emphasis=Omega(...))` has the same limit and is stable.

Liu, Lyu, Dong & Biaz, "O2TD: (Near)-Optimal Off-Policy TD Learning", eqs. sto4 and theta-diag; traces
are the paper's future work.
"""

from __future__ import annotations

from typing import ClassVar, Unpack

from o2td.emphasis import Omega
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import CutAxes
from o2td.learners.weighted import WeightedLearner


class O2TD(WeightedLearner):
    """O2TD: `TD` with emphasis `Omega(omega)`.

    Parameters
    ----------
    omega : "sample" | "printed" | "state" | "moments" | Omega
        How to read the paper's definition of the weight; "state" needs states in the transitions.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> batch = o2td.Transitions([[1.0]], [1.0], [[1.0]], discount=0.5, rho=2.0)
    >>> o2td.O2TD(step_size=0.1).partial_fit(batch).theta          # omega = 2
    array([0.4])
    >>> o2td.O2TD(step_size=0.1, omega="printed").partial_fit(batch).theta
    array([0.2])
    """

    fixed: ClassVar[tuple[str, ...]] = ("emphasis",)

    def __init__(
        self,
        step_size: StepSize = "auto",
        *,
        omega: str | Omega = "sample",
        **axes: Unpack[CutAxes],
    ) -> None:
        self.omega = omega
        chosen = omega if isinstance(omega, Omega) else Omega(omega)
        super().__init__(step_size, emphasis=chosen, **axes)
