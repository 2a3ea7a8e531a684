"""Tree backup(lambda): weighted TD whose trace is cut by the target's probability.

    z_t = pi_{t-1} gamma_t lambda z_{t-1} + phi_t,    theta += alpha rho_t delta_t z_t

`X = (I - lambda P_c^T)^-1 Xi Phi` with `P_c = sum_a b pi P gamma`: no ratio lengthens the trace, so
it stays short.

Precup, Sutton & Singh (2000), in the state-value form of Ghiassian & Sutton (2021).
"""

from __future__ import annotations

from typing import ClassVar, Unpack

from o2td.cuts import Target
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import WeightAxes
from o2td.learners.weighted import WeightedLearner


class TreeBackup(WeightedLearner):
    """Tree backup. Needs `target_prob` in the transitions.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> e = np.eye(3)
    >>> batch = o2td.Transitions(e[:2], [0.0, 1.0], e[1:], discount=[1.0, 0.0],
    ...                          target_prob=[0.5, 1.0], behavior_prob=[0.5, 1.0])
    >>> o2td.TreeBackup(step_size=0.5, trace=1.0).partial_fit(batch).theta
    array([0.25, 0.5 , 0.  ])
    """

    needs: ClassVar[tuple[str, ...]] = ("target_prob",)
    fixed: ClassVar[tuple[str, ...]] = ("clip", "cut")

    def __init__(self, step_size: StepSize = "auto", **axes: Unpack[WeightAxes]) -> None:
        super().__init__(step_size, cut=Target(), **axes)
