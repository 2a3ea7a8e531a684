"""Claims about lemmas, solutions, cost and limits: 1-7 and 13-16, from the studies."""

from __future__ import annotations

from typing import Any

import numpy as np

from o2td.arrays import Floats
from o2td.experiments.loading import Results
from o2td.paper.claims.base import (
    DEPENDS,
    NOT,
    REPRODUCED,
    Numbers,
    Verdict,
    claim,
    enumerated,
    judge,
    listed,
)
from o2td.report.statistics import ValueInterval, mean, median, number, percent, slope, wilson
from o2td.report.style import pretty

EXACT = 1e-6  # relative difference below which two closed forms are the same
SAME_OMEGA = 1e-4  # resolution of a numerical minimiser of a flat function
NEAR = 1.1  # a limit counts as near up to this ratio to the least error: ours, the paper has none
LINEAR = (0.8, 1.2)  # power of d that counts as O(d)
UNLIKELY = 1.25  # root mean square of standard scores that chance does not explain
READINGS = ("printed", "sample", "state", "moments")


def _values(results: Results, study: str, **wanted: Any) -> Floats:
    found: Floats = results.study(study).filter(**wanted)["value"].to_numpy()
    return found


def _largest(values: Floats) -> ValueInterval:
    """The largest of the values, with the range that they span."""
    return ValueInterval(float(values.max()), float(values.min()), float(values.max()))


@claim(1, "Lemma 1: the oblique fixed point is an oblique projection of V", "theory")
def lemma_1(results: Results) -> Verdict:
    """Both sides of the lemma, computed independently for random X."""
    off = _values(results, "theory", quantity="lemma 1")
    same = bool((off < EXACT).all())
    return Verdict(
        REPRODUCED if same else NOT,
        "largest relative difference of the two sides",
        _largest(off),
        f"On {len(off)} random problems with random X the two sides differ by at most"
        f" {number(float(off.max()))}, which {'is rounding' if same else 'is more than rounding'}.",
    )


@claim(2, "Lemma 2: X* = L⁻ᵀΞΦ gives the best approximation v*", "theory")
def lemma_2(results: Results) -> Verdict:
    """The fixed point with X* against a weighted regression on V."""
    off = _values(results, "theory", quantity="lemma 2")
    side = _values(results, "theory", quantity="optimal direction")
    same = bool((off < EXACT).all() and (side < EXACT).all())
    return Verdict(
        REPRODUCED if same else NOT,
        "largest relative difference from the weighted regression",
        _largest(off),
        f"On {len(off)} random problems the fixed point of X* and the regression on V differ by at"
        f" most {number(float(off.max()))}, and ΔᵀX* and C by {number(float(side.max()))}.",
    )


@claim(3, "Proposition 1: E[Δ̂] = LΦ", "theory")
def proposition_1(results: Results) -> Verdict:
    """Averages over sampled rows against LΦ, in standard errors: 1 is what chance gives."""
    outside = mean(_values(results, "theory", quantity="proposition 1"))
    inside = mean(_values(results, "theory", quantity="proposition 1, ratio inside"))
    readings = {
        "Δφ without the ratio, as the proof has it": outside.value < UNLIKELY,
        "Δφ with the ratio inside, as the preliminaries define it": inside.value < UNLIKELY,
    }
    return Verdict(
        judge(readings),
        "root mean square deviation in standard errors (chance: 1)",
        outside,
        f"The deviation is {number(outside.value)} standard errors without the ratio inside Δφ and"
        f" {number(inside.value)} with it. {listed(readings)}",
    )


@claim(4, "The solution of SOTD's first stage is unique", "theory")
def stage_1(results: Results) -> Verdict:
    """Dimensions of X that the first stage leaves open, and what they change."""
    free = _values(results, "theory", quantity="stage 1 free dimensions")
    change = _values(results, "theory", quantity="stage 1 change of answer")
    states = _values(results, "theory", quantity="states")
    open_share = wilson(int((free > 0).sum()), len(free))
    verdict = REPRODUCED if open_share.value == 0 else NOT if open_share.value == 1 else DEPENDS
    if verdict == REPRODUCED:
        why = f"On none of {len(free)} problems is a dimension left free."
    else:
        why = (
            f"On {percent(open_share.value)} of {len(free)} problems X has free dimensions:"
            f" {number(float(np.median(free)))} of the {number(float(np.median(states)))} in each"
            f" column, in the median. Starting from the TD direction instead of zero changes θ by"
            f" {percent(float(np.median(change)))} in the median. The solution is unique only where"
            " there are no more states than features."
        )
    return Verdict(verdict, "free dimensions in each column of X (median)", median(free), why)


@claim(5, "Frobenius and trace norm give the same ω", "theory")
def norms(results: Results) -> Verdict:
    """Numerical minimisers of both norms against the printed formula."""
    off = np.concatenate(
        [_values(results, "theory", quantity=f"omega {kind}") for kind in ("fro", "nuc")]
    )
    same = bool((off < SAME_OMEGA).all())
    return Verdict(
        REPRODUCED if same else NOT,
        "largest relative difference from the printed ω",
        _largest(off),
        f"In {len(off)} minimisations the minimiser of either norm is within"
        f" {number(float(off.max()))} of the closed form.",
    )


@claim(6, "ETD's follow-on trace is the power series f = L⁻ᵀξ", "theory")
def follow_on(results: Results) -> Verdict:
    """Mean follow-on trace by state against f / xi, in standard errors."""
    score = mean(_values(results, "theory", quantity="follow-on"))
    holds = score.value < UNLIKELY
    return Verdict(
        REPRODUCED if holds else NOT,
        "root mean square deviation in standard errors (chance: 1)",
        score,
        f"The mean trace in each state is {number(score.value)} standard errors from f/ξ, which"
        f" chance {'explains' if holds else 'does not explain'}.",
    )


