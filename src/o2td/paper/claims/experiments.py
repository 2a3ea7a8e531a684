"""Claims about the paper's experiments: 8-12, from the runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.arrays import Floats
from o2td.experiments.loading import Results
from o2td.paper.claims.base import (
    DEPENDS,
    NOT,
    REPRODUCED,
    Verdict,
    below,
    claim,
    judge,
    listed,
)
from o2td.report.statistics import ValueInterval, number, ratio_of_means
from o2td.report.style import pretty, size

if TYPE_CHECKING:
    import polars as pl

SIZES = (1000, 2000, 3000)
SOURCE = (0.67, 0.78, 0.79)  # the ratios in a table that the paper's source has commented out
WEIGHTINGS = {"normalized": "normalised by Σρ", "ordinary": "as printed"}
FAR = 0.5  # "far below": at most half, and less beyond chance
NAMES = {"rmse": "RMSE", "rmspbe": "RMSPBE"}
WAYS = {"shown": "printed step sizes", "tuned": "tuned step sizes"}


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
        f"{WEIGHTINGS[w]}, n = {n}": below([row[n]]) for w, row in ratios.items() for n in row
    }
    numbers = "; ".join(
        f"{WEIGHTINGS[w]} {', '.join(f'{number(found.value, 2)} ({n})' for n, found in row.items())}"
        for w, row in ratios.items()
    )
    least = min(ratios["ordinary"], key=lambda n: ratios["ordinary"][n].value)
    runs = results.about("fig-sotd")["runs"]
    return Verdict(
        judge(readings),
        f"MSE of SOTD over LSTD as printed, at n = {least}, where it is least",
        ratios["ordinary"][least],
        f"MSE of SOTD over LSTD (at n) over {runs} random MDPs of 201 features: {numbers}."
        f"{_beside_source(results)} {listed(readings)}",
    )


def _beside_source(results: Results) -> str:
    """The three sizes of a table that the paper's source has commented out."""
    if not results.has("tab-sotd"):
        return ""
    numbers = "; ".join(
        f"{WEIGHTINGS[w]} {', '.join(str(found) for found in row)}"
        for w, row in sotd_ratios(results).items()
    )
    return (
        f" At n = {', '.join(map(str, SIZES))} over {results.about('tab-sotd')['runs']}: {numbers};"
        f" a table that the paper's source has commented out has"
        f" {', '.join(f'{s:g}' for s in SOURCE)}."
    )


def ratio(
    results: Results,
    name: str,
    way: str,
    case: dict[str, Any],
    metric: str,
    how: str,
    one: str,
    other: str,
) -> ValueInterval:
    """Mean score of one method over that of another, over the same runs."""
    table = results.scores(name, way, how).filter(metric=metric, **case)
    top, bottom = (
        table.filter(algorithm=label).sort("run")["value"].to_numpy() for label in (one, other)
    )
    return ratio_of_means(top, bottom)


@claim(9, "Baird: O²TD ends far below GTD2 in RMSE and RMSPBE", "fig-baird")
def baird(results: Results) -> Verdict:
    """Final errors over GTD2's on both forms of the example.

    The paper prints one omega, which is judged; those that keep the ratio are our repair.
    """
    domains = results.runs("fig-baird")["domain"].unique(maintain_order=True).to_list()
    algorithms = results.runs("fig-baird")["algorithm"].unique(maintain_order=True).to_list()
    found: dict[str, dict[str, list[ValueInterval]]] = {}
    for label in (name for name in algorithms if name.startswith("O2TD")):
        for domain in domains:
            form = "star" if "star" in domain else "survey" if "survey" in domain else domain
            found.setdefault(label.removeprefix("O2TD "), {})[f"{form} form"] = [
                ratio(results, "fig-baird", "shown", {"domain": domain}, m, "final", label, "GTD2")
                for m in NAMES
            ]
    printed = {form: below(pair, FAR) for form, pair in found["printed"].items()}
    mended = {
        f"{omega} ω, {form}": below(pair, FAR)
        for omega, forms in found.items()
        for form, pair in forms.items()
        if omega != "printed"
    }
    numbers = "; ".join(
        f"{omega}, {form}: {number(pair[0].value)} and {number(pair[1].value)}"
        for omega, forms in found.items()
        for form, pair in forms.items()
    )
    words = {REPRODUCED: "holds", NOT: "fails", DEPENDS: "depends on the form"}
    first = next(iter(found["printed"]))
    return Verdict(
        judge(printed),
        f"final RMSE over GTD2's, printed ω, {first}",
        found["printed"][first][0],
        f"It {words.get(judge(printed), 'is undecided')} as printed, where the ratio cancels. With the"
        f" ratio kept, which is our repair: {listed(mended) or 'nothing was run.'} RMSE and RMSPBE over"
        f" GTD2's at the printed step sizes: {numbers}.",
    )


def _best(
    results: Results, name: str, way: str, etd: str, omegas: list[str], metric: str
) -> bool | None:
    """Whether every O2TD's mean error over the run is below ETD's and GTD2's beyond chance."""
    return below(
        ratio(results, name, way, {}, metric, "area", omega, other)
        for omega in omegas
        for other in (etd, "GTD2")
    )


