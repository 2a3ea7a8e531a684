"""A connection to a Dask scheduler, for experiments and evaluations alike.

Whether a scheduler is there is asked before a client is made: one whose scheduler is not there tries
for long, complains when it is deleted, and reads as many bytes as any other service's first letters
say when taken for a number. So: is there a port that takes connections, and does what answers call
itself a scheduler?
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Self
from urllib.parse import urlsplit

from o2td.errors import InputError, O2TDError, import_extra

__all__ = ["Cluster", "LostTaskError"]

_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "ucxx")
_OPEN = 3.0  # seconds in which a port has to open, for one that was started just now
_ANSWER = 10.0  # seconds in which what is there has to say what it is
_PATIENCE = 60  # seconds in which a nanny has started a killed worker again
_LOGGERS = (
    *("distributed", "distributed.client", "distributed.comm", "distributed.core"),
    *("tornado.application", "asyncio"),
)


class LostTaskError(O2TDError):
    """A task that the cluster gave up, such as one whose workers died."""


class Cluster:
    """A connection to the scheduler at an address, left as it was found at the end.

    Parameters
    ----------
    address : str
        Such as `tcp://127.0.0.1:8786`.
    """

    def __init__(self, address: str) -> None:
        distributed = import_extra("distributed", extra="dask")
        self.address = address
        # What matters is said in one sentence; the loggers would add tracebacks to it.
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        _check_scheduler(address)
        try:
            self.client = distributed.Client(address, timeout=_ANSWER, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise O2TDError(
                f"--dask {address}: the scheduler lets nobody in ({type(error).__name__}); look at its"
                " log, or start another one"
            ) from error

    def results(
        self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """`function(*call)` of every call, in the order in which they finish.

        Calls are taken up as there is room: two for every core.

        Raises
        ------
        LostTaskError
            The cluster has given up a task; those under way are given up too.
        """
        distributed = import_extra("distributed", extra="dask")
        left = iter(calls)
        under_way = distributed.as_completed(loop=self.client.loop)
        self._fill(under_way, function, left)
        for future in under_way:
            yield _result(future)
            future.release()
            self._fill(under_way, function, left)

    def _fill(self, under_way: Any, function: Any, calls: Iterator[tuple[Any, ...]]) -> None:
        room = 2 * max(1, sum(self.client.ncores().values())) - under_way.count()
        for call in islice(calls, max(0, room)):
            under_way.add(self.client.submit(function, *call, pure=False))

    def check(self) -> None:
        """Raise if the scheduler or all workers are gone: then it is not a task's fault."""
        try:
            self.client.scheduler_info()
            alive = self.client.status == "running"
        except Exception:
            alive = False
        if not alive:
            raise O2TDError(
                f"--dask {self.address}: the scheduler is gone; what is finished is kept: start it"
                " and run the same command again"
            )
        try:
            self.client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise O2TDError(
                f"--dask {self.address}: the cluster has had no worker for {_PATIENCE} s; start"
                " some and run the same command again"
            ) from None

    def close(self) -> None:
        """Leave the cluster."""
        with contextlib.suppress(Exception):
            self.client.close(timeout=2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _result(future: Any) -> Any:
    if future.status == "finished":
        with contextlib.suppress(asyncio.CancelledError):
            return future.result(timeout=_PATIENCE)
    error = future.exception(timeout=_PATIENCE) if future.status == "error" else None
    raise LostTaskError(type(error).__name__ if error is not None else "the task was given up")


def _check_scheduler(address: str) -> None:
    """Refuse an address at which no Dask scheduler answers, with a sentence that says what does."""
    host, port = _parts(address)
    _check_open(address, host, port)
    # In a thread of its own: an event loop may be running in this one.
    with ThreadPoolExecutor(1) as thread:
        kind = thread.submit(lambda: asyncio.run(_kind(address))).result()
    if not kind.startswith("Scheduler"):
        what = f"a Dask {kind.lower()}" if kind else "something that does not speak Dask's language"
        raise O2TDError(
            f"--dask {address}: {what} answers there, no scheduler; check the address, which a"
            " scheduler prints when it starts"
        )


def _parts(address: str) -> tuple[str, int]:
    """Host and port, where they are written as Dask wants them."""
    whole = address if "://" in address else f"tcp://{address}"
    try:
        found = urlsplit(whole)
        host, port = found.hostname, found.port
    except ValueError:
        host, port = None, None
    if not host or not port or found.scheme not in _SCHEMES:
        raise InputError(
            f"--dask {address}: is not the address of a scheduler; write one such as"
            " tcp://127.0.0.1:8786"
        )
    return host, port


def _check_open(address: str, host: str, port: int) -> None:
    until = time.monotonic() + _OPEN
    while True:
        try:
            socket.create_connection((host, port), timeout=_ANSWER).close()
            return
        except OSError as error:
            if isinstance(error, ConnectionRefusedError) and time.monotonic() < until:
                time.sleep(0.1)
                continue
            why = error.strerror or str(error)
            raise O2TDError(
                f"--dask {address}: no scheduler answers there ({why}); start one, or check the"
                " address"
            ) from None


async def _kind(address: str) -> str:
    """What is there by its own words, empty where it has none that Dask knows."""
    core = import_extra("distributed.core", "dask")
    security = import_extra("distributed.security", "dask")

    async def ask() -> Any:
        secrets = security.Security().get_connection_args("client")
        async with core.rpc(address, timeout=_ANSWER, connection_args=secrets) as peer:
            return await peer.identity()

    try:
        answer = await asyncio.wait_for(ask(), _ANSWER)
        return str(answer["type"])
    except Exception:  # whatever another service's letters are taken for
        return ""
