"""Online learners, O(d) per step: one file per method; each family brings its own compiled code.

| learner            | family   | what it adds                                        |
|--------------------|----------|-----------------------------------------------------|
| `TD`               | weighted | importance sampling, traces, any emphasis           |
| `VTrace`           | weighted | a clipped ratio in the trace                        |
| `TreeBackup`       | weighted | the target's probability in the trace               |
| `ABTD`             | weighted | action-dependent bootstrapping                      |
| `ETD`              | weighted | follow-on emphasis                                  |
| `O2TD`             | weighted | omega emphasis                                      |
| `GTD`, `GTD2`      | gradient | a second vector; GTD2 takes any emphasis            |
| `TDC`, `TDRC`      | gradient | TD's direction, corrected (and regularised)         |
| `HTD`              | gradient | TD where on-policy                                  |
| `GTD2MP`, `TDCMP`  | gradient | mirror-prox                                         |
| `ResidualGradient` | its own  | the Bellman error itself                            |
| `ARCTD`            | its own  | averaged, regularised, clipped: nothing to tune     |
| `TruncatedETD`, `PERETD` | weighted | a follow-on trace of a few rows               |
| `TrueOnlineTD`, `TrueOnlineETD`, `TrueOnlineGTD`, `TrueOnlineHTD` | steps | exact online |
| `GEMETD`           | steps    | a learned emphasis                                  |
| `ProximalGTD2MP`   | steps    | l1-prox, averaged                                   |
| `WISTD`, `WISGTD`  | steps    | weighted importance sampling                        |
| `ATD`              | steps    | a low-rank preconditioner                           |
| `DifferentialTD`, `VarianceTD` | steps | average reward; variance of the return     |
"""

from __future__ import annotations

from o2td.cuts import ActionDependent, Clipped, Ratio, Target
from o2td.learners.abtd import ABTD
from o2td.learners.arctd import ARCTD
from o2td.learners.atd import ATD
from o2td.learners.base import Learner
from o2td.learners.differential_td import DifferentialTD
from o2td.learners.etd import ETD
from o2td.learners.gem_etd import GEMETD
from o2td.learners.gradient import GradientLearner
from o2td.learners.gtd import GTD
from o2td.learners.gtd2 import GTD2
from o2td.learners.gtd2mp import GTD2MP
from o2td.learners.htd import HTD
from o2td.learners.o2td import O2TD
from o2td.learners.per_etd import PERETD
from o2td.learners.proximal_gtd2mp import ProximalGTD2MP
from o2td.learners.residual_gradient import ResidualGradient
from o2td.learners.status import Status
from o2td.learners.step_learner import StepLearner
from o2td.learners.step_sizes import TIDBD, AlphaBound, PowerDecay, SwiftBound
from o2td.learners.sweeping import Lane, SweepResult, sweep
from o2td.learners.td import TD
from o2td.learners.tdc import TDC
from o2td.learners.tdcmp import TDCMP
from o2td.learners.tdrc import TDRC
from o2td.learners.tree_backup import TreeBackup
from o2td.learners.true_online_etd import TrueOnlineETD
from o2td.learners.true_online_gtd import TrueOnlineGTD
from o2td.learners.true_online_htd import TrueOnlineHTD
from o2td.learners.true_online_td import TrueOnlineTD
from o2td.learners.truncated_etd import TruncatedETD
from o2td.learners.variance_td import VarianceTD
from o2td.learners.vtrace import VTrace
from o2td.learners.weighted import WeightedLearner
from o2td.learners.wis_gtd import WISGTD
from o2td.learners.wis_td import WISTD
from o2td.registry import LEARNERS

MEMBERS = (
    *(TD, VTrace, TreeBackup, ABTD, ETD, O2TD, ResidualGradient),
    *(GTD, GTD2, TDC, TDRC, HTD, GTD2MP, TDCMP, ProximalGTD2MP),
    *(TrueOnlineTD, TrueOnlineETD, TrueOnlineGTD, TrueOnlineHTD),
    *(TruncatedETD, PERETD, GEMETD, WISTD, WISGTD, ATD, DifferentialTD, VarianceTD),
    ARCTD,
)

for _member in MEMBERS:
    LEARNERS.register(_member.__name__, _member)

__all__ = [
    "ABTD",
    "ARCTD",
    "ATD",
    "ETD",
    "GEMETD",
    "GTD",
    "GTD2",
    "GTD2MP",
    "HTD",
    "MEMBERS",
    "O2TD",
    "PERETD",
    "TD",
    "TDC",
    "TDCMP",
    "TDRC",
    "TIDBD",
    "WISGTD",
    "WISTD",
    "ActionDependent",
    "AlphaBound",
    "Clipped",
    "DifferentialTD",
    "GradientLearner",
    "Lane",
    "Learner",
    "PowerDecay",
    "ProximalGTD2MP",
    "Ratio",
    "ResidualGradient",
    "Status",
    "StepLearner",
    "SweepResult",
    "SwiftBound",
    "Target",
    "TreeBackup",
    "TrueOnlineETD",
    "TrueOnlineGTD",
    "TrueOnlineHTD",
    "TrueOnlineTD",
    "TruncatedETD",
    "VTrace",
    "VarianceTD",
    "WeightedLearner",
    "sweep",
]
