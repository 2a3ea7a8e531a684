"""The tests that run against mutants: how long each takes, which lines it reaches, and which run."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FunctionType
from typing import Any

from benchmarks.mutants import Place

SOURCE = Path(__file__).resolve().parents[1] / "src" / "o2td"
SLOW = 2.0  # seconds; slower tests are left out
BUDGET = 6.0  # seconds of tests per mutant, at most
PATIENCE = 20.0  # seconds allowed to find that out; a first test may have to compile
NOTING = 300.0  # seconds after which no more tests are traced
ENOUGH = 12  # tests that reach a line; those that fit into the budget run
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
LINES = 1000  # lines recorded per call


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
            sys.modules[generic.__module__].__dict__[generic.__name__] = dispatch
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


def timed(item: Any, limit: float) -> dict[str, Any]:
    """Whether a test passes, and how much processor time it takes."""
    began = time.process_time()
    good = within(limit, item)
    return {"good": good, "seconds": time.process_time() - began}


def traced(item: Any, limit: float) -> dict[str, Any]:
    """The same with the lines that it reaches; in a long loop, only those of its first rounds."""
    seen: set[tuple[str, int]] = set()
    prefix = str(SOURCE)

    def enter(frame: Any, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(prefix):
            return None
        file, left = frame.f_code.co_filename[len(prefix) + 1 :], LINES
        seen.add((file, frame.f_code.co_firstlineno))

        def line(frame: Any, event: str, _: Any) -> Any:
            nonlocal left
            left -= 1
            seen.add((file, frame.f_lineno))
            frame.f_trace_lines = left > 0
            return line

        return line

    sys.settrace(enter)
    try:
        return timed(item, limit) | {"lines": seen}
    finally:
        sys.settrace(None)


def noted(
    items: list[Any], limit: float, wanted: set[tuple[str, int]]
) -> dict[str, dict[str, Any]]:
    """Trace tests, one case of each first, until enough reach each line or time is up.

    What they import and compile is then available to every fork.
    """
    found: dict[str, dict[str, Any]] = {}
    reached: Counter[tuple[str, int]] = Counter()
    began = time.process_time()
    stems = {Path(file).stem.replace("_", "") for file, _ in wanted}

    def of_others(item: Any) -> bool:
        """Whether a test's name mentions none of the files; such tests come last."""
        name = item.nodeid.casefold().replace("_", "")
        return not any(stem in name for stem in stems)

    for item in sorted(by_turns(items), key=of_others):
        spent = time.process_time() - began
        if spent > NOTING or all(reached[line] >= ENOUGH for line in wanted):
            found[item.nodeid] = {"good": False, "seconds": 0.0, "lines": set()}
            continue
        entry = traced(item, limit)
        near = wanted & entry["lines"]
        entry["good"] &= bool(near)
        if entry["good"]:  # again without tracing, which also shows that it can be repeated
            entry |= timed(item, SLOW)
            if not entry["good"] and entry["seconds"] < SLOW:
                print(f"{item.nodeid} passes only once", flush=True)
        if not usable(entry):
            entry["lines"] = set()  # it runs against no mutant
        reached.update(near if usable(entry) else ())
        found[item.nodeid] = entry
    return found


def noted_apart(
    items: list[Any], limit: float, wanted: set[tuple[str, int]]
) -> dict[str, dict[str, Any]]:
    """The same, done in a fork, so that this process has none of the threads that tests start.

    What tests import is also imported here, so that no fork has to.
    """
    with tempfile.NamedTemporaryFile() as file:
        pid = os.fork()
        if pid == 0:
            found = noted(items, limit, wanted)
            for entry in found.values():
                entry["lines"] = sorted(entry["lines"])
            Path(file.name).write_text(json.dumps({"notes": found, "modules": list(sys.modules)}))
            os._exit(0)
        os.waitpid(pid, 0)
        told = json.loads(Path(file.name).read_text())
    for name in told["modules"]:
        if name not in sys.modules and name.partition(".")[0] in LIBRARIES:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    for entry in told["notes"].values():
        entry["lines"] = {(file, line) for file, line in entry["lines"]}
    notes: dict[str, dict[str, Any]] = told["notes"]
    return notes


def usable(entry: dict[str, Any]) -> bool:
    return bool(entry["good"]) and entry["seconds"] < SLOW


def by_turns(items: list[Any]) -> list[Any]:
    """The quickest case of each test first, then each test's second, so that none is crowded out."""
    turns: Counter[str] = Counter()
    found = []
    for item in items:
        name = item.nodeid.partition("[")[0]
        found.append((turns[name], item))
        turns[name] += 1
    return [item for _, item in sorted(found, key=lambda pair: pair[0])]


def chosen_tests(
    tests: dict[str, dict[str, Any]], items: list[Any], file: str, at: Place
) -> list[Any]:
    """Tests that reach the line, then tests that enter its function, up to the budget."""
    span = {(file, line) for line in range(at.first, at.last + 1)}
    quick = sorted(items, key=lambda item: tests[item.nodeid]["seconds"])
    near = [item for item in quick if (file, at.line) in tests[item.nodeid]["lines"]]
    far = [item for item in quick if item not in near and span & tests[item.nodeid]["lines"]]
    found, total = [], 0.0
    for item in [*by_turns(near), *by_turns(far)]:
        total += tests[item.nodeid]["seconds"]
        if total > BUDGET and found:
            break
        found.append(item)
    return found
