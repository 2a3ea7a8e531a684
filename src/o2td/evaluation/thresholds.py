"""Every number that a verdict depends on, in one table, with its source.

| name | value | why |
|---|---|---|
| `episodes_caution` | 50 | fewer clusters mislead a clustered error (Cameron & Miller 2015) |
| `episodes_none` | 10 | below, neither sandwich nor bootstrap has a usable distribution |
| `ess_caution` | 50 | effective episodes: the same count of clusters, after weighting |
| `ess_none` | 10 | for methods that weigh whole histories |
| `rows_caution` | 30 | effective rows: fewer are too few for a mean of any one number |
| `rows_none` | 10 | below, one row more or less changes the answer |
| `pareto_caution` | 0.5 | the variance of the weights stops existing (Vehtari et al. 2024) |
| `pareto_none` | 0.7 | the mean converges too slowly for any sample (same) |
| `share_caution` | 0.2 | share of the sum of weights in one weight: the answer is that episode's |
| `weight_caution` | 2.0 | standard errors by which weights of histories average less than 1 |
| `support_caution` | 0.95 | share of the target's visits to states that the log covers |
| `support_none` | 0.5 | below, most of what the target does was never seen; mean ratio above 1/0.5 |
| `condition_caution` | 1e13 | three of sixteen digits are left: rounding nears the sampling error |
| `approximation_caution` | 0.1 | of the size of the values: the interval does not include it |
| `loss_caution` | 0.5 | of the interval's half-width, which does not include what dropped rows may
cost |
| `approximation_none` | 0.25 | of the spread of the values: the features cannot express the value |
| `cut_caution` | 0.01 | of the discount left at truncations: rewards beyond them start to matter |
| `agreement_caution` | 3.0 | standard errors between this estimate and another that is trusted |
| `width_none` | 1.0 | of the range that values can have: an interval that excludes nothing |
| `rewarded_caution` | 10 | episodes that carry the variation: fewer, and no interval holds |
"""

from __future__ import annotations

from dataclasses import dataclass, fields

TRUST, CAUTION, CANNOT = "trust", "caution", "cannot answer"
_ORDER = (TRUST, CAUTION, CANNOT)


@dataclass(frozen=True)
class Thresholds:
    """The table above; pass another to `evaluate(thresholds=)` to be stricter or more lenient.

    >>> Thresholds().pareto_none
    0.7
    """

    episodes_caution: int = 50
    episodes_none: int = 10
    ess_caution: float = 50.0
    ess_none: float = 10.0
    rows_caution: float = 30.0
    rows_none: float = 10.0
    pareto_caution: float = 0.5
    pareto_none: float = 0.7
    share_caution: float = 0.2
    weight_caution: float = 2.0
    support_caution: float = 0.95
    support_none: float = 0.5
    condition_caution: float = 1e13
    approximation_caution: float = 0.1
    loss_caution: float = 0.5
    approximation_none: float = 0.25
    cut_caution: float = 0.01
    agreement_caution: float = 3.0
    width_none: float = 1.0
    rewarded_caution: int = 10

    def as_dict(self) -> dict[str, float]:
        """The table by name, for reports."""
        return {field.name: float(getattr(self, field.name)) for field in fields(self)}


def worst(verdicts: list[str]) -> str:
    """The most doubtful of several verdicts.

    >>> worst(["trust", "caution"])
    'caution'
    """
    return max(verdicts, key=_ORDER.index, default=TRUST)
