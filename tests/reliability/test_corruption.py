"""Damaged files of our own are never read as good; what fuzzers found stays found."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2td
from o2td import domains, sources
from o2td.cli import main
from o2td.errors import FormatError, O2TDError
from o2td.evaluation import ValueModel, load_model
from o2td.experiments import Store, load_spec, run
from o2td.features import Fourier
from o2td.learners import Learner
from o2td.registry import SOLVERS
from tests.experiments.files import decode

from .test_hostile import rows, use
from .test_writes import SMALL

FLIPS, CUTS = 300, 100


def learner(path: Path) -> None:
    o2td.O2TD(step_size=0.01, trace=0.5).partial_fit(domains.baird().sample(50)).save(path)


def replicated(path: Path) -> None:
    """With the replicates that `predict(interval=)` rests on."""
    kind = o2td.TD(step_size=0.01, average=True, replicates=4)
    kind.partial_fit(domains.baird().sample(50)).save(path)


def solver(path: Path) -> None:
    o2td.LSTD(trace=0.5).fit(domains.baird().sample(50)).save(path)


def value_function(path: Path) -> None:
    features = Fourier(3, bounds=[(-1.0, 1.0)]).fit()
    ValueModel(np.arange(4.0), features, ("x",), False, "LSTD", 0.9).save(path)


MODELS: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any]]] = {
    "learner": (learner, Learner.load),
    "learner with replicates": (replicated, Learner.load),
    "solver": (solver, o2td.LSTD.load),
    "value function": (value_function, load_model),
}


def damaged(data: bytes) -> list[bytes]:
    draw = random.Random(0)  # noqa: S311
    found = []
    for bit in draw.sample(range(8 * len(data)), FLIPS):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        found.append(bytes(flipped))
    return found + [data[:length] for length in draw.sample(range(len(data)), CUTS)]


@pytest.mark.parametrize("kind", MODELS)
def test_no_damaged_model_is_read_as_good(kind: str, tmp_path: Path) -> None:
    save, load = MODELS[kind]
    path = tmp_path / "model.npz"
    save(path)
    load(path)
    for data in damaged(path.read_bytes()):
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"model\.npz"):
            load(path)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("store")
    run(load_spec(SMALL), folder, workers=1)
    return Store(folder)


def test_no_damaged_result_is_read_as_good(store: Store) -> None:
    name = sorted(store.ids())[0]
    data = (store.path / "runs" / f"{name}.parquet").read_bytes()
    assert decode(data, name).rows > 0
    for bad in damaged(data):
        with pytest.raises(FormatError, match=name):
            decode(bad, name)


def test_a_damaged_manifest_never_hides_or_adds_a_file(store: Store) -> None:
    path = store.path / "manifest.json"
    data, good = path.read_bytes(), store.manifest()["files"]
    assert len(good) == 12
    for bad in damaged(data)[::4]:
        path.write_bytes(bad)
        assert store.manifest()["files"] == good
    path.write_bytes(data)


def test_logs_without_checksums_are_called_unverified_on_the_page(tmp_path: Path) -> None:
    """Where nobody can tell whether a file is as it was written, the reader is told that."""
    import polars as pl

    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            "episode": np.repeat(np.arange(60), 5), "step": np.tile(np.arange(5), 60),
            "state": rng.integers(0, 3, 300), "reward": rng.normal(size=300),
            "terminated": np.tile(np.arange(5) == 4, 60), "rho": np.ones(300),
        }
    )  # fmt: skip
    foreign, own = tmp_path / "foreign.parquet", tmp_path / "own.parquet"
    table.write_parquet(foreign)
    sources.write_logs(sources.open_logs(foreign, discount=0.9), own)
    for file, expected in ((foreign, True), (own, False)):
        out = tmp_path / file.stem
        arguments = ["evaluate", str(file), "--discount", "0.9", "--features", "tabular"]
        assert main([*arguments, "--methods", "lstd", "--out", str(out), "--json"]) == 0
        page = (out / "report.html").read_text()
        assert ("read unverified" in page.lower()) == expected
        found = json.loads((out / "evaluation.json").read_text())["diagnostics"]
        assert found["unverified_files"] == ([str(file)] if expected else [])


# -- what fuzzers found ----------------------------------------------------------------------------

CRASHES = sorted(Path(__file__).with_name("crashes").glob("*.bin"))
ENDINGS = (".csv", ".ndjson", ".parquet", ".arrow", ".feather", ".csv", ".ndjson", ".csv")


@pytest.mark.parametrize("path", CRASHES, ids=[path.stem for path in CRASHES])
def test_what_once_crashed_is_an_answer_or_a_sentence(path: Path, tmp_path: Path) -> None:
    """The same reading as in `benchmarks/fuzz_logs.py` and `fuzz_models.py`."""
    data = path.read_bytes()
    if path.stem.startswith("logs"):
        file = tmp_path / f"log{ENDINGS[data[0] % len(ENDINGS)]}"
        file.write_bytes(data[1:])
        with contextlib.suppress(O2TDError):
            source = sources.open_logs(file, discount=0.9, sort=bool(data[0] & 64))
            assert all(np.isfinite(chunk.reward).all() for chunk in source.chunks())
        return
    file = tmp_path / "model.npz"
    file.write_bytes(data[1:] + hashlib.sha256(data[1:]).hexdigest().encode())
    for kind in [Learner, *(SOLVERS[name] for name in SOLVERS.names())]:
        with contextlib.suppress(O2TDError):
            use(kind.load(file), rows(), tmp_path)
