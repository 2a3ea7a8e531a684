"""Files made to harm: refused before anything is allocated or imported, and nothing of theirs runs.

`test_archive` and `test_store` hold the crafted zips and parquet files; here a process with a limit
on its memory reads every kind of hostile file, and forged arrays meet compiled code.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pickle
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2td
from o2td import archive
from o2td.errors import FormatError, O2TDError
from o2td.learners import Learner
from o2td.registry import LEARNERS, SOLVERS
from o2td.transitions import Transitions

from .test_bad_input import made

# -- model files and specs under a limit -----------------------------------------------------------

READ = """
import os, resource, sys, time
import o2td
from o2td.learners import Learner
from o2td.experiments import load_spec
from o2td.experiments import plan
from o2td.errors import O2TDError
Learner.load, o2td.LSTD.load, load_spec
import o2td.registry
o2td.registry.LEARNERS.names(); o2td.registry.SOLVERS.names(); o2td.registry.DOMAINS.names()
began = {line.split()[0]: line.split() for line in open("/proc/self/status")}
resource.setrlimit(resource.RLIMIT_AS, (int(began["VmSize:"][1]) * 1024 + 100_000_000, -1))
modules = set(sys.modules)
for path in sys.argv[1:]:
    start = time.perf_counter()
    try:
        if path.endswith(".toml"):
            plan(load_spec(path))
        else:
            (o2td.LSTD if "solver" in path else Learner).load(path)
        print("ACCEPTED", path)
    except O2TDError as error:
        seconds = time.perf_counter() - start
        print("refused", round(seconds, 3), " ".join(str(error).split())[:150])
print("imported", *sorted(m for m in set(sys.modules) - modules if "canary" in m))
"""


class Canary:
    """Unpickling one of these would leave a folder behind."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.place),))


