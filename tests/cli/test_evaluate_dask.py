"""`o2td evaluate --dask` on a real scheduler with two worker processes: the numbers of one machine."""

from __future__ import annotations

import gc
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from o2td.cli import main
from tests.dask_cluster import Cluster

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
AUTO = pytest.param(False, "auto", marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with Cluster() as made:
        yield made.address


def write_parts(folder: Path, states: bool) -> str:
    """Four files; episodes cross the cuts, one file lies inside one, some ends are not known."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(3, 12, 90)
    lengths[40] = 300
    lengths[[3, 10, 87]] = 1  # cut at once: only where they start is known
    n = int(lengths.sum())
    last = np.zeros(n, dtype=bool)
    last[np.cumsum(lengths) - 1] = True
    episode = np.repeat(np.arange(len(lengths)), lengths)
    cut = last & (episode % 7 == 3)
    columns: dict[str, Any] = {"episode": episode}
    columns |= {"obs_0": rng.random(n), "obs_1": rng.random(n)}
    if states:
        columns = {"episode": episode, "state": rng.integers(0, 6, n)}
    columns |= {"reward": rng.normal(size=n), "terminated": last & ~cut, "truncated": cut}
    columns |= {"action": rng.integers(0, 2, n)}
    columns["rho"] = np.where(columns["action"] == 1, 1.2, 0.8)
    frame = pl.DataFrame(columns)
    inside = int(np.cumsum(lengths)[39]) + 100
    for k, (low, high) in enumerate(
        [(0, 50), (50, inside), (inside, inside + 60), (inside + 60, n)]
    ):
        frame[low:high].write_parquet(folder / f"part-{k}.parquet")
    return str(folder)


def close(one: Any, two: Any, where: str = "") -> None:
    """Equal, numbers to 1e-8: sums in another order, through equations of condition 1e8."""
    if isinstance(one, dict):
        assert set(one) == set(two), where
        for name in one:
            close(one[name], two[name], f"{where}.{name}")
    elif isinstance(one, list):
        assert len(one) == len(two), where
        for k, (a, b) in enumerate(zip(one, two, strict=True)):
            close(a, b, f"{where}[{k}]")
    elif isinstance(one, float) and isinstance(two, (int, float)):
        assert one == pytest.approx(two, rel=1e-8, abs=1e-9), where
    else:
        assert one == two, where


@pytest.mark.parametrize(("states", "features"), [(True, "tabular"), (False, "fourier:2"), AUTO])
def test_a_cluster_gives_the_numbers_of_one_machine(
    states: bool,
    features: str,
    cluster: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["evaluate", write_parts(tmp_path, states), "--discount", "0.9", "--json"]
    given += ["--features", features, "--bootstrap", "60"]
    assert main(given) == 0
    here = json.loads(capsys.readouterr().out)
    assert main([*given, "--dask", cluster]) == 0
    there = json.loads(capsys.readouterr().out)
    assert here["diagnostics"]["dropped"] == 13
    assert there["diagnostics"].pop("passes") >= here["diagnostics"].pop("passes")
    # A condition number is a ratio of nearly nothing where equations are singular.
    for answer in (here, there):
        answer["diagnostics"].pop("condition")
        answer["audit"].pop("date")
        for file in answer["audit"]["files"]:  # workers read them
            file.pop("rows")
    close(here, there)


def test_no_scheduler_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["evaluate", write_parts(tmp_path, True), "--discount", "0.9"]
    assert main([*given, "--dask", "tcp://127.0.0.1:9", "--out", str(tmp_path / "answer")]) == 2
    assert "no scheduler answers there" in capsys.readouterr().err
    assert not (tmp_path / "answer").exists()


class Greeting(socketserver.BaseRequestHandler):
    """A service that speaks first, as mail servers do; its letters are no length of a message."""

    def handle(self) -> None:
        with suppress(OSError):  # they hang up
            self.request.sendall(b"220 mail.example.org ready\r\n" * 4)
            self.request.recv(1)


@pytest.fixture
def other_service() -> Iterator[str]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Greeting) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:8786", "tcp://a:b"])
def test_what_is_no_address_is_said_before_anything_is_tried(
    address: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = ["evaluate", write_parts(tmp_path, True), "--discount", "0.9"]
    assert main([*given, "--dask", address]) == 2
    said = capfd.readouterr().err
    assert f"--dask {address}: is not the address of a scheduler" in said
    assert said.count("\n") == 1
    assert main([*given, "--dask", ""]) == 2
    assert "--dask: is empty" in capfd.readouterr().err


def test_another_service_is_one_sentence(
    other_service: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = ["evaluate", write_parts(tmp_path, True), "--discount", "0.9"]
    assert main([*given, "--dask", other_service]) == 2
    gc.collect()  # a client that was given up would complain now
    said = capfd.readouterr().err
    assert "something that does not speak Dask's language answers there" in said
    assert said.count("\n") == 1


def test_a_worker_is_no_scheduler(
    cluster: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        worker = next(iter(client.scheduler_info()["workers"]))
    given = ["evaluate", write_parts(tmp_path, True), "--discount", "0.9"]
    assert main([*given, "--dask", worker]) == 2
    said = capfd.readouterr().err
    assert "a Dask worker answers there, no scheduler" in said
    assert said.count("\n") == 1


def test_a_bad_row_on_a_worker_is_the_same_sentence(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_parts(tmp_path, True)
    file = tmp_path / "part-3.parquet"
    broken = pl.read_parquet(file)
    reward = broken["reward"].to_list()
    reward[4] = None
    broken.with_columns(reward=pl.Series(reward)).write_parquet(file)
    assert main(["evaluate", folder, "--discount", "0.9", "--dask", cluster]) == 2
    sentence = capsys.readouterr().err
    assert f"{file}: column reward, row 5" in sentence
    assert sentence.count("\n") == 1
