"""Run a spec in child processes that are killed (SIGKILL) at named points or after some files.

    python killing.py SPEC.toml STORE points        one child for each named point of a write
    python killing.py SPEC.toml STORE files N ...   one child for each number of files that it may store

Everything heavy is imported once; the children are forks, so a kill costs milliseconds. Nothing in
the package knows of this: the points are reached by replacing functions of `os` in the child.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import polars as pl
import pyarrow.parquet
import threadpoolctl

from o2td.experiments import load_spec, run

HEAVY = (joblib, pl, pyarrow.parquet, threadpoolctl)  # imported before any fork


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_call(name: str, count: int, action: Callable[..., Any], where: Any = os) -> None:
    """Replace `os.name` so that its call number `count` does `action(real, *arguments)`."""
    real, calls = getattr(where, name), [0]

    def replaced(*arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == count:
            return action(real, *arguments, **options)
        return real(*arguments, **options)

    setattr(where, name, replaced)


def half(real: Callable[..., int], descriptor: int, data: Any) -> None:
    real(descriptor, bytes(data)[: len(data) // 2])
    die()


def after(real: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    real(*arguments, **options)
    die()


# Opening a store writes an empty probe file: one fsync, one replace, and an fsync of the folder.
POINTS: dict[str, tuple[str, int, Callable[..., Any]]] = {
    "before the probe": ("fsync", 1, die),
    "temporary empty": ("write", 1, die),
    "temporary half written": ("write", 2, half),
    "temporary written": ("write", 1, after),
    "before fsync": ("fsync", 3, die),
    "after fsync": ("fsync", 3, after),
    "before rename": ("replace", 2, die),
    "after rename": ("replace", 2, after),
    "before fsync of the folder": ("fsync", 4, die),
    "after fsync of the folder": ("fsync", 4, after),
}
MANIFEST: dict[str, tuple[str, int, Callable[..., Any]]] = {
    "manifest half written": ("write", 1, half),
    "before rename of the manifest": ("replace", 2, die),
    "after rename of the manifest": ("replace", 2, after),
}


def in_child(
    work: Callable[[], object], store: Path | None = None, files: int = 0, seconds: float = 0.0
) -> bool:
    """Fork, `work` in the child; True if it was killed.

    With `store` the child is killed `seconds` after it has stored so many `files`.
    """
    before = count(store)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    if store is not None:
        while count(store) < before + files and not ended(pid):
            time.sleep(0.0005)
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("a child failed by itself")
    return os.WIFSIGNALED(status)


def count(store: Path | None) -> int:
    return 0 if store is None else len(list(store.glob("runs/*.parquet")))


def ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def main(spec_path: str, store: str, mode: str, *arguments: str) -> None:
    spec = load_spec(spec_path)
    with tempfile.TemporaryDirectory() as once:
        run(spec, once, workers=1)  # loads compiled code before any fork

    def work() -> None:
        run(spec, store, workers=1)

    if mode == "files":
        # The rest of a number is a share of 10 ms, so that kills fall between the steps of a write.
        killed = sum(
            in_child(work, Path(store), int(number), float(number) % 1.0 / 100)
            for number in map(float, arguments)
        )
        print(f"killed {killed} of {len(arguments)}")
        return
    for name, (function, count, action) in POINTS.items():
        if not in_child(lambda f=function, c=count, a=action: (at_call(f, c, a), work())):
            raise SystemExit(f"not killed: {name}")
    # All but the manifest is there: the manifest's write is the next after the probe's.
    if in_child(work):
        raise SystemExit("killed though nothing asked for it")
    for name, (function, count, action) in MANIFEST.items():
        Path(store, "manifest.json").unlink(missing_ok=True)
        if not in_child(lambda f=function, c=count, a=action: (at_call(f, c, a), work())):
            raise SystemExit(f"not killed: {name}")
    print("killed at every point")


if __name__ == "__main__":
    main(*sys.argv[1:])
