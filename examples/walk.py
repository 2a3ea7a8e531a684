"""What the examples share: write the log, evaluate it by command, compare with the truth."""

from __future__ import annotations

import argparse
import inspect
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from o2td import sources
from o2td.cli.main import main


def run(
    name: str,
    logs: Callable[..., Any],
    truth: Callable[[int], tuple[float, float]],
    episodes: int,
    options: Sequence[str],
) -> None:
    """Make `NAME.parquet`, run `o2td evaluate` on it and show its answer next to the truth."""
    given = arguments(episodes)
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / f"{name}.parquet"
    if "file" in inspect.signature(logs).parameters:
        logs(given.episodes, given.seed, file)
    else:
        sources.write_logs(logs(given.episodes, given.seed), file)
    report = given.out / name
    command = ["evaluate", str(file), *options, "--out", str(report), "--force"]
    print(f"$ {shlex.join(['o2td', *command])}\n", flush=True)
    code = main(command)
    if code:
        raise SystemExit(code)
    compare(json.loads((report / "evaluation.json").read_text()), *truth(given.runs))


def arguments(episodes: int) -> argparse.Namespace:
    """The options of every example."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=episodes, help="length of the log")
    parser.add_argument("--seed", type=int, default=0, help="of the log")
    parser.add_argument("--runs", type=int, default=20_000, help="how exact the truth is made")
    parser.add_argument("--out", type=Path, default=Path("results/examples"))
    return parser.parse_args()


def compare(answer: dict[str, Any], true: float, error: float) -> None:
    """One line: the truth, the recommended estimate, and whether the one is inside the other."""
    best = answer["estimates"][0]
    known = f"{true:.4g}" if error == 0.0 else f"{true:.4g} ± {error:.2g}"
    reach = best["approximation_error"] or 0.0
    low, high = best["low"] - reach, best["high"] + reach
    inside = low - 2 * error <= true <= high + 2 * error
    print(f"\nThe truth is {known}; {best['method']} says {best['value']:.4g}", end=", ")
    print(f"[{low:.4g}, {high:.4g}] with approximation error: {'inside' if inside else 'OUTSIDE'}.")
