"""What a verdict is, and how several readings of one sentence of the paper make one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from o2td.report.data import Results
from o2td.report.statistics import Interval

__all__ = ["DEPENDS", "NOT", "REPRODUCED", "Claim", "Verdict", "claim", "judge", "listed"]

REPRODUCED = "reproduced"
NOT = "not reproduced"
DEPENDS = "depends on the reading"


@dataclass(frozen=True)
class Verdict:
    """What was measured for a claim, and what follows."""

    verdict: str
    quantity: str
    found: Interval
    why: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, what it needs from the store, and how it is judged."""

    id: int
    claim: str
    needs: tuple[str, ...]
    judge: Callable[[Results], Verdict]

    def row(self, verdict: Verdict) -> dict[str, Any]:
        """The claim with its verdict, as `o2td reproduce --json` prints it."""
        return {
            "id": self.id,
            "claim": self.claim,
            "verdict": verdict.verdict,
            "measured": _finite(verdict.found.value),
            "low": _finite(verdict.found.low),
            "high": _finite(verdict.found.high),
            "why": verdict.why,
        }


CLAIMS: dict[int, Claim] = {}


def claim(
    number: int, text: str, *needs: str
) -> Callable[[Callable[[Results], Verdict]], Callable[[Results], Verdict]]:
    """Register the function that judges a claim."""

    def register(function: Callable[[Results], Verdict]) -> Callable[[Results], Verdict]:
        CLAIMS[number] = Claim(number, text, needs, function)
        return function

    return register


def judge(readings: Mapping[str, bool]) -> str:
    """Reproduced if it holds in every reading, not if in none, else it depends on the reading.

    >>> judge({"printed": True, "tuned": False})
    'depends on the reading'
    """
    held = sum(readings.values())
    return REPRODUCED if held == len(readings) else DEPENDS if held else NOT


def listed(readings: Mapping[str, bool]) -> str:
    """The readings in which a claim holds and those in which it does not, in words.

    Readings that agree in their first words (before a comma) and in their outcome are one.

    >>> listed({"printed, RMSE": True, "printed, RMSPBE": True, "tuned, RMSE": False})
    'It holds for: printed. It does not hold for: tuned, RMSE.'
    """
    if len(set(readings.values())) == 1:
        held = next(iter(readings.values()))
        count = f"all {len(readings)}" if held else f"none of {len(readings)}"
        return f"It holds in {count} readings." if len(readings) > 1 else ""
    groups: dict[str, list[str]] = {}
    for name in readings:
        groups.setdefault(name.partition(", ")[0], []).append(name)
    yes: list[str] = []
    no: list[str] = []
    for first, names in groups.items():
        same = len(names) > 1 and len({readings[name] for name in names}) == 1
        for name in [first] if same else names:
            (yes if readings[names[0] if same else name] else no).append(name)
    return f"It holds for: {'; '.join(yes)}. It does not hold for: {'; '.join(no)}."


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
