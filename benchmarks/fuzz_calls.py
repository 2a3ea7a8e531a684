"""Call everything public with bad and odd values: every refusal must be an o2td error.

Walks the public names of `o2td`, of its public modules and of its registries, reads the signatures
of constructors, functions and methods, and calls them: with good values first, then with one, two or
three of them bent or replaced by odd ones. Objects that could be made are then used. A raw error, a
crash or a call that takes too long is a failure, printed with a call that reproduces it.

    python -m benchmarks.fuzz_calls --seconds 600 --seed 0

Calls run in a process of their own with a memory limit, so that the package and not the machine has to
cope with a number like 2**62. Two kinds of errors are allowed: scikit-learn's own about X and y, and
errors raised by functions that the caller passes in.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.fuzz_targets import DRAWS, LONG, Target, targets

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60.0  # processor seconds per call, which may be the first to compile a learner
AT_WORK = 3.0  # seconds after which a long function counts as working
START = 60.0  # for the imports
MEMORY = 6 << 30  # bytes of address space per worker
# -- one call --------------------------------------------------------------------------------------


class Call(NamedTuple):
    target: Target
    positional: list[Any]
    keywords: dict[str, Any]
    changed: tuple[str, ...]

    def text(self) -> str:
        from benchmarks.fuzz_values import written

        given = [written(one) for one in self.positional]
        given += [f"{name}={written(value)}" for name, value in self.keywords.items()]
        return f"{self.target.text}({', '.join(given)})"

    def run(self) -> Any:
        from benchmarks.fuzz_values import plain

        function = self.target.make()
        with begun_at_most(self.target.name in LONG):
            result = function(
                *map(plain, self.positional), **{k: plain(one) for k, one in self.keywords.items()}
            )
            return use(result)


class AtWorkError(BaseException):
    """A long function found nothing wrong and is working."""


@contextlib.contextmanager
def begun_at_most(long: bool) -> Iterator[None]:
    """Interrupt a long function, as a user would, once it is working."""

    def stop(*_: Any) -> None:
        raise AtWorkError

    before = signal.signal(signal.SIGALRM, stop)
    seconds = AT_WORK if long else 0.0
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # repeatedly: C code may swallow the first
    try:
        yield
    except AtWorkError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def use(result: Any) -> Any:
    """Use what was made: iterators yield, learners learn, maps fit, problems are sampled."""
    import benchmarks.fuzz_values as v
    from o2td import Problem, features
    from o2td.learners.base import Learner
    from o2td.simulated import SimulatedProblem
    from o2td.solvers.base import Solver

    if inspect.isabstract(type(result)) or "." not in type(result).__module__:
        return result
    if isinstance(result, Iterator):
        return list(islice(result, 3))
    if isinstance(result, Learner):
        return result.partial_fit(v.batch()).predict(v.PHI)
    if isinstance(result, Solver):
        return result.fit(v.batch()).predict(v.PHI)
    if isinstance(result, (Problem, SimulatedProblem)):
        return result.sample(5)
    if isinstance(result, features.Transformer):
        states = isinstance(result, (features.Tabular, features.Aggregation))
        return result.fit_transform(v.PLACES[:3] if states else v.PHI)
    return repr(result)


def good(target: Target, name: str, draw: random.Random) -> tuple[bool, Any]:
    """A value that suits a parameter, and whether one is known."""
    from benchmarks.fuzz_values import GOOD, OWN

    for key in (f"{target.name or target.owner}.{name}", f"{target.owner}.{name}"):
        if key in OWN:
            return True, made(draw.choice(OWN[key]))
    if name in GOOD:
        return True, made(draw.choice(GOOD[name]))
    return False, None


def made(value: Any) -> Any:
    return value.written() if hasattr(value, "written") else value


def odd(draw: random.Random) -> Any:
    from benchmarks.fuzz_values import ODD, fresh_odd

    return draw.choice(ODD) if draw.random() < 0.8 else fresh_odd(draw)


def drawn(target: Target, draw: random.Random) -> Call:
    """Draw good arguments, then bend or replace one or more."""
    from benchmarks.fuzz_values import bent, plain

    parameters = [
        one
        for one in target.signature.parameters.values()
        if one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    given: dict[str, Any] = {}
    for one in parameters:
        known, value = good(target, one.name, draw)
        if one.default is inspect.Parameter.empty or (known and draw.random() < 0.3):
            given[one.name] = value if known else odd(draw)
    names = [one.name for one in parameters if one.name not in target.exempt]
    changed = tuple(draw.sample(names, min(len(names), draw.choice([0, 1, 1, 1, 1, 2, 2, 3]))))
    for name in changed:
        bend = name in given and draw.random() < 0.4
        given[name] = bent(plain(given[name]), draw) if bend else odd(draw)
    positional, keywords = [], {}
    for one in parameters:
        if one.name not in given:
            continue
        if one.kind is inspect.Parameter.VAR_POSITIONAL or one.kind is one.POSITIONAL_ONLY:
            positional.append(given[one.name])
        else:
            keywords[one.name] = given[one.name]
    if positional and any(one.kind is one.VAR_POSITIONAL for one in parameters):
        keywords, before = {}, list(keywords.values())
        positional = before + positional
    return Call(target, positional, keywords, changed)


def call_number(k: int, seed: int, found: list[Target]) -> Call:
    draw = random.Random(f"{seed} {k}")  # noqa: S311
    target = draw.choice(found)
    while target.name in DRAWS and len(found) > 1 and draw.random() < 0.9:
        target = draw.choice(found)
    return drawn(target, draw)


def failure(call: Call) -> dict[str, str] | None:
    """What the call raised, unless it is an o2td error."""
    from o2td.checks import CheckError
    from o2td.errors import O2TDError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call.run()
    except (O2TDError, CheckError):
        return None
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        if call.target.exempt and any("/sklearn/" in one.filename for one in frames):
            return None
        own = [one for one in frames if "o2td/" in one.filename and "fuzz_" not in one.filename]
        last = own[-1] if own else frames[-1]
        where = f"{last.filename.rpartition('src/')[2]}:{last.lineno}"
        return {"error": f"{type(error).__name__}: {error}"[:200], "where": where}
    return None


# -- the worker and its guard ----------------------------------------------------------------------


def work(seed: int, first: int, seconds: float, only: str, note: int) -> None:
    """Make call after call from number `first`; failures are lines of JSON, progress goes to `note`."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    out = os.fdopen(os.dup(1), "w", buffering=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    found = [one for one in targets() if only in one.text]
    k, until = first, time.monotonic() + seconds
    while time.monotonic() < until:
        os.pwrite(note, k.to_bytes(8, "big"), 0)
        call = call_number(k, seed, found)
        failed = failure(call)
        if failed is not None:
            name = f"{call.target.owner}.{call.target.name}"
            out.write(
                json.dumps({"k": k, "name": name, "call": call.text()[:2000], **failed}) + "\n"
            )
        k += 1
    out.write(json.dumps({"done": k}) + "\n")


