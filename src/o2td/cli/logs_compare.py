"""`--target`, `--against` and `--require` of `o2td evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from o2td.errors import InputError
from o2td.terminal import printable

if TYPE_CHECKING:
    from o2td.evaluation import Comparison, Evaluation, ReturnEstimate
    from o2td.evaluation.requirements import Requirement

NOT_HELD, NOT_TOLD = 3, 4  # exit codes


def parse_targets(
    given: Sequence[str],
    against: str | None,
    on_policy: bool = False,
    dask: str | None = None,
    states: Path | None = None,
) -> dict[str, str]:
    """Names and columns of `--target NAME=COLUMN`; a column alone is its own name.

    >>> parse_targets(["A=a_prob", "B"], None)
    {'A': 'a_prob', 'B': 'B'}
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, column = (part.strip() for part in text.partition("="))
        column = column if equals else name
        if not name or not column:
            raise InputError(f"--target {text}: write NAME=COLUMN, such as B=b_prob")
        if name in found:
            raise InputError(
                f"--target {text}: {name} is used twice; give each policy its own name"
            )
        found[name] = column
    if against is not None and not found:
        raise InputError(f"--against {against}: name the policies, --target NAME=COLUMN")
    if found:
        beside = {"--on-policy": on_policy, "--dask": dask, "--states": states}
        for option, value in beside.items():
            if value:
                raise InputError(
                    f"--target: cannot be combined with {option}; leave one of them out"
                )
    return found


def parse_quantiles(given: str | None) -> list[float]:
    """Shares from `0.1,0.5,0.9`.

    >>> parse_quantiles("0.1, 0.5")
    [0.1, 0.5]
    """
    try:
        found = [float(part) for part in (given or "").split(",") if part.strip()]
    except ValueError:
        found = [-1.0]
    if not all(0.0 < level < 1.0 for level in found) or (given is not None and not found):
        raise InputError(f"--quantiles {given}: write shares between 0 and 1, such as 0.1,0.5,0.9")
    return found


def check_cvar(given: float | None) -> None:
    """Refuse what is no share."""
    if given is not None and not 0.0 < given < 1.0:
        raise InputError(f"--cvar {given}: write a share between 0 and 1, such as 0.1")


def refuse_beside_targets(segment: str | None, quantiles: str | None, cvar: float | None) -> None:
    """Refuse options that are for one policy."""
    beside = {"--segment": segment, "--quantiles": quantiles, "--cvar": cvar}
    for option, value in beside.items():
        if value is not None:
            raise InputError(
                f"{option}: applies to one policy only; leave out --target, and name its columns,"
                " -c target_prob=COLUMN, or those of all actions, -c 'target_probs=PREFIX_*'"
            )


def check_requirements(
    given: Sequence[str], policies: dict[str, str], against: str | None, on_policy: bool
) -> None:
    """Refuse requirements that cannot be parsed or name unknown things, before reading."""
    from o2td.evaluation.requirements import ONE, check_one, parse, sides_of

    baseline = against or "logged"
    for text in given:
        asked = parse(text)
        if policies:
            sides_of(text, asked, list(policies), baseline)
        else:
            check_one(text, asked, ONE[:2] if on_policy else ONE)


def compare_policies(
    logs: Sequence[str],
    discount: float | None,
    policies: dict[str, str],
    against: str | None,
    settings: dict[str, Any],
) -> Comparison:
    """Evaluate all policies, with a progress bar."""
    from o2td.cli.logs_progress import Progress
    from o2td.evaluation import compare

    baseline = against or "logged"
    if baseline != "logged" and baseline not in policies:
        known = ", ".join(["logged", *policies])
        raise InputError(f"--against {baseline}: no such policy; there are {known}")
    with Progress() as progress:
        return compare(list(logs), discount, policies, baseline, **settings, progress=progress.add)


def say_comparison(both: Comparison, out: Path | None) -> None:
    """Print the log as it was read, then tables and verdict."""
    from o2td.evaluation.answer_text import show_log
    from o2td.evaluation.comparison_text import show_comparison

    show_log(both.log_lines())
    show_comparison(both.as_dict())
    if out is not None:
        print(printable(f"\nreport in {out / 'report.html'}"))


def finish(
    answer: Evaluation | Comparison,
    found: Sequence[Requirement],
    as_json: bool,
    check: bool,
    say: Callable[[dict[str, Any]], None],
    returns: Sequence[ReturnEstimate] = (),
) -> None:
    """Print the answer and whether the requirements hold, and exit with the matching code."""
    from o2td.evaluation.output import json_text

    document = answer.as_dict()
    if returns:
        document["returns"] = [one.as_dict() for one in returns]
    if found:
        document["requirements"] = [one.as_dict() for one in found]
    if as_json:
        print(json_text(document))
    else:
        say(document)
        if found:
            print()
        for one in found:
            print(printable(f"requirement {one}"))
    if any(one.holds is False for one in found):
        raise typer.Exit(NOT_HELD)
    if any(one.holds is None for one in found):
        raise typer.Exit(NOT_TOLD)
    if check and answer.verdict == "cannot answer":
        raise typer.Exit(1)
