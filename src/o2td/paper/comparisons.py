"""Beyond the paper, by runs: bias against variance, published figures, Four Rooms, discounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from o2td.errors import LateModule, import_extra
from o2td.experiments.loading import Results
from o2td.report.curves import METRICS, Panel, draw_columns, final_rows
from o2td.report.drawing import Folder
from o2td.report.page import Badge, Cell, Details, Picture, Section, SideBySide, Table, Text
from o2td.report.ranking import without
from o2td.report.statistics import ValueInterval, mean, median, number, percent
from o2td.report.style import pretty
from o2td.report.truth_error import sentence

if TYPE_CHECKING:
    import polars as pl

polars = LateModule("polars", "experiments")

_LEFT_OUT = ("ETD beta 0.5",)  # methods left out of a crowded picture

COLLISION = {"TD": 0.326, "ETD": 0.125, "GTD2": 0.343, "TD lambda 0.9": 0.108}
LIMITS = {
    "best": 0.0713,
    "TD": 0.306,
    "TD lambda 0.9": 0.0744,
    "ETD": 0.111,
    "ETD lambda 0.9": 0.0753,
}
BAIRD = {
    ("first weights", "rmse"): 5.318432,
    ("first weights", "rmspbe"): 8.221408,
    ("ETD, weight 1", "theta"): 1.692308,
    ("ETD, weight 7", "theta"): 6.769231,
    ("ETD, weight 8", "theta"): -3.384615,
}
_LIMIT = {"best": "best approximation"}
_QUANTITIES = {"rmse": "RMSE", "rmspbe": "RMSPBE", "theta": "after 1000 sweeps"}
SURVEY_GTD2 = 1.634  # RMSE after 1000 steps, 200 runs


def variance(results: Results, folder: Folder) -> Section:
    """RMSE against samples where policies really differ: online and batch."""
    panels, tables, numbers = [], [], []
    for name, way, title, x in (
        ("more-variance", "tuned", "Online, tuned step sizes", "step"),
        ("more-variance-batch", "shown", "Batch", "n"),
    ):
        if results.has(name):
            table = _medians(results.runs(name, way))
            panels.append(Panel(title, without(table, _LEFT_OUT), x))
            folder.table(results.curves(name, way), name)
            numbers.append(folder.files(name, "csv"))
            columns = ["method", "step sizes", METRICS["rmse"], "diverged runs"]
            ends = final_rows(Panel(title, results.curves(name, way), x))
            tables.append(Table(columns, ends, f"{title}: mean error at the end", columns[2:]))
    pictures = draw_columns(folder, "variance", panels, log_x=True)
    about = results.about("more-variance")
    return Section("variance", "Bias against variance").add(
        Text(
            f"Garnets whose policies really differ, one per run, {about['runs']} runs. A method with a"
            " good limit may need many rows to come near it; learners are tuned for their error at"
            " the end. Curves are medians over runs with 95 % intervals, because one bad run can"
            " dominate a mean; the numbers below are means, and include ETD(β = 0.5)."
        ),
        SideBySide(
            [
                Picture(
                    data,
                    f"RMSE against rows, {panel.title}",
                    "",
                    [*folder.files("variance", "png", "svg"), *csv],
                )
                for data, panel, csv in zip(pictures, panels, numbers, strict=True)
            ]
        ),
        Details("Numbers", tables),
    )


def _medians(runs: pl.DataFrame) -> pl.DataFrame:
    """Medians over runs at every recorded step, in the columns of means."""
    keys = ["algorithm", "parameters", "metric", "step"]
    rows = []
    for key, own in runs.group_by(keys, maintain_order=True):
        found = median(own["value"].fill_nan(float("inf")).fill_null(float("inf")).to_numpy())
        gone = own["diverged"].drop_nulls()
        rows.append(
            {
                **dict(zip(keys, key, strict=True)),
                "runs": len(own),
                "mean": found.value,
                "low": found.low,
                "high": found.high,
                "diverged_runs": len(gone),
                "first_diverged": gone.min() if len(gone) else None,
            }
        )
    made: pl.DataFrame = polars.DataFrame(rows)
    return made


def published(results: Results, folder: Folder) -> Section:
    """Our numbers next to those that others have published."""
    section = Section("published", "Beside figures published by others")
    section.add(
        Text(
            "Each of our numbers with its 95 % interval, beside the published one. They agree if the"
            " difference is within twice the interval's half width (theirs has its own spread), or,"
            " for exact figures, within the digits printed."
        )
    )
    if results.has("more-collision"):
        section.add(_collision(results, folder))
    rows: list[list[Cell]] = []
    if results.has("published"):
        table = results.study("published")
        folder.table(table, "published")
        for method, figure in LIMITS.items():
            ours = mean(table.filter(domain="collision", method=method)["value"].to_numpy())
            rows.append(
                _beside(
                    f"Collision, {_LIMIT.get(method, f'limit of {pretty(method)}')}, exact RMSE",
                    ours,
                    figure,
                )
            )
        for (method, quantity), figure in BAIRD.items():
            value = float(
                table.filter(domain="baird", method=method, quantity=quantity)["value"][0]
            )
            ours = ValueInterval(value, value - 1e-6, value + 1e-6)
            rows.append(_beside(f"Baird star, {method}, {_QUANTITIES[quantity]}", ours, figure, 7))
    if results.has("fig-baird"):
        runs = results.runs("fig-baird")
        own = runs.filter(algorithm="GTD2", metric="rmse", step=1000)
        survey = own.filter(
            import_extra("polars", "experiments").col("domain").str.contains("survey")
        )
        if len(survey):
            ours = mean(survey["value"].to_numpy())
            rows.append(
                _beside("Baird survey form, GTD2, RMSE after 1000 steps", ours, SURVEY_GTD2)
            )
    columns = ["what", "here", "published", "agrees"]
    if rows:
        section.add(Table(columns, rows, "Other published figures", columns[1:3], stack=True))
    return section


def _collision(results: Results, folder: Folder) -> Table:
    scores = results.scores("more-collision", "shown", "area").filter(metric="rmse")
    folder.table(results.curves("more-collision"), "more-collision")
    rows: list[list[Cell]] = []
    for method in scores["algorithm"].unique(maintain_order=True).to_list():
        ours = mean(scores.filter(algorithm=method)["value"].to_numpy())
        if method in COLLISION:
            rows.append(_beside(pretty(method), ours, COLLISION[method]))
        else:
            rows.append([pretty(method), str(ours), "–", "not published"])
    about = results.about("more-collision")
    columns = ["method", "here", "published", "agrees"]
    return Table(
        columns,
        rows,
        f"Collision: RMSE, mean over a run of {about['steps']} steps and over"
        f" {about['runs']} runs, published step sizes",
        columns[1:3],
        stack=True,
    )


def _beside(what: str, ours: ValueInterval, figure: float, digits: int = 3) -> list[Cell]:
    agrees = abs(ours.value - figure) <= 2.0 * (ours.high - ours.value)
    exact = digits > 3
    shown = number(ours.value, digits) if exact else str(ours)
    return [
        what,
        shown,
        number(figure, digits),
        Badge("yes", "good") if agrees else Badge("no", "bad"),
    ]


def rooms(results: Results, folder: Folder) -> Section:
    """Four Rooms: the eight predictions together."""
    runs, about = results.runs("more-rooms"), results.about("more-rooms")
    keys = ["algorithm", "parameters", "metric", "step", "run"]
    together = runs.group_by(keys, maintain_order=True).agg(
        polars.col("value").mean(), polars.col("diverged").min()
    )
    rows = []
    for key, own in together.group_by(keys[:-1], maintain_order=True):
        error = mean(own["value"].to_numpy())
        gone = own["diverged"].drop_nulls()
        rows.append(
            {
                **dict(zip(keys[:-1], key, strict=True)),
                "runs": len(own),
                "mean": error.value,
                "low": error.low,
                "high": error.high,
                "diverged_runs": len(gone),
                "first_diverged": gone.min() if len(gone) else None,
            }
        )
    table = polars.DataFrame(rows)
    folder.table(table, "rooms")
    panel = Panel("Mean over the eight predictions", table)
    (picture,) = draw_columns(folder, "rooms", [panel])
    columns = ["method", "step sizes", METRICS["rmse"], "diverged runs"]
    return Section("rooms", "Four Rooms").add(
        Text(
            f"Eight predictions in the four rooms, {about['runs']} runs of {about['steps']} steps,"
            f" seed {about['seed']}; the error is the mean over the eight. Bands are 95 % intervals"
            " over runs."
        ),
        Picture(
            picture, "RMSE along the run", "", folder.files("rooms", "png", "svg", "csv"), "narrow"
        ),
        Details("Numbers", [Table(columns, final_rows(panel), "Error at the end", columns[2:])]),
    )


def discounts(results: Results, folder: Folder) -> Section:
    """Mountain car at four discounts, the printed step sizes."""
    table, about = results.totals("more-car", "shown", "area"), results.about("more-car")
    folder.table(table, "more-car")
    algorithms = table["algorithm"].unique(maintain_order=True).to_list()
    rows = []
    for domain in table["domain"].unique(maintain_order=True).to_list():
        discount = domain.partition("discount=")[2].partition(",")[0].rstrip(")")
        for metric in ("rmse", "rmspbe"):
            cells = [discount, METRICS[metric]]
            for algorithm in algorithms:
                row = table.filter(domain=domain, metric=metric, algorithm=algorithm).row(
                    0, named=True
                )
                gone = (
                    f", {percent(row['diverged_share'])} diverged" if row["diverged_share"] else ""
                )
                cells.append(
                    f"{number(row['mean'])} [{number(row['low'])}, {number(row['high'])}]{gone}"
                )
            rows.append(cells)
    columns = ["discount", "error", *(pretty(a) for a in algorithms)]
    return Section("more-car", "Mountain car at other discounts").add(
        Text(
            f"The paper does not print its discount. The printed step sizes at four of them,"
            f" {about['runs']} runs of {about['steps']} steps: mean error over the run."
            f" {sentence(table, results.truth('more-car'))}".rstrip()
        ),
        Table(columns, rows, "Mean and 95 % interval over finite runs", columns[2:]),
    )
