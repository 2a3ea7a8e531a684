"""`o2td predict MODEL ROWS`: values of the rows of a file, by a model that `evaluate` has saved."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from o2td import terminal
from o2td.errors import FormatError, InputError

if TYPE_CHECKING:
    from o2td.evaluation.value_model import ValueModel

_SHOWN = 10


def command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="model.npz of o2td evaluate.")],
    rows: Annotated[
        list[str],
        typer.Argument(metavar="ROWS", help="Parquet, CSV, NDJSON or Arrow files."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the values to FILE.parquet or FILE.csv."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Predict the value of every row of a file with a saved model.

    The rows need the columns that the model reads, named as in the log that it was fitted on. A
    model of action values (lstdq) also needs the policy's probabilities, target_prob_0 …, or gives
    one column per action without them. Exit code 0: done; 2: the model or a file cannot be used.

    Predictions are in a column value (and value_0 … of actions); where the model reads columns of
    such names, in predicted_value.
    """
    from o2td.evaluation.value_model import load_model

    if out is not None:
        _check_out(out, [str(model), *rows], force)
    fitted = load_model(model)
    table = predict_files(fitted, rows, str(model))
    if out is not None:
        _write(table, out)
    values = table.columns[len(fitted.inputs) :]
    if as_json:
        _print_json(table, values, model, out)
    else:
        _show(table, values[0], out)


def _check_out(out: Path, read: list[str], force: bool) -> None:
    """Refuse an output file of unknown format, one that is also read, or one that exists."""
    from o2td.sources.parts import files_of

    if out.suffix.lower() not in (".parquet", ".pq", ".csv"):
        raise InputError(f"{out}: values are written as parquet or CSV; name it {out.stem}.parquet")
    if not out.parent.is_dir():
        raise InputError(f"{out.parent}: there is no such folder; create it first")
    if not out.exists():
        return
    if out.is_dir():
        raise InputError(f"{out}: is a folder, not a file; name another one")
    files = [Path(read[0]), *(Path(part.label) for part in files_of(read[1:]))]
    if any(file.exists() and out.samefile(file) for file in files):
        raise InputError(
            f"{out}: is read by this command, so it is not replaced; name another file"
        )
    if not force:
        raise InputError(f"{out}: already exists; name another file, or pass --force to replace it")


def predict_files(model: ValueModel, files: list[str], name: str) -> Any:
    """A polars frame: the model's inputs and `value` (or one value per action), in order."""
    import polars as pl

    from o2td.cli.logs_rows import chances_of, check_states, rows_of

    chances = [f"target_prob_{a}" for a in range(len(model.theta))] if model.of_actions else []
    parts = []
    for rows, given, where in rows_of(
        files, model.inputs, model.states, name, chances, model.codings
    ):
        if model.states:
            check_states(model, rows, where)
        parts.append(pl.DataFrame(model.table(rows, chances_of(given))))
    return pl.concat(parts)


def _write(table: Any, out: Path) -> None:
    import io

    from o2td.atomic import write_bytes, writing

    buffer = io.BytesIO()
    if out.suffix.lower() == ".csv":
        table.write_csv(buffer)
    else:
        table.write_parquet(buffer)
    with writing(out):
        write_bytes(out, buffer.getvalue())


def _print_json(table: Any, values: list[str], model: Path, out: Path | None) -> None:
    answer: dict[str, Any] = {"model": str(model), "rows": table.height}
    answer["out"] = None if out is None else str(out)
    for name in values:
        answer[f"values{name.rpartition('value')[2]}"] = table[name].to_list()
    try:
        print(json.dumps(answer, allow_nan=False))
    except ValueError:
        raise FormatError(f"{model}: gives values that are not finite on these rows") from None


def _show(table: Any, first: str, out: Path | None) -> None:
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False)
    for name in table.columns:
        shown.add_column(Text(name), justify="right")
    for row in table.head(_SHOWN).iter_rows():
        shown.add_row(*(f"{value:.6g}" for value in row))
    terminal.console().print(shown)
    column = table[first]
    print(f"{table.height} rows, mean {first} {column.mean():.6g}", end="")
    print(f", from {column.min():.6g} to {column.max():.6g}")
    if table.height > _SHOWN and out is None:
        print(f"o2td: the first {_SHOWN} are shown; --out FILE has all", file=sys.stderr)
    if out is not None:
        print(f"values in {out}")
