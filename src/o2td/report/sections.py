"""The paper's experiments as sections of the page: figures, tables and a sentence to each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from o2td.errors import import_extra
from o2td.report.charts import draw_oblique
from o2td.report.claims.experiments import SIZES, SOURCE, sotd_ratios
from o2td.report.curves import (
    METRICS,
    Panel,
    at_the_edge,
    draw_columns,
    draw_sensitivity,
    final_rows,
)
from o2td.report.data import Results
from o2td.report.drawing import Folder
from o2td.report.page import Block, Columns, Details, Picture, Section, Table, Text
from o2td.report.statistics import mean, number
from o2td.report.style import pretty
from o2td.report.truth import sentence

if TYPE_CHECKING:
    import polars as pl

__all__ = ["learning", "oblique", "sotd", "table_boyan"]

_KEYS = ("experiment", "domain", "scheme")


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
        Columns(
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
    section = Section("fig-sotd", "SOTD and LSTD on random MDPs")
    if results.has("fig-sotd"):
        squared = _squared(results.runs("fig-sotd"))
        folder.table(squared, "fig-sotd")
        about = results.about("fig-sotd")
        section.add(
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
        section.add(
            Columns(
                [
                    Picture(data, f"{panel.title} against rows, log axes", "", files)
                    for data, panel in zip(pictures, panels, strict=True)
                ]
            )
        )
        section.add(Details("Numbers", [_by_size(squared, metric) for metric in ("mse", "mspbe")]))
    if results.has("tab-sotd"):
        section.add(*_sotd_table(results, folder))
    return section


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


def learning(results: Results, folder: Folder, name: str, lead: str) -> Section:
    """Learning curves of every case of an experiment, as printed and tuned, with sensitivity."""
    about = results.about(name)
    section = Section(name, about["title"])
    ways = [way for way in ("shown", "tuned") if about[way]]
    tables = {way: results.curves(name, way) for way in ways}
    known = sentence(results, name, tables[ways[0]])
    section.add(Text(f"{lead} {_how(about)} {known}".strip()))
    cases = _cases(tables[ways[0]])
    several = len(cases) > 1
    tried = results.sensitivity(name) if about["sensitivity"] else None
    # Side by side stand the two choices of step sizes; where there is one, the cases do.
    for group in [[case] for case in cases] if len(ways) > 1 else [cases]:
        label = name + (_suffix(group[0]) if len(ways) > 1 and several else "")
        pairs = [(case, way) for case in group for way in ways]
        own = {
            _TITLES[way] + _words(case, several): tables[way]
            .filter(domain=case["domain"], scheme=case["scheme"])
            .with_columns(import_extra("polars", "experiments").lit(_WAYS[way]).alias("step_sizes"))
            for case, way in pairs
        }
        section.add(*_side_by_side(folder, label, own, tried))
    if tried is not None:
        section.add(*_all_sensitivity(folder, name, cases, tried, several))
    notes = [f"{pretty(label)}: {note}" for label, note in about["notes"].items()]
    if notes:
        section.add(Text("Where step sizes come from. " + "; ".join(notes) + "."))
    return section


def _side_by_side(
    folder: Folder, label: str, own: dict[str, pl.DataFrame], tried: pl.DataFrame | None
) -> list[Block]:
    """The panels as pictures beside each other, and their last errors as tables."""
    polars = import_extra("polars", extra="experiments")
    panels = [Panel(title, _thinned(table)) for title, table in own.items()]
    pictures = draw_columns(folder, label, panels)
    folder.table(polars.concat(own.values()), label)
    files = folder.files(label, "png", "svg", "csv")
    shown = [
        Picture(data, f"Error along the run, {panel.title.lower()}", "", files)
        for data, panel in zip(pictures, panels, strict=True)
    ]
    columns = ["method", "step sizes", *(METRICS[m] for m in panels[0].metrics), "diverged runs"]
    tables = []
    for title, table in own.items():
        tuned = tried is not None and table["step_sizes"][0] == "tuned"
        edge = at_the_edge(_same_case(tried, table)) if tried is not None and tuned else set()
        words = f"{title}: error at the end, mean and 95 % interval over finite runs"
        tables.append(Table(columns, final_rows(Panel("", table), edge), words, columns[2:]))
    return [Columns(shown), Details(f"Numbers, {label}", tables)]


def _same_case(tried: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    return tried.filter(domain=table["domain"][0], scheme=table["scheme"][0])


def _all_sensitivity(
    folder: Folder, name: str, cases: list[dict[str, str]], tried: pl.DataFrame, several: bool
) -> list[Block]:
    """Error against step size, a picture a case, beside each other."""
    pictures: list[Block] = []
    for case in cases:
        label = f"{name}{_suffix(case) if several else ''}"
        own = tried.filter(domain=case["domain"], scheme=case["scheme"])
        pictures.append(sensitivity_picture(folder, label, own, _words(case, several)))
    return [Text(SENSITIVITY), Columns(pictures)]


SENSITIVITY = (
    "Tuning runs, on seeds of their own. A setting of which a run diverged has no error below,"
    " but its share of diverged runs above."
)


def sensitivity_picture(folder: Folder, label: str, tried: pl.DataFrame, words: str) -> Picture:
    """Error and share of diverged runs against step size; `words` end its title."""
    kept = set(tried["algorithm"].to_list())
    if len(kept) > _CROWDED:
        kept -= set(_LEFT_OUT)
    name = f"{label}-sensitivity"
    title = f"Sensitivity to the step size{words}"
    data = draw_sensitivity(folder, name, title, tried, kept.__contains__)
    folder.table(tried, name)
    files = folder.files(name, "png", "svg", "csv")
    return Picture(data, f"Diverged runs and error against step size, {name}", "", files)


_TITLES = {"shown": "Printed step sizes", "tuned": "Tuned step sizes"}
_CROWDED = 11
_LEFT_OUT = ("GTD", "TDC", "HTD", "GTD2MP", "TDCMP", "VTrace(0.9)", "TreeBackup(0.9)", "ABTD")


def _thinned(table: pl.DataFrame) -> pl.DataFrame:
    """Without the lines that make a crowded figure unreadable; the table keeps them."""
    if table["algorithm"].n_unique() <= _CROWDED:
        return table
    polars = import_extra("polars", extra="experiments")
    solvers = table.group_by("algorithm").agg(polars.col("step").n_unique()).filter(step=1)
    gone = [*_LEFT_OUT, *solvers["algorithm"].to_list()]
    thinned: pl.DataFrame = table.filter(~polars.col("algorithm").is_in(gone))
    return thinned


def table_boyan(results: Results, folder: Folder) -> Section:
    """The Boyan table that the paper's source has with question marks for numbers."""
    table, about = results.curves("tab-boyan"), results.about("tab-boyan")
    folder.table(table, "tab-boyan")
    columns = ["rows", "method", "‖θ−θ*‖∞", "‖θ−θ*‖₂", "RMSPBE", "RMSE"]
    rows = []
    for size in sorted(table["step"].unique().to_list()):
        for algorithm in table["algorithm"].unique(maintain_order=True).to_list():
            own = table.filter(step=size, algorithm=algorithm)
            cells = [str(size), pretty(algorithm)]
            for metric in ("theta_max", "theta_norm", "rmspbe", "rmse"):
                row = own.filter(metric=metric).row(0, named=True)
                cells.append(f"{number(row['mean'])} [{number(row['low'])}, {number(row['high'])}]")
            rows.append(cells)
    return Section("tab-boyan", "Boyan chain").add(
        Text(
            f"The table that the paper's source has with question marks for numbers: 14 states,"
            f" discount 0.95, on-policy. {_how(about)} MSE and MSPBE are the squares of the last two."
        ),
        Table(columns, rows, "Mean and 95 % interval over runs", [columns[0], *columns[2:]]),
    )


def _how(about: dict[str, Any]) -> str:
    tuned = f", tuned on seed {about['tuning_seed']}" if about["sensitivity"] else ""
    return (
        f"{about['runs']} runs of {about['steps']} steps, seed {about['seed']}{tuned}; bands and"
        " brackets are 95 % intervals over runs."
    )


def _cases(table: pl.DataFrame) -> list[dict[str, str]]:
    return [
        dict(row) for row in table.select("domain", "scheme").unique(maintain_order=True).to_dicts()
    ]


def _words(case: dict[str, str], several: bool) -> str:
    inside = case["domain"].partition("(")[2].rstrip(")")
    if inside.startswith("form="):
        inside = f"{inside.removeprefix('form=')} form"
    return f", {inside or _SCHEMES.get(case['scheme'], case['scheme'])}" if several else ""


def _suffix(case: dict[str, str]) -> str:
    text = case["domain"].partition("(")[2].rstrip(")") or case["scheme"]
    return "-" + "".join(c if c.isalnum() else "-" for c in text.rpartition("=")[2])


_SCHEMES = {"sequential": "rows in order", "iid": "rows shuffled"}
_WAYS = {"shown": "printed", "tuned": "tuned"}
