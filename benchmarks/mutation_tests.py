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
from typing import Any, NamedTuple

from benchmarks.mutants import Place, mark, put

SOURCE = Path(__file__).resolve().parents[1] / "src" / "o2td"
SLOW = 6.0  # seconds; a test that takes longer kills no mutant
BUDGET = 60.0  # seconds of tests that reach a mutant's line, at most
LIMIT = 120  # seconds after which a child is ended
AT_ONCE = 300  # tests that a child of the first pass runs, at most
FIRST = 420.0  # seconds of the first pass; tests that it does not reach are not asked
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
        elif getattr(getattr(value, "dtype", None), "names", None):  # a record
            self.fields = value.dtype.names

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


def watch(lines: list[tuple[str, int]]) -> set[int]:
    """The set to which the number of a line (file and line) is added whenever it is reached."""
    seen: set[int] = set()
    vars(builtins)["line_reached"] = seen.add
    numbers: dict[str, dict[int, int]] = {}
    for number, (file, line) in enumerate(lines):
        numbers.setdefault(file, {})[line] = number
    codes = []
    for file, wanted in numbers.items():
        name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        importlib.import_module(f"o2td.{name}")
        codes += mark(SOURCE / file, wanted)
    put(codes)
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


class Known(NamedTuple):
    """What is known of a test: its seconds, whether it passes, and a bit for each line it reaches."""

    seconds: float
    good: bool
    lines: int

    @property
    def slow(self) -> bool:
        return self.seconds > 0.9 * SLOW


