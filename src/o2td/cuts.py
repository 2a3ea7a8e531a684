"""How traces are cut: the factor `c_{t-1}` of the trace, besides lambda and the discount.

| cut               | c                                                              |
|-------------------|----------------------------------------------------------------|
| `Ratio`           | rho: importance sampling (TD)                                  |
| `Clipped`         | min(limit, rho) (V-trace)                                      |
| `Target`          | pi (tree backup)                                               |
| `ActionDependent` | nu pi, which replaces lambda c (ABTD)                          |

Every learner with traces takes a `cut`. All are 0 where the ratio is 0.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from o2td.arguments import number, unit
from o2td.errors import InputError
from o2td.parameters import Valued

__all__ = ["ActionDependent", "Clipped", "Cut", "Ratio", "Target", "as_cut"]


class Cut(Valued):
    """Base class of cuts: `passed` computes c from the ratio and the two probabilities of a row."""

    needs: ClassVar[tuple[str, ...]] = ()

    def passed(self, rho: Any, target_prob: Any, behavior_prob: Any) -> Any:
        """C of each row."""
        raise NotImplementedError


class Ratio(Cut):
    """The importance ratio itself.

    >>> Ratio().passed(4.0, None, None)
    4.0
    """

    def passed(self, rho: Any, target_prob: Any, behavior_prob: Any) -> Any:
        """Rho."""
        return rho


class Clipped(Cut):
    """The ratio, at most `limit`.

    >>> float(Clipped().passed(4.0, None, None))
    1.0
    """

    def __init__(self, limit: float = 1.0) -> None:
        self.limit = number("clip", limit, above=0.0)

    def passed(self, rho: Any, target_prob: Any, behavior_prob: Any) -> Any:
        """`min(limit, rho)`."""
        return np.minimum(self.limit, rho)


class Target(Cut):
    """The target's probability of the action.

    >>> Target().passed(2.0, 0.5, 0.25)
    0.5
    """

    needs: ClassVar[tuple[str, ...]] = ("target_prob",)

    def passed(self, rho: Any, target_prob: Any, behavior_prob: Any) -> Any:
        """Pi."""
        return target_prob


class ActionDependent(Cut):
    """`nu pi`, `nu = min(psi, 1 / max(pi, b))`, psi from `zeta`; use it with `trace=1`.

    Parameters
    ----------
    zeta : float
        In [0, 1].
    psi_0, psi_max : float
        psi at zeta = 1/2 and at zeta = 1.

    >>> float(ActionDependent(zeta=1.0).passed(1.0, 0.5, 0.5))
    1.0
    """

    needs: ClassVar[tuple[str, ...]] = ("target_prob", "behavior_prob")

    def __init__(self, zeta: float, psi_0: float = 1.0, psi_max: float = 2.0) -> None:
        self.zeta = unit("zeta", zeta)
        self.psi_0 = number("psi_0", psi_0, above=0.0)
        self.psi_max = number("psi_max", psi_max, above=0.0)

    def passed(self, rho: Any, target_prob: Any, behavior_prob: Any) -> Any:
        """`nu pi`."""
        zeta = self.zeta
        longer = max(0.0, 2.0 * zeta - 1.0) * (self.psi_max - 2.0 * self.psi_0)
        psi = 2.0 * zeta * self.psi_0 + longer
        nu = np.minimum(psi, 1.0 / np.maximum(target_prob, behavior_prob))
        return nu * target_prob


_RATIO = Ratio()


def as_cut(value: Any, clip: float | None = None) -> Cut:
    """A `Cut`, its short name ("ratio", "target"), or the ratio clipped at `clip`."""
    if clip is not None:
        if value is not None:
            raise InputError(f"clip={clip!r} is short for cut=Clipped({clip!r}): give one of them")
        return Clipped(clip)
    if isinstance(value, Cut):
        return value
    if value is None or (isinstance(value, str) and value == "ratio"):
        return _RATIO
    if isinstance(value, str) and value == "target":
        return Target()
    raise InputError(
        "cut must be Ratio(), Clipped(limit), Target() or ActionDependent(zeta), or 'ratio' or"
        f" 'target'; got {value!r}"
    )
