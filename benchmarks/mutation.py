"""Mutation testing: would the tests notice if a line of an algorithm said something else?

make mutation                                  a random sample
python -m benchmarks.mutation --mutants 40 --seed 1 --only solvers

Compilation is switched off for the modules under test, so that compiled loops are mutated like any
other line. Everything is imported and collected once for each group of modules. Then tests run in a
fork in which one function has one change (an operator, comparison, constant, condition or statement).
A first pass notes which lines every test reaches and how long it takes; only tests that reach the
changed line run. The first that fails kills the mutant if it passes by itself without the change.
Controls, forks without any change in which the same tests run, must survive. All limits are on
processor time, so that a loaded machine kills no mutant.

Results go to build/mutation as they come, and a run that was stopped continues there if neither
sources nor tests have changed since. At the end `survivors.md` is the table of what no test noticed,
and `record.json` has all counts in the form of docs/data/mutation.json, whose verdicts are kept where
they fit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.mutants import Place, changed, forms, loops, machine, places
from benchmarks.mutation_record import Outcome, write
from benchmarks.mutation_tests import Tests, interpreted
from o2td import __version__

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "o2td"

LEARNING = [
    f"tests/learners/test_{name}.py"
    for name in (
        "against_reference", "all_axes", "arctd", "atd", "axes", "bounds", "changes", "declarations",
        "defaults", "divergence", "edges", "far_rows", "field", "golden", "learn_one", "loaded",
        "mean_dynamics", "metrics_thread", "outside", "published", "refusals",
        "replicates", "short_streams", "small_parts", "step_learner", "step_sizes", "sweep",
        "sweeping", "threads", "tidbd", "where_the_paper_disagrees",
    )
]  # fmt: skip
STEPPING = [
    *(f"tests/learners/test_{name}.py" for name in ("learn_one", "edges", "short_streams")),
    *(f"tests/kernels/test_{name}.py" for name in ("lanes", "packing", "vectors")),
]  # others take too long without compilation


OWN = ("against_reference", "arctd", "atd", "field", "golden", "mean_dynamics", "published")
OWN += ("small_parts", "tidbd")


TOO_SLOW = (
    *("baird", "ends_at_its_limit", "scales_one_by_one", "offset_of_rewards", "td_diverges"),
    *("variance_is_that", "lanes_are_the_learners", "memory_does_not_grow"),
    *(
        "mean_dynamics_is_the_average_step",
        "errors_are_large",
        "dependent_rows",
        "traces_of_the_end",
        "limit_will_be",
        "thread_reads",
    ),
)  # without compilation


class Group(NamedTuple):
    """Files to mutate, tests that should notice, and modules that must not be compiled."""

    files: list[str]
    tests: list[str]
    plain: tuple[str, ...] = ()
    forms: bool = False  # whether the Python forms of compiled functions are meant, or all others
    loops: bool | None = None  # whether compiled functions are meant, or all others
    machine: bool | None = (
        None  # whether functions that write machine code are meant, or all others
    )
    part_of: str = ""  # the group in which it is drawn and counted


GROUPS = {
    "steps of learners": Group(
        ["learners/**/*.py"],
        [
            *STEPPING,
            *(f"tests/learners/test_{name}.py" for name in OWN),
        ],
        ("o2td.kernels", "o2td.learners"),
        loops=True,
        part_of="learners",
    ),
    "learners": Group(
        ["learners/**/*.py", "cuts.py", "emphasis.py"],
        [
            *LEARNING,
            "tests/kernels/test_packing.py",
            *(f"tests/test_{name}.py" for name in ("cuts", "emphasis", "parameters")),
            "src/o2td/cuts.py",
            "tests/checks/test_learners.py",
            *(f"tests/reliability/test_{name}.py" for name in ("divergence", "bad_input")),
            "src/o2td/learners",
            "src/o2td/emphasis.py",
        ],
        loops=False,
    ),
    "solvers": Group(
        ["solvers/*.py", "linear_algebra/*.py"],
        [
            *(
                "tests/solvers",
                "tests/linear_algebra",
                "src/o2td/solvers",
                "src/o2td/linear_algebra",
            ),
            *(f"tests/reliability/test_{name}.py" for name in ("systems", "bad_input", "hostile")),
            "tests/exact",
        ],
        loops=False,
    ),
    "loops of solvers": Group(
        ["solvers/*.py"], ["tests/solvers"], ("o2td.solvers",), loops=True, part_of="solvers"
    ),
    "exact": Group(
        ["exact/*.py"],
        [
            *("tests/exact", "src/o2td/exact"),
            *(f"tests/reliability/test_{name}.py" for name in ("bad_problems", "bad_input")),
        ],
    ),
    "metrics": Group(["metrics.py"], ["tests/test_metrics.py"], ("o2td.metrics",)),
    "kernels": Group(
        ["kernels/[!lv]*.py", "kernels/lane*.py"],
        [
            *STEPPING,
            *(f"tests/learners/test_{name}.py" for name in ("step_learner", "replicates", *OWN)),
            *(
                f"tests/learners/test_{name}.py"
                for name in ("axes", "divergence", "step_sizes", "sweep")
            ),
            *(f"tests/kernels/test_{name}.py" for name in ("lane_columns", "ring_buffer")),
            *(
                f"tests/kernels/test_{name}.py"
                for name in ("gradient_sparse", "kept", "pending", "row_passes", "settle")
            ),
            *(
                f"tests/kernels/test_{name}.py"
                for name in ("fused", "gradient", "simd_gradient", "simd_weighted", "single_row")
            ),
            *(f"tests/kernels/test_{name}.py" for name in ("weighted", "weighted_sparse")),
            *(
                f"tests/kernels/test_{name}.py"
                for name in ("gauges", "metric_values", "resampling")
            ),
        ],
        ("o2td.kernels", "o2td.learners"),
        machine=False,
    ),
    "Python forms of kernels": Group(
        [f"kernels/{name}.py" for name in ("access", "fused", "steps")],
        [
            *("tests/learners/test_step_learner.py", "tests/learners/test_arctd.py"),
            "tests/kernels/test_fused.py",
        ],
        forms=True,
        part_of="kernels",
    ),
    "machine code of steps": Group(
        ["kernels/kept.py"], ["tests/kernels/test_kept.py"], machine=True, part_of="kernels"
    ),
    "machine code": Group(
        ["load_store.py", "kernels/vectors.py"],
        ["tests/test_load_store.py", "tests/kernels/test_vectors.py"],
        part_of="kernels",
    ),
    "evaluation": Group(
        ["evaluation/**/*.py"],
        [
            *("tests/evaluation", "src/o2td/evaluation"),
            *("tests/cli/test_evaluate.py", "tests/cli/test_evaluate_compare.py"),
            "tests/reliability/test_bad_input.py",
        ],
        loops=False,
    ),
    "evaluation's loops": Group(
        ["evaluation/**/*.py"],
        [
            *(f"tests/evaluation/test_{name}.py" for name in ("bootstrap", "fitting", "systems")),
            *(f"tests/evaluation/test_{name}.py" for name in ("golden", "users", "value_model")),
            *(f"tests/evaluation/test_{name}.py" for name in ("evaluate", "histories", "moments")),
        ],
        ("o2td.evaluation", "o2td.kernels.resampling"),
        loops=True,
        part_of="evaluation",
    ),
    "sources": Group(
        ["sources/**/*.py"],
        [
            *("tests/sources", "src/o2td/sources"),
            *(
                f"tests/reliability/test_{name}.py"
                for name in ("corruption", "bad_input", "hostile_logs")
            ),
            *(f"tests/cli/test_{name}.py" for name in ("evaluate_malformed", "evaluate_compare")),
            *("tests/cli/test_logs_columns.py", "tests/cli/test_evaluate.py"),
            *(f"tests/evaluation/test_{name}.py" for name in ("golden", "users", "value_model")),
            *(f"tests/evaluation/test_{name}.py" for name in ("by_name", "compare")),
        ],
    ),
}
ABSENT = ("modules.py",)  # needs PyTorch, which is not among the locked requirements
WHOLE = dict.fromkeys(about.part_of or group for group, about in GROUPS.items())
MORE = {"evaluation": 1.6, "sources": 1.6}  # times as many of the groups with the most code
CONTROL = 10  # after every so many mutants the same tests run without a change


# -- tests -----------------------------------------------------------------------------------------


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# -- the command -----------------------------------------------------------------------------------


class Mutant(NamedTuple):
    """A change, its number in its file, and its location."""

    group: str
    path: Path
    index: int
    at: Place

    @property
    def whole(self) -> str:
        return GROUPS[self.group].part_of or self.group

    @property
    def file(self) -> str:
        return self.path.relative_to(SOURCE).as_posix()

    @property
    def text(self) -> str:
        return lines_of(self.path)[self.at.line - 1].strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.at.line} {self.at.what}"


@cache
def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def everything() -> list[Mutant]:
    return [
        Mutant(group, path, k, place)
        for group, about in GROUPS.items()
        for pattern in about.files
        for path in sorted(SOURCE.glob(pattern))
        if path.name not in ABSENT
        for k, place in enumerate(places(path))
        if place.first and (place.function in forms(path)) == about.forms
        if about.loops is None or (place.function in loops(path)) == about.loops
        if about.machine is None or (place.function in machine(path)) == about.machine
    ]


def sample(possible: list[Mutant], number: int, seed: int) -> list[Mutant]:
    """This many of each group or `MORE`, parts by their size; a larger number adds to a smaller."""
    shuffled = random.Random(seed).sample(possible, len(possible))  # noqa: S311
    groups = dict.fromkeys(one.whole for one in shuffled)
    return [
        one
        for group in groups
        for one in islice(
            (o for o in shuffled if o.whole == group), round(number * MORE.get(group, 1.0))
        )
    ]


def digest() -> str:
    """A digest of everything that results depend on."""
    found = hashlib.sha256()
    for folder in ("src", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()


class Study:
    """A pytest plugin that tests mutants instead of running the tests."""

    def __init__(self, possible: list[Mutant], drawn: list[Mutant], results: Path) -> None:
        self.possible, self.drawn, self.results = possible, drawn, results

    def pytest_runtestloop(self, session: Any) -> bool:
        group = self.drawn[0].group.replace(" ", "-").replace("'", "")
        lines = {
            (one.file, one.at.line): f"{one.file} {one.at.function} {one.text}"
            for one in self.possible
        }
        notes = ROOT / "build" / "mutation" / f"reached-{group}.json"
        tests = Tests(session.items, lines, notes)
        for number, one in enumerate(self.drawn):
            began = sum(os.times()[2:4])
            code = changed(one.path, one.index, one.at)
            fate, ran = tests.meet(one.file, one.at, code)
            self.keep(one, one.at.what, fate)
            say(f"{one}: {fate} ({len(ran)} tests, {sum(os.times()[2:4]) - began:.0f} s)")
            if number % CONTROL == 0:
                self.keep(one, "control", tests.run(ran, None)[0])
        return True

    def keep(self, one: Mutant, what: str, fate: str) -> None:
        entry = {"file": one.file, "index": one.index, "what": what, "fate": fate}
        with self.results.open("a") as stream:
            stream.write(json.dumps(entry) + "\n")


def say(line: str) -> None:
    print(line, flush=True)


def study(group: str, possible: list[Mutant], drawn: list[Mutant], results: Path) -> None:
    """Start a process of its own for a group, since every group leaves other modules uncompiled."""
    if os.fork() == 0:
        import pytest

        interpreted(GROUPS[group].plain)
        flags = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
        if GROUPS[group].plain:  # NumPy warns where compiled code does not
            flags += ["-W", "ignore::RuntimeWarning", "-k", f"not ({' or '.join(TOO_SLOW)})"]
        own = [one for one in possible if one.group == group]
        pytest.main([*flags, "--timeout=0", *GROUPS[group].tests], [Study(own, drawn, results)])
        os._exit(0)


def fates(results: Path) -> dict[tuple[str, int, str], str]:
    lines = read(results)[1:]
    return {(one["file"], one["index"], one["what"]): one["fate"] for one in lines}


def outcomes(drawn: list[Mutant], results: Path) -> list[Outcome]:
    found = fates(results)
    return [
        Outcome(
            one.whole,
            one.file,
            one.at.function,
            one.text,
            one.at.what,
            found.get((one.file, one.index, one.at.what), "not met"),
        )
        for one in drawn
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=25, help="how many of each group")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(WHOLE), action="append", help="this group")
    parser.add_argument("--workers", type=int, default=1, help="groups at a time")
    options = parser.parse_args()
    os.chdir(ROOT)
    git = ["git", "rev-parse", "--short=7", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    work = ROOT / "build" / "mutation" / f"seed-{options.seed}"
    work.mkdir(parents=True, exist_ok=True)
    results = work / "results.jsonl"
    state = {"sources and tests": digest()}
    if read(results)[:1] != [state]:
        results.write_text(json.dumps(state) + "\n")
    possible = everything()
    drawn = sample(possible, options.mutants, options.seed)
    say(f"{len(possible)} mutants are possible, {len(drawn)} are drawn with seed {options.seed}")
    drawn = [one for one in drawn if one.whole in (options.only or WHOLE)]
    done, working = fates(results), 0
    for group in GROUPS:
        left = [one for one in drawn if one.group == group]
        left = [one for one in left if (one.file, one.index, one.at.what) not in done]
        if left:
            if working == options.workers:
                os.wait()
                working -= 1
            study(group, possible, left, results)
            working += 1
    while working:
        os.wait()
        working -= 1
    controls = [fate for (_, _, what), fate in fates(results).items() if what == "control"]
    about = {"version": __version__, "commit": commit} | {
        "seed": options.seed,
        "possible": Counter(one.whole for one in possible),
    }
    return write(work, about, outcomes(drawn, results), controls)


if __name__ == "__main__":
    sys.exit(main())