def spent(process: int) -> float:
    """Processor seconds that a process has used; wall time would include those of others."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Guard:
    """Runs workers one after another until time is up; a dead or silent worker is a failure."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.failures: list[dict[str, Any]] = []
        self.folder = Path(tempfile.mkdtemp(prefix="o2td-fuzz-"))

    def run(self) -> int:
        """Run all calls; returns their number. Compilation comes before them, and its code is kept."""
        kept = "from benchmarks.fuzz_recipes import compile_all; compile_all()"
        subprocess.run([sys.executable, "-c", kept], cwd=ROOT, check=True)
        until, k = time.monotonic() + self.options.seconds, 0
        while (left := until - time.monotonic()) > 0:
            k = self.worker(k, left)
        return k

    def worker(self, first: int, left: float) -> int:
        with (self.folder / "note").open("wb+") as note, (self.folder / "said").open("w") as said:
            note.write(first.to_bytes(8, "big"))
            note.flush()
            given = ["--seed", self.options.seed, "--seconds", left, "--only", self.options.only]
            command = [sys.executable, "-m", "benchmarks.fuzz_calls", *given]
            command += ["--first", first, "--note", note.fileno()]
            path = os.pathsep.join([str(ROOT), *sys.path])
            process = subprocess.Popen(
                list(map(str, command)), cwd=self.folder, stdout=said,
                pass_fds=[note.fileno()], env={**os.environ, "PYTHONPATH": path},
            )  # fmt: skip
            ended = self.watch(process, note.fileno())
            process.wait()
            k = int.from_bytes(os.pread(note.fileno(), 8, 0), "big")
        told = (self.folder / "said").read_text().splitlines()
        lines = [json.loads(line) for line in told if line.endswith("}")]  # a kill may cut the last
        self.failures += [line for line in lines if "error" in line]
        if ended is None and any("done" in line for line in lines):
            return k + 1
        self.failures.append(self.died(k, ended or f"ended with code {process.returncode}"))
        return k + 1

    def watch(self, process: Any, note: int) -> str | None:
        """Wait, and kill a worker whose call takes too long."""
        at, since = -1, 0.0
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1.0)
                return None
            now = int.from_bytes(os.pread(note, 8, 0), "big")
            if now != at:
                at, since = now, spent(process.pid) + START * (at < 0)
            elif spent(process.pid) - since > PATIENCE:
                process.kill()
                return f"no answer in {PATIENCE:.0f} s of the processor"

    def died(self, k: int, why: str) -> dict[str, Any]:
        found = [one for one in targets() if self.options.only in one.text]
        call = call_number(k, self.options.seed, found)
        name = f"{call.target.owner}.{call.target.name}"
        return {"k": k, "name": name, "call": call.text(), "error": why, "where": ""}

    def report(self, calls: int) -> int:
        groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        for one in self.failures:
            key = (
                one["where"],
                one["error"].partition(":")[0],
                "" if one["where"] else one["name"],
            )
            groups.setdefault(key, []).append(one)
        for (where, _, _), ones in sorted(groups.items(), key=lambda item: -len(item[1])):
            first = min(ones, key=lambda one: len(one["call"]))
            names = ", ".join(name for name, _ in Counter(o["name"] for o in ones).most_common(4))
            print(f"{len(ones)} x {first['error']}\n    in {where or '?'}, by {names}")
            print(f"    call {first['k']}: {first['call'][:600]}")
        kinds = len(targets())
        print(f"{calls} calls of {kinds} constructors, functions and methods with seed", end=" ")
        print(
            f"{self.options.seed}: {len(self.failures)} ended in another error than one of o2td's"
        )
        return 1 if self.failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to go on")
    parser.add_argument("--seed", type=int, default=0, help="which calls to draw")
    parser.add_argument("--only", default="", help="only names that hold this text")
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--note", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first is not None:
        work(options.seed, options.first, options.seconds, options.only, options.note)
        return 0
    guard = Guard(options)
    return guard.report(guard.run())


if __name__ == "__main__":
    sys.exit(main())
