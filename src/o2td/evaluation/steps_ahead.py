"""Sums over a number of steps: `V_T = sum_{k<T} C^k g`, `U_T = sum_{k<T} u C^k`, and both crossed.

Up to a few thousand steps are followed one by one. More are followed by squaring: from n steps to
2n by

`V_{2n} = V_n + C^n V_n`, `U_{2n} = U_n + U_n C^n` and `X_{2n} = U_n V_n^T + X_n (C^n)^T + (C^n)^T X_n`,

where `X_n = sum_{k<n} u_k V_{n-1-k}^T` with `u_k = u C^k`, and from n to n + 1 by `V_{n+1} = g + C V_n`,
`U_{n+1} = u + U_n C` and `X_{n+1} = u V_n^T + C^T X_n`. So neither time nor memory grows with the steps,
but for their logarithm.
"""

from __future__ import annotations

import numpy as np

from o2td.arrays import Floats

_FOLLOWED = 4096  # steps that are followed one by one


def values_ahead(chain: Floats, gain: Floats, steps: int) -> Floats:
    """`V_T`.

    >>> float(values_ahead(np.array([[0.5]]), np.ones(1), 3)[0])
    1.75
    >>> float(values_ahead(np.array([[0.5]]), np.ones(1), 10**9)[0])
    2.0
    """
    if steps <= _FOLLOWED:
        found = np.zeros(len(gain))
        for _ in range(steps):
            found = gain + chain @ found
        return found
    power, found = chain, gain
    for bit in bin(steps)[3:]:
        found = found + power @ found
        power = power @ power
        if bit == "1":
            found, power = gain + chain @ found, power @ chain
    return found


def visits_ahead(chain: Floats, start: Floats, steps: int) -> Floats:
    """`U_T`.

    >>> float(visits_ahead(np.array([[0.5]]), np.ones(1), 3)[0])
    1.75
    """
    if steps <= _FOLLOWED:
        return np.asarray(_visits(chain, start, steps).sum(axis=0))
    return values_ahead(chain.T, start, steps)


def crossed(chain: Floats, gain: Floats, start: Floats, steps: int) -> Floats:
    """`X_T`: visits to each state after k steps, times values of each with T - k - 1 steps ahead.

    >>> float(crossed(np.array([[0.5]]), np.ones(1), np.ones(1), 3)[0, 0])
    2.0
    """
    if steps <= _FOLLOWED:
        values = np.zeros((steps, len(gain)))
        for k in range(1, steps):
            values[k] = gain + chain @ values[k - 1]
        return np.asarray(_visits(chain, start, steps).T @ values[::-1])
    power, value, visits = chain, gain, start
    found = np.zeros((len(start), len(gain)))
    for bit in bin(steps)[3:]:
        found = np.outer(visits, value) + found @ power.T + power.T @ found
        value, visits = value + power @ value, visits + visits @ power
        power = power @ power
        if bit == "1":
            found = np.outer(start, value) + chain.T @ found
            value, visits = gain + chain @ value, start + visits @ chain
            power = power @ chain
    return found


def _visits(chain: Floats, start: Floats, steps: int) -> Floats:
    """`u_0 ... u_{T-1}`, one row each."""
    found = np.zeros((steps, len(start)))
    found[0] = start
    for k in range(1, steps):
        found[k] = found[k - 1] @ chain
    return found