@claim(7, "On-policy, TD's error is at most 1/√(1−γ²) times the least", "theory")
def bound(results: Results) -> Verdict:
    """TD's exact error as a share of the bound."""
    share = _values(results, "theory", quantity="share of the bound")
    holds = bool((share <= 1.0 + 1e-9).all())
    return Verdict(
        REPRODUCED if holds else NOT,
        "largest share of the bound that is used",
        _largest(share),
        f"On {len(share)} on-policy problems TD's error is at most {percent(float(share.max()))} of"
        f" the bound, {percent(float(np.median(share)))} in the median.",
    )


@claim(13, "O²TD costs O(d) per step", "cost")
def cost(results: Results) -> Verdict:
    """The exponent of d in the time of a step, and the time relative to TD's."""
    table = results.study("cost").filter(quantity="nanoseconds")
    slopes, beside = {}, {}
    for reading in ("sample", "state"):
        own = table.filter(method=f"O2TD {reading}").sort("x")
        td = table.filter(method="TD").sort("x")
        slopes[reading] = slope(own["x"].to_numpy(), own["value"].to_numpy())
        beside[reading] = float(np.max(own["value"].to_numpy() / td["value"].to_numpy()))
    readings = {f"{r} ω": LINEAR[0] <= s.value <= LINEAR[1] for r, s in slopes.items()}
    powers = enumerated(f"{number(s.value)} ({r} ω)" for r, s in slopes.items())
    times = enumerated(f"{number(most, 2)} ({r} ω)" for r, most in beside.items())
    sizes = table["x"].to_numpy().astype(int)
    return Verdict(
        judge(readings),
        "power of d in the time of a step, sample ω",
        slopes["sample"],
        f"From d = {sizes.min():,} to {sizes.max():,} the time of a step grows as d to the power"
        f" {powers}. It is at most {times} times TD's.",
    )


@claim(14, "SOTD and O²TD are (near-)optimal", "nearness")
def nearness(results: Results) -> Verdict:
    """Exact RMSE of each limit over the least possible, on random problems."""
    table = results.study("nearness").filter(domain="garnet", quantity="suboptimality")
    values: dict[str, Floats] = {
        str(method): own["value"].to_numpy()
        for (method,), own in table.group_by(["method"], maintain_order=True)
    }
    names = (*(f"O2TD {r}" for r in READINGS), "SOTD", "TD", "ETD", "TD lambda 0.9")
    found = {name: median(values[name]) for name in names if name in values}
    judged = {n: found[n] for n in found if n.startswith(("O2TD", "SOTD"))}
    readings = {pretty(n): i.high <= NEAR for n, i in judged.items()}
    name = "O2TD state" if "O2TD state" in judged else next(iter(judged))
    return Verdict(
        judge(readings),
        f"median error over the least possible, {pretty(name)}",
        judged[name],
        f"Near means at most {NEAR:g} times the least error, in the median over"
        f" {table['index'].n_unique()} problems. That is our threshold: the paper defines none."
        f" {listed(readings)}",
        Numbers(
            "Error of the limit over the least possible, medians",
            ["method", "median"],
            [[pretty(n), number(i.value)] for n, i in found.items()],
        ),
    )


@claim(15, "O²TD is off-policy convergent", "stability")
def convergence(results: Results) -> Verdict:
    """The share of random off-policy problems on which the mean dynamics is unstable."""
    table = results.study("stability")
    shares: dict[str, ValueInterval] = {}
    readings: dict[str, bool] = {}
    for reading in READINGS:
        method = f"O2TD {reading}"
        flags = table.filter(domain="off-policy", method=method)["value"].to_numpy()
        cycle = table.filter(domain="cycle", method=method)["value"].to_numpy()
        shares[reading] = wilson(int(flags.sum()), len(flags))
        readings[f"{reading} ω"] = not flags.any() and not (cycle <= 0).any()
    worst = max(shares, key=lambda r: shares[r].value)
    numbers = enumerated(f"{percent(s.value)} ({r} ω)" for r, s in shares.items())
    cycles = table.filter(domain="cycle", method="O2TD sample")["value"].to_numpy()
    td = table.filter(domain="cycle", method="TD")["value"].to_numpy()
    example = (
        f" A cycle of three states shows it by hand: A has the eigenvalue {number(float(cycles[0]))}"
        f" (TD: {number(float(td[0]))})."
        if len(cycles) and cycles[0] <= 0 and len(td)
        else ""
    )
    return Verdict(
        judge(readings),
        f"share of unstable problems, {worst} ω",
        shares[worst],
        f"The mean dynamics are unstable on {numbers} of random off-policy problems.{example}"
        f" {listed(readings)}",
    )


@claim(16, "The solution of SOTD's second stage is unique", "theory")
def stage_2(results: Results) -> Verdict:
    """By how much the second stage's matrix falls short of full rank."""
    many = _values(results, "theory", quantity="stage 2 rank short of d")
    few = _values(results, "theory", quantity="stage 2 rank short of d, few rows")
    readings = {
        "20 rows per state": not many.any(),
        "fewer rows than features": not few.any(),
    }
    short = wilson(int((many > 0).sum()), len(many))
    return Verdict(
        judge(readings),
        "share of problems without full rank, 20 rows per state",
        short,
        f"With 20 rows per state the matrix lacks full rank on {percent(short.value)} of {len(many)}"
        f" problems. With fewer rows than features its rank is {number(float(np.median(few)))} too"
        f" small in the median. {listed(readings)}",
    )
