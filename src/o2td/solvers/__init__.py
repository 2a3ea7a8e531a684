"""Batch solvers: accumulate statistics chunk by chunk, merge them, solve, and report the status."""

from __future__ import annotations

from o2td.linear_algebra import Solution
from o2td.registry import SOLVERS
from o2td.solvers.averager import Averager
from o2td.solvers.base import Solver, Statistics
from o2td.solvers.bellman_residual import BellmanResidual
from o2td.solvers.dantzig import DantzigTD
from o2td.solvers.diagonal_sotd import DiagonalSOTD
from o2td.solvers.differential_lstd import DifferentialLSTD
from o2td.solvers.lsetd import LSETD
from o2td.solvers.lstd import LSTD
from o2td.solvers.lstdq import LSTDQ
from o2td.solvers.monte_carlo import MonteCarlo
from o2td.solvers.plugin_optimal import PluginOptimal
from o2td.solvers.sotd import SOTD

__all__ = [
    "LSETD",
    "LSTD",
    "LSTDQ",
    "SOTD",
    "Averager",
    "BellmanResidual",
    "DantzigTD",
    "DiagonalSOTD",
    "DifferentialLSTD",
    "MonteCarlo",
    "PluginOptimal",
    "Solution",
    "Solver",
    "Statistics",
]

for _name in set(__all__) - {"Solution", "Solver", "Statistics"}:
    SOLVERS.register(_name, globals()[_name])
