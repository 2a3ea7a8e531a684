"""Claim 8, SOTD against LSTD by the number of rows, from the runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from o2td.arrays import Floats
from o2td.experiments.loading import Results
from o2td.paper.claims.base import Numbers, Verdict, below, claim, enumerated, judge
from o2td.report.statistics import ValueInterval, ratio_of_means

if TYPE_CHECKING:
    import polars as pl

SIZES = (1000, 2000, 3000)
SOURCE = (0.67, 0.78, 0.79)  # the ratios in a table that the paper's source has commented out
WEIGHTINGS = {"normalized": "normalised by Σρ", "ordinary": "as printed"}
EQUAL = 1e-9  # two errors are equal to rounding


def sotd_ratios(results: Results) -> dict[str, list[ValueInterval]]:
    """Mean square error of SOTD over that of LSTD at the three sizes, by weighting."""
    found = ratios_by_size(results, "tab-sotd")
    return {weighting: [row[size] for size in SIZES] for weighting, row in found.items()}


def ratios_by_size(results: Results, name: str) -> dict[str, dict[int, ValueInterval]]:
    """Mean square error of SOTD over that of LSTD, by weighting and number of rows."""
    table = results.runs(name).filter(metric="rmse")
    sizes = sorted(table["step"].unique().to_list())
    return {
        weighting: {
            size: ratio_of_means(
                _squares(table, f"SOTD {weighting}", size), _squares(table, "LSTD", size)
            )
            for size in sizes
        }
        for weighting in WEIGHTINGS
    }


def _squares(table: pl.DataFrame, algorithm: str, size: int) -> Floats:
    rows = table.filter(algorithm=algorithm, step=size).sort("run")
    return np.asarray(rows["value"].to_numpy() ** 2)


@claim(8, "SOTD beats LSTD at small sample sizes", "fig-sotd")
def small_samples(results: Results) -> Verdict:
    """Ratios of mean square errors over n, both weightings; "small" is not defined in the paper."""
    ratios = ratios_by_size(results, "fig-sotd")
    readings = {
        f"{WEIGHTINGS[w]}, n = {n}": _beats(row[n]) for w, row in ratios.items() for n in row
    }
    printed = ratios["ordinary"]
    least = min(printed, key=lambda n: printed[n].value)
    runs = results.about("fig-sotd")["runs"]
    rows = [
        [f"{n:,}", *("1" if _equal(row[n]) else str(row[n]) for row in ratios.values())]
        for n in printed
    ]
    if results.has("tab-sotd"):
        more, count = sotd_ratios(results), results.about("tab-sotd")["runs"]
        rows += [
            [f"{n:,} ({count} MDPs)", *(str(row[k]) for row in more.values())]
            for k, n in enumerate(SIZES)
        ]
    return Verdict(
        judge(readings),
        f"MSE of SOTD over LSTD as printed, at n = {least}, where it is least",
        printed[least],
        by_outcome(ratios),
        Numbers(
            f"Mean square error of SOTD over LSTD's, {runs} random MDPs of 201 features",
            ["n", *(WEIGHTINGS[w] for w in ratios)],
            rows,
        ),
    )


def _beats(ratio: ValueInterval) -> bool | None:
    """Whether a ratio is below one; errors that are equal to rounding do not beat each other."""
    return False if _equal(ratio) else below([ratio])


def _equal(ratio: ValueInterval) -> bool:
    return max(abs(ratio.low - 1.0), abs(ratio.high - 1.0)) < EQUAL


def by_outcome(ratios: Mapping[str, Mapping[int, ValueInterval]]) -> str:
    """At which n SOTD beats LSTD, loses, is as good or is undecided: a sentence each."""
    words = {
        "beats": "SOTD beats LSTD",
        "loses": "It loses",
        "equal": "The two are equal",
        "open": "It is undecided",
    }
    outcomes = {True: "beats", False: "loses", None: "open"}
    found: dict[str, dict[str, list[int]]] = {key: {} for key in words}
    for weighting, row in ratios.items():
        for n, ratio in row.items():
            key = "equal" if _equal(ratio) else outcomes[_beats(ratio)]
            found[key].setdefault(WEIGHTINGS[weighting], []).append(n)
    sizes = list(next(iter(ratios.values())))
    sentences = [
        f"{words[key]} {_where(own, sizes, len(ratios))}." for key, own in found.items() if own
    ]
    return " ".join(sentences if found["beats"] else ["SOTD beats LSTD at no n.", *sentences])


def _where(own: Mapping[str, list[int]], sizes: list[int], weightings: int) -> str:
    spans = {weighting: f"at n = {_spans(found, sizes)}" for weighting, found in own.items()}
    if len(spans) == weightings and len(set(spans.values())) == 1:
        return next(iter(spans.values()))
    return enumerated(f"{span} {weighting}" for weighting, span in spans.items())


def _spans(found: list[int], sizes: list[int]) -> str:
    """Some of the sizes, three or more in a row as a span: 300 and 1,000 to 3,000."""
    rows: list[list[int]] = []
    for n in found:
        after = rows and sizes.index(rows[-1][-1]) + 1 == sizes.index(n)
        if after:
            rows[-1].append(n)
        else:
            rows.append([n])
    parts: list[str] = []
    for row in rows:
        long = len(row) > 2
        parts += [f"{row[0]:,} to {row[-1]:,}"] if long else [f"{n:,}" for n in row]
    return enumerated(parts)
