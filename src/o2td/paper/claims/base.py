"""Verdicts, and how several readings of one sentence of the paper are combined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from o2td.documents import finite
from o2td.experiments.loading import Results
from o2td.report.statistics import ValueInterval

REPRODUCED = "reproduced"
NOT = "not reproduced"
DEPENDS = "depends on the reading"
UNDECIDED = "undecided"


@dataclass(frozen=True)
class Numbers:
    """The table behind a verdict: a first column of words, then numbers."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Verdict:
    """What was measured for a claim, the verdict, and why in two to four short sentences."""

    verdict: str
    quantity: str
    found: ValueInterval
    why: str
    numbers: Numbers | None = None


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
            "measured": finite(verdict.found.value),
            "low": finite(verdict.found.low),
            "high": finite(verdict.found.high),
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


Readings = Mapping[Any, bool | None]  # None: the runs leave it open


def below(ratios: Iterable[ValueInterval], far: float = 1.0) -> bool | None:
    """Whether all ratios are below one, and at most `far`, beyond chance; None if undecided.

    >>> below([ValueInterval(0.5, 0.4, 0.6)]), below([ValueInterval(0.9, 0.7, 1.1)])
    (True, None)
    """
    ratios = list(ratios)
    if any(ratio.low >= far for ratio in ratios):
        return False
    return True if all(r.value <= far and r.high < 1.0 for r in ratios) else None


def judge(readings: Readings) -> str:
    """Reproduced if it holds in every reading, not if in none; else it depends on the reading.

    Undecided if a reading that the runs leave open could change the answer.

    >>> judge({"printed": True, "tuned": False}), judge({"printed": True, "tuned": None})
    ('depends on the reading', 'undecided')
    """
    found = set(readings.values())
    if {True, False} <= found:
        return DEPENDS
    if None in found:
        return UNDECIDED
    return REPRODUCED if found == {True} else NOT


def counted(readings: Readings) -> str:
    """In how many readings a claim holds, in words.

    >>> counted({"RMSE": True, "RMSPBE": True}), counted({"RMSE": False, "RMSPBE": None})
    ('all 2 readings', 'none of 2 readings (1 undecided)')
    """
    held = sum(outcome is True for outcome in readings.values())
    if held == len(readings):
        return f"all {held} readings"
    left = sum(outcome is None for outcome in readings.values())
    share = f"{held or 'none'} of {len(readings)} readings"
    return f"{share} ({left} undecided)" if left else share


def enumerated(names: Iterable[object]) -> str:
    """Names with commas and a last "and".

    >>> enumerated([300]), enumerated(["star", "survey"]), enumerated("abc")
    ('300', 'star and survey', 'a, b and c')
    """
    *first, last = (str(name) for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def listed(readings: Readings) -> str:
    """The readings in which a claim holds, does not hold, or is undecided, in words.

    Readings with the same first words (before a comma) and the same outcome are combined.

    >>> listed({"printed, RMSE": True, "printed, RMSPBE": True, "tuned, RMSE": False})
    'It holds for: printed. It does not hold for: tuned, RMSE.'
    >>> listed({"RMSE": True, "RMSPBE": None})
    'It holds for: RMSE. These runs do not decide: RMSPBE.'
    """
    if len(set(readings.values())) == 1 and None not in readings.values():
        return f"It holds in {counted(readings)}." if len(readings) > 1 else ""
    groups: dict[str, list[str]] = {}
    for name in readings:
        groups.setdefault(name.partition(", ")[0], []).append(name)
    found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for first, names in groups.items():
        same = len(names) > 1 and len({readings[name] for name in names}) == 1
        for name in [first] if same else names:
            found[readings[names[0] if same else name]].append(name)
    words = {True: "It holds for", False: "It does not hold for", None: "These runs do not decide"}
    return " ".join(f"{words[k]}: {'; '.join(names)}." for k, names in found.items() if names)
