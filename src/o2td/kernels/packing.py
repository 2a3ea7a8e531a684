"""Indices of a learner's scalars in its packed state array (see `kernels.single_row`)."""

from __future__ import annotations

STEPS, DECAY, DISCOUNT, LARGEST = range(4)
"""Carried from row to row: steps taken, `lambda c gamma` and `gamma` of the row before, max |phi|^2."""
CARRIED = 4
ALPHA, LAMBDA, SECOND, INNER, MIRROR, FOLLOWS, BETA = range(4, 11)
"""Parameters."""
FOLLOWED = 11
"""The follow-on trace's memory: rho F and gamma of the row before."""
MEMBER = 13
"""Ten coefficients of a gradient-TD member."""
BOUND = 23
"""A bound on the trace for features of size one."""
BUSY = 24
"""1 while the learner learns elsewhere: a step on one row then changes nothing."""
HEAD = 32
"""Where the vectors begin: a multiple of what a register holds."""
