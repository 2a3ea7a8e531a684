"""Streams to measure on: random, bounded, and too large for a small cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.transitions import Transitions

__all__ = ["dense", "sparse", "table"]

DISCOUNT = 0.95
STATES = 400
EPISODE = 100  # rows between two starts


def dense(n: int, d: int) -> Transitions:
    """`n` dense rows of `d` features, one after the other in memory."""
    rng = np.random.default_rng(0)
    phi, next_phi = rng.random((2, n, d)) / np.sqrt(d)
    return Transitions(phi, rng.random(n), next_phi, DISCOUNT, **_marks(n, rng))


def table(n: int, d: int) -> Transitions:
    """`n` rows that index a table of 400 states."""
    rng = np.random.default_rng(0)
    states = rng.integers(0, STATES, n + 1)
    features = rng.random((STATES, d)) / np.sqrt(d)
    marks = _marks(n, rng)
    return Transitions.from_table(
        features, states[:-1], rng.random(n), states[1:], DISCOUNT, **marks
    )


def sparse(n: int, d: int, entries: int) -> Transitions:
    """`n` CSR rows with `entries` of `d` features not zero."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    width = d // entries
    rows = []
    for _ in range(2):  # one entry in each of several equal stretches: distinct and ascending
        index = rng.integers(0, width, (n, entries)) + width * np.arange(entries)
        value = (rng.random((n, entries)) + 0.5) / np.sqrt(entries)
        ptr = np.arange(n + 1) * entries
        rows.append(csr_array((value.ravel(), index.ravel(), ptr), shape=(n, d)))
    return Transitions(rows[0], rng.random(n), rows[1], DISCOUNT, **_marks(n, rng))


def _marks(n: int, rng: np.random.Generator) -> dict[str, Any]:
    return {"rho": 0.5 + rng.random(n), "start": np.arange(n) % EPISODE == 0}
