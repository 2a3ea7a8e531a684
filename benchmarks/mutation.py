"""Mutation testing: would the tests notice if a line of an algorithm said something else?

make mutation                                  a random sample
python -m benchmarks.mutation --mutants 500 --seed 1 --only solvers

Compilation is switched off for the modules under test, so that compiled loops are mutated like any
other line. Everything is imported and collected once for each group of modules, and the lines that
each test reaches are recorded. Then the tests that reach a mutant's line (one operator, comparison,
constant, condition or statement of a function changed) or enter its function run in a fork whose
function has the changed code; the first that fails kills the mutant.
Controls, forks without any change, must survive. All limits are on processor time, so that a loaded
machine kills no mutant.

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
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from benchmarks.mutants import Place, changed, places, put
from benchmarks.mutation_record import Outcome, write
from benchmarks.mutation_tests import (
    PATIENCE,
    SLOW,
    chosen_tests,
    interpreted,
    noted,
    noted_apart,
    passes,
    usable,
)
from o2td import __version__

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "o2td"

LEARNING = [
    f"tests/learners/test_{name}.py"
    for name in (
        "against_reference", "axes", "divergence", "edges", "golden", "learn_one", "mean_dynamics",
        "short_streams", "small_parts", "step_learner", "step_sizes", "sweep",
    )
]  # fmt: skip
STEPPING = [
    *(f"tests/learners/test_{name}.py" for name in ("learn_one", "edges", "short_streams")),
    *("tests/kernels/test_lanes.py", "tests/kernels/test_vectors.py"),
]  # others take too long without compilation


LOOPS = tuple(f"evaluation/{name}.py" for name in ("basis", "bootstrap", "histories", "systems"))


OWN = ("against_reference", "arctd", "golden", "mean_dynamics", "small_parts", "tidbd")
STEPS = tuple(
    f"learners/{name}.py"
    for name in (
        "arctd", "atd", "differential_td", "gem_etd", "per_etd", "proximal_gtd2mp", "step_sizes/tidbd",
        "true_online_gtd", "true_online_htd", "true_online_td", "truncated_etd", "variance_td",
        "wis_gtd", "wis_td",
    )
)  # fmt: skip


class Group(NamedTuple):
    """Files to mutate, tests that should notice, and modules that must not be compiled."""

    files: list[str]
    tests: list[str]
    plain: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()  # files of another group
    threaded: bool = False  # tests start library threads, which do not survive a fork


GROUPS = {
    "steps of learners": Group(
        [*STEPS],
        [
            *STEPPING,
            *(f"tests/learners/test_{name}.py" for name in OWN),
        ],
        ("o2td.kernels", "o2td.learners"),
    ),
    "learners": Group(
        ["learners/**/*.py", "emphasis.py"],
        [
            *LEARNING,
            "tests/test_emphasis.py",
            "tests/reliability/test_divergence.py",
            "src/o2td/learners",
            "src/o2td/emphasis.py",
        ],
        besides=STEPS,
    ),
    "solvers": Group(
        ["solvers/*.py", "linear_algebra/*.py"],
        ["tests/solvers", "tests/linear_algebra"],
        ("o2td.solvers", "o2td.linear_algebra"),
    ),
    "exact": Group(
        ["exact/*.py"], ["tests/exact", "tests/reliability/test_bad_problems.py", "src/o2td/exact"]
    ),
    "metrics": Group(["metrics.py"], ["tests/test_metrics.py"], ("o2td.metrics",)),
    "kernels": Group(
        ["kernels/[!mv]*.py"],
        [
            *STEPPING,
            *(f"tests/learners/test_{name}.py" for name in ("step_learner", "replicates", *OWN)),
        ],
        ("o2td.kernels", "o2td.learners"),
    ),
    "machine code": Group(
        ["kernels/load_store.py", "kernels/vectors.py"],
        ["tests/kernels/test_load_store.py", "tests/kernels/test_vectors.py"],
    ),
    "evaluation": Group(
        ["evaluation/**/*.py"],
        ["tests/evaluation", "tests/cli/test_evaluate.py", "src/o2td/evaluation"],
        threaded=True,
        besides=LOOPS,
    ),
    "evaluation's loops": Group(
        [*LOOPS],
        [
            *(f"tests/evaluation/test_{name}.py" for name in ("bootstrap", "fitting", "systems")),
            *(f"tests/evaluation/test_{name}.py" for name in ("golden", "users", "value_model")),
            "tests/evaluation/test_evaluate.py",
        ],
        ("o2td.evaluation",),
        threaded=True,
    ),
    "sources": Group(
        ["sources/**/*.py"],
        [
            *("tests/sources", "tests/cli/test_evaluate_malformed.py", "src/o2td/sources"),
            *("tests/evaluation/test_users.py", "tests/evaluation/test_golden.py"),
        ],
        threaded=True,
    ),
}
LEAST = 25  # mutants per group, if it has as many
WAIT = 8.0  # wall time limit of a child, in multiples of its processor time limit
TIMES = (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM)
CONTROL = 10  # after every so many mutants the same tests run without a change


# -- tests -----------------------------------------------------------------------------------------


def in_fork(work: Callable[[], int], seconds: float) -> str:
    """The exit code of `work()` in a child, "crash", or "timeout" after this much processor time.

    A child that only waits for a dead thread uses none, so a wall time limit ends it.
    """
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
            signal.alarm(int(WAIT * seconds))
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) in TIMES else "crash"
    return str(os.WEXITSTATUS(status))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def meet(items: list[Any], code: CodeType | None, seconds: float) -> str:
    """The fate of a mutant: "killed", "survived", "timeout", "crash", or "error" of this script."""

    def work() -> int:
        if code is not None:
            put(code)
        return 0 if all(passes(item) for item in items) else 1

    outcome = in_fork(work, seconds)
    return {"0": "survived", "1": "killed", "70": "error"}.get(outcome, outcome)


# -- the command -----------------------------------------------------------------------------------


class Mutant(NamedTuple):
    """A change, its number in its file, and its location."""

    group: str
    path: Path
    index: int
    at: Place

    @property
    def file(self) -> str:
        return self.path.relative_to(SOURCE).as_posix()

    def __str__(self) -> str:
        return f"{self.file}:{self.at.line} {self.at.what}"


def everything() -> list[Mutant]:
    return [
        Mutant(group, path, k, place)
        for group, about in GROUPS.items()
        for pattern in about.files
        for path in sorted(SOURCE.glob(pattern))
        if path.relative_to(SOURCE).as_posix() not in about.besides
        for k, place in enumerate(places(path))
        if place.first
    ]


def sample(possible: list[Mutant], number: int, seed: int) -> list[Mutant]:
    """This many, and more of a small group until it has its minimum."""
    shuffled = random.Random(seed).sample(possible, len(possible))  # noqa: S311
    drawn = shuffled[:number]
    for group in GROUPS:
        missing = max(0, LEAST - sum(one.group == group for one in drawn))
        drawn += [one for one in shuffled[number:] if one.group == group][:missing]
    return drawn


def digest() -> str:
    """A digest of everything that results depend on."""
    found = hashlib.sha256()
    for folder in ("src", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()


class Study:
    """A pytest plugin that tests mutants instead of running the tests."""

    def __init__(self, group: str, drawn: list[Mutant], results: Path) -> None:
        self.group, self.drawn, self.results = group, drawn, results

    def pytest_runtestloop(self, session: Any) -> bool:
        kernels = "o2td.kernels" in GROUPS[self.group].plain  # nothing else compiles for long
        lines = {(one.file, one.at.line) for one in self.drawn}
        patience = 2.0 * SLOW if kernels else PATIENCE
        look = noted_apart if GROUPS[self.group].threaded else noted
        tests = look(session.items, patience, lines)
        good = sum(usable(tests[item.nodeid]) for item in session.items)
        say(f"{self.group}: {good} of {len(session.items)} tests are quick enough")
        for number, one in enumerate(self.drawn):
            chosen = chosen_tests(tests, session.items, one.file, one.at)
            limit = 10.0 + 5.0 * sum(tests[item.nodeid]["seconds"] for item in chosen)
            fate = "no test"
            if chosen:
                fate = meet(chosen, changed(one.path, one.index, one.at.first), limit)
            self.keep(one, one.at.what, fate)
            say(f"{one}: {fate} ({len(chosen)} tests)")
            if chosen and number % CONTROL == 0:
                self.keep(one, "control", meet(chosen, None, limit))
        return True

    def keep(self, one: Mutant, what: str, fate: str) -> None:
        entry = {"file": one.file, "index": one.index, "what": what, "fate": fate}
        with self.results.open("a") as stream:
            stream.write(json.dumps(entry) + "\n")


def say(line: str) -> None:
    print(line, flush=True)


def study(group: str, drawn: list[Mutant], results: Path) -> None:
    """Runs in a process of its own, since every group leaves other modules uncompiled."""
    pid = os.fork()
    if pid == 0:
        import pytest

        interpreted(GROUPS[group].plain)
        flags = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
        pytest.main([*flags, "--timeout=0", *GROUPS[group].tests], [Study(group, drawn, results)])
        os._exit(0)
    os.waitpid(pid, 0)


def fates(results: Path) -> dict[tuple[str, int, str], str]:
    lines = read(results)[1:]
    return {(one["file"], one["index"], one["what"]): one["fate"] for one in lines}


def outcomes(drawn: list[Mutant], results: Path) -> list[Outcome]:
    found = fates(results)
    return [
        Outcome(
            one.group,
            one.file,
            one.at.function,
            one.path.read_text().splitlines()[one.at.line - 1].strip(),
            one.at.what,
            found.get((one.file, one.index, one.at.what), "not met"),
        )
        for one in drawn
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(GROUPS))
    options = parser.parse_args()
    os.chdir(ROOT)
    work = ROOT / "build" / "mutation" / f"seed-{options.seed}"
    work.mkdir(parents=True, exist_ok=True)
    results = work / "results.jsonl"
    state = {"sources and tests": digest()}
    if read(results)[:1] != [state]:
        results.write_text(json.dumps(state) + "\n")
    possible = everything()
    drawn = sample(possible, options.mutants, options.seed)
    say(f"{len(possible)} mutants are possible, {len(drawn)} are drawn with seed {options.seed}")
    for group in [options.only] if options.only else GROUPS:
        done = fates(results)
        left = [one for one in drawn if one.group == group]
        left = [one for one in left if (one.file, one.index, one.at.what) not in done]
        if left:
            study(group, left, results)
    controls = [fate for (_, _, what), fate in fates(results).items() if what == "control"]
    about = {"version": __version__, "seed": options.seed, "possible": len(possible)}
    return write(work, about, outcomes(drawn, results), controls)


if __name__ == "__main__":
    sys.exit(main())