def zipped(
    members: dict[str, bytes], compression: int = zipfile.ZIP_STORED, kind: int = stat.S_IFREG
) -> bytes:
    """A zip with the digest that belongs to it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as made_zip:
        made_zip.comment = b"0" * 64
        for name, data in members.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type, info.create_system = compression, 3
            info.external_attr = (kind | 0o644) << 16
            made_zip.writestr(info, data)
    body = out.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def header(**changes: Any) -> bytes:
    document = {
        "format": "o2td", "version": 1, "kind": "learner", "arrays": {},
        "header": {"algorithm": "TD", "parameters": {"step_size": 0.1}},
    }  # fmt: skip
    return json.dumps(document | changes).encode()


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, allow_pickle=True)
    return out.getvalue()


def hostile_models(canary: Path) -> dict[str, bytes]:
    pickled = pickle.dumps(Canary(canary))
    objects = npy(np.array([Canary(canary)], dtype=object))
    listed = {"arrays": {"a": {"dtype": "|O", "shape": [1]}}}
    number = {"arrays": {"a": {"dtype": "<f8", "shape": [1]}}}
    huge = {"arrays": {"a": {"dtype": "<f8", "shape": [2**40]}}}
    one = npy(np.ones(1))

    def named(name: str) -> dict[str, Any]:
        return {"header": {"algorithm": name, "parameters": {}}}

    found = {
        "pickle": pickled,
        "pickle sealed": pickled + hashlib.sha256(pickled).hexdigest().encode(),
        "pickle member": zipped({"header.json": header(**number), "a.npy": pickled}),
        "pickle beside": zipped({"header.json": header(), "a.pkl": pickled}),
        "objects": zipped({"header.json": header(**listed), "a.npy": objects}),
        "objects called numbers": zipped({"header.json": header(**number), "a.npy": objects}),
        "absolute": zipped({"header.json": header(), "/etc/passwd.npy": one}),
        "parent": zipped({"header.json": header(), "../../a.npy": one}),
        "symlink": zipped({"header.json": header(), "a.npy": b"/etc/passwd"}, kind=stat.S_IFLNK),
        "bomb": zipped(
            {"header.json": header(**huge), "a.npy": bytes(120_000_000)}, zipfile.ZIP_DEFLATED
        ),
        "bomb header": zipped({"header.json": b" " * 120_000_000}, zipfile.ZIP_DEFLATED),
        "huge": zipped({"header.json": header(**huge), "a.npy": one}),
        "wrong digest": zipped({"header.json": header()})[:-1] + b"!",
        "future": zipped({"header.json": header(version=2)}),
        "deep": zipped({"header.json": b'{"a":' * 100_000}),
        "unknown algorithm": zipped({"header.json": header(**named("os.system"))}),
        "import path": zipped({"header.json": header(**named("canary_module:run"))}),
        "dunder": zipped({"header.json": header(**named("__import__"))}),
        "empty": b"",
        "not a zip": b"PK\x03\x04" + bytes(200),
    }
    return {f"{name}.npz": data for name, data in found.items()}


SPEC = """
name = "x"
steps = 10
runs = 2
metrics = ["rmse"]
domain.name = "random_walk"
algorithms = [{ name = "TD", parameters = { step_size = 0.1 } }]
"""

HOSTILE_SPECS = {
    "unknown key": SPEC + "nonsense = 1\n",
    "unknown key in a table": SPEC.replace("domain.name", "domain.module = 'os'\ndomain.name"),
    "many runs": SPEC.replace("runs = 2", "runs = 1000000000000"),
    "many steps": SPEC.replace("steps = 10", "steps = 1000000000000"),
    "deep": SPEC + "a = " + "[" * 5000 + "]" * 5000 + "\n",
    "deep tables": SPEC + "".join(f"[{'a.' * k}a]\n" for k in range(1, 150)),
    "path as a domain": SPEC.replace("random_walk", "../../../etc/passwd"),
    "path as a name": SPEC.replace('"x"', '"../../../tmp/x"'),
    "absolute name": SPEC.replace('"x"', '"/etc/x"'),
    "import path": SPEC.replace('"TD"', '"canary_module:run"'),
    "code": SPEC.replace('"TD"', '"__import__(\'os\').mkdir(\'ran\')"'),
    "code as a number": SPEC.replace("0.1", '"__import__(\'os\').mkdir(\'ran\')"'),
    "many settings": SPEC.replace(
        "parameters = { step_size = 0.1 }",
        "grid = { " + ", ".join(f"{k} = {list(range(300))}" for k in ("step_size", "trace")) + " }",
    ),
    "large": SPEC + "#" * 10_000_000 + "\n",
    "large domain": SPEC.replace("random_walk\"", 'garnet"\ndomain.parameters.n_states = 10000000'),
    "not text": "\x00\x01\x02",
}  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="limits memory by RLIMIT_AS")
def test_hostile_files_cost_less_than_a_second_and_100_megabytes(tmp_path: Path) -> None:
    canary = tmp_path / "ran"
    (tmp_path / "canary_module.py").write_text("import os; os.mkdir('ran')\ndef run(): pass\n")
    files = hostile_models(canary)
    for name in ("huge.npz", "deep.npz", "empty.npz", "bomb.npz"):
        files[f"solver {name}"] = files[name].replace(b'"learner"', b'"solver LSTD"')
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    for name, text in HOSTILE_SPECS.items():
        (tmp_path / f"{name}.toml").write_text(text)
    files |= {f"{name}.toml": b"" for name in HOSTILE_SPECS}
    (tmp_path / "link.npz").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "fifo.npz")
    names = [*files, "link.npz", "fifo.npz", "missing.npz", "missing.toml"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", READ, *names],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *lines, imported = done.stdout.splitlines()
    assert len(lines) == len(names) >= 36
    for name, line in zip(names, lines, strict=True):
        assert line.startswith("refused"), (name, line)
        assert float(line.split()[1]) < 1.0, (name, line)
    assert imported == "imported"
    assert not canary.exists()


# -- forged arrays ---------------------------------------------------------------------------------


def rows(width: int = 5, sparse: bool = False) -> Transitions:
    rng = np.random.default_rng(0)
    table: Any = rng.dirichlet(np.ones(width), size=7)
    if sparse:
        from scipy.sparse import csr_array

        table = csr_array(table)
    state, following, second = rng.integers(7, size=(3, 40))
    rho, behavior, discount = rng.choice([0.5, 1.0, 1.5], 40), np.full(40, 0.5), np.full(40, 0.9)
    fields = {"discount": discount, "rho": rho, "start": np.arange(40) % 8 == 0}
    fields |= {"behavior_prob": behavior, "target_prob": rho * behavior}
    fields |= {"next_state_2": second, "discount_2": discount, "rho_2": rho}
    return Transitions.from_table(table, state, rng.normal(size=40), following, **fields)


def models() -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {}
    for registry in (LEARNERS, SOLVERS):
        for name in registry.names():
            found[name] = lambda kind=registry[name]: made(kind)
    for reading in ("state", "moments"):
        found[f"O2TD {reading}"] = lambda reading=reading: o2td.O2TD(
            step_size=0.1, omega=reading, trace=0.5
        )
    found["TD traced"] = lambda: o2td.TD(step_size=0.1, trace=0.5)
    found["ETD traced"] = lambda: o2td.ETD(step_size=0.1, trace=0.5)
    found["LSTD traced"] = lambda: o2td.LSTD(trace=0.5)
    found["LSETD traced"] = lambda: o2td.LSETD(trace=0.5)
    return found


MODELS = models()


def bent(array: Any) -> list[Any]:
    """Ways in which an array can lie."""
    found = [array[None], array.reshape(-1), array.astype("<f4")]
    with np.errstate(invalid="ignore"):  # numbers beyond a byte, too
        found.append(array.astype("|u1"))
    if array.ndim:
        found += [array[:0], array[: len(array) // 2], np.concatenate([array, array])]
        if array.ndim == 2:
            found += [array[:, :1], array[:, :0], np.hstack([array, array])]
    if array.size:
        for value in (
            -1,
            2**31 - 1,
            -(2**31),
            *([np.nan, np.inf] if array.dtype.kind == "f" else []),
        ):
            changed = array.copy()
            changed.reshape(-1)[-1] = value if array.dtype.kind != "b" else bool(value)
            found.append(changed)
    return found


KEPT_SPARSE = [name for name in MODELS if name not in LEARNERS]  # files differ by the layout


@pytest.mark.parametrize(
    ("name", "sparse"),
    [*((name, False) for name in MODELS), *((name, True) for name in KEPT_SPARSE)],
)
def test_forged_arrays_never_reach_compiled_code(
    name: str, sparse: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A digest is no signature: whatever is accepted must predict, learn and save as a model."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # thousands of files, none to keep
    model = MODELS[name]()
    learner = isinstance(model, Learner)
    batch = rows(sparse=sparse)
    (model.partial_fit if learner else model.update)(batch)
    path = tmp_path / "model.npz"
    model.save(path)
    kind = "learner" if learner else f"solver {type(model).__name__}"
    given, arrays = archive.load(path, kind)
    refused = 0
    for key in arrays:
        for array in [None, *bent(arrays[key])]:
            changed = {k: v for k, v in arrays.items() if k != key}
            if array is not None:
                changed[key] = array
            archive.save(path, kind, given, changed)
            try:
                loaded = (Learner if learner else type(model)).load(path)
            except FormatError:
                refused += 1
                continue
            use(loaded, batch, tmp_path)
    assert refused > 2 * len(arrays)


def use(model: Any, batch: Transitions, folder: Path) -> None:
    for act in (
        lambda: model.predict(batch.phi),
        lambda: getattr(model, "partial_fit", getattr(model, "update", None))(batch),
        lambda: model.theta,
        lambda: model.save(folder / "again.npz"),
    ):
        with contextlib.suppress(O2TDError):
            act()
