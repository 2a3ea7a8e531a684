"""The tests that run against mutants: how long each takes, which lines it reaches, and which run."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from benchmarks.mutants import Place, mark, put

SOURCE = Path(__file__).resolve().parents[1] / "src" / "o2td"
SLOW = 6.0  # seconds; a test that takes longer kills no mutant
BUDGET = 20.0  # seconds of tests that reach a mutant's line, at most
LIMIT = 60  # seconds after which a child is ended
AT_ONCE = 300  # tests that a child of the first pass runs, at most
FIRST = 240.0  # seconds of the first pass; tests that it does not reach are not asked
IDLE = 30.0  # seconds without work after which a child is ended: it waits for a dead thread
TIMES = (signal.SIGXCPU, signal.SIGKILL)
LIBRARIES = (
    "o2td",
    "numpy",
    "scipy",
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "msgspec",
    "rich",
)


class Kind:
    """What an overload asks of a value's type: fields, class and types of a tuple."""

    def __init__(self, value: Any) -> None:
        if isinstance(value, tuple):
            self.types = [Kind(one) for one in value]
        if hasattr(value, "_fields"):
            self.fields, self.instance_class = value._fields, type(value)

    def __len__(self) -> int:
        return len(self.types)

    def __bool__(self) -> bool:
        return True


def interpreted(plain: tuple[str, ...]) -> None:
    """Leave these modules uncompiled; overloads are chosen by value instead of by compiled type."""
    import numba
    import numba.extending

    compiled = numba.njit

    def njit(*given: Any, **options: Any) -> Any:
        def decorate(function: Any) -> Any:
            if function.__module__.startswith(plain):
                return function
            return compiled(*given, **options)(function)

        return given[0] if given and isinstance(given[0], FunctionType) else decorate

    def overload(generic: Any, *_: Any, **__: Any) -> Any:
        def decorate(choose: Any) -> Any:
            if hasattr(generic, "choosers"):  # there is already one for other types
                generic.choosers.append(choose)
                return choose

            def dispatch(*arguments: Any) -> Any:
                kinds = [Kind(one) for one in arguments]
                found = next(filter(None, (one(*kinds) for one in dispatch.choosers)))  # type: ignore[attr-defined]
                return found(*arguments)

            dispatch.choosers = [choose]  # type: ignore[attr-defined]
            for module in [one for name, one in sys.modules.items() if name.startswith("o2td")]:
                if vars(module).get(generic.__name__) is generic:  # here, or imported from here
                    setattr(module, generic.__name__, dispatch)
            return choose

        return decorate

    if plain:
        numba.njit = njit
    if "o2td.kernels" in plain:
        numba.extending.overload = overload


def passes(item: Any) -> bool:
    from _pytest.runner import runtestprotocol
    from _pytest.warnings import catch_warnings_for_item

    if hasattr(item, "dtest"):  # a doctest, whose names are gone once it has run
        item.names = getattr(item, "names", None) or dict(item.dtest.globs)
        item.dtest.globs = dict(item.names)
    try:
        with catch_warnings_for_item(item.config, item.ihook, "runtest", item):
            reports = runtestprotocol(item, log=False, nextitem=None)
    except Exception:  # it failed in a way that pytest cannot report
        return False
    return not any(report.failed for report in reports)


