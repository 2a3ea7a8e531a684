"""Near-optimal without tuning: the results of that study, row by row.

Errors are means of logarithms over a family's problems, then over families: each family counts once.
An error below a thousandth of the error of predicting 0 counts as that thousandth, whoever makes it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from o2td.arrays import Floats
from o2td.experiments.loading import Results
from o2td.paper.studies.families import FRESH, LATER, SETTLED, TEXTBOOK
from o2td.paper.studies.near_optimal import RECORDS
from o2td.report.drawing import Folder
from o2td.report.page import Section, Table, Text
from o2td.report.statistics import number
from o2td.report.style import pretty

if TYPE_CHECKING:
    import polars as pl

OURS, CHOSEN = "ARCTD", "LSTD auto"
FIXED = ("LSTD 0.0", "LSTD 0.5", "LSTD 0.9")
LEAST, WORST = 1.0, 1e6  # what errors count at least, and those of a lane that diverged


class ErrorLine(NamedTuple):
    """One line: what it is, and its error at each number of rows."""

    what: str
    error: Floats
    by_family: dict[str, Floats]


def standings(
    table: pl.DataFrame, some: Collection[str] = SETTLED, least: float = LEAST
) -> list[ErrorLine]:
    """ARCTD untuned, then other learners by degree of hindsight, on these families.

    Errors count as at least `least`; with 0, as they are.
    """
    errors, families = _among(table, some, least)
    tuned = {(m, q) for _, m, q in errors if q.startswith("step")}
    methods = sorted({method for method, _ in tuned})
    sizes = sorted({size for _, size in tuned})

    def fixed(method: str, quantity: str) -> dict[str, Floats]:
        return {f: errors[f, method, quantity] for f in families}

    def by_family(method: str) -> dict[str, Floats]:
        return {
            f: min((errors[f, method, q] for q in sizes), key=lambda e: float(e.mean()))
            for f in families
        }

    default = min(methods, key=lambda m: _overall(fixed(m, "default")))
    one = min(((m, q) for m in methods for q in sizes), key=lambda key: _overall(fixed(*key)))
    each = min(methods, key=lambda m: _overall(by_family(m)))
    everywhere = {
        f: np.min([errors[f, m, q] for m in methods for q in sizes], axis=0) for f in families
    }
    return [
        _line(fixed(OURS, "default"), "ARCTD(), untuned"),
        _line(fixed(default, "default"), f"best of the others untuned: {default}"),
        _line(fixed(*one), f"best single method and {one[1]} for all families: {one[0]}"),
        _line(
            by_family(each), f"best single method, one step size per family in hindsight: {each}"
        ),
        _line(everywhere, "best method and step size for every family and n in hindsight"),
    ]


def solver_standings(
    table: pl.DataFrame, some: Collection[str] = SETTLED, least: float = LEAST
) -> list[ErrorLine]:
    """LSTD that chooses, then LSTD with the best fixed trace, on these families."""
    errors, families = _among(table, some, least)
    by_method = {m: {f: errors[f, m, "solver"] for f in families} for m in (CHOSEN, *FIXED)}
    best = min(FIXED, key=lambda m: _overall(by_method[m]))
    return [
        _line(by_method[CHOSEN], 'LSTD(trace="auto")'),
        _line(by_method[best], f"best fixed trace: {best}"),
    ]


def _among(
    table: pl.DataFrame, some: Collection[str], least: float
) -> tuple[dict[tuple[str, str, str], Floats], list[str]]:
    errors = {key: logs for key, logs in _errors(table, least).items() if key[0] in some}
    return errors, list(dict.fromkeys(key[0] for key in errors))


def _line(pick: dict[str, Floats], what: str) -> ErrorLine:
    families = {family: np.exp(values) for family, values in pick.items()}
    return ErrorLine(what, np.exp(np.mean(list(pick.values()), axis=0)), families)


def _overall(pick: dict[str, Floats]) -> float:
    return float(np.mean(list(pick.values())))


def advice(lines: list[ErrorLine]) -> list[str]:
    """What to use if nothing is tuned, a stream and a batch: by the standings of both."""
    arctd, default, _, family, _, chosen, fixed = lines
    learners = sorted((("ARCTD", arctd), (_named(default), default)), key=lambda one: _mean(one[1]))
    solvers = sorted(
        (('LSTD(trace="auto")', chosen), (_named(fixed), fixed)), key=lambda one: _mean(one[1])
    )
    (learner, best), (next_learner, second) = learners
    (solver, least), (next_solver, last) = solvers
    return [
        f"If nothing is tuned, use {learner} for a stream. Over {len(arctd.by_family)} families of"
        f" problems it has {_over(best, second)} times the error of {next_learner}, the next best"
        f" learner at its defaults. ARCTD has {_over(arctd, family)} times the error of"
        f" {_named(family)} with the step size that suits each family best in hindsight.",
        f"For a batch with features only, use {solver}: {_over(least, last)} times the error of"
        f" {next_solver}.",
    ]


def said(what: str) -> str:
    """A line's name for readers.

    >>> said("best single method and step 2^-4 for all families: ABTD 0.5")
    'best single method and step 1/16 for all families: ABTD(ζ = 0.5)'
    """
    words, colon, method = what.rpartition(": ")
    if not colon:
        return what
    words = re.sub(r"2\^-(\d+)", lambda found: f"1/{2 ** int(found[1])}", words)
    return f"{words}: {with_trace(method)}"


def with_trace(method: str) -> str:
    """A method of the study for readers.

    >>> with_trace("TDRC 0"), with_trace("TD 0.9")
    ('TDRC(λ = 0)', 'TD(λ = 0.9)')
    """
    return pretty(re.sub(" 0$", " 0.0", method)).replace("0.0)", "0)")


def _named(line: ErrorLine) -> str:
    return with_trace(line.what.rpartition(": ")[2])


def _mean(line: ErrorLine) -> float:
    return float(np.mean(np.log(line.error)))


def _over(one: ErrorLine, other: ErrorLine) -> str:
    return number(float(np.exp(_mean(one) - _mean(other))))


class There(NamedTuple):
    """ARCTD over the best method tuned for one family, for all numbers of rows."""

    learner: float
    best: str


def there(table: pl.DataFrame, least: float = LEAST) -> dict[str, There]:
    """By family: ARCTD over the best method and step size."""
    made = {}
    for family, means in _means(table, least).items():
        tuned = {key: value for key, value in means.items() if key[1].startswith("step")}
        best = min(tuned, key=lambda key: tuned[key])
        made[family] = There(float(np.exp(means[OURS, "default"] - tuned[best])), best[0])
    return made


def solver_there(table: pl.DataFrame, least: float = LEAST) -> dict[str, float]:
    """By family: LSTD that chooses over the best fixed one there."""
    return {
        family: float(
            np.exp(means[CHOSEN, "solver"] - min(means[name, "solver"] for name in FIXED))
        )
        for family, means in _means(table, least).items()
    }


def _means(table: pl.DataFrame, least: float) -> dict[str, dict[tuple[str, str], float]]:
    """By family, method and quantity: the mean logarithm over problems and numbers of rows."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    for (family, method, quantity), logs in _errors(table, least).items():
        found.setdefault(family, {})[method, quantity] = float(logs.mean())
    return found


