"""Whether a Dask scheduler is at an address, asked before a client is made that would not give up.

A client whose scheduler is not there tries for long, complains when it is deleted, and reads as many
bytes as any other service's first letters say when taken for a number. So: is there a port that
takes connections, and does what answers call itself a scheduler?
"""

from __future__ import annotations

import asyncio
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from o2td.errors import InputError, O2TDError, import_extra

__all__ = ["check_scheduler"]

_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "ucxx")
_OPEN = 3.0  # seconds in which a port has to open, for one that was started just now
_ANSWER = 10.0  # seconds in which what is there has to say what it is


def check_scheduler(address: str) -> None:
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
