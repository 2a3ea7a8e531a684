"""Many tasks on many processes: joblib's on this machine, a Dask cluster, or another backend.

An external backend, such as Ray's, that is set by ``joblib.parallel_config`` is used instead of
loky.

A task that raises is retried after the others, three times in all. A task whose worker dies takes
others down with it, so those that were running are then run one at a time until it is clear which
one it was. Whatever happens to one task, the rest are finished.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from o2td.cluster import Cluster, LostTaskError
from o2td.errors import O2TDError, import_extra

TRIES = 3

Function = Callable[[str], bytes]


class TaskOutcome(NamedTuple):
    """The outcome of a task: its result, or the message of its last error."""

    name: str
    data: bytes | None
    error: str | None = None


def compute(
    function: Function, tasks: Mapping[str, str], workers: int, dask: str | None = None
) -> Iterator[TaskOutcome]:
    """Yield `TaskOutcome(name, function(argument))` of all tasks, in the order in which they finish.

    Parameters
    ----------
    function
        A module-level function of one string; on a cluster its module must be installed there.
    tasks
        Names and arguments.
    workers
        Number of processes on this machine; 1 runs in this process.
    dask
        Address of a running Dask scheduler, whose workers are used instead.

    Examples
    --------
    >>> [one.data for one in sorted(compute(str.encode, {"a": "1", "b": "2"}, workers=1))]
    [b'1', b'2']
    """
    with Cluster(dask) if dask else contextlib.nullcontext() as cluster:
        yield from _rounds(function, dict(tasks), workers, cluster)


def _rounds(
    function: Function, left: dict[str, str], workers: int, cluster: Cluster | None
) -> Iterator[TaskOutcome]:
    failures: Counter[str] = Counter()
    suspects: list[str] = []
    while left:
        batch = [name for name in left if name not in suspects] or suspects[:1]
        started: list[str] = []
        try:
            for outcome in _parallel(function, left, batch, started, workers, cluster):
                name = outcome.name
                failures[name] += outcome.error is not None
                if outcome.error is None or failures[name] >= TRIES:
                    del left[name]
                    suspects = [other for other in suspects if other != name]
                    yield outcome
        except Exception as error:
            if cluster is not None:
                cluster.check()
            under_way = [name for name in started if name in left]
            if not under_way:
                raise
            if len(batch) > 1:
                suspects += [name for name in under_way if name not in suspects]
                continue
            failures[batch[0]] += 1
            if failures[batch[0]] >= TRIES:
                del left[batch[0]]
                suspects.remove(batch[0])
                why = str(error) if isinstance(error, LostTaskError) else type(error).__name__
                yield TaskOutcome(batch[0], None, f"its worker died ({why})")


def _parallel(
    function: Function,
    arguments: Mapping[str, str],
    batch: list[str],
    started: list[str],
    workers: int,
    cluster: Cluster | None,
) -> Iterator[TaskOutcome]:
    """One pass over `batch`; `started` collects the names as they are handed out."""
    if cluster is not None:
        yield from cluster.results(_attempt, _handed(function, arguments, batch, started))
        return
    joblib = import_extra("joblib", extra="experiments")

    def calls() -> Iterator[Any]:
        for call in _handed(function, arguments, batch, started):
            yield joblib.delayed(_attempt)(*call)

    # One thread in a worker: cores are shared out between processes, and sums keep their order.
    if (backend := _foreign(joblib)) is not None:
        yield from _by_parts(joblib, calls(), backend)
        return
    if workers == 1:
        config = joblib.parallel_config(backend="sequential")
    else:
        config = joblib.parallel_config(
            backend="loky", n_jobs=max(2, workers), inner_max_num_threads=1
        )
    with config:
        parallel = joblib.Parallel(
            return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs"
        )
        with _deaf() if cluster is None and workers > 1 else contextlib.nullcontext():
            outcomes = parallel(calls())
        try:
            for outcome in outcomes:  # noqa: UP028  # which would close it, with a warning
                yield outcome
        finally:
            with warnings.catch_warnings():
                # After Ctrl-C, joblib advises to hand over fewer tasks.
                warnings.filterwarnings("ignore", "(?s).*adjusting the input task", UserWarning)
                outcomes.close()


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Processes and threads started here ignore Ctrl-C: this process handles it and ends them.

    A terminal sends it to all of them, and each would write its own traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    loky = import_extra("joblib.externals.loky.backend.resource_tracker", extra="experiments")
    loky.ensure_running()  # its start would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _handed(
    function: Function, arguments: Mapping[str, str], batch: list[str], started: list[str]
) -> Iterator[tuple[Function, str, str]]:
    """The arguments of `_attempt`, name by name, each noted as it is handed out."""
    for name in batch:
        started.append(name)
        yield function, name, arguments[name]


def _foreign(joblib: Any) -> Any:
    """The backend that the caller set by `parallel_config`, unless it is one of joblib's own."""
    backend, _ = joblib.parallel.get_active_backend()
    return None if type(backend).__module__.startswith("joblib.") else backend


def _by_parts(joblib: Any, calls: Iterator[Any], backend: Any) -> Iterator[TaskOutcome]:
    """Outcomes in batches: such a backend may return nothing before everything is done."""
    with joblib.Parallel(n_jobs=-1, batch_size=1) as parallel:  # which may start a cluster
        size = 4 * max(1, int(backend.effective_n_jobs(-1)))
        while part := list(itertools.islice(calls, size)):
            yield from parallel(part)


def _attempt(function: Function, name: str, argument: str) -> TaskOutcome:
    try:
        return TaskOutcome(name, function(argument))
    except Exception as error:
        kind = "" if isinstance(error, O2TDError) else f"{type(error).__name__}: "
        return TaskOutcome(name, None, f"{kind}{error}")
