"""Value prediction for one policy from the data of another, with linear features.

Names are imported on first use, so ``import o2td`` itself is quick:

>>> import o2td
>>> o2td.__version__ == o2td._version.__version__
True
>>> "TD" in dir(o2td)
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from o2td._version import __version__

if TYPE_CHECKING:
    from o2td import checks as checks
    from o2td import domains as domains
    from o2td import emphasis as emphasis
    from o2td import errors as errors
    from o2td import evaluation as evaluation
    from o2td import exact as exact
    from o2td import experiments as experiments
    from o2td import features as features
    from o2td import interactive as interactive
    from o2td import learners as learners
    from o2td import metrics as metrics
    from o2td import paper as paper
    from o2td import registry as registry
    from o2td import report as report
    from o2td import sklearn as sklearn
    from o2td import solvers as solvers
    from o2td import sources as sources
    from o2td.learners import ABTD as ABTD
    from o2td.learners import ARCTD as ARCTD
    from o2td.learners import ATD as ATD
    from o2td.learners import ETD as ETD
    from o2td.learners import GEMETD as GEMETD
    from o2td.learners import GTD as GTD
    from o2td.learners import GTD2 as GTD2
    from o2td.learners import GTD2MP as GTD2MP
    from o2td.learners import HTD as HTD
    from o2td.learners import O2TD as O2TD
    from o2td.learners import PERETD as PERETD
    from o2td.learners import TD as TD
    from o2td.learners import TDC as TDC
    from o2td.learners import TDCMP as TDCMP
    from o2td.learners import TDRC as TDRC
    from o2td.learners import WISGTD as WISGTD
    from o2td.learners import WISTD as WISTD
    from o2td.learners import DifferentialTD as DifferentialTD
    from o2td.learners import Lane as Lane
    from o2td.learners import Learner as Learner
    from o2td.learners import PowerDecay as PowerDecay
    from o2td.learners import ProximalGTD2MP as ProximalGTD2MP
    from o2td.learners import ResidualGradient as ResidualGradient
    from o2td.learners import SweepResult as SweepResult
    from o2td.learners import TreeBackup as TreeBackup
    from o2td.learners import TrueOnlineETD as TrueOnlineETD
    from o2td.learners import TrueOnlineGTD as TrueOnlineGTD
    from o2td.learners import TrueOnlineHTD as TrueOnlineHTD
    from o2td.learners import TrueOnlineTD as TrueOnlineTD
    from o2td.learners import TruncatedETD as TruncatedETD
    from o2td.learners import VarianceTD as VarianceTD
    from o2td.learners import VTrace as VTrace
    from o2td.learners import sweep as sweep
    from o2td.problem import Problem as Problem
    from o2td.solvers import LSETD as LSETD
    from o2td.solvers import LSTD as LSTD
    from o2td.solvers import LSTDQ as LSTDQ
    from o2td.solvers import SOTD as SOTD
    from o2td.solvers import Averager as Averager
    from o2td.solvers import BellmanResidual as BellmanResidual
    from o2td.solvers import DantzigTD as DantzigTD
    from o2td.solvers import DiagonalSOTD as DiagonalSOTD
    from o2td.solvers import DifferentialLSTD as DifferentialLSTD
    from o2td.solvers import MonteCarlo as MonteCarlo
    from o2td.solvers import PluginOptimal as PluginOptimal
    from o2td.transitions import Transitions as Transitions

# module -> the public names it holds
_NAMES = {
    "o2td.transitions": "Transitions",
    "o2td.problem": "Problem",
    "o2td.learners": """
        ABTD ARCTD ATD ETD GTD GTD2 GTD2MP HTD O2TD TD TDC TDCMP TDRC PowerDecay
        ResidualGradient TreeBackup VTrace DifferentialTD GEMETD PERETD ProximalGTD2MP
        TrueOnlineETD TrueOnlineGTD TrueOnlineHTD TrueOnlineTD TruncatedETD VarianceTD WISGTD WISTD
        Lane Learner SweepResult sweep
    """,
    "o2td.solvers": """
        DifferentialLSTD LSETD LSTD LSTDQ SOTD Averager BellmanResidual DantzigTD DiagonalSOTD MonteCarlo
        PluginOptimal
    """,
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

# public name -> the module it stands for
_MODULES = {
    name: f"o2td.{name}"
    for name in (
        *("checks", "domains", "emphasis", "errors", "evaluation", "exact", "experiments"),
        *("features", "interactive", "learners", "metrics", "paper", "registry", "report"),
        *("sklearn", "solvers", "sources"),
    )
}

__all__ = ["__version__", *_HOMES, *_MODULES]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value: object = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(_MODULES[name])
    else:
        raise AttributeError(f"module 'o2td' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
