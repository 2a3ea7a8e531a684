"""The leaderboard: all learners, tuned the same way, and all solvers, on four domains."""

from __future__ import annotations

import numpy as np

from o2td.errors import import_extra
from o2td.experiments.loading import Results
from o2td.paper.charts import draw_dots
from o2td.paper.sections import PRINTED
from o2td.report.drawing import Folder
from o2td.report.experiment import SENSITIVITY, sensitivity_pictures
from o2td.report.page import Block, Details, Picture, Section, SideBySide, Table, Text
from o2td.report.statistics import ValueInterval, median, number, percent
from o2td.report.style import pretty, settings
from o2td.report.truth_error import noise

DOMAINS = {
    "garnet": "garnets",
    "collision": "Collision",
    "four-rooms": "Four Rooms",
    "mountain-car": "mountain car",
}


class BoardEntry(ValueInterval):
    """A median final error with its interval, mean, settings and diverged runs."""

    sizes: str
    average: float
    diverged: float


def standings(results: Results) -> dict[str, dict[str, BoardEntry]]:
    """Median final RMSE by domain and method; infinite if a run diverged."""
    found: dict[str, dict[str, BoardEntry]] = {}
    for domain, words in DOMAINS.items():
        for name, way in ((f"board-{domain}", "tuned"), (f"board-{domain}-batch", "shown")):
            if not results.has(name, way=way):
                continue
            scores = results.scores(name, way, "final")
            for row in results.totals(name, way, "final").iter_rows(named=True):
                own = scores.filter(algorithm=row["algorithm"], parameters=row["parameters"])
                whole = row["diverged_share"] == 0
                one = BoardEntry(*(median(own["value"].to_numpy()) if whole else 3 * [np.inf]))
                one.sizes, one.average = settings(row["parameters"]), row["mean"]
                one.diverged = row["diverged_share"]
                found.setdefault(words, {})[row["algorithm"]] = one
    return found


def relative(found: dict[str, dict[str, BoardEntry]]) -> dict[str, dict[str, float]]:
    """Error over the least in each domain, by method, including methods that lack a domain."""
    rows: dict[str, dict[str, float]] = {}
    for domain, board in found.items():
        least = min(standing.value for standing in board.values())
        for method, standing in board.items():
            rows.setdefault(method, {})[domain] = standing.value / least
    return rows


def truth_errors(results: Results) -> dict[str, float]:
    """The standard error of true values in domains where they are from roll-outs."""
    found: dict[str, float] = {}
    for domain, words in DOMAINS.items():
        for name, way in ((f"board-{domain}", "tuned"), (f"board-{domain}-batch", "shown")):
            size = noise(results.totals(name, way, "final")) if results.has(name, way=way) else None
            if size is not None:
                found[words] = max(size, found.get(words, 0.0))
    return found


def _known(errors: dict[str, float]) -> str:
    if not errors:
        return ""
    sizes = "; ".join(f"{domain} {number(size)}" for domain, size in errors.items())
    return (
        f" True values are exact, or from roll-outs with a standard error ({sizes}): an"
        " error near or below that cannot be told from zero."
    )


def leaderboard(results: Results, folder: Folder) -> Section:
    """The table, least ratio first, and its figure."""
    polars = import_extra("polars", extra="experiments")
    found = standings(results)
    rows = relative(found)
    order = sorted(rows, key=lambda m: float(np.mean(np.log([*rows[m].values()]))))
    finite = {m: {d: v for d, v in rows[m].items() if np.isfinite(v)} for m in order}
    picture = draw_dots(
        folder,
        "leaderboard",
        "Median final error over the least",
        "median RMSE / least on the domain (log axis, cut at 100)",
        {m: row for m, row in finite.items() if row},
    )
    folder.table(
        polars.DataFrame(
            [
                {
                    "domain": d,
                    "method": m,
                    "median": s.value,
                    "low": s.low,
                    "high": s.high,
                    "mean": s.average,
                    "settings": s.sizes,
                    "diverged_share": s.diverged,
                }
                for d, board in found.items()
                for m, s in board.items()
            ]
        ),
        "leaderboard",
    )
    body = [[pretty(m), _score(rows[m]), *(_cell(found[d].get(m)) for d in found)] for m in order]
    known = truth_errors(results)
    if known:
        body.append(["standard error of V", "–", *(number(known.get(d)) for d in found)])
    columns = ["method", "ratio", *found]
    name = next(n for n in (f"board-{d}" for d in DOMAINS) if results.has(n))
    about = results.about(name)
    return Section("leaderboard", "Leaderboard").add(
        Text(
            f"Every learner with its step size chosen from one grid on other seeds (least mean error"
            f" over the run), every solver that applies; {about['runs']} runs. The number is the RMSE"
            " after the last row, its median over runs. On garnets and Collision every run is another"
            " problem, and some go badly wrong: a mean far above the median, in the second table, shows"
            " for which method. The ratio is the geometric mean of the error over the least error in"
            " each domain: 1 would be the best everywhere. LSTDQ learns action values and Averager needs"
            " features that average, so neither is here. Methods that sum rows by state do not apply to"
            " mountain car; their ratio is over the other domains." + _known(known)
        ),
        Picture(
            picture,
            "Error over the least in each domain, by method",
            "",
            folder.files("leaderboard", "png", "svg", "csv"),
            "narrow",
        ),
        Table(
            columns,
            body,
            "RMSE at the end, median and 95 % interval",
            columns[1:],
        ),
        Details("Means and step sizes", [_chosen(found, order)]),
        *_sensitivity(results, folder),
    )


def _sensitivity(results: Results, folder: Folder) -> list[Block]:
    """How the learners of each domain depend on their step size."""
    pictures: list[Block] = [
        picture
        for name, words in ((f"board-{domain}", words) for domain, words in DOMAINS.items())
        if results.has(name, way="sensitivity")
        for picture in sensitivity_pictures(
            folder, name, results.sensitivity(name), f", {words}", PRINTED
        )
    ]
    return [Text(SENSITIVITY), SideBySide(pictures)] if pictures else []


def _chosen(found: dict[str, dict[str, BoardEntry]], order: list[str]) -> Table:
    def cell(standing: BoardEntry | None) -> str:
        if standing is None:
            return "–"
        return number(standing.average) + (f"; {standing.sizes}" if standing.sizes else "")

    rows = [[pretty(m), *(cell(found[d].get(m)) for d in found)] for m in order]
    words = "Mean over finite runs, and the step size chosen on the tuning seeds"
    return Table(["method", *found], rows, words, list(found))


def _score(row: dict[str, float]) -> str:
    return number(float(np.exp(np.mean(np.log([*row.values()])))))


def _cell(standing: BoardEntry | None) -> str:
    if standing is None:
        return "–"
    if standing.diverged:
        return f"{percent(standing.diverged)} diverged"
    return str(standing)