class Tests:
    """Which lines the tests of a group reach, how long they take, and which pass without a change.

    `lines` has, for each file and line, what it says: by that a line is found again in what an
    earlier pass has kept in `store`. Such notes only choose the tests that are asked; one that kills
    must pass without the change, whatever they say. Tests that reach a file whose lines have changed
    since then run again, and all of them if there is a new file.
    """

    def __init__(self, items: list[Any], lines: dict[tuple[str, int], str], store: Path) -> None:
        self.items, self.places = by_turns(items), list(lines)
        self.texts, self.store = list(lines.values()), store
        self.number = {place: number for number, place in enumerate(self.places)}
        self.seen = watch(self.places)
        self.known = self.kept()
        self.trusted: dict[str, bool] = {}
        self.survey()

    def kept(self) -> dict[str, Known]:
        """What an earlier pass found; tests that failed are run again."""
        if not self.store.exists():
            return {}
        stored = json.loads(self.store.read_text())
        found = {
            test: Known(seconds, good, int(lines, 16))
            for test, (seconds, good, lines) in stored["tests"].items()
        }
        before, now_there = by_file(stored["lines"]), by_file(self.texts)
        for file in {file for file, texts in now_there.items() if texts != before.get(file)}:
            there = (file_of(text) == file for text in stored["lines"])
            mask = sum(1 << number for number, one in enumerate(there) if one)
            found = {
                test: one for test, one in found.items() if file in before and not one.lines & mask
            }
        if stored["lines"] != self.texts:
            now: dict[str, int] = {}
            for number, text in enumerate(self.texts):
                now[text] = now.get(text, 0) | 1 << number
            masks = [now.get(text, 0) for text in stored["lines"]]
            for test, one in found.items():
                lines = 0
                for number in range(one.lines.bit_length()):
                    if one.lines >> number & 1:
                        lines |= masks[number]
                found[test] = one._replace(lines=lines)
        return {test: one for test, one in found.items() if one.good or one.slow}

    def keep(self) -> None:
        """Store what is known, for a later pass."""
        tests = {
            test: (one.seconds, one.good, f"{one.lines:x}") for test, one in self.known.items()
        }
        self.store.parent.mkdir(parents=True, exist_ok=True)
        self.store.write_text(json.dumps({"lines": self.texts, "tests": tests}))

    def survey(self) -> None:
        """Run every test once without a change; those that fail or are slow are not asked again.

        Tests of which no case is known come first, then further cases of those that are quick.
        """
        left = [item for item in self.items if item.nodeid not in self.known]
        before, spent = len(self.items) - len(left), 0.0
        usual: dict[str, float] = {}
        while left and spent < FIRST:
            left.sort(key=lambda item: usual.get(test_of(item), 0.0))
            _, told = self.run(left[:AT_ONCE], None, all_of_them=True)
            for one in told:
                lines = sum(1 << number for number in one["lines"])
                self.known[one["test"]] = Known(one["seconds"], bool(one.get("good")), lines)
                usual[one["test"].partition("[")[0]] = max(one["seconds"], 1e-3)
                spent += one["seconds"]
            left = left[max(1, len(told)) :]
            self.keep()
        self.items = [item for item in self.items if item.nodeid in self.known]
        new = len(self.items) - before
        print(f"{before} tests known, {new} in {spent:.0f} s, {len(left)} not reached", flush=True)
        for item in self.items:
            one = self.known[item.nodeid]
            if not one.good:
                self.trusted[item.nodeid] = False
                print(f"not asked: {item.nodeid} ({one.seconds:.1f} s)", flush=True)

    def reaching(self, file: str, at: Place) -> list[Any]:
        """Tests that reach a line: one case of each, quick ones first, then each test's second.

        Those that are called after the file come a turn earlier, and kept answers, which compare
        every number, as if they took a quarter of their time.
        """
        turns: Counter[str] = Counter()
        found, number = [], self.number[file, at.line]
        for item in self.items:
            one = self.known[item.nodeid]
            if one.lines >> number & 1 and self.trusted.get(item.nodeid, True):
                name = test_of(item)
                turn = turns[name] + (not mentions(item, file))
                found.append((turn, one.seconds * (0.25 if golden(item) else 1.0), item))
                turns[name] += 1
        return [item for *_, item in sorted(found, key=lambda one: one[:2])]

    def meet(self, file: str, at: Place, code: list[CodeType]) -> tuple[str, list[Any]]:
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
        self,
        items: list[Any],
        code: list[CodeType] | None,
        all_of_them: bool = False,
        spent: float = 0.0,
    ) -> tuple[str, list[dict[str, Any]]]:
        """Run tests in a fork until one fails or their time is up, and note what they do.

        `all_of_them` goes on after a failure. A test may take three times what it took before.
        """
        with tempfile.NamedTemporaryFile("w+") as notes:

            def note(**entry: Any) -> None:
                notes.write(json.dumps(entry) + "\n")
                notes.flush()

            def work() -> int:
                if code is not None and not put(code):
                    raise LookupError("the changed function is not loaded")
                total, good = spent, True
                for item in items:
                    note(test=item.nodeid, lines=[], seconds=0.0)
                    self.seen.clear()
                    began = time.process_time()
                    usual = self.known[item.nodeid].seconds if item.nodeid in self.known else 0.0
                    good = within(max(SLOW, 3.0 * usual), item)
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


def file_of(text: str) -> str:
    """The file that a line's text begins with."""
    return text.partition(" ")[0]


def by_file(texts: list[str]) -> dict[str, set[str]]:
    """What the lines of each file say."""
    found: dict[str, set[str]] = {}
    for text in texts:
        found.setdefault(file_of(text), set()).add(text)
    return found


def test_of(item: Any) -> str:
    """The test that an item is a case of; whole answers to kept logs are a test each."""
    test = str(item.nodeid)
    return test if golden(item) else test.partition("[")[0]


def golden(item: Any) -> bool:
    """Whether an item compares with an answer that was kept."""
    return "golden" in str(item.nodeid)


def by_turns(items: list[Any]) -> list[Any]:
    """One case of each test first, then kept answers, then each test's second case.

    Many cases of a test, and answers that take long, crowd out no other test.
    """
    turns: Counter[str] = Counter()
    found = []
    for item in items:
        name = test_of(item)
        found.append((turns[name], golden(item), item))
        turns[name] += 1
    return [item for *_, item in sorted(found, key=lambda one: one[:2])]
