"""`o2td evaluate LOGS …`: what another policy would be worth, with an interval and a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2td.errors import InputError
from o2td.terminal import printable

if TYPE_CHECKING:
    from o2td.evaluation import Evaluation
    from o2td.evaluation.value_model import ValueModel
    from o2td.sources import LogSource


def command(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOGS…", help="Parquet, CSV, NDJSON or Arrow files, folders or globs."
        ),
    ],
    discount: Annotated[
        float | None, typer.Option(help="Discount of every step, such as 0.99.", show_default=False)
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            metavar="H", help="Steps over which rewards count; without it, until episodes end."
        ),
    ] = None,
    features: Annotated[
        str, typer.Option(help="tabular, fourier:3, tiles:8x8, … or auto (held-out episodes).")
    ] = "auto",
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Methods, such as lstd,wdr (o2td algorithms --kind estimator lists them); if left"
            " out, those that fit and can be recommended.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All methods that apply, including learners and SOTD.")
    ] = False,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--columns",
            "-c",
            metavar="ROLE=NAME|FILE.toml",
            help="Names of columns: -c reward=profit -c observation=price,charge"
            " -c terminated=never, all in one with commas, or a TOML file of them. May be repeated.",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="NAME=COLUMN",
            help="A policy by its column: the probability it gives to the action taken; a column of"
            " lists, or what the names of several columns begin with: those of all actions; or"
            " NAME=rho:COLUMN, NAME=logprob:COLUMN. Repeat it to compare policies.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Baseline of the comparison: logged (the default), or one of the policies.",
            show_default=False,
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="TEXT",
            help='Such as "lift > 0", "cvar(0.1) > 5" or "B - A > 0.1": exit with 0 where it holds, 3'
            " where it does not, 4 where the log cannot decide. May be repeated.",
        ),
    ] = None,
    segment: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Also the value by this column of start states."),
    ] = None,
    quantiles: Annotated[
        str | None,
        typer.Option(metavar="P,P,…", help="Also quantiles of the target's returns: 0.1,0.5,0.9."),
    ] = None,
    cvar: Annotated[
        float | None,
        typer.Option(metavar="P", help="Also the mean of the worst share P of its returns."),
    ] = None,
    on_policy: Annotated[
        bool, typer.Option("--on-policy", help="Evaluate the policy that made the log.")
    ] = False,
    sort: Annotated[
        bool, typer.Option("--sort", help="Sort the rows by episode and step first.")
    ] = False,
    densities: Annotated[
        bool, typer.Option("--densities", help="Probabilities are densities (continuous actions).")
    ] = False,
    states: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write V(s) of this file's rows to values.parquet of --out instead.",
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    bootstrap: Annotated[int, typer.Option(metavar="N", help="Bootstrap lanes.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap and of the held-out folds.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write report.html, evaluation.json, values.parquet and model.npz to DIR.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite these files in DIR; keep others.")
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Accumulate on this Dask scheduler's workers."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 if the logs cannot answer.")
    ] = False,
) -> None:
    """Estimate from logs of one policy what another policy would be worth.

    A log has a row per step: episode, step, obs_0 … (or state), action, reward, terminated, truncated,
    and rho, or behavior_prob and target_prob (or log-probabilities, or target_prob_0 … for all
    actions). Usual other names are found; the mapping found is printed.

    Exit code 0: evaluated, whatever the verdict (with --check, 1 where it is "cannot answer"; with
    --require, 3 where one does not hold, else 4 where one is undecided); 2: the logs or the options
    cannot be used, and nothing was written; 130: interrupted.
    """
    from o2td.cli.logs_columns import parse_columns
    from o2td.cli.logs_compare import (
        check_cvar,
        check_requirements,
        compare_policies,
        finish,
        parse_quantiles,
        parse_targets,
        refuse_beside_targets,
        say_comparison,
    )
    from o2td.evaluation.output import check_folder

    check_options(states, out, seed, methods, everything)
    policies = parse_targets(target or [], against, on_policy, dask, states)
    check_requirements(require or [], policies, against, on_policy)
    levels = parse_quantiles(quantiles)
    check_cvar(cvar)
    if out is not None:
        check_folder(out, force)
    reading = {"columns": parse_columns(columns or []), "sort": sort, "densities": densities}
    settings = {
        "horizon": horizon,
        "features": features,
        "methods": "all" if everything else methods,
        "confidence": confidence,
        "lanes": bootstrap,
        "seed": seed,
    }
    if policies:
        refuse_beside_targets(segment, quantiles, cvar)
        both = compare_policies(logs, discount, policies, against, {**settings, **reading})
        held = [both.require(text) for text in require or []]
        if out is not None:
            both.save(out, force=force)
        finish(both, held, as_json, check, lambda document: say_comparison(both, out))
        return
    source = _open(logs, reading, discount, on_policy)
    given = None if states is None else Given(states, source)
    answer = _evaluate(source, {**settings, "segments": segment}, dask)
    # Whatever may refuse comes before the first file is written.
    held = [answer.require(text) for text in require or []]
    more = answer.returns(levels, cvar) if levels or cvar is not None else []
    if out is not None:
        if given is not None and answer.model is not None:
            given.check(answer.model)
        answer.save(out, force=force, states=given)
    finish(answer, held, as_json, check, lambda found: _say(answer, found, source, out), more)


def check_options(
    states: Path | None, out: Path | None, seed: int, methods: str | None, everything: bool
) -> None:
    """Refuse what cannot be used, before anything is read."""
    if everything and methods is not None:
        raise InputError(
            f"--all: cannot be combined with --methods {methods}; leave one of them out"
        )
    if seed < 0:
        raise InputError(f"--seed {seed}: a seed is a whole number from 0 up")
    if states is not None and out is None:
        raise InputError(f"--states {states}: its values go to values.parquet; add --out DIR")


def _open(
    logs: list[str], reading: dict[str, Any], discount: float | None, on_policy: bool
) -> LogSource:
    from o2td.sources import open_logs

    target = "behavior" if on_policy else None
    return open_logs(logs, discount=discount, target=target, **reading)


def _evaluate(source: LogSource, settings: dict[str, Any], dask: str | None) -> Evaluation:
    from o2td.cli.logs_progress import Progress
    from o2td.evaluation import evaluate

    if dask is not None:
        from o2td.evaluation.distributed import DaskLog

        with DaskLog(source, dask) as log:
            return evaluate(log, **settings)
    with Progress() as progress:
        return evaluate(source, **settings, progress=progress.add)


class Given:
    """The rows of a file as the log's own observations or states."""

    def __init__(self, file: Path, source: LogSource) -> None:
        from o2td.cli.logs_rows import rows_of

        observed = source.mapped.many("observation")
        names = observed or source.mapped.many("state")
        chances = source.mapped.many("target_probs")
        self._parts = list(
            rows_of([str(file)], names, not observed, "the log", chances, source.codings)
        )

    def check(self, model: ValueModel) -> None:
        """Refuse the first row whose state the model does not know."""
        from o2td.cli.logs_rows import check_states

        for rows, _, where in self._parts:
            if model.states:
                check_states(model, rows, where)

    def __iter__(self) -> Iterator[Any]:
        from o2td.cli.logs_rows import chances_of

        for rows, chances, _ in self._parts:
            yield rows, chances_of(chances)


def _say(answer: Evaluation, found: dict[str, Any], source: LogSource, out: Path | None) -> None:
    from o2td.evaluation.answer_text import show_answer, show_log

    show_log(str(source.info).splitlines())
    show_answer(found)
    if out is not None:
        print(printable(f"\nreport in {out / 'report.html'}"))
        if answer.model is None:
            print("no model: no value function could be fitted")
        else:
            files = f"{out / 'model.npz'} and values.parquet"
            print(printable(f"values of states by {answer.model.method}, in {files}"))
