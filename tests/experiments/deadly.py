"""Tasks for workers of a cluster, which import this module by name."""

from __future__ import annotations

import os
import signal
import time


def task(argument: str) -> bytes:
    """Kill the worker, fail, or work for a moment."""
    if argument == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    if argument == "wrong":
        raise ValueError("always wrong")
    time.sleep(0.05)
    return argument.encode()
