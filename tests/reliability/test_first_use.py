"""Installed where nothing can be written, without a home or a compiler: it works, and says so."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from o2td import compiled

from .test_writes import may_mount

ROOT = Path(__file__).parents[2]
SENTENCE = "compiled code cannot be kept here"

# Everything is read-only in here but one folder of memory, and nothing is on the path.
NAMESPACE = """
set -e
mount --make-rprivate /
mount -t tmpfs none "$1"
mount -o remount,bind,ro /
if touch "$2/canary" 2>/dev/null; then echo "this folder can be written to"; exit 9; fi
shift 2
cd /
exec "$@"
"""
LEARN = """
import o2td
rows = o2td.domains.random_walk().sample(1000)
print(o2td.TD(0.1).partial_fit(rows).theta.round(6).tolist())
print(o2td.LSTD().fit(rows).theta.round(6).tolist())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    if not may_mount(folder):
        pytest.skip("no mounts of one's own on this machine")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    given = ["--no-deps", "--no-build-isolation", "--no-compile", "--target", str(folder / "site")]
    subprocess.run([*pip, *given, str(ROOT)], check=True)
    (folder / "memory").mkdir()
    return folder


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["unshare", "--mount", "sh", "-c", NAMESPACE, "sh", str(folder / "memory")]
    command += [str(folder / "site"), sys.executable, *arguments]
    kept = {"PYTHONPATH": str(folder / "site"), "OPENBLAS_NUM_THREADS": "1", **environment}
    kept.setdefault("PATH", os.environ["PATH"])  # for unshare and mount alone
    return subprocess.run(command, capture_output=True, text=True, check=False, env=kept)


@pytest.mark.slow
@pytest.mark.parametrize("home", [{}, {"HOME": "/nonexistent"}, {"HOME": "/"}])
def test_it_works_where_nothing_can_be_written(installed: Path, home: dict[str, str]) -> None:
    done = run(installed, "-c", LEARN, **home)
    assert done.returncode == 0, done.stderr
    here = subprocess.run([sys.executable, "-c", LEARN], capture_output=True, text=True, check=True)
    assert done.stdout == here.stdout
    assert done.stderr.count(SENTENCE) == 1
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.slow
def test_what_the_sentence_says_to_set_is_enough(installed: Path) -> None:
    memory = str(installed / "memory")
    done = run(installed, "-c", LEARN, NUMBA_CACHE_DIR=memory)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_the_command_line_evaluates_a_log_there(installed: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {
        "episode": np.repeat(np.arange(60), 5), "step": np.tile(np.arange(5), 60),
        "state": rng.integers(0, 3, 300), "action": rng.integers(0, 2, 300),
        "reward": rng.normal(size=300), "terminated": np.tile(np.arange(5) == 4, 60),
        "rho": rng.uniform(0.5, 1.5, 300),
    }  # fmt: skip
    log = installed / "log.parquet"
    pl.DataFrame(columns).write_parquet(log)
    done = run(installed, "-m", "o2td", "evaluate", str(log), "--discount", "0.9", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{")
    assert done.stderr.count(SENTENCE) == 1
    assert "Traceback" not in done.stderr


def test_code_without_a_place_is_compiled_and_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same in this process, by the refusal that Numba itself gives."""
    import numba

    asked = []

    def njit(*given: object, cache: bool = False, **options: object) -> object:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function 'f': no locator available for file 'f.py'")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", njit)
    monkeypatch.chdir(tmp_path)
    compiled._say.cache_clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(3):
            assert compiled.njit(cache=True)(may_mount) is may_mount
    assert asked == [True, False] * 3
    assert [one.category for one in said] == [compiled.NotKeptWarning]
    shown = warnings.formatwarning(said[0].message, said[0].category, "o2td", 1)
    assert len(shown.splitlines()) == 1
    compiled._say.cache_clear()


def test_without_a_home_no_folder_called_tilde_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert not compiled._has_home()
    monkeypatch.setenv("NUMBA_CACHE_DIR", "kept")
    assert compiled._has_home()


def test_what_an_earlier_version_kept_is_compiled_anew(tmp_path: Path) -> None:
    """An upgrade leaves compiled code behind whose types may have moved to another module."""
    loops = "from o2td.compiled import njit\nfrom {0} import Pair\n@njit(cache=True)\n"
    loops += "def total(pair):\n    return pair.one + pair.two\nprint(total(Pair(1, {1})))\n"
    kind = "from typing import NamedTuple\nclass Pair(NamedTuple):\n    one: int\n    two: int\n"
    for home, two in (("pairs", 2), ("moved", 3), ("moved", 4)):
        (tmp_path / "pairs.py").unlink(missing_ok=True)
        (tmp_path / f"{home}.py").write_text(kind)
        (tmp_path / "loops.py").write_text(loops.format(home, two))
        command = [sys.executable, "-c", "import loops"]
        told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert told.stdout == f"{1 + two}\n", told.stderr
    assert list(tmp_path.rglob("*.nbi"))


FIRST = """
import sys
import numpy as np
from numba.core import event
import o2td
name, layout = sys.argv[1:]
phi, next_phi = np.eye(4)[[0, 1, 2, 3, 0]], np.eye(4)[[1, 2, 3, 0, 1]]
if layout == "csr":
    from scipy.sparse import csr_array
    phi, next_phi = csr_array(phi), csr_array(next_phi)
rows = o2td.Transitions(phi, np.ones(5), next_phi, 0.9)
with event.install_recorder("numba:compile") as record:
    getattr(o2td, name)().partial_fit(rows)
used = {done.data["dispatcher"] for _, done in record.buffer if done.is_end}
found = [one for used_one in used for one in used_one.overloads.values()]
own = [one for one in found if one.fndesc.modname.startswith("o2td.")]
code = [one.library.get_pointer_to_function(one.fndesc.llvm_func_name) for one in own]
print(len(found), sum(map(bool, code)))
"""


@pytest.mark.parametrize(
    ("name", "layout", "most"),
    [("ATD", "dense", 21), ("ATD", "csr", 27), ("ARCTD", "dense", 18), ("ARCTD", "csr", 25)],
)
def test_the_first_use_compiles_few_functions_and_makes_machine_code_of_those_called(
    name: str, layout: str, most: int, tmp_path: Path
) -> None:
    """At most as many functions as now, all but two of which are only called by these two."""
    empty = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", FIRST, name, layout]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=empty)
    compiled_ones, machine_code = map(int, told.stdout.split())
    assert compiled_ones <= most
    assert machine_code == (1 if name == "ARCTD" else 2)  # the driver, and measured step sizes


UNCOMPILED = """
import o2td
rows = o2td.domains.random_walk().sample(100)
print(o2td.LSTD().fit(rows).theta.round(6).tolist())
try:
    o2td.TD(0.1).partial_fit(rows)
except o2td.errors.InputError as error:
    print(error)
"""


def test_without_compilation_solvers_work_and_learners_say_what_to_unset() -> None:
    off = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", UNCOMPILED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=off)
    theta, refusal = done.stdout.splitlines()
    here = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [theta] == here.stdout.splitlines()
    assert refusal.startswith("NUMBA_DISABLE_JIT is set")
    assert refusal.endswith("unset it")
