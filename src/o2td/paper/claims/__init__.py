"""The paper's 16 claims, each judged from the stored tables alone.

A claim is a function from :class:`~o2td.experiments.Results` to a verdict with the number that was
measured, its interval and one sentence why. Where the paper can be read in more than one way, every
reading is judged: a claim is reproduced if it holds in all of them, not reproduced if in none.
"""

from __future__ import annotations

from o2td.experiments.loading import Results
from o2td.paper.claims import experiments, sotd, theory
from o2td.paper.claims.base import (
    CLAIMS,
    DEPENDS,
    NOT,
    REPRODUCED,
    UNDECIDED,
    Claim,
    Numbers,
    Verdict,
    judge,
)

__all__ = [
    "CLAIMS",
    "DEPENDS",
    "NOT",
    "REPRODUCED",
    "UNDECIDED",
    "Claim",
    "Numbers",
    "Verdict",
    "judge",
    "judge_all",
]

_MODULES = (experiments, sotd, theory)  # importing them registers the claims


def judge_all(results: Results) -> list[tuple[Claim, Verdict]]:
    """Every claim whose experiments and studies are available, in the paper's order."""
    return [
        (claim, claim.judge(results))
        for _, claim in sorted(CLAIMS.items())
        if all(results.has(name) for name in claim.needs)
    ]
