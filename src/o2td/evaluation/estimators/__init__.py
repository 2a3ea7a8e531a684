"""The estimators, one per file, in the order in which they are listed.

>>> from o2td.registry import ESTIMATORS
>>> ESTIMATORS["lstd"].title
'LSTD'
"""

from __future__ import annotations

from o2td.evaluation.estimator import Estimator
from o2td.evaluation.estimators.arctd import ARCTDEstimator
from o2td.evaluation.estimators.dr import DoublyRobust
from o2td.evaluation.estimators.etd import ETDEstimator
from o2td.evaluation.estimators.is_ import TrajectoryIS
from o2td.evaluation.estimators.lagged import LaggedEstimator
from o2td.evaluation.estimators.lsetd import LSETDEstimator
from o2td.evaluation.estimators.lstd import LSTDEstimator
from o2td.evaluation.estimators.lstd_auto import LSTDAutoEstimator
from o2td.evaluation.estimators.lstdq import LSTDQEstimator
from o2td.evaluation.estimators.magic import MagicEstimator
from o2td.evaluation.estimators.o2td import O2TDEstimator
from o2td.evaluation.estimators.pdis import PerDecisionIS
from o2td.evaluation.estimators.plugin import PluginEstimator
from o2td.evaluation.estimators.sotd import SOTDEstimator
from o2td.evaluation.estimators.stacked import StackedEstimator
from o2td.evaluation.estimators.tdrc import TDRCEstimator
from o2td.evaluation.estimators.tstep import TStepEstimator
from o2td.evaluation.estimators.wdr import WeightedDoublyRobust
from o2td.evaluation.estimators.wis import WeightedTrajectoryIS
from o2td.evaluation.estimators.wpdis import WeightedPerDecisionIS
from o2td.registry import ESTIMATORS

__all__ = ["REFERENCE", "known", "make"]

REFERENCE = LSTDEstimator  # always computed
_OWN: tuple[type[Estimator], ...] = (
    LSTDEstimator,
    PluginEstimator,
    LSTDQEstimator,
    TStepEstimator,
    StackedEstimator,
    LaggedEstimator,
    MagicEstimator,
    LSTDAutoEstimator,
    LSETDEstimator,
    SOTDEstimator,
    ARCTDEstimator,
    O2TDEstimator,
    ETDEstimator,
    TDRCEstimator,
    TrajectoryIS,
    WeightedTrajectoryIS,
    PerDecisionIS,
    WeightedPerDecisionIS,
    DoublyRobust,
    WeightedDoublyRobust,
)
for _kind in _OWN:
    ESTIMATORS.register(_kind.name, _kind)


def known() -> tuple[str, ...]:
    """Names of all estimators: o2td's in their order, then those of other packages.

    >>> known()[:3]
    ('lstd', 'plugin', 'lstdq')
    """
    own = tuple(kind.name for kind in _OWN)
    return own + tuple(name.lower() for name in ESTIMATORS if name.lower() not in own)


def make(name: str) -> Estimator:
    """A new estimator, for one evaluation."""
    made: Estimator = ESTIMATORS[name]()
    return made
