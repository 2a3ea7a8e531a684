"""Mutation testing: would the tests notice if a line of an algorithm said something else?

make mutation                                  a random sample
python benchmarks/mutation.py --mutants 500 --seed 1 --only solvers

Compilation is switched off, so that the compiled loops are mutated like any other line. Everything is
imported and collected once. Every test runs once in a fork, and the functions that it enters are noted.
Then each mutant (one operator, comparison, constant, condition or statement of a function changed)
meets the tests that enter its function, quickest first, in a fork whose function has the changed code;
it is killed by the first that fails. Controls, forks without any change, must survive. Results go
to build/mutation as they come, and a run that was stopped goes on there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

from mutants import changed, places, put

os.environ |= {"NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "o2td"
WORK = ROOT / "build" / "mutation"

GROUPS: dict[str, tuple[list[str], list[str]]] = {
    "learners": (
        ["learners/*.py", "kernels/*.py", "emphasis.py"],
        ["tests/learners", "tests/reliability/test_divergence.py"],
    ),
    "solvers": (["solvers/*.py"], ["tests/solvers", "tests/reliability/test_systems.py"]),
    "exact": (["exact/*.py"], ["tests/exact"]),
    "metrics": (["metrics.py"], ["tests/test_metrics.py"]),
}
SLOW = 8.0  # seconds without compilation beyond which a test is left out
BUDGET = 15.0  # seconds of tests that a mutant meets at most
CONTROL = 10  # every so many mutants the same tests run without a change


# -- tests -----------------------------------------------------------------------------------------


def interpreted() -> None:
    """Let functions that the compiler would choose by type be chosen by value."""
    import numba.extending

    class Kind:
        def __init__(self, value: Any) -> None:
            self.fields, self.instance_class = getattr(value, "_fields", ()), type(value)

    def overload(generic: Any, **_: Any) -> Any:
        def decorate(choose: Any) -> Any:
            def dispatch(*arguments: Any) -> Any:
                return choose(*map(Kind, arguments))(*arguments)

            sys.modules[generic.__module__].__dict__[generic.__name__] = dispatch
            return choose

        return decorate

    numba.extending.overload = overload


def in_fork(work: Callable[[], int], seconds: float) -> str:
    """The exit code of `work()` in a child, "crash", or "timeout" after so much processor time."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "crash"
    return str(os.WEXITSTATUS(status))