def within(limit: float, item: Any) -> bool:
    """Whether a test passes within this much processor time."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        return passes(item)
    except TimeoutError:
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def watch(lines: dict[str, dict[int, int]]) -> set[tuple[str, int]]:
    """The set to which lines are added, from now on, whenever they are reached.

    `lines` has, for each file, the first line of the function around each line.
    """
    seen: set[tuple[str, int]] = set()
    vars(builtins)["reached"] = lambda file, line: seen.add((file, line))
    for file, wanted in lines.items():
        name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        importlib.import_module(f"o2td.{name}")
        mark(SOURCE / file, file, wanted)
    return seen


def in_fork(work: Callable[[], int], seconds: float) -> str:
    """The exit code of `work()` in a child, "crash", or "timeout" after this much processor time."""
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
    status = waited(pid)
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) in TIMES else "crash"
    return str(os.WEXITSTATUS(status))


def waited(pid: int) -> int:
    """The status with which a child ended; one that does nothing for long is killed."""
    worked, since = -1, time.monotonic()
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.01)
        if time.monotonic() - since > IDLE:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            now, since = sum(map(int, fields[11:15])), time.monotonic()  # children that ended count
            if now == worked:
                os.kill(pid, signal.SIGKILL)
            worked = now


class Tests:
    """Which lines the tests of a group reach, how long they take, and which pass without a change."""

    def __init__(self, items: list[Any], lines: dict[str, dict[int, int]]) -> None:
        self.items, self.seen = by_turns(items), watch(lines)
        self.lines: dict[str, set[tuple[str, int]]] = {}
        self.seconds: dict[str, float] = {}
        self.trusted: dict[str, bool] = {}
        self.survey()

    def survey(self) -> None:
        """Run every test once without a change; those that fail or are slow are not asked again."""
        left = self.items
        while left and sum(self.seconds.values()) < FIRST:
            _, told = self.run(left[:AT_ONCE], None, all_of_them=True)
            for one in told:
                self.lines[one["test"]] = {(file, number) for file, number in one["lines"]}
                self.seconds[one["test"]] = one["seconds"]
                if not one.get("good"):
                    self.trusted[one["test"]] = False
            left = left[max(1, len(told)) :]
        self.items = [item for item in self.items if item.nodeid in self.lines]
        refused = [test for test, good in self.trusted.items() if not good]
        spent = f"{len(self.items)} tests in {sum(self.seconds.values()):.0f} s"
        print(f"{spent}, {len(left)} not reached", flush=True)
        for test in refused:
            print(f"not asked: {test} ({self.seconds[test]:.1f} s)", flush=True)

    def reaching(self, file: str, at: Place) -> list[Any]:
        """Tests that reach a line: one case of each, quick ones first, then each test's second.

        Those that are called after the file come a turn earlier.
        """
        turns: Counter[str] = Counter()
        found = []
        for item in self.items:
            if (file, at.line) in self.lines[item.nodeid] and self.trusted.get(item.nodeid, True):
                name = item.nodeid.partition("[")[0]
                turn = turns[name] + (not mentions(item, file))
                found.append((turn, self.seconds[item.nodeid], item))
                turns[name] += 1
        return [item for *_, item in sorted(found, key=lambda one: one[:2])]

    def meet(self, file: str, at: Place, code: CodeType) -> tuple[str, list[Any]]:
        """The fate of a mutant, and the tests that ran on it.

        A test that fails kills it if it passes by itself without the change; if not, it is no longer
        asked.
        """
        items, ran, spent = self.reaching(file, at), list[Any](), 0.0
        if not items:
            return "no test", []
        while True:
            fate, told = self.run(items, code, spent=spent)
            ran += items[: len(told)]
            if fate in ("survived", "error") or self.trust(ran[-1]):
                return fate, ran
            ran.pop()
            items, spent = items[len(told) :], spent + sum(one["seconds"] for one in told)
            if not items:
                return "survived", ran

    def trust(self, item: Any) -> bool:
        """Whether a test passes without a change, by itself."""
        test = item.nodeid
        if test not in self.trusted:
            fate, told = self.run([item], None)
            self.trusted[test] = fate == "survived"
            if not self.trusted[test]:
                print(f"not asked again: {test} ({fate}, {told[0]['seconds']:.1f} s)", flush=True)
        return self.trusted[test]

    def run(
        self, items: list[Any], code: CodeType | None, all_of_them: bool = False, spent: float = 0.0
    ) -> tuple[str, list[dict[str, Any]]]:
        """Run tests in a fork until one fails or their time is up, and note what they do.

        `all_of_them` goes on after a failure. A test may take three times what it took before.
        """
        with tempfile.NamedTemporaryFile("w+") as notes:

            def note(**entry: Any) -> None:
                notes.write(json.dumps(entry) + "\n")
                notes.flush()

            def work() -> int:
                if code is not None:
                    put(code)
                total, good = spent, True
                for item in items:
                    note(test=item.nodeid, lines=[], seconds=0.0)
                    self.seen.clear()
                    began = time.process_time()
                    good = within(max(SLOW, 3.0 * self.seconds.get(item.nodeid, 0.0)), item)
                    took = time.process_time() - began
                    note(test=item.nodeid, lines=sorted(self.seen), seconds=took, good=good)
                    total += took
                    if total > BUDGET or not (good or all_of_them):
                        break
                note(modules=list(sys.modules))
                return 0 if good else 1

            outcome = in_fork(work, LIMIT)
            told = [json.loads(one) for one in Path(notes.name).read_text().splitlines()]
        for name in (name for one in told for name in one.get("modules", ())):
            if name not in sys.modules and name.partition(".")[0] in LIBRARIES:
                with contextlib.suppress(Exception):  # so that no other fork has to import it
                    importlib.import_module(name)
        tests = {one["test"]: one for one in told if "test" in one}
        fate = {"0": "survived", "1": "killed", "70": "error"}.get(outcome, outcome)
        return fate, list(tests.values())


def mentions(item: Any, file: str) -> bool:
    """Whether a test is called after a file."""
    stem, name = Path(file).stem.replace("_", ""), item.nodeid.casefold()
    long = len(stem) > 4 and stem in name.replace("_", "")
    return long or stem in re.split("[^a-z0-9]+", name)


def by_turns(items: list[Any]) -> list[Any]:
    """One case of each test first, then each test's second: many cases crowd out none."""
    turns: Counter[str] = Counter()
    found = []
    for item in items:
        name = item.nodeid.partition("[")[0]
        found.append((turns[name], item))
        turns[name] += 1
    return [item for _, item in sorted(found, key=lambda pair: pair[0])]
