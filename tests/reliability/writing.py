"""Every kind of file the package writes, by children that are killed at every call of a write.

    writing FOLDER points          SIGKILL before, in and after each write, fsync and rename
    writing FOLDER moments N SEED  SIGKILL at N random moments of an endless row of saves

Run as a process of its own, `python -m tests.reliability.writing`: it forks, and the parent of a
fork should have no threads of others.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import o2td
from o2td import domains, sources
from o2td.atomic import exchange, sweep_temporaries, write_bytes
from o2td.cli import main as command
from o2td.evaluation import output
from o2td.learners import Learner
from tests.experiments.killing import after, at_call, die, ended, half, in_child

ACTIONS: dict[str, list[Callable[..., Any]]] = {
    "write": [die, half, after],
    "fsync": [die, after],
    "replace": [die, after],
    "exchange": [die, after],
    "unlink": [die],
}


class Kind(NamedTuple):
    """How to write the first or the second version into a folder, and what that takes."""

    write: Callable[[Path, int], object]
    single: bool = True  # one file
    at_once: bool = True  # no version is ever mixed with another
    streamed: bool = False  # written by a library, not by os.write


def batch() -> o2td.Transitions:
    return domains.random_walk().sample(200, seed=0)


def save_learner(folder: Path, version: int) -> None:
    o2td.O2TD(step_size=0.01).partial_fit(batch()[: 50 * version]).save(folder / "model.npz")


def save_solver(folder: Path, version: int) -> None:
    o2td.LSTD(trace=0.5).fit(batch()[: 50 * version]).save(folder / "model.npz")


def save_bytes(folder: Path, version: int) -> None:
    """As predictions, pages, pictures, tables, manifests and records of speed are written."""
    write_bytes(folder / "page.html", bytes([version]) * 100_000)


def logs(workplace: Path) -> tuple[Path, list[list[Any]]]:
    """A small log, and its rows in two versions."""
    rng = np.random.default_rng(0)
    lines = ["episode,step,state,action,reward,terminated,truncated,behavior_prob,target_prob"]
    for episode in range(60):
        state = rng.integers(0, 3, size=6)
        lines += [
            f"{episode},{t},{state[t]},{t % 2},{rng.normal()},{t == 5},False,0.5,{0.2 + 0.1 * t}"
            for t in range(6)
        ]
    file = workplace / "log.csv"
    file.write_text("\n".join(lines) + "\n")
    chunks = list(sources.open_logs(file, discount=0.9).chunks(100))
    return file, [chunks[:2], chunks]


def evaluated(workplace: Path, file: Path, *options: str) -> list[dict[str, Any]]:
    """What the command writes, caught on its way to the disk, for two methods."""
    caught: list[dict[str, Any]] = []
    real, output.write_folder = output.write_folder, lambda _, files: caught.append(files)
    try:
        for methods in ("lstd", "lstd,dr"):
            arguments = ["evaluate", str(file), "--discount", "0.9", "--features", "tabular"]
            arguments += [
                *options,
                "--methods",
                methods,
                "--json",
                "--out",
                str(workplace / "nowhere"),
            ]
            with Path(os.devnull).open("w") as null, contextlib.redirect_stdout(null):
                if command(arguments):
                    raise SystemExit("evaluate failed")
    finally:
        output.write_folder = real
    if not options and {"report.html", "values.parquet", "model.npz"} - set(caught[0]):
        raise SystemExit(f"evaluate writes other files: {sorted(caught[0])}")
    return caught


def kinds(workplace: Path) -> dict[str, Kind]:
    file, versions = logs(workplace)
    answers = evaluated(workplace, file)
    policies = [f"--target={name}=target_prob" for name in ("A", "B")]
    compared = evaluated(workplace, file, *policies)

    def save_log(folder: Path, version: int) -> None:
        sources.write_logs(versions[version - 1], folder / "log.parquet")

    def save_evaluation(folder: Path, version: int) -> None:
        output.write_folder(folder / "answer", answers[version - 1])

    def save_comparison(folder: Path, version: int) -> None:
        output.write_folder(folder / "answer", compared[version - 1])

    def save_beside(folder: Path, version: int) -> None:
        """A file of the user's is there first, and stays."""
        (folder / "answer").mkdir(exist_ok=True)
        (folder / "answer" / "notes").write_text("mine")
        save_evaluation(folder, version)

    return {
        "learner": Kind(save_learner),
        "solver": Kind(save_solver),
        "bytes": Kind(save_bytes),
        "log": Kind(save_log, streamed=True),
        "evaluation": Kind(save_evaluation, single=False, at_once=swaps(workplace)),
        "comparison": Kind(save_comparison, single=False, at_once=swaps(workplace)),
        "evaluation among others": Kind(save_beside, single=False, at_once=False),
    }


