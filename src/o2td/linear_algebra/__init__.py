"""Dense and sparse linear algebra, once for solvers and for exact answers.

`rank` has the one rule that says which singular values count; `solving` answers `A theta = b` with an
account of how it went, `least_squares` compresses problems of many rows, and `scaled_spectrum` finds
eigenvalues where coordinates have different units.
"""

from __future__ import annotations

from o2td.linear_algebra.least_squares import (
    Compressed,
    check_width,
    column_sizes,
    compress,
    dense,
    orthonormalizer,
    shortest,
    triangle,
)
from o2td.linear_algebra.rank import (
    EPS,
    condition_of,
    pseudo_inverse,
    rank_of,
    rounding,
    top,
)
from o2td.linear_algebra.solving import (
    MESSAGES,
    POOR,
    Solution,
    backward_error,
    conclude,
    shifted,
    solve,
)

__all__ = [
    "EPS",
    "MESSAGES",
    "POOR",
    "Compressed",
    "Solution",
    "backward_error",
    "check_width",
    "column_sizes",
    "compress",
    "conclude",
    "condition_of",
    "dense",
    "orthonormalizer",
    "pseudo_inverse",
    "rank_of",
    "rounding",
    "shifted",
    "shortest",
    "solve",
    "top",
    "triangle",
]
