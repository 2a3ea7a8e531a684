"""The paper's experiments as sections of the page: figures and tables, with a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from o2td.errors import import_extra
from o2td.experiments.loading import Results
from o2td.paper.charts import draw_oblique
from o2td.paper.claims.sotd import SIZES, SOURCE, sotd_ratios
from o2td.report.curves import METRICS, Panel, draw_columns
from o2td.report.drawing import Folder
from o2td.report.experiment import Wording, runs_and_steps, section
from o2td.report.page import Block, Details, Picture, Section, SideBySide, Table, Text
from o2td.report.statistics import mean, number
from o2td.report.style import pretty

if TYPE_CHECKING:
    import polars as pl


def oblique(results: Results, folder: Folder) -> Section:
    """The geometry: span of the features, V, and where each method lands."""
    table = results.study("geometry")
    rows = table.filter(quantity="coordinate").sort("index")
    points = {
        method: rows.filter(method=method)["value"].to_numpy()
        for method in rows["method"].unique(maintain_order=True).to_list()
    }
    visits = table.filter(quantity="visits").sort("index")["value"].to_numpy()
    basis = np.stack([points.pop("feature 1"), points.pop("feature 2")], axis=1)
    pictures = draw_oblique(folder, "fig-oblique", points, basis, visits)
    folder.table(table.filter(quantity="coordinate"), "fig-oblique")
    value, best = points["V"], points["v* (best)"]
    least = float(np.sqrt(visits @ (value - best) ** 2))
    body = [
        [pretty(name), *(number(float(x)) for x in point), number(error), number(error / least)]
        for name, point in points.items()
        if name != "V"
        for error in [float(np.sqrt(visits @ (value - point) ** 2))]
    ]
    files = folder.files("fig-oblique", "png", "svg", "csv")
    columns = ["method", "state 1", "state 2", "state 3", "RMSE", "over the least"]
    return Section("fig-oblique", "Geometry of a three-state problem").add(
        Text(
            "A real problem with three states and two features, solved exactly. Each method lands"
            " where it projects the true value V onto the plane of the features; the best point v*"
            " is V's weighted orthogonal projection, the others are oblique ones."
        ),
        SideBySide(
            [
                Picture(
                    pictures[0], "V above the plane of the features, and its projections", "", files
                ),
                Picture(
                    pictures[1],
                    "The same points in the plane, with circles of equal error around the best",
                    "Circles: error as a multiple of the least possible.",
                ),
            ]
        ),
        Table(columns, body, "Values of the three states", columns[1:]),
    )


def sotd(results: Results, folder: Folder) -> Section:
    """SOTD against LSTD by sample size, and the three ratios with both weightings."""
    made = Section("fig-sotd", "SOTD and LSTD on random MDPs")
    if results.has("fig-sotd"):
        squared = _squared(results.runs("fig-sotd"))
        folder.table(squared, "fig-sotd")
        about = results.about("fig-sotd")
        made.add(
            Text(
                f"Mean square errors of {about['runs']} random MDPs with 400 states and 201 features"
                f" (seed {about['seed']}), each at the first n rows of its own stream. Bands are 95 %"
                " intervals over MDPs."
            )
        )
        panels = [
            Panel(METRICS[metric], squared.filter(metric=metric), "n")
            for metric in ("mse", "mspbe")
        ]
        files = folder.files("fig-sotd", "png", "svg", "csv")
        pictures = _sotd_pictures(folder, squared)
        made.add(
            SideBySide(
                [
                    Picture(data, f"{panel.title} against rows, log axes", "", files)
                    for data, panel in zip(pictures, panels, strict=True)
                ]
            )
        )
        made.add(Details("Numbers", [_by_size(squared, metric) for metric in ("mse", "mspbe")]))
    if results.has("tab-sotd"):
        made.add(*_sotd_table(results, folder))
    return made


def _squared(table: pl.DataFrame) -> pl.DataFrame:
    """Means of squared errors with intervals over runs."""
    polars = import_extra("polars", extra="experiments")
    rows = []
    names = {"rmse": "mse", "rmspbe": "mspbe"}
    keys = ["algorithm", "parameters", "metric", "step"]
    for (algorithm, parameters, metric, step), own in table.group_by(keys, maintain_order=True):
        square = mean(own["value"].to_numpy() ** 2)
        rows.append(
            {
                "algorithm": algorithm,
                "parameters": parameters,
                "metric": names[str(metric)],
                "step": step,
                "runs": len(own),
                "mean": square.value,
                "low": square.low,
                "high": square.high,
            }
        )
    made: pl.DataFrame = polars.DataFrame(rows)
    return made


def _sotd_pictures(folder: Folder, squared: pl.DataFrame) -> list[bytes]:
    panels = [
        Panel(METRICS[metric], squared.filter(metric=metric), "n") for metric in ("mse", "mspbe")
    ]
    return draw_columns(folder, "fig-sotd", panels, log_x=True)


def _by_size(squared: pl.DataFrame, metric: str) -> Table:
    own = squared.filter(metric=metric)
    algorithms = own["algorithm"].unique(maintain_order=True).to_list()
    rows = []
    for size in sorted(own["step"].unique().to_list()):
        cells = [str(size)]
        for algorithm in algorithms:
            row = own.filter(algorithm=algorithm, step=size).row(0, named=True)
            cells.append(f"{number(row['mean'])} [{number(row['low'])}, {number(row['high'])}]")
        rows.append(cells)
    columns = ["n", *(pretty(a) for a in algorithms)]
    return Table(columns, rows, f"{METRICS[metric]}, mean and 95 % interval", columns)


def _sotd_table(results: Results, folder: Folder) -> list[Block]:
    ratios = sotd_ratios(results)
    about = results.about("tab-sotd")
    squared = _squared(results.runs("tab-sotd").filter(metric="rmse"))
    folder.table(squared, "tab-sotd")
    columns = ["n", "LSTD, MSE", "SOTD normalised, MSE", "SOTD as printed, MSE"]
    columns += ["ratio normalised", "ratio as printed", "ratio in the paper's source"]
    rows = []
    for k, size in enumerate(SIZES):
        errors = [
            squared.filter(algorithm=algorithm, step=size).row(0, named=True)["mean"]
            for algorithm in ("LSTD", "SOTD normalized", "SOTD ordinary")
        ]
        rows.append(
            [
                str(size),
                *(number(error) for error in errors),
                str(ratios["normalized"][k]),
                str(ratios["ordinary"][k]),
                f"{SOURCE[k]:.2f}",
            ]
        )
    return [
        Table(
            columns,
            rows,
            f"Mean square errors and their ratios over {about['runs']} random MDPs (seed"
            f" {about['seed']}), with 95 % bootstrap intervals over MDPs",
            columns,
        ),
        Text(
            "The last column is from a table that the paper's source has commented out"
            " (LSTD 0.143, 0.079, 0.033; SOTD 0.096, 0.062, 0.026)."
        ),
    ]


PRINTED = Wording(
    shown="Printed step sizes",
    tuned="Tuned step sizes",
    short="printed",
    settings="step sizes",
    every=False,
    leave_out=(
        *("GTD", "TDC", "HTD", "GTD2MP", "TDCMP"),
        *("VTrace(0.9)", "TreeBackup(0.9)", "ABTD", "ETD(0.9)"),
    ),
    parameters=("step_size",),
    notes="Where step sizes come from",
    best_first=False,
)


def learning(results: Results, folder: Folder, name: str, lead: str) -> Section:
    """Learning curves of every case of an experiment, as printed and tuned, with sensitivity."""
    return section(results.experiment(name), folder, lead, PRINTED)


def table_boyan(results: Results, folder: Folder) -> Section:
    """The Boyan table that the paper's source has with question marks for numbers."""
    table, about = results.curves("tab-boyan"), results.about("tab-boyan")
    folder.table(table, "tab-boyan")
    columns = ["rows", "method", "‖θ−θ*‖∞", "‖θ−θ*‖₂", "RMSPBE", "RMSE"]
    rows = []
    for n in sorted(table["step"].unique().to_list()):
        for algorithm in table["algorithm"].unique(maintain_order=True).to_list():
            own = table.filter(step=n, algorithm=algorithm)
            cells = [f"{n:,}", pretty(algorithm)]
            for metric in ("theta_max", "theta_norm", "rmspbe", "rmse"):
                row = own.filter(metric=metric).row(0, named=True)
                cells.append(f"{number(row['mean'])} [{number(row['low'])}, {number(row['high'])}]")
            rows.append(cells)
    return Section("tab-boyan", "Boyan chain").add(
        Text(
            f"The table that the paper's source has with question marks for numbers: 14 states,"
            f" discount 0.95, on-policy. {runs_and_steps(about)}. MSE and MSPBE are the squares of the"
            " last two."
        ),
        Table(columns, rows, "Mean and 95 % interval over runs", [columns[0], *columns[2:]]),
    )