def foresight(table: pl.DataFrame, some: Collection[str] = SETTLED) -> Floats:
    """The best method and step size for each n, chosen on a family's other problems: its errors.

    Hindsight takes the least of some four hundred noisy errors, and so part of it is luck; what is
    chosen on other problems is what somebody could have chosen.
    """
    by_family: dict[str, list[Floats]] = {}
    for (family, _, quantity), logs in _logs(table, LEAST).items():
        if quantity.startswith("step") and family in some:
            by_family.setdefault(family, []).append(logs)
    found = []
    for lanes in map(np.array, by_family.values()):  # (lanes, problems, numbers of rows)
        others = lanes.sum(axis=1, keepdims=True) - lanes
        pick = np.argmin(others, axis=0)[None]
        found.append(np.take_along_axis(lanes, pick, axis=0)[0].mean(axis=0))
    return np.asarray(np.exp(np.mean(found, axis=0)))


def _logs(table: pl.DataFrame, least: float) -> dict[tuple[str, str, str], Floats]:
    """Logarithms of errors, (problems, numbers of rows)."""
    found: dict[tuple[str, str, str], dict[float, list[float]]] = {}
    columns = (table[name].to_list() for name in ("domain", "method", "quantity", "x", "value"))
    for family, method, quantity, n, value in zip(*columns, strict=True):
        at = found.setdefault((str(family), str(method), str(quantity)), {})
        at.setdefault(float(n), []).append(np.log(min(max(value, least), WORST)))
    return {key: np.array([at[n] for n in RECORDS]).T for key, at in found.items()}


def _errors(table: pl.DataFrame, least: float) -> dict[tuple[str, str, str], Floats]:
    """Mean logarithm over a family's problems at each number of rows."""
    return {key: logs.mean(axis=0) for key, logs in _logs(table, least).items()}


def near_optimal(results: Results, folder: Folder) -> Section:
    """Ours compared with the field at four degrees of hindsight."""
    table, solved = (results.study(name) for name in ("near_optimal", "near_solvers"))
    folder.table(table, "near-optimal")
    folder.table(solved, "near-optimal-solvers")
    lines = standings(table)
    columns = ["", *(f"{n:,}" for n in RECORDS)]

    def both(some: Collection[str]) -> Table:
        found = [*standings(table, some), *solver_standings(solved, some)]
        rows = [[said(line.what), *(number(float(e)) for e in line.error)] for line in found]
        return Table(columns, rows, "", columns[1:])

    ours, field = lines[0], lines[3]
    families = [
        [
            f,
            *(
                number(float(a / b))
                for a, b in zip(ours.by_family[f], field.by_family[f], strict=True)
            ),
        ]
        for f in ours.by_family
    ]
    problems = table["index"].n_unique()
    return Section("near-optimal", "Near-optimal without tuning").add(
        Text(
            "RMSE over that of the best approximation after so many rows, geometric mean over"
            f" {len(ours.by_family)} families of {problems} problem{'s' * (problems > 1)} each. 1 is"
            " the best that the features allow. Errors below a thousandth of the error of predicting 0"
            " count as that thousandth, which takes the place of the best error where the features"
            " can express every value. Solvers ran on other problems of the families than learners."
        ),
        both(SETTLED),
        Text(f"On families from textbooks, reported before: {', '.join(TEXTBOOK)}."),
        both(TEXTBOOK),
        Text(f"On families of which ARCTD's design knew nothing: {', '.join(FRESH)}."),
        both(FRESH),
        Text(f"On families that settled neither ARCTD nor LSTD's choice: {', '.join(LATER)}."),
        both(LATER),
        Text(
            f"ARCTD's error over that of {_named(field)} with the step size that suits the family best"
            " in hindsight. Below 1, ARCTD is ahead."
        ),
        Table(["family", *columns[1:]], families, "", columns[1:]),
    )
