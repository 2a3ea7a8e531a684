"""Ctrl-C at any moment: the command ends at once, leaves no process behind, and what is stored goes on.

Signals are real. A terminal sends one to every process of the foreground group, `kill -INT` to one
alone: both are tried. Each command runs in a session of its own, so that whatever it starts is found.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from o2td.experiments import Store, load_spec, run

SECONDS = 2.0  # within which a command ends
PATIENCE = 120.0

SPEC = """
name = "long"
steps = {steps}
runs = 12
runs_per_shard = 1
metrics = ["rmse"]
domain = {{ name = "random_mdp", parameters = {{ states = 60, features = {features} }} }}
algorithms = [{{ name = "TD", grid = {{ step_size = [0.001, 0.002, 0.003, 0.004, 0.005] }} }}]
"""
SWEEP = """
import sys, numpy as np, o2td
def lanes(): return [o2td.TD(0.001 * k) for k in range(1, 129)]
rows = o2td.domains.random_mdp(states=50, features=40).sample(1_000_000)
many = {streams}
o2td.sweep(lanes(), rows[:2000])
print("begun", flush=True)
for _ in range(50):
    o2td.sweep(lanes(), [rows] * many if many > 1 else rows, workers=2)
"""


class Ended(NamedTuple):
    code: int
    seconds: float
    said: str
    left: list[int]


def members(session: int) -> list[int]:
    """Processes of a session that are not mere entries of dead ones."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(folder.name))
    return found


def hears(process: int) -> bool:
    """Whether Python is up so far that it handles interrupts; before, they just end the process."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return False
    (caught,) = [line.split()[1] for line in lines if line.startswith("SigCgt")]
    return bool(int(caught, 16) >> (signal.SIGINT - 1) & 1)


def interrupted(
    command: list[str], ready: Callable[[], bool], group: bool, cwd: Path, delay: float = 0.0
) -> Ended:
    """Start a command, wait until it is `ready`, and interrupt it."""
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < until:
            if hears(process.pid) and ready():
                break
            time.sleep(0.01)
        time.sleep(delay)
        assert process.poll() is None, "it ended before it could be interrupted"
        began = time.monotonic()
        (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
        seconds = time.monotonic() - began
        time.sleep(0.2)
        return Ended(process.returncode, seconds, said, members(process.pid))
    finally:
        for one in members(process.pid):
            os.kill(one, signal.SIGKILL)


def quickest(ends: list[Ended]) -> float:
    """The machine may be busy with other things once, not every time."""
    return min(one.seconds for one in ends)


pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")


@pytest.mark.slow
@pytest.mark.parametrize("group", [False, True], ids=["one process", "the group"])
def test_an_experiment_on_several_processes(group: bool, tmp_path: Path) -> None:
    """While workers start, while they compute for minutes, and while results come in."""
    ends = []
    for k, (steps, wanted, delay) in enumerate(
        [(10_000_000, 0, 1.0), (10_000_000, 0, 6.0), (200_000, 3, 0.0)]
    ):
        folder = tmp_path / f"store{k}"
        spec = tmp_path / f"spec{k}.toml"
        spec.write_text(SPEC.format(steps=steps, features=50))
        command = [sys.executable, "-m", "o2td", "run", str(spec), "--out", str(folder)]

        def ready(folder: Path = folder, wanted: int = wanted) -> bool:
            return (folder / "runs").exists() and len(Store(folder).ids()) >= wanted

        ends.append(interrupted([*command, "--workers", "2"], ready, group, tmp_path, delay))
        assert ends[-1].code == 130, ends[-1].said
        assert ends[-1].left == []
        assert "interrupted; run the same command again to continue" in ends[-1].said
        assert (
            group or "Traceback" not in ends[-1].said
        )  # a dying worker may have begun to write one
        Store(folder).manifest()
    assert quickest(ends) < SECONDS, ends
    done = Store(tmp_path / "store2").ids()
    report = run(load_spec(SPEC.format(steps=200_000, features=50)), tmp_path / "store2", workers=1)
    assert (report.found, report.computed) == (len(done), 12 - len(done))


@pytest.mark.slow
@pytest.mark.parametrize("policies", [[], ["--target", "A=a", "--target", "B=b"]], ids=len)
def test_an_evaluation(policies: list[str], tmp_path: Path) -> None:
    """It ends, as does a comparison, and the folder that it was to write is not there."""
    rng, n = np.random.default_rng(0), 1_000_000
    columns = {
        "episode": np.arange(n) // 20, "step": np.arange(n) % 20, "obs_0": rng.normal(size=n),
        "obs_1": rng.normal(size=n), "action": rng.integers(0, 2, n), "reward": rng.normal(size=n),
        "terminated": np.arange(n) % 20 == 19, "rho": rng.uniform(0.5, 1.5, n),
        "behavior_prob": np.full(n, 0.5), "a": np.full(n, 0.4), "b": np.full(n, 0.6),
    }  # fmt: skip
    pl.DataFrame(columns).write_parquet(tmp_path / "log.parquet")
    command = [sys.executable, "-m", "o2td", "evaluate", "log.parquet", "--discount", "0.9"]
    command += policies
    ends = []
    for delay in (0.5, 3.0, 6.0):
        ends.append(interrupted([*command, "--out", "answer"], lambda: True, True, tmp_path, delay))
        assert ends[-1].code == 130, ends[-1].said
        assert (ends[-1].left, "Traceback" in ends[-1].said) == ([], False), ends[-1].said
        assert not (tmp_path / "answer").exists()
    assert quickest(ends) < SECONDS, ends


@pytest.mark.slow
@pytest.mark.parametrize("streams", [1, 6])
def test_a_sweep_in_compiled_code(streams: int, tmp_path: Path) -> None:
    """Compiled code hears nothing, so a sweep looks up between blocks of rows, in its threads too."""
    ends = []
    for delay in (0.3, 1.0):
        mark = tmp_path / "begun"
        mark.unlink(missing_ok=True)
        code = SWEEP.replace("{streams}", str(streams)).replace(
            'print("begun", flush=True)', f"open({str(mark)!r}, 'w').close()"
        )
        ends.append(interrupted([sys.executable, "-c", code], mark.exists, True, tmp_path, delay))
        assert (ends[-1].code, ends[-1].left) == (-signal.SIGINT, []), ends[-1].said
        assert "KeyboardInterrupt" in ends[-1].said
    assert quickest(ends) < SECONDS, ends


@pytest.mark.parametrize(
    "call", [["-m", "o2td"], ["-c", "import o2td.__main__ as m; exit(m.start())"]]
)
def test_an_interrupt_in_code_made_from_a_text_ends_with_the_same_code(
    call: list[str], tmp_path: Path
) -> None:
    """Python then ends `-m` by the signal although the interrupt was handled."""
    text = "def main():\n    exec('raise KeyboardInterrupt')\n"
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys, types\nm = types.ModuleType('o2td.cli.main')\nexec({text!r}, vars(m))\n"
        "sys.modules['o2td.cli.main'] = m\n"
    )
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, *call], capture_output=True, check=False, env=found)
    assert (done.returncode, done.stderr) == (130, b"")
