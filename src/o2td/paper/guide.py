"""Which method should I use: advice whose every sentence is filled from the measured numbers.

No sentence has a fixed order: each sorts what was measured and names the result, so the advice
changes with the results and cannot contradict them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np

from o2td.experiments.loading import Results
from o2td.paper.board import DOMAINS, relative, standings
from o2td.paper.claims.sotd import by_outcome, ratios_by_size
from o2td.paper.near import advice, solver_standings
from o2td.paper.near import standings as near_standings
from o2td.report.page import Heading, Items, Section, Text
from o2td.report.sensitivity import best_by
from o2td.report.statistics import ValueInterval, number, percent, wilson
from o2td.report.style import pretty, size

SOLVERS = (
    "LSTD",
    "LSETD",
    "SOTD",
    "DiagonalSOTD",
    "BellmanResidual",
    "MonteCarlo",
    "PluginOptimal",
    "DantzigTD",
)
_SPAN = 2.0  # a step size is good if the error is at most this many times the least


def guide(results: Results) -> Section:
    """The page-long guide; sentences whose experiments are missing are left out."""
    section = Section("guide", "Which method should I use?")
    section.add(
        Text(
            "Every sentence below is filled from the tables of this page. It holds for problems like"
            " those measured, and for linear features only."
        )
    )
    parts: list[tuple[str, list[Callable[[Results], Iterator[str]]]]] = [
        ("In short", [_in_short]),
        ("For a batch", [_batch, _few_rows, _sotd]),
        ("For a stream", [_online, _stable, _limits]),
        ("Traces", [_traces]),
        ("Step sizes", [_tuning]),
        ("O²TD in particular", [_o2td]),
    ]
    for heading, sentences in parts:
        found = [text for make in sentences for text in make(results)]
        if found:
            section.add(Heading(heading), Items(found))
    return section


def _in_short(results: Results) -> Iterator[str]:
    """What to use untuned, and the best of the leaderboard, where every learner is tuned."""
    if results.has("near_optimal", "near_solvers"):
        tuned = near_standings(results.study("near_optimal"))
        yield from advice([*tuned, *solver_standings(results.study("near_solvers"))])
    scores = _boards(results)
    solvers = _ranked({m: v for m, v in scores.items() if _is_solver(m)})
    learners = _ranked({m: v for m, v in scores.items() if not _is_solver(m)})
    if not solvers or not learners:
        return
    better = scores[solvers[0]] < scores[learners[0]]
    yield (
        f"On the leaderboard, whose learners are all tuned, the best solver is {pretty(solvers[0])}"
        f"{_summed(results, solvers[0])}{'' if better else ', though a learner does better'}."
    )
    shares = {pretty(m): s.value for m, s in _unstable(results).items()}
    first = learners[0]
    safe = [m for m in learners if shares.get(pretty(m)) == 0]
    share = shares.get(pretty(first), 0.0)
    told = f"; it was unstable on {percent(share)} of the problems tried" if share else ""
    yield f"The best learner there is {pretty(first)}{told}."
    if safe and safe[0] != first:
        yield f"The best of those that were stable on every problem is {pretty(safe[0])}."


def _summed(results: Results, first: str) -> str:
    """The solver that beats the first one where rows can be summed by state, if any does."""
    found = standings(results)
    rows = relative(found)
    ratios = {
        m: float(np.mean([np.log(error / rows[first][domain]) for domain, error in row.items()]))
        for m, row in rows.items()
        if _is_solver(m) and len(row) < len(found)
    }
    best = min(ratios, key=lambda method: ratios[method], default=first)
    if ratios.get(best, 0.0) >= 0.0:
        return ""
    return (
        f", but where states are known {pretty(best)} has"
        f" {number(float(np.exp(ratios[best])))} times its error"
    )


def _boards(results: Results) -> dict[str, float]:
    """Geometric mean of error over the least, of the methods that are on every board."""
    found = standings(results)
    rows = relative(found)
    return {
        method: float(np.exp(np.mean(np.log([*row.values()]))))
        for method, row in rows.items()
        if len(row) == len(found)
    }


def _is_solver(method: str) -> bool:
    return method.startswith(SOLVERS)


def _ranked(scores: dict[str, float]) -> list[str]:
    return sorted(scores, key=lambda method: scores[method])


def _batch(results: Results) -> Iterator[str]:
    scores = _boards(results)
    solvers = _ranked({m: v for m, v in scores.items() if _is_solver(m)})
    learners = _ranked({m: v for m, v in scores.items() if not _is_solver(m)})
    if not solvers or not learners:
        return
    count = len(standings(results))
    yield (
        f"Over the {count} domains of the leaderboard the best solver is {pretty(solvers[0])}"
        f" (median error {number(scores[solvers[0]])} times the least of each domain, geometric mean),"
        f" the best learner at its tuned step size is {pretty(learners[0])}"
        f" ({number(scores[learners[0]])})."
    )
    worst = solvers[-1]
    if len(solvers) > 1:
        yield (
            f"Among solvers that apply everywhere, {pretty(solvers[1])} follows with"
            f" {number(scores[solvers[1]])} and {pretty(worst)} is last with {number(scores[worst])}."
        )


def _few_rows(results: Results) -> Iterator[str]:
    if not results.has("more-variance-batch"):
        return
    table = results.curves("more-variance-batch").filter(metric="rmse")
    sizes = sorted(table["step"].unique().to_list())
    best = {}
    for rows in (sizes[0], sizes[-1]):
        own = table.filter(step=rows)
        scores = {r["algorithm"]: r["mean"] for r in own.iter_rows(named=True)}
        best[rows] = (_ranked(scores), scores)
    (few, few_scores), (many, many_scores) = best[sizes[0]], best[sizes[-1]]
    yield (
        f"With {sizes[0]:,} rows of a garnet {pretty(few[0])} is best (RMSE {number(few_scores[few[0]])}"
        f", {pretty(few[-1])} {number(few_scores[few[-1]])}); with {sizes[-1]:,} rows"
        f" {pretty(many[0])} (RMSE {number(many_scores[many[0]])}, {pretty(many[-1])}"
        f" {number(many_scores[many[-1]])})."
    )


def _sotd(results: Results) -> Iterator[str]:
    name = next((name for name in ("fig-sotd", "tab-sotd") if results.has(name)), None)
    if name is None:
        return
    found = by_outcome(ratios_by_size(results, name))
    yield f"On the paper's random MDPs: {found}"


def _online(results: Results) -> Iterator[str]:
    found = standings(results)
    firsts = []
    for domain, board in found.items():
        learners = {m: s.value for m, s in board.items() if not _is_solver(m)}
        if learners:
            best = _ranked(learners)[0]
            firsts.append(f"{domain}: {pretty(best)} ({number(learners[best])})")
    if firsts:
        yield f"The best tuned learner by domain, median RMSE at the end: {'; '.join(firsts)}."
    scores = _boards(results)
    order = _ranked({m: v for m, v in scores.items() if not _is_solver(m)})
    if len(order) > 3:
        top = ", ".join(f"{pretty(m)} {number(scores[m])}" for m in order[:4])
        yield (
            f"Over all domains the first four learners are {top}; last is {pretty(order[-1])} with"
            f" {number(scores[order[-1]])}."
        )


def _unstable(results: Results) -> dict[str, ValueInterval]:
    """The share of off-policy problems on which each learner is unstable."""
    if not results.has("stability"):
        return {}
    table = results.study("stability").filter(domain="off-policy", quantity="unstable")
    return {
        str(method): wilson(int(own["value"].sum()), len(own))
        for (method,), own in table.group_by(["method"], maintain_order=True)
    }


def _stable(results: Results) -> Iterator[str]:
    if not results.has("stability"):
        return
    shares = _unstable(results)
    never = [pretty(m) for m, s in shares.items() if s.value == 0]
    rest = sorted(
        ((m, s) for m, s in shares.items() if s.value > 0), key=lambda item: item[1].value
    )
    if never:
        bound = max(s.high for s in shares.values() if s.value == 0)
        yield (
            f"Never unstable on the off-policy problems tried (so on at most {percent(bound)} of such"
            f" problems): {', '.join(never)}."
        )
    if rest:
        words = ", ".join(f"{pretty(m)} {percent(s.value)}" for m, s in rest)
        yield f"Unstable on a share of them whatever the step size: {words}."


def _limits(results: Results) -> Iterator[str]:
    if not results.has("nearness"):
        return
    table = results.study("nearness").filter(domain="garnet", quantity="suboptimality")
    medians = {
        str(m): float(own["value"].median())  # type: ignore[arg-type]
        for (m,), own in table.group_by(["method"], maintain_order=True)
    }
    order = _ranked(medians)
    near = [m for m in order if medians[m] <= 1.05]
    shown = [m for m in ("TD", "ETD", "TDRC", "O2TD state", "O2TD sample", "SOTD") if m in medians]
    yield (
        f"In the limit {len(near)} of {len(order)} methods come within 5 % of the least possible error"
        f" on the median garnet; "
        + ", ".join(f"{pretty(m)} is at {number(medians[m])}" for m in shown)
        + "."
    )


def _traces(results: Results) -> Iterator[str]:
    if results.has("nearness"):
        table = results.study("nearness").filter(domain="garnet by lambda", method="TD")
        at = {
            float(x): float(own["value"].median())  # type: ignore[arg-type]
            for (x,), own in table.group_by(["x"], maintain_order=True)
        }
        if {0.0, 0.9, 1.0} <= set(at):
            nearer = at[1.0] < at[0.9] < at[0.0]
            yield (
                f"Raising λ {'brings' if nearer else 'does not steadily bring'} TD's limit towards the"
                f" best: error over the least"
                f" {number(at[0.0])} at λ = 0, {number(at[0.9])} at 0.9, {number(at[1.0])} at 1."
            )
    if results.has("more-variance", way="tuned"):
        table = results.curves("more-variance", "tuned").filter(metric="rmse")
        last = table.filter(step=int(table["step"].max()))  # type: ignore[arg-type]
        final = {r["algorithm"]: r["mean"] for r in last.iter_rows(named=True)}
        words = []
        for name in ("TD", "ETD", "O2TD state"):
            traced = f"{name} lambda 0.9"
            if name in final and traced in final:
                better = final[traced] < final[name]
                words.append(
                    f"{pretty(name)} {number(final[name])} and {pretty(traced)} {number(final[traced])}"
                    f" (the trace {'pays' if better else 'does not pay'})"
                )
        if words:
            rows = last["step"][0]
            yield (
                f"With finite data variance counts too. RMSE after {rows:,} rows of a garnet:"
                f" {'; '.join(words)}."
            )


def _tuning(results: Results) -> Iterator[str]:
    """How wide the range of good step sizes is, on the first available board."""
    name = next(
        (n for n in (f"board-{d}" for d in DOMAINS) if results.has(n, way="sensitivity")), None
    )
    if name is None:
        return
    table = results.sensitivity(name)
    spans = {}
    for algorithm in table["algorithm"].unique(maintain_order=True).to_list():
        own = {
            alpha: row["mean"]
            for alpha, row in best_by(table.filter(algorithm=algorithm)).items()
            if row["diverged_share"] == 0
        }
        if own:
            least = min(own.values())
            good = [alpha for alpha, error in own.items() if error <= _SPAN * least]
            spans[algorithm] = max(good) / min(good)
    order = sorted(spans, key=lambda m: -spans[m])
    wide, narrow = order[:3], order[-3:]
    yield (
        f"On {DOMAINS[name.removeprefix('board-')]} the error stays within {_SPAN:g} times its least"
        f" over the widest range of step sizes for "
        + ", ".join(f"{pretty(m)} (a factor of {number(spans[m])})" for m in wide)
        + ", over the narrowest for "
        + ", ".join(f"{pretty(m)} ({number(spans[m])})" for m in narrow)
        + "."
    )
    gone = table.filter(diverged_share=1.0)
    if len(gone):
        least_bad = min(float(json.loads(p)["step_size"]) for p in gone["parameters"].to_list())
        first = [
            pretty(r["algorithm"])
            for r in gone.iter_rows(named=True)
            if float(json.loads(r["parameters"])["step_size"]) == least_bad
        ]
        yield (
            f"The first to lose every run there as the step size grows, at {size(least_bad)}:"
            f" {', '.join(dict.fromkeys(first))}."
        )


def _o2td(results: Results) -> Iterator[str]:
    found = standings(results)
    places = []
    for domain, board in found.items():
        order = _ranked({m: s.value for m, s in board.items() if not _is_solver(m)})
        own = [m for m in order if m.startswith("O2TD")]
        if own:
            places.append(f"{domain} {order.index(own[0]) + 1} of {len(order)} ({pretty(own[0])})")
    if places:
        yield f"Place of the best reading of O²TD among the learners: {'; '.join(places)}."
    if results.has("stability"):
        table = results.study("stability").filter(domain="off-policy", quantity="unstable")
        pairs = []
        for reading in ("sample", "state", "moments", "printed"):
            plain, mended = (
                table.filter(method=f"{name} {reading}")["value"].to_numpy()
                for name in ("O2TD", "GTD2 omega")
            )
            if len(plain) and len(mended):
                pairs.append(f"{reading} {percent(plain.mean())} → {percent(mended.mean())}")
        if pairs:
            yield (
                f"Where its limit is wanted, take GTD2 with omega emphasis, which has the same limit;"
                f" unstable shares fall from O²TD to it as {', '.join(pairs)}."
                if _mends(results)
                else f"GTD2 with omega emphasis has the same limit; unstable shares, O²TD → GTD2:"
                f" {', '.join(pairs)}."
            )


def _mends(results: Results) -> bool:
    table = results.study("stability").filter(domain="off-policy", quantity="unstable")
    readings = ("sample", "state", "moments", "printed")
    means = [
        [table.filter(method=f"{name} {r}")["value"].to_numpy().mean() for r in readings]
        for name in ("O2TD", "GTD2 omega")
    ]
    return all(b <= a for a, b in zip(*means, strict=True)) and sum(means[1]) < sum(means[0])
