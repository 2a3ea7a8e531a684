"""A real Dask scheduler and real workers, as processes of their own on the loopback interface."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

ROOT = str(Path(__file__).parents[1])  # where workers find `tests.experiments.deadly`


class Cluster:
    """A scheduler and its workers; in a `with` block they are there, and killed at its end."""

    def __init__(self, workers: int = 2) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self.scheduler = self._start("distributed.cli.dask_scheduler", "--port", str(port))
        self.workers = [self.add_worker() for _ in range(workers)]

    def add_worker(self, *options: str) -> subprocess.Popen[bytes]:
        one = ("--nthreads", "1", "--no-nanny")
        return self._start("distributed.cli.dask_worker", self.address, *one, *options)

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": ROOT, "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments, "--host", "127.0.0.1", "--no-dashboard"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ready(self, workers: int) -> None:
        """Return when so many workers have come."""
        from distributed import Client

        with Client(self.address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)

    def __enter__(self) -> Self:
        try:
            if self.workers:
                self.ready(len(self.workers))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