def passes(item: Any) -> bool:
    from _pytest.runner import runtestprotocol

    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def note(item: Any, path: Path) -> int:
    """Write down how long a test takes, whether it passes and which functions it enters."""
    seen: set[tuple[str, int]] = set()
    prefix = str(SOURCE)

    def trace(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if code.co_filename.startswith(prefix):
            seen.add((code.co_filename[len(prefix) + 1 :], code.co_firstlineno))

    began = time.process_time()
    sys.settrace(trace)
    good = passes(item)
    sys.settrace(None)
    entry = {"test": item.nodeid, "good": good, "seconds": time.process_time() - began}
    with path.open("a") as stream:
        stream.write(json.dumps(entry | {"calls": sorted(seen)}) + "\n")
    return 0


def noted(items: list[Any]) -> dict[str, dict[str, Any]]:
    """The notes of an earlier run, and those of the tests that it did not see."""
    path = WORK / "tests.jsonl"
    found = {one["test"]: one for one in read(path)}
    for item in items:
        if item.nodeid not in found and in_fork(lambda item=item: note(item, path), SLOW) != "0":
            slow = {"test": item.nodeid, "good": False, "seconds": SLOW, "calls": []}
            with path.open("a") as stream:
                stream.write(json.dumps(slow) + "\n")
    return {one["test"]: one for one in read(path)}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def chosen_tests(
    tests: dict[str, dict[str, Any]], items: list[Any], file: str, function: int
) -> list[Any]:
    """Those that enter the function, quickest first, up to the budget."""
    found, total = [], 0.0
    for item in sorted(items, key=lambda item: tests[item.nodeid]["seconds"]):
        entry = tests[item.nodeid]
        if entry["good"] and [file, function] in entry["calls"]:
            total += entry["seconds"]
            if total > BUDGET and found:
                break
            found.append(item)
    return found


def meet(items: list[Any], code: CodeType | None, seconds: float) -> str:
    """How a mutant fares: "killed", "survived", "timeout" or "crash"."""

    def work() -> int:
        if code is not None:
            put(code)
        return 0 if all(passes(item) for item in items) else 1

    outcome = in_fork(work, seconds)
    return {"0": "survived", "1": "killed"}.get(outcome, outcome)


# -- the command -----------------------------------------------------------------------------------


def sample(groups: list[str], number: int, seed: int) -> list[tuple[str, Path, int, int, str, int]]:
    everything = []
    for group in groups:
        for pattern in GROUPS[group][0]:
            for path in sorted(SOURCE.glob(pattern)):
                everything += [
                    (group, path, k, line, what, first)
                    for k, (line, what, first) in enumerate(places(path))
                    if first
                ]
    print(f"{len(everything)} mutants are possible, {number} are drawn with seed {seed}")
    return random.Random(seed).sample(everything, min(number, len(everything)))  # noqa: S311


class Study:
    """A plugin of pytest that meets mutants instead of running the tests."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.groups = [options.only] if options.only else list(GROUPS)
        self.drawn = sample(self.groups, options.mutants, options.seed)
        self.code = 1

    def pytest_runtestloop(self, session: Any) -> bool:
        tests = noted(session.items)
        good = sum(entry["good"] for entry in tests.values())
        print(f"{good} of {len(tests)} tests are quick enough without compilation", flush=True)
        log = WORK / "results.jsonl"
        done = {(one["file"], one["index"], one["what"]): one for one in read(log)}
        score: dict[str, Counter[str]] = {group: Counter() for group in self.groups}
        survivors = []
        for number, (group, path, index, line, what, first) in enumerate(self.drawn):
            file = path.relative_to(SOURCE).as_posix()
            one = done.get((file, index, what))
            if one is None:
                fits = tuple(str(ROOT / name) for name in GROUPS[group][1])
                items = [item for item in session.items if str(item.path).startswith(fits)]
                chosen = chosen_tests(tests, items, file, first)
                limit = 10.0 + 5.0 * sum(tests[item.nodeid]["seconds"] for item in chosen)
                fate = "no test"
                if chosen:
                    fate = meet(chosen, changed(path, index, first), limit)
                    if number % CONTROL == 0:
                        score[group][f"control {meet(chosen, None, limit)}"] += 1
                one = {"file": file, "index": index, "line": line, "what": what, "fate": fate}
                with log.open("a") as stream:
                    stream.write(json.dumps(one | {"tests": len(chosen)}) + "\n")
            score[group][one["fate"]] += 1
            if one["fate"] in ("survived", "no test"):
                text = path.read_text().splitlines()[line - 1].strip()
                survivors.append(f"{file}:{line} [{what}] {one['fate']}: {text}")
            print(f"{number + 1}/{len(self.drawn)} {file}:{line} {what}: {one['fate']}", flush=True)
        self.code = summary(score, survivors)
        return True


def summary(score: dict[str, Counter[str]], survivors: list[str]) -> int:
    total: Counter[str] = Counter()
    print(*survivors, sep="\n")
    for group, counts in score.items():
        total += counts
        print(f"{group}: {dict(counts)}")
    number = sum(count for fate, count in total.items() if not fate.startswith("control"))
    lost = total["survived"] + total["no test"]
    print(f"{number - lost} of {number} killed: {1.0 - lost / max(1, number):.1%}")
    return 0 if lost <= 0.15 * number and not total["control killed"] else 1


def main() -> int:
    import pytest

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(GROUPS))
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(SOURCE.parent))
    WORK.mkdir(parents=True, exist_ok=True)
    interpreted()
    study = Study(options)
    names = [name for group in study.groups for name in GROUPS[group][1]]
    flags = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--timeout=0"]
    pytest.main([*flags, *names], [study])
    return study.code


if __name__ == "__main__":
    sys.exit(main())
