"""The follow-on recursion of emphatic TD, one row at a time, for every compiled loop that uses it.

F_t = i_t + gamma_t rho_{t-1} F_{t-1},    M_t = lambda i_t + (1 - lambda) F_t
"""

from __future__ import annotations

from o2td.compiled import jitable

__all__ = ["decay_of", "emphasis"]


@jitable
def decay_of(gamma, beta):
    """The factor of `rho_{t-1} F_{t-1}`: gamma_t, or beta where beta >= 0 and gamma_t is not 0."""
    return gamma if beta < 0.0 or gamma == 0.0 else beta


@jitable
def emphasis(interest, trace, arrived):
    """`F_t` and `M_t` of a row, given `arrived = gamma_t rho_{t-1} F_{t-1}`."""
    followed = interest + arrived
    return followed, trace * interest + (1.0 - trace) * followed
