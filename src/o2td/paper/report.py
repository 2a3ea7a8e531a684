"""The report: claims first, then every experiment, then how it was made; from the store alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from o2td.atomic import write_bytes, writing
from o2td.errors import InputError
from o2td.experiments.loading import Results
from o2td.experiments.record import read_record
from o2td.experiments.store import Store
from o2td.paper import beyond, board, comparisons, near, sections
from o2td.paper.claims import (
    DEPENDS,
    NOT,
    REPRODUCED,
    UNDECIDED,
    Claim,
    Numbers,
    Verdict,
    judge_all,
)
from o2td.paper.guide import guide
from o2td.paper.reproduction import RECORD
from o2td.report.drawing import Folder, styled
from o2td.report.page import Badge, Cell, Details, Page, Section, Table, Text

_TONES = {REPRODUCED: "good", NOT: "bad", DEPENDS: "mixed", UNDECIDED: "mixed"}
_LEADS = {
    "fig-baird": "Baird's counterexample in both forms, every reading of ω.",
    "fig-random-seq": "One 400-state random MDP, many streams. Its V is nearly constant, so RMSE here"
    " measures mostly how fast a constant is learned.",
    "fig-random-iid": "The same MDP with states drawn independently. With every row a start ETD is"
    " TD(0); “carried” lets its trace run on across rows.",
    "fig-car-seq": "Mountain car, on-policy, rows in order. Discount 0.95, order 3 and η = 1 are ours:"
    " the paper does not print them.",
    "fig-car-iid": "The same rows shuffled.",
    "fig-energy": "Announced in the paper's source and never shown: buy, hold or sell with a battery,"
    " off-policy. No step size is printed, so all are tuned.",
}


@dataclass(frozen=True)
class ReproductionReport:
    """Where the page is, its verdict on each claim, and the figures that were drawn.

    Parameters
    ----------
    path : Path
        The page.
    claims : list of dict
        What it says of each claim.
    figures : list of str
        Names of the figures that were drawn.
    seconds : float
        How long that took.
    """

    path: Path
    claims: list[dict[str, Any]]
    figures: list[str]
    seconds: float


def load(folder: str | os.PathLike[str]) -> Results:
    """The results in a folder that :func:`reproduce` has filled.

    Parameters
    ----------
    folder : str or path
        The folder of the reproduction.
    """
    store = Store(folder)
    if not (store.path / RECORD).exists():
        raise InputError(f"{store.path}: no reproduction there; run o2td reproduce first")
    return Results(store, read_record(store.path / RECORD))


def build(folder: str | os.PathLike[str]) -> ReproductionReport:
    """Make `report.html` and `figures/` in a folder that :func:`reproduce` filled.

    Nothing is run: every number comes from the files there.
    """
    began = time.perf_counter()
    results = load(folder)
    figures = Folder(results.path / "figures")
    judged = judge_all(results)
    with styled():
        parts = [make() for make in _sections(results, figures)]
    page = Page(
        "O²TD, reproduced and judged",
        "Every experiment of “O²TD: (Near)-Optimal Off-Policy TD Learning” (Liu, Lyu, Dong, Biaz),"
        " run again, and each of its claims with what was measured.",
        [_claims(judged), guide(results), *parts, _made(results)],
        "Numbers in brackets are 95 % intervals. The figures' numbers are in figures/*.csv, all runs in"
        " runs/*.parquet.",
    )
    path = results.path / "report.html"
    made = page.html().encode()
    with writing(path):
        write_bytes(path, made)
    return ReproductionReport(
        path,
        [claim.row(verdict) for claim, verdict in judged],
        sorted(figures.names),
        time.perf_counter() - began,
    )


def _sections(results: Results, folder: Folder) -> list[Callable[[], Section]]:
    """The sections whose experiments are available: the paper's in its order, then others."""
    found: list[tuple[tuple[str, ...], Callable[[], Section]]] = [
        (("geometry",), lambda: sections.oblique(results, folder)),
        (("fig-sotd", "tab-sotd"), lambda: sections.sotd(results, folder)),
        *(
            ((name,), lambda name=name, lead=lead: sections.learning(results, folder, name, lead))
            for name, lead in _LEADS.items()
        ),
        (("tab-boyan",), lambda: sections.table_boyan(results, folder)),
        (("theory", "cost"), lambda: beyond.theory(results, folder)),
        (("nearness",), lambda: beyond.nearness(results, folder)),
        (("more-variance", "more-variance-batch"), lambda: comparisons.variance(results, folder)),
        (("stability",), lambda: beyond.stability(results, folder)),
        (("near_optimal", "near_solvers"), lambda: near.near_optimal(results, folder)),
        (("published", "more-collision"), lambda: comparisons.published(results, folder)),
        (("more-rooms",), lambda: comparisons.rooms(results, folder)),
        (("more-car",), lambda: comparisons.discounts(results, folder)),
        (("board-garnet",), lambda: board.leaderboard(results, folder)),
    ]
    return [make for names, make in found if all(results.has(name) for name in names)]


def _claims(judged: list[tuple[Claim, Verdict]]) -> Section:
    columns = ["", "claim", "verdict", "measured [95 %]", "what it is", "why"]
    rows: list[list[Cell]] = [
        [
            str(claim.id),
            claim.claim,
            Badge(verdict.verdict, _TONES[verdict.verdict]),
            str(verdict.found),
            verdict.quantity,
            verdict.why,
        ]
        for claim, verdict in judged
    ]
    counts = {tone: sum(v.verdict == tone for _, v in judged) for tone in _TONES}
    words = {DEPENDS: "depend on the reading"}
    summary = ", ".join(f"{count} {words.get(tone, tone)}" for tone, count in counts.items())
    numbers = [_numbers(claim, verdict.numbers) for claim, verdict in judged if verdict.numbers]
    return Section("claims", "The paper's claims").add(
        Text(
            f"Of {len(judged)} claims: {summary}. A claim is reproduced if it holds in every reading of"
            " the paper that was tried, not reproduced if in none."
        ),
        Table(columns, rows, "", stack=True, anchor="claims-table"),
        *([Details("Numbers behind the verdicts", numbers)] if numbers else []),
    )


def _numbers(claim: Claim, found: Numbers) -> Table:
    caption = f"Claim {claim.id}. {found.caption}"
    return Table(found.columns, found.rows, caption, found.columns[1:])


def _made(results: Results) -> Section:
    record = results.record
    versions = [[name, str(version)] for name, version in record["versions"].items()]
    calls = [
        [
            str(call["profile"]),
            f"{call['seconds']:.0f} s",
            str(call["computed"]),
            str(call["found"]),
        ]
        for call in record["calls"]
    ]
    seeds = [
        [
            name,
            str(about["runs"]),
            str(about["steps"]),
            str(about["seed"]),
            _seed(about["tuning_seed"]),
        ]
        for name, about in record["experiments"].items()
    ]
    seeds += [[name, "–", "–", str(seed), "–"] for name, seed in record["study_seeds"].items()]
    columns = ["experiment", "runs", "steps", "seed", "seed of tuning"]
    times = ["profile", "time taken", "pieces computed", "pieces found finished"]
    return Section("made", "How this was made").add(
        Text(f"Profile {record['profile']}, on {record['machine']}."),
        Table(times, calls, "Calls that filled this folder", times[1:]),
        Table(["package", "version"], versions, "Versions"),
        Table(columns, seeds, "Seeds: equal seeds and versions give equal bytes", columns[1:]),
    )


def _seed(seed: int | None) -> str:
    return "–" if seed is None else str(seed)
