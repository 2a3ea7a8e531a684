"""``o2td run SPEC.toml``: compute what the store lacks, then print and draw the results."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2td import terminal
from o2td.documents import finite
from o2td.errors import MissingExtraError

if TYPE_CHECKING:
    from o2td.experiments.loading import Results
    from o2td.experiments.running import RunReport

INTERRUPTED = 130


def command(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="The experiment.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results. [default: results/NAME]")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes. [default: all cores]")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Compute on this Dask scheduler's workers."),
    ] = None,
    profile: Annotated[str | None, typer.Option(help="Use a profile of the spec.")] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune", help="Tune as the spec says, then run each algorithm at its best setting."
        ),
    ] = False,
    page: Annotated[
        bool, typer.Option(help="Write DIR/report.html and DIR/figures from the results.")
    ] = True,
    progress: Annotated[
        bool | None, typer.Option(help="Show a progress bar, on a terminal by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the experiment that a TOML file describes.

    What is finished is kept: after an interruption the same command continues. The page
    DIR/report.html shows learning curves, sensitivity curves and the numbers. Exit code 0: all runs
    are there; 1: some failed three times; 2: the spec, the folder or the cluster cannot be used;
    130: interrupted.
    """
    from o2td.experiments.spec import load_spec

    chosen = load_spec(spec).profile(profile)
    folder = out if out is not None else Path("results") / chosen.name
    options: dict[str, Any] = {"workers": workers, "dask": dask, "progress": progress}
    try:
        reports = _compute(chosen, folder, tune, options)
        found = _load(folder, reports)
        drawn = _draw(found, progress) if page and found is not None else None
    except KeyboardInterrupt:
        print(
            f"o2td: interrupted; run the same command again to continue in {folder}",
            file=sys.stderr,
        )
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print(json.dumps(_document(chosen.name, found, reports, drawn, folder), indent=2))
    else:
        _show(folder, found, reports)
        if drawn is not None:
            print(f"page in {drawn}")
    if not all(report.complete for report in reports):
        raise typer.Exit(1)


def _compute(spec: Any, folder: Path, tuned: bool, options: dict[str, Any]) -> list[RunReport]:
    from o2td.experiments.running import run
    from o2td.experiments.tuning import tune, tuning_shards

    if tuned:
        tuning_shards(spec)  # refuse a spec that cannot be tuned before anything is computed
    reports = [run(spec, folder, **options)]
    if tuned:
        result = tune(spec, folder, **options)
        reports += [result.tried, *([result.shown] if result.shown is not None else [])]
    return reports


def _load(folder: Path, reports: list[RunReport]) -> Results | None:
    """The results in the folder, read once for the table and the page; None if all failed."""
    from o2td.experiments.loading import load

    return load(folder) if any(report.stored for report in reports) else None


def _draw(found: Results, progress: bool | None) -> Path | None:
    """Write the page of all results in the folder; None, with a message, if that is impossible."""
    if sys.stderr.isatty() if progress is None else progress:
        print("drawing the figures and writing the page", file=sys.stderr)
    try:
        return found.report(found.path / "report.html", found.path / "figures")
    except MissingExtraError as error:
        print(f"o2td: no page: {error}", file=sys.stderr)
        return None


def _document(
    name: str, found: Results | None, reports: list[RunReport], page: Path | None, folder: Path
) -> dict[str, Any]:
    """One object for machines; an infinite number is written as null."""
    return {
        "experiment": name,
        "store": str(folder),
        "complete": all(report.complete for report in reports),
        "parts": [
            {
                "experiment": report.experiment,
                "shards": report.planned,
                "found": report.found,
                "computed": report.computed,
                "damaged": report.damaged,
                "failed": [{"id": f.id, "error": f.error} for f in report.failed],
                "seconds": round(report.seconds, 3),
            }
            for report in reports
        ],
        "final": _final(found, reports),
        "page": None if page is None else str(page),
    }


def _final(found: Results | None, reports: list[RunReport]) -> list[dict[str, Any]]:
    """The last error of every setting that was run, mean and interval."""
    rows: list[dict[str, Any]] = []
    for report in reports:
        name, _, way = report.experiment.partition(":")
        if found is None or way == "tuning" or not report.stored:
            continue
        for row in found.totals(name, way or "shown").iter_rows(named=True):
            row["parameters"] = json.loads(row["parameters"])
            rows.append(finite({k: v for k, v in row.items() if k != "series"}))
    return rows


def _show(folder: Path, found: Results | None, reports: list[RunReport]) -> None:
    console = terminal.console()
    for title, rows in _grouped(_final(found, reports), "experiment", "domain", "scheme"):
        console.print(_table(title, rows))
    for report in reports:
        for sentence in report.damaged:
            print(f"o2td: {sentence} (done)", file=sys.stderr)
        for failure in report.failed:
            print(
                f"o2td: {report.experiment}: failed three times: {failure.error}", file=sys.stderr
            )
        console.print(
            f"{report.experiment}: {report.computed} computed, {report.found} found,"
            f" {len(report.failed)} failed of {report.planned} shards, {report.seconds:.1f} s"
        )
    console.print(f"results in {folder}")


def _grouped(rows: list[dict[str, Any]], *names: str) -> list[tuple[str, list[dict[str, Any]]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(" · ".join(str(row[name]) for name in names), []).append(row)
    return list(groups.items())


def _table(title: str, rows: list[dict[str, Any]]) -> Any:
    """One line per algorithm and setting, one column per metric."""
    from rich.table import Table

    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    table = Table(title=f"{title}, final error", caption=_truth(rows))
    table.add_column("algorithm", overflow="fold")
    for name in (*metrics, "diverged"):
        table.add_column(name, justify="right")
    for _, cells in _grouped(rows, "algorithm", "parameters"):
        settings = ", ".join(f"{k}={_brief(v)}" for k, v in cells[0]["parameters"].items())
        share, runs = cells[0]["diverged_share"], cells[0]["runs"]
        table.add_row(
            f"{cells[0]['algorithm']}({settings})",
            *(_interval(row) for row in cells),
            f"{share:.0%} of {runs}",
        )
    return table


def _truth(rows: list[dict[str, Any]]) -> str | None:
    """How well the true values are known, if they come from roll-outs."""
    sizes = [row["truth_error"] for row in rows if row["truth_error"] is not None]
    return f"true values are roll-outs, standard error {max(sizes):.3g}" if sizes else None


def _interval(row: dict[str, Any]) -> str:
    """Mean and interval of an error, which is never below 0; None is infinite."""
    mean, high = ("∞" if row[k] is None else f"{row[k]:.3g}" for k in ("mean", "high"))
    low = mean if row["mean"] is None else f"{max(row['low'] or 0.0, 0.0):.3g}"
    return f"{mean} [{low}, {high}]"


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return "{:g}·t^-{:g}".format(*value["power"])
    return f"{value:.4g}" if isinstance(value, float) else str(value)
