"""The cells of the study: tasks and settings by kind, with separate seeds for settling and reporting.

Seeds come from the purpose, the cell's name and a number, so no log that helped to set a threshold can
be among those reported. Cells of `REPORTED_ONLY` are settings on which nothing was set.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.honesty import continuous, defects, environments
from benchmarks.honesty.tables import (
    Table,
    graph,
    gridworld,
    marked,
    model_fail,
    model_win,
    random_table,
    timed,
    toy_mountain_car,
)

# Each was drawn after the results of those before it were known.
PURPOSES = ("settle", "report", "again", "final", "blind", "fresh")
COMPLETE, ALIASED = "Markov, state complete", "partially observed or aliased"
TERMINATED, TRUNCATED = "clock, marked terminated", "clock, marked truncated"
RANDOM, CONTINUOUS = "random tables, sound", "continuous"
CLOCKED = "continuous, clock marked terminated"
ASKED = "continuous, value over the clock's steps"
GYMNASIUM = {  # by what the log shows: episodes, horizon, whether part of the state is hidden, mark
    "Gymnasium, state complete": (200, None, False, "truncated"),
    "Gymnasium, part of the state hidden": (400, 60, True, "truncated"),
    "Gymnasium, clock marked terminated": (400, 60, False, "terminated"),
    "Gymnasium, clock marked truncated": (400, 60, False, "truncated"),
}
Made = tuple[pd.DataFrame, float, float]


@dataclass(frozen=True)
class Cell:
    """One setting: its kind, its group if it is from the benchmark, and how to make a log of it."""

    name: str
    kind: str
    make: Callable[[np.random.Generator], Made]
    group: str = ""
    settles: bool = True  # whether thresholds may look at it
    horizon: Callable[[pd.DataFrame], int] | None = (
        None  # `horizon=` for a log, if one is asked for
    )

    def log(self, purpose: str, number: int) -> Made:
        """Log, discount and truth for one seed of one purpose."""
        key = [PURPOSES.index(purpose), zlib.crc32(self.name.encode()), number]
        return self.make(np.random.default_rng(key))


def clocked(task: Table, episodes: int, clock: str) -> Callable[[np.random.Generator], Made]:
    """A maker of logs whose clock is marked this way; the mark determines the question.

    If no episode reached the clock, the log shows none, and the question is the one without a clock.
    """

    def make(rng: np.random.Generator) -> Made:
        log = task.sample(episodes, rng)
        met = clock == "terminated" and bool(log.clock.any())
        return marked(log, clock), task.discount, task.value(task.horizon if met else None)

    return make


def _graphs() -> list[Cell]:
    found = []
    for length in (4, 16):
        for logged in (0.2, 0.6):
            for sparse in (False, True):
                for noisy, episodes in ((False, 256), (True, 1024)):
                    task = graph(length, logged, sparse=sparse, noisy=noisy)
                    name = f"graph T={length} {logged}->0.8"
                    name += f"{' sparse' * sparse}{' noisy' * noisy} n={episodes}"
                    made = clocked(task, episodes, "truncated")
                    found.append(Cell(name, COMPLETE, made, "graph", settles=logged == 0.2))
    return found


def _partial() -> list[Cell]:
    found = []
    for length, seen in ((2, 2), (16, 2), (16, 6)):
        for logged in (0.2, 0.6):
            for sparse, episodes in ((False, 256), (True, 1024)):
                task = graph(length, logged, sparse=sparse, observations=seen)
                name = f"graph-POMDP T={length} H={seen} {logged}->0.8{' sparse' * sparse}"
                made = clocked(task, episodes, "truncated")
                cell = Cell(f"{name} n={episodes}", ALIASED, made, "graph-POMDP", logged == 0.2)
                found.append(cell)
    for episodes in (256, 1024):
        made = clocked(model_fail(), episodes, "terminated")
        settles = episodes == 256
        found.append(Cell(f"ModelFail n={episodes}", ALIASED, made, "ModelFail", settles))
    for logged in (0.6, 1.0):
        task = replace(gridworld(logged, wanted=0.3, merged=2), horizon=None)
        made = clocked(task, 256, "truncated")
        name = f"gridworld, pairs of columns alike {logged}->0.3"
        found.append(Cell(name, ALIASED, made, settles=logged == 1.0))
    return found


WALKS = ((0.45, 0.45), (0.45, 0.6), (0.6, 0.45), (0.6, 0.6), (0.8, 0.2), (0.2, 0.8))


def _clocks() -> list[Cell]:
    tasks: list[tuple[str, str, Table, int, bool]] = []
    for right, wanted in WALKS:
        task = toy_mountain_car(right, wanted)
        settles = (right, wanted) in WALKS[::2]
        tasks.append(
            (f"toy mountain car {right}->{wanted}", "toy mountain car", task, 128, settles)
        )
    for logged, episodes in ((0.2, 256), (0.4, 256), (0.6, 64), (0.6, 1024), (1.0, 256)):
        for name, task in (
            ("gridworld", gridworld(logged, slip=0.0, discount=0.96)),
            ("slippery gridworld", gridworld(logged)),
        ):
            tasks.append((f"{name} {logged}->0.1", name, task, episodes, episodes == 256))
    for episodes in (64, 256, 1024):
        tasks.append(("ModelWin", "ModelWin", model_win(), episodes, episodes == 256))
    found = []
    for name, group, task, episodes, settles in tasks:
        for clock, kind in (("terminated", TERMINATED), ("truncated", TRUNCATED)):
            made = clocked(task, episodes, clock)
            label = f"{name} n={episodes}, {clock}"
            mine = group if clock == "terminated" else ""
            found.append(Cell(label, kind, made, mine, settles))
        if group == "ModelWin":
            made = clocked(timed(task), episodes, "terminated")
            found.append(
                Cell(f"{name} n={episodes}, time in the state", COMPLETE, made, "", settles)
            )
    for logged, wanted, episodes in ((0.6, 0.3, 256), (1.0, 0.6, 256), (0.6, 0.4, 64)):
        task = replace(gridworld(logged, wanted), horizon=None)
        made = clocked(task, episodes, "truncated")
        name = f"gridworld {logged}->{wanted} n={episodes}, to the goal"
        found.append(Cell(name, COMPLETE, made, "", settles=episodes == 256))
    return found


def _gymnasium() -> list[Cell]:
    found = []
    for kind, (episodes, horizon, hidden, clock) in GYMNASIUM.items():
        for name in environments.TASKS:
            for logged, wanted in ((0.5, 0.1), (0.9, 0.3)):
                made = _environment(name, logged, wanted, horizon, hidden, episodes, clock)
                found.append(Cell(f"{name} {logged}->{wanted}, {kind}", kind, made, settles=False))
    return found


def _environment(
    name: str,
    logged: float,
    wanted: float,
    horizon: int | None,
    hidden: bool,
    episodes: int,
    clock: str,
) -> Callable[[np.random.Generator], Made]:
    def make(rng: np.random.Generator) -> Made:
        task = environments.environment(name, logged, wanted, horizon, hidden)
        return clocked(task, episodes, clock)(rng)

    return make


def _sound(rng: np.random.Generator) -> Made:
    task = random_table(rng)
    episodes = int(rng.choice([100, 400, 1000]))
    return marked(task.sample(episodes, rng), "truncated"), task.discount, task.value()


def _continuous(name: str) -> Cell:
    return Cell(name, CONTINUOUS, lambda rng: continuous.make(name, rng))


def _longest(log: pd.DataFrame) -> int:
    return int(log.step.max()) + 1


def _limited() -> list[Cell]:
    """Continuous tasks that a clock ends, without and with the question of their horizon."""
    made = continuous.clocked_system
    found = [Cell("linear system", CLOCKED, made, settles=False)]
    found.append(Cell("linear system, horizon asked", ASKED, made, "", False, _longest))
    for name, steps in continuous.LIMITS:
        label, task = f"{name}, {steps} steps", partial(continuous.limited, name, steps)
        found.append(Cell(label, CLOCKED, task, settles=False))
        asked = partial(_always, steps)
        found.append(Cell(f"{label}, horizon asked", ASKED, task, "", False, asked))
    return found


def _always(steps: int, log: pd.DataFrame) -> int:
    return steps


def _defect(name: str) -> Cell:
    return Cell(f"defect: {name}", f"defect: {name}", defects.DEFECTS[name])


CELLS: dict[str, Cell] = {
    cell.name: cell
    for cell in [
        *_graphs(),
        *_partial(),
        *_clocks(),
        *_gymnasium(),
        Cell("random table", RANDOM, _sound),
        *(_defect(name) for name in defects.DEFECTS),
        *(_continuous(name) for name in continuous.NAMES),
        *_limited(),
    ]
}