def safe_step_size(results: Results, name: str, algorithm: str) -> float:
    """The largest step size tried up to which no run diverged, whatever the other parameters."""
    table = results.sensitivity(name).filter(algorithm=algorithm)
    shares: dict[float, float] = {}
    for row in table.iter_rows(named=True):
        alpha = float(json.loads(row["parameters"])["step_size"])
        shares[alpha] = min(shares.get(alpha, 1.0), row["diverged_share"])
    safe = 0.0
    for alpha in sorted(shares):
        if shares[alpha] > 0:
            break
        safe = alpha
    return safe


def _random_mdp(results: Results, name: str, etds: tuple[str, ...]) -> Verdict:
    algorithms = results.runs(name)["algorithm"].unique(maintain_order=True).to_list()
    omegas = [label for label in algorithms if label.startswith("O2TD")]
    safe = {label: safe_step_size(results, name, label) for label in (*etds, omegas[0], "GTD2")}
    readings: dict[str, bool | None] = {}
    for etd in etds:
        easily = safe[etd] < min(safe[omegas[0]], safe["GTD2"])
        for way, words in WAYS.items():
            for metric, short in NAMES.items():
                held = easily and _best(results, name, way, etd, omegas, metric)
                first = f"{pretty(etd)}, " if len(etds) > 1 else ""
                readings[f"{first}{short}, {words}"] = held
    shown = ratio(results, name, "shown", {}, "rmse", "area", omegas[0], "GTD2")
    tuned = ratio(results, name, "tuned", {}, "rmse", "area", omegas[0], "GTD2")
    sizes = ", ".join(f"{pretty(label)} {size(most)}" for label, most in safe.items())
    return Verdict(
        judge(readings),
        f"mean RMSE over the run over GTD2's, {pretty(omegas[0])}, printed step sizes",
        shown,
        f"{pretty(omegas[0])}'s mean RMSE is {number(shown.value)} times GTD2's at the printed step"
        f" sizes and {number(tuned.value)} times at tuned ones; largest step size without a diverged"
        f" run: {sizes}. {listed(readings)}",
    )


@claim(10, "Random MDP, sequential: O²TD is best, ETD diverges easily", "fig-random-seq")
def random_sequential(results: Results) -> Verdict:
    """Every reading of omega, both errors, printed and tuned step sizes."""
    return _random_mdp(results, "fig-random-seq", ("ETD",))


@claim(11, "Random MDP, independent samples: O²TD is best, ETD diverges easily", "fig-random-iid")
def random_independent(results: Results) -> Verdict:
    """As claim 10, with ETD's trace cut at every row and carried on."""
    return _random_mdp(results, "fig-random-iid", ("ETD", "ETD carried"))


CAR = "fig-car-seq"  # its discount is our choice: the paper prints none


@claim(
    12,
    "Mountain car: GTD2 is worst, O²TD is faster than ETD, both samplings",
    CAR,
    "fig-car-iid",
)
def mountain_car(results: Results) -> Verdict:
    """Mean error over the run, both samplings and errors, printed and tuned step sizes.

    The discount is a reading too, since the paper prints none.
    """
    cases = {
        "in order": (CAR, "ETD"),
        "shuffled": ("fig-car-iid", "ETD"),
        "shuffled with ETD's trace carried on": ("fig-car-iid", "ETD carried"),
    }
    readings = {
        f"{where}, {short}, {words}": below(_car(results, name, way, metric, etd))
        for where, (name, etd) in cases.items()
        for way, words in WAYS.items()
        for metric, short in NAMES.items()
    }
    readings |= {
        f"in order at γ = {discount}, {short}, printed step sizes": below(
            _car(results, "more-car", "shown", metric, "ETD", {"domain": domain})
        )
        for discount, domain in _discounts(results).items()
        for metric, short in NAMES.items()
    }
    numbers = "; ".join(
        f"{where}, {words} {_three(_car(results, name, way, 'rmse', etd))}"
        for where, (name, etd) in cases.items()
        for way, words in WAYS.items()
    )
    more = "; ".join(
        f"γ = {discount} {_three(_car(results, 'more-car', 'shown', 'rmse', 'ETD', {'domain': d}))}"
        for discount, d in _discounts(results).items()
    )
    also = f" In order at other discounts, printed step sizes: {more}." if more else ""
    return Verdict(
        judge(readings),
        "mean RMSE over the run over ETD's, rows in order, printed step sizes, γ = 0.95",
        _car(results, CAR, "shown", "rmse", "ETD")[0],
        "Mean RMSE, O²TD over ETD, O²TD over GTD2 and ETD over GTD2, at γ = 0.95 (ours):"
        f" {numbers}.{also} {listed(readings)}",
    )


def _car(
    results: Results, name: str, way: str, metric: str, etd: str, case: Any = None
) -> list[ValueInterval]:
    """O2TD over ETD and over GTD2, and ETD over GTD2: the claim holds if all are below one."""
    omega = "O2TD sample"
    pairs = [(omega, etd), (omega, "GTD2"), (etd, "GTD2")]
    return [
        ratio(results, name, way, case or {}, metric, "area", one, other) for one, other in pairs
    ]


def _three(ratios: list[ValueInterval]) -> str:
    return ", ".join(number(found.value) for found in ratios)


def _discounts(results: Results) -> dict[str, str]:
    """Discounts that were run in addition to the main one, with the name of the domain at each."""
    if not results.has("more-car"):
        return {}
    domains = results.runs("more-car")["domain"].unique(maintain_order=True).to_list()
    found = {d.partition("discount=")[2].partition(",")[0].rstrip(")"): d for d in domains}
    return {discount: d for discount, d in found.items() if float(discount) != 0.95}
