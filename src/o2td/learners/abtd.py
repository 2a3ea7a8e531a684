"""ABTD(zeta), action-dependent bootstrapping: the trace is cut as much as the ratio would grow it.

    z_t = nu_{t-1} pi_{t-1} gamma_t z_{t-1} + phi_t,    theta += alpha rho_t delta_t z_t
    nu = min(psi, 1 / max(pi, b)),    psi = 2 zeta psi_0 + max(0, 2 zeta - 1) (psi_max - 2 psi_0)

zeta in [0, 1] plays the role of lambda: 0 is TD(0), 1 the longest trace. `X = (I - P_c^T)^-1 Xi
Phi` with `P_c = sum_a b nu pi P gamma`.

Mahmood, Yu & Sutton (2017), the state-value form of Ghiassian & Sutton (2021).
"""

from __future__ import annotations

from typing import ClassVar, Unpack

from o2td.cuts import ActionDependent
from o2td.learners.step_sizes import StepSize
from o2td.learners.traced import EmphasisAxes
from o2td.learners.weighted import WeightedLearner


class ABTD(WeightedLearner):
    """ABTD. Needs `target_prob` and `behavior_prob` in the transitions.

    Parameters
    ----------
    zeta : float
        In [0, 1].
    psi_0, psi_max : float
        The values of psi at zeta = 1/2 and zeta = 1; for probabilities that differ between states,
        psi_0 = 1 / max_s max_a max(pi, b) and psi_max = 1 / min over (s, a) of the same are usual.

    Examples
    --------
    >>> import numpy as np, o2td
    >>> e = np.eye(3)
    >>> batch = o2td.Transitions(e[:2], [0.0, 1.0], e[1:], discount=[1.0, 0.0],
    ...                          target_prob=[0.5, 1.0], behavior_prob=[0.5, 1.0])
    >>> o2td.ABTD(step_size=0.5, zeta=1.0, psi_max=2.0).partial_fit(batch).theta
    array([0.5, 0.5, 0. ])
    """

    needs: ClassVar[tuple[str, ...]] = ("target_prob", "behavior_prob")
    fixed: ClassVar[tuple[str, ...]] = ("trace", "clip", "cut")

    def __init__(
        self,
        step_size: StepSize = "auto",
        *,
        zeta: float = 0.0,
        psi_0: float = 1.0,
        psi_max: float = 2.0,
        **axes: Unpack[EmphasisAxes],
    ) -> None:
        cut = ActionDependent(zeta, psi_0, psi_max)
        self.zeta, self.psi_0, self.psi_max = cut.zeta, cut.psi_0, cut.psi_max
        super().__init__(step_size, trace=1.0, cut=cut, **axes)

    @property
    def _traced(self) -> bool:
        """Whether the trace reaches beyond the current row."""
        return self.zeta > 0.0