def swaps(workplace: Path) -> bool:
    """Whether two folders can swap their names in one step on this file system."""
    pair = [workplace / name for name in ("one", "other")]
    for folder in pair:
        folder.mkdir(exist_ok=True)
    return exchange(*pair)


def seen(folder: Path) -> dict[str, bytes]:
    """Every file that a reader would find."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            found[str(name)] = path.read_bytes()
    return found


def restore(folder: Path, files: dict[str, bytes]) -> None:
    for path in [*folder.rglob("*")][::-1]:
        path.rmdir() if path.is_dir() else path.unlink()
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)


def check(kind: Kind, now: dict[str, bytes], old: dict[str, bytes], new: dict[str, bytes]) -> str:
    """Whether the old or the new version is there, complete."""
    if now in (old, new):
        return "new" if now == new else "old"
    if kind.at_once:
        raise SystemExit(f"neither the old nor the new: {sorted(now)}")
    # Into a folder where something else is: each file is complete, and of one of the two.
    if any(data not in (old.get(name), new.get(name)) for name, data in now.items()):
        raise SystemExit("a file is neither the old nor the new one")
    return "both"


def points(workplace: Path) -> None:
    for name, kind in kinds(workplace).items():
        folder = workplace / name
        folder.mkdir()
        versions = []
        for version in (1, 2):
            restore(folder, {})
            kind.write(folder, version)
            versions.append(seen(folder))
        for old in ({}, versions[0]):
            kills, found = 0, set[str]()
            for function in ACTIONS if kind.at_once else ("replace", "unlink"):
                for count in itertools.count(1):
                    hits = [
                        killed(kind, folder, old, versions[1], function, count, action, found)
                        for action in ACTIONS[function]
                    ]
                    kills += sum(hits)
                    if not any(hits):
                        break
            needed = {"old", "new"} if kind.at_once else {"both", "new"}
            if not found >= needed or kills < 6 - 3 * kind.streamed:
                raise SystemExit(f"{name}: only {kills} kills, {found}")
            state = "replaced" if old else "new"
            print(f"{name} {state}: killed at {kills} points")


def killed(
    kind: Kind,
    folder: Path,
    old: dict[str, bytes],
    new: dict[str, bytes],
    function: str,
    count: int,
    action: Callable[..., Any],
    found: set[str],
) -> bool:
    """Kill one writer of the second version, look at what is there, and let another one finish."""
    restore(folder, old)

    def work() -> None:
        at_call(function, count, action, output if function == "exchange" else os)
        kind.write(folder, 2)

    hit = in_child(work)
    state = check(kind, seen(folder), old, new)
    if hit:
        found.add(state)
        hidden = [path.name for path in folder.iterdir() if path.name.startswith(".")]
        if any(not one.endswith(".o2td-tmp") for one in hidden):
            raise SystemExit(f"left behind: {hidden}")
        kind.write(folder, 2)
        if seen(folder) != new:
            raise SystemExit("the next writer did not finish")
        if kind.single:
            sweep_temporaries(folder)
            if {path.name for path in folder.iterdir()} != set(new):
                raise SystemExit("a temporary file could not be swept")
    return hit


def moments(workplace: Path, kills: int, seed: int) -> None:
    """A learner that saves after every few rows can be killed at any moment and goes on."""
    rows, draw = batch(), random.Random(seed)  # noqa: S311
    file = workplace / "checkpoint.npz"
    o2td.TD(step_size=0.1).partial_fit(rows[:3])  # loads compiled code before any fork
    o2td.TD(step_size=0.1).save(file)
    steps = 0

    def work() -> None:
        learner = Learner.load(file)
        while True:
            learner.partial_fit(rows[:3]).save(file)

    for _ in range(kills):
        pid = os.fork()
        if pid == 0:
            try:
                work()
            finally:
                os._exit(1)
        time.sleep(draw.uniform(0.0, 0.1))
        if ended(pid):
            raise SystemExit("a child failed by itself")
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        learner = Learner.load(file)
        whole = o2td.TD(step_size=0.1)
        for _ in range(learner.steps // 3):
            whole.partial_fit(rows[:3])
        if learner.steps % 3 or learner.steps < steps or (learner.theta != whole.theta).any():
            raise SystemExit("a checkpoint is not one of those that were saved")
        steps = learner.steps
    print(f"killed at {kills} moments, {steps} rows learned")


if __name__ == "__main__":
    place, mode, *numbers = sys.argv[1:]
    points(Path(place)) if mode == "points" else moments(Path(place), *map(int, numbers))
