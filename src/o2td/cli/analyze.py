"""`o2td analyze DOMAIN`: where each known method lands on a finite problem, and how far from best."""

from __future__ import annotations

import inspect
import io
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2td import terminal
from o2td.atomic import write_bytes, writing
from o2td.errors import InputError
from o2td.registry import DOMAINS

if TYPE_CHECKING:
    from o2td.exact import Landing
    from o2td.problem import Problem


def command(
    domain: Annotated[str, typer.Argument(help="Name of a domain: see o2td domains.")],
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="KEY=VALUE", help="A parameter of the domain."),
    ] = None,
    trace: Annotated[
        list[float] | None,
        typer.Option(
            help="A lambda for methods with traces; may be repeated. [default: 0 and 0.9]"
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the distances from the best to this file.")
    ] = None,
    interactive: Annotated[
        Path | None,
        typer.Option(help="Write an interactive page to this file: one HTML file, no network."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show each method's limit on a domain: its error, its stability, its distance from best."""
    # With a few hundred rows, threads would spend more time waiting than working.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    traces = trace or [0.0, 0.9]
    if any(not 0.0 <= value <= 1.0 for value in traces):
        raise InputError(f"--trace must be in [0, 1], got {', '.join(map(str, traces))}")
    if plot is not None and not plot.suffix and not plot.is_dir():
        plot = plot.with_name(f"{plot.name}.png")
    for option, path in (("--plot", plot), ("--interactive", interactive)):
        if path is None:
            continue
        if not path.parent.is_dir():
            raise InputError(f"{option} {path}: there is no folder {path.parent}; create it first")
        if path.is_dir():
            raise InputError(f"{option} {path}: is a folder; name a file in it")
    problem, rows = _with_progress(domain, param or [], traces)
    about = _about(problem, domain)
    page = None if interactive is None else _page(problem, domain)
    if plot is not None:
        draw(rows, about, plot)
    if interactive is not None and page is not None:
        with writing(interactive):
            write_bytes(interactive, page.encode())
    if as_json:
        listed = [{name: _number(value) for name, value in vars(row).items()} for row in rows]
        typer.echo(
            terminal.printable_json(json.dumps({**about, "methods": listed}, ensure_ascii=False))
        )
    else:
        _show(rows, about)
        if plot is not None:
            typer.echo(f"picture: {plot}")
        if interactive is not None:
            typer.echo(f"page: {interactive}")


def _page(problem: Problem, domain: str) -> str:
    from o2td.interactive import page

    return page([problem], f"{domain}: every method is an oblique projection")


def build(domain: str, params: list[str]) -> Any:
    """The domain's problem with `key=value` settings, each value read as JSON or text."""
    factory = DOMAINS[domain]
    accepted = inspect.signature(factory).parameters
    settings = {}
    for param in params:
        key, equals, text = param.partition("=")
        if not equals or key not in accepted:
            raise InputError(
                f"--param {param}: write KEY=VALUE, with a key of {domain}: {', '.join(accepted)}"
            )
        try:
            settings[key] = json.loads(text)
        except json.JSONDecodeError:
            settings[key] = text
    missing = [
        name
        for name, parameter in accepted.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and name not in settings
    ]
    if missing:
        raise InputError(f"{domain} needs --param {missing[0]}=VALUE")
    return factory(**settings)


def _with_progress(
    domain: str, params: list[str], traces: list[float]
) -> tuple[Problem, list[Landing]]:
    """The problem and its table; a bar on stderr counts the methods and names the current one."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    from o2td.exact import analyze
    from o2td.exact.analysis import methods

    shown = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    columns = (SpinnerColumn(), *shown, TextColumn("{task.description}", markup=False))
    names = methods(traces)
    with Progress(*columns, console=terminal.console(stderr=True), transient=True) as bar:
        task = bar.add_task("the problem", total=len(names))
        problem = _finite(domain, build(domain, params))
        bar.update(task, description="directions of the known methods")

        def hear(name: str) -> None:
            done = names.index(name) if name in names else None
            bar.update(task, description=name, completed=done)

        return problem, analyze(problem, traces, hear)


def _finite(domain: str, problem: Any) -> Problem:
    from o2td.problem import Problem

    if not isinstance(problem, Problem):
        raise InputError(
            f"{domain} is simulated and has no exact answers; analyze needs a finite domain"
        )
    return problem


def _about(problem: Problem, domain: str) -> dict[str, Any]:
    import numpy as np

    from o2td import exact

    weight = np.where(problem.active, problem.visits, 0.0)
    value = exact.value(problem)
    mean = float(weight @ value / weight.sum())
    spread = float(np.sqrt(weight @ (value - mean) ** 2 / weight.sum()))
    return {
        "domain": domain,
        "states": problem.n_states,
        "actions": problem.n_actions,
        "features": problem.d,
        "value_mean": mean,
        "value_spread": spread,
        "best_rmse": exact.rmse(problem, exact.best_approximation(problem)),
    }


def _number(value: Any) -> Any:
    """JSON has no infinity: it becomes the text "inf"."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    # An error of zero is shown as such, not as rounding.
    return "0" if abs(value) < 1e-9 else f"{value:.4g}"


def _order(row: Landing) -> tuple[bool, float, float, str]:
    """Nearest to the best first; unstable methods, which land nowhere, last."""
    nearness = [math.inf if x is None else round(x, 9) for x in (row.suboptimality, row.rmse)]
    return row.stable is False, nearness[0], nearness[1], row.method


def _show(rows: list[Landing], about: dict[str, Any]) -> None:
    from rich.table import Table

    console = terminal.console()
    if not console.is_terminal:
        console = terminal.console(width=120)
    console.print(
        f"{about['domain']}: {about['states']} states, {about['features']} features,"
        f" V {_text(about['value_mean'])} ± {_text(about['value_spread'])},"
        f" best RMSE {_text(about['best_rmse'])}",
        highlight=False,
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    headings = ("RMSE", "/ best", "RMSPBE", "stable", "step <", "amplification")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    notes: dict[str, int] = {}
    for row in sorted(rows, key=_order):
        mark = f" [{notes.setdefault(row.reason, len(notes) + 1)}]" if row.reason else ""
        fields = (row.rmse, row.suboptimality, row.rmspbe, row.stable, row.max_step_size)
        cells = [*map(_text, fields), _text(row.amplification) + mark]
        style = "red" if row.stable is False else None
        table.add_row(row.method, *cells, style=style)
    console.print(table)
    for reason, number in notes.items():
        console.print(f"[{number}] {reason}")


def draw(rows: list[Landing], about: dict[str, Any], path: Path) -> None:
    """Save the figure of the limits, or of their errors if the features can express V."""
    from o2td.report.drawing import styled
    from o2td.report.limits import limits_figure

    scale = max(abs(about["value_mean"]), about["value_spread"])
    absolute = about["best_rmse"] <= max(1e-9 * scale, 1e-12)
    stream = io.BytesIO()
    with styled():
        ordered = sorted(rows, key=_order)
        figure = limits_figure(ordered, f"{about['domain']}: where each method lands", absolute)
        try:
            figure.savefig(stream, format=path.suffix[1:].lower(), dpi=150)
        except ValueError as error:
            raise InputError(f"--plot {path}: {error}") from None
    with writing(path):
        write_bytes(path, stream.getvalue())
