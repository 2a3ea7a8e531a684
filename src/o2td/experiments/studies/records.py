"""A study's result: plain records, one number each, which the report reads from the store."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Record"]


@dataclass(frozen=True)
class Record:
    """One measured number.

    `domain` says on what, `method` for which algorithm (or ""), `quantity` what was measured,
    `index` on which problem or run, `x` at which setting (lambda, n, d), `value` the number.
    """

    domain: str
    method: str
    quantity: str
    value: float
    index: int = 0
    x: float = 0.0
