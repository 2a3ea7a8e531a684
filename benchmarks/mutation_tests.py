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
SLOW = 2.0  # seconds; a test that takes longer kills no mutant
PATIENCE = 4.0  # seconds after which a test counts as failed
BUDGET = 10.0  # seconds of tests that reach a mutant's line, at most
MOST = 80  # such tests, at most
TOTAL = 16.0  # seconds of all tests of a mutant, at most
LIMIT = 40  # seconds after which a child is ended
WAIT = 100.0  # wall time limit of a child, in multiples of its processor time limit
TIMES = (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM)
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

    def overload(generic: Any, **_: Any) -> Any:
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

    if hasattr(item, "dtest"):  # a doctest, whose names are gone once it has run
        item.names = getattr(item, "names", None) or dict(item.dtest.globs)
        item.dtest.globs = dict(item.names)
    try:
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


class Tests:
    """What mutants have shown so far: which lines tests reach, and which pass without a change."""

    def __init__(self, items: list[Any], lines: dict[str, dict[int, int]]) -> None:
        self.items, self.seen = by_turns(items), watch(lines)
        self.lines: dict[str, set[tuple[str, int]]] = {}
        self.seconds: dict[str, float] = {}
        self.trusted: dict[str, bool] = {}

    def promising(self, file: str, at: Place) -> list[Any]:
        """Tests that may reach a line, those first that do or that are called after its file."""
        span = {(file, line) for line in range(at.first, at.last + 1)}

        def rank(item: Any) -> int:
            known = self.lines.get(item.nodeid)
            if known is None:
                return 1
            return 0 if (file, at.line) in known else 2 if span & known else 3

        def key(item: Any) -> tuple[int, bool, bool, float]:
            compares = "golden" in item.nodeid or "reference" in item.nodeid
            took = self.seconds.get(item.nodeid, 0.0)
            return rank(item), not mentions(item, file), not compares, took

        left = [item for item in self.items if self.trusted.get(item.nodeid, True)]
        return sorted((item for item in left if rank(item) < 3), key=key)

    def meet(self, file: str, at: Place, code: CodeType) -> tuple[str, list[Any]]:
        """The fate of a mutant, and the tests that ran on it.

        A test that fails kills it if it passes without the change; if not, it is no longer asked.
        """
        items, told = self.promising(file, at), list[dict[str, Any]]()
        while True:
            fate, new = self.run(items, (file, at.line), code, told)
            told += new
            if fate == "survived" and not any([file, at.line] in one["lines"] for one in told):
                fate = "no test"
            if fate in ("survived", "no test", "error") or self.trust(new[-1]["test"]):
                ran = {one["test"] for one in told}
                return fate, [one for one in self.items if one.nodeid in ran]
            told.pop()
            items = items[len(new) :]

    def trust(self, test: str) -> bool:
        """Whether a test passes without a change, and is quick enough for a time limit to mean that."""
        if test not in self.trusted:
            (item,) = (one for one in self.items if one.nodeid == test)
            fate, told = self.run([item], ("", 0), None)
            self.trusted[test] = fate == "survived" and told[0]["seconds"] < SLOW
            if not self.trusted[test]:
                print(f"not asked again: {test} ({fate}, {told[0]['seconds']:.1f} s)", flush=True)
        return self.trusted[test]

    def run(
        self,
        items: list[Any],
        line: tuple[str, int],
        code: CodeType | None,
        before: list[dict[str, Any]] = [],  # noqa: B006
    ) -> tuple[str, list[dict[str, Any]]]:
        """Run tests in a fork until one fails or enough have reached the line, and note what they do.

        Those that ran before, in another fork, count.
        """
        with tempfile.NamedTemporaryFile("w+") as notes:

            def note(**entry: Any) -> None:
                notes.write(json.dumps(entry) + "\n")
                notes.flush()

            def work() -> int:
                if code is not None:
                    put(code)
                reached = [one["seconds"] for one in before if list(line) in one["lines"]]
                near, reaching = sum(reached), len(reached)
                total = sum(one["seconds"] for one in before)
                good = True
                for item in items:
                    note(test=item.nodeid, lines=[], seconds=0.0)
                    self.seen.clear()
                    began = time.process_time()
                    good = within(PATIENCE, item)
                    spent = time.process_time() - began
                    note(test=item.nodeid, lines=sorted(self.seen), seconds=spent, good=good)
                    total += spent
                    near += spent if line in self.seen else 0.0
                    reaching += line in self.seen
                    if not good or near > BUDGET or total > TOTAL or reaching >= MOST:
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
        for test, one in tests.items():
            if one.get("good"):
                self.lines[test] = {(file, number) for file, number in one["lines"]}
                self.seconds[test] = one["seconds"]
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
