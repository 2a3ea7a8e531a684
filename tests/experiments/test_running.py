"""Running: the same bytes whatever happens on the way."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from o2td.errors import InputError
from o2td.experiments import Store, load, load_spec, plan, results, run, running

KILLING = Path(__file__).with_name("killing.py")
Contents = Callable[[Path], dict[str, bytes]]


def _killing(*arguments: Any) -> str:
    command = [sys.executable, str(KILLING), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_killed_at_every_point_of_a_write(
    small_text: Callable[..., str], tmp_path: Path, contents: Contents
) -> None:
    (tmp_path / "spec.toml").write_text(small_text(runs=6, each=1))
    assert "every point" in _killing(tmp_path / "spec.toml", tmp_path / "store", "points")
    spec = load_spec(tmp_path / "spec.toml")
    run(spec, tmp_path / "store", workers=1)
    run(spec, tmp_path / "whole", workers=1)
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")


def _kill_at_random(text: str, kills: int, folder: Path, contents: Contents) -> None:
    """Every child stores a few files more, so that each kill falls into the work."""
    (folder / "spec.toml").write_text(text)
    spec = load_spec(folder / "spec.toml")
    draw = random.Random(kills)  # noqa: S311
    numbers = [f"{draw.uniform(0, spec.runs / kills - 5):.4f}" for _ in range(kills)]
    said = _killing(folder / "spec.toml", folder / "store", "files", *numbers)
    assert said.strip() == f"killed {kills} of {kills}"
    rest = run(spec, folder / "store", workers=1)
    assert rest.found + rest.computed == rest.planned == spec.runs
    assert min(rest.found, rest.computed) > 0
    print(f"{said.strip()}, {rest.found} of {rest.planned} done before the last run")
    again = run(spec, folder / "store", workers=1)
    assert (again.found, again.computed) == (spec.runs, 0)
    run(spec, folder / "whole", workers=1)
    assert contents(folder / "store") == contents(folder / "whole")


def test_killed_at_three_moments(
    small_text: Callable[..., str], tmp_path: Path, contents: Contents
) -> None:
    _kill_at_random(small_text(runs=40, each=1), 3, tmp_path, contents)


@pytest.mark.slow
def test_killed_at_100_moments_of_1000_runs(
    small_text: Callable[..., str], tmp_path: Path, contents: Contents
) -> None:
    _kill_at_random(small_text(runs=1000, each=1), 100, tmp_path, contents)


def test_any_number_of_workers_and_any_order_give_the_same_bytes(
    small_text: Callable[..., str], tmp_path: Path, contents: Contents
) -> None:
    spec = load_spec(small_text(runs=10, each=2))
    run(spec, tmp_path / "one", workers=1)
    report = run(spec, tmp_path / "two", workers=2)
    assert (report.computed, report.planned, report.complete) == (5, 5, True)
    # Another order: the last shards first, then the rest.
    store = Store(tmp_path / "other").create()
    for shard in reversed(plan(spec)[2:]):
        store.write(shard.id, (tmp_path / "one" / "runs" / f"{shard.id}.parquet").read_bytes())
    assert run(spec, tmp_path / "other", workers=1).computed == 2
    assert contents(tmp_path / "one") == contents(tmp_path / "two") == contents(tmp_path / "other")


WIDE = """
name = "wide"
steps = 300
runs = 2
runs_per_shard = 1
every = 100
metrics = ["rmse", "rmspbe"]
domain = { name = "random_mdp", seed = 0 }
algorithms = [{ name = "TD", parameters = { step_size = 1e-3 } }, { name = "LSTD" }]
"""


def test_threads_of_blas_do_not_change_the_bytes(tmp_path: Path, contents: Contents) -> None:
    """Wide enough that BLAS would share sums out to threads, and round them otherwise."""
    (tmp_path / "wide.toml").write_text(WIDE)
    for threads, workers in ((1, 1), (4, 1), (4, 2)):
        out = tmp_path / f"{threads}-{workers}"
        subprocess.run(
            [
                *(sys.executable, "-m", "o2td", "run", str(tmp_path / "wide.toml"), "--json"),
                *("--out", str(out), "--workers", str(workers)),
            ],
            env={**os.environ, "OPENBLAS_NUM_THREADS": str(threads)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    assert contents(tmp_path / "1-1") == contents(tmp_path / "4-1") == contents(tmp_path / "4-2")


def test_two_processes_on_one_store(
    small_text: Callable[..., str], tmp_path: Path, contents: Contents
) -> None:
    (tmp_path / "spec.toml").write_text(small_text(runs=40, each=1))
    command = [
        *(sys.executable, "-m", "o2td", "run", str(tmp_path / "spec.toml"), "--json"),
        *("--out", str(tmp_path / "store"), "--workers", "1"),
    ]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    parts = []
    for process in both:
        text, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        parts.append(json.loads(text)["parts"][0])
    assert all(part["found"] + part["computed"] == 40 for part in parts)
    spec = load_spec(tmp_path / "spec.toml")
    run(spec, tmp_path / "whole", workers=1)
    load(tmp_path / "whole").report(tmp_path / "whole/report.html", tmp_path / "whole/figures")
    assert contents(tmp_path / "store") == contents(tmp_path / "whole")
    table = results(tmp_path / "store")
    assert len(table) == len(table.unique()) == 40 * 3 * 3


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_ctrl_c_leaves_a_store_that_goes_on(
    workers: str, small_text: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "spec.toml").write_text(small_text(runs=3000, each=1))
    command = [
        *(sys.executable, "-m", "o2td", "run", str(tmp_path / "spec.toml")),
        *("--out", str(tmp_path / "store"), "--workers", workers),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while len(Store(tmp_path / "store").ids()) < 5 and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; run the same command again" in said
    assert "Traceback" not in said
    done = len(Store(tmp_path / "store").ids())
    assert 5 <= done < 3000
    few = load_spec(small_text(runs=4, each=1))
    assert run(few, tmp_path / "store", workers=1).found > 0


# -- tasks that fail -------------------------------------------------------------------------------


FAILING = """
name = "failing"
steps = 50
runs = 2
metrics = ["rmse"]
domain.name = "mountain_car"
truth = { states = 5, rollouts = 2, rows = 100 }
algorithms = [{ name = "SOTD" }]
"""


def test_a_failing_experiment_says_why_and_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the fault does not show before the work is done."""
    monkeypatch.setattr(running, "try_out", lambda key, problem: None)
    report = run(load_spec(FAILING), tmp_path, workers=1)
    assert (report.computed, report.complete) == (0, False)
    assert "state" in report.failed[0].error
    assert "Error" not in report.failed[0].error.split(":")[0]


def test_wrong_values_are_refused_before_any_work(
    small_text: Callable[..., str], tmp_path: Path
) -> None:
    text = small_text()
    for old, new, sentence in (
        ("step_size = 1e200", "step_size = -1.0", "algorithms[1].parameters: step_size"),
        ("step_size = 1e200", "trace = 'long'", "algorithms[1].parameters"),
        ('["rmse"]', '["theta_max"]', "metrics: theta_max"),
    ):
        with pytest.raises(InputError) as caught:
            run(load_spec(text.replace(old, new)), tmp_path / "store")
        assert sentence in str(caught.value)
    garnet = text.replace('"random_walk"', '"garnet"') + "\n[domain.parameters]\nstates = -3"
    garnet = garnet.replace('domain.name = "garnet"', "") + '\n[domain]\nname = "garnet"\n'
    garnet = garnet.replace("[domain.parameters]\nstates = -3\n", "") + "parameters.states = -3\n"
    with pytest.raises(InputError, match=r"domain\.parameters: states"):
        run(load_spec(garnet), tmp_path / "store")
    with pytest.raises(
        InputError, match=r"^workers must be a whole number from 1 to 10000, got 0$"
    ):
        run(load_spec(text), tmp_path / "store", workers=0)
    assert not (tmp_path / "store" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("domain", "algorithm", "said"),
    [
        ("mountain_car", 'name = "SOTD"', "SOTD cannot learn from mountain_car"),
        (
            "mountain_car",
            'name = "O2TD", parameters = { omega = "state" }',
            "O2TD cannot learn from",
        ),
        ("baird", 'name = "Averager"', "Averager cannot learn from baird"),
        ("random_walk", 'name = "LSTDQ"', "LSTDQ learns values of actions"),
    ],
)
def test_an_algorithm_that_cannot_read_the_rows_is_refused_by_name(
    domain: str, algorithm: str, said: str, tmp_path: Path
) -> None:
    """Before any work: in the shard it would take the others with it."""
    td = '{ name = "TD", parameters = { step_size = 0.1 } }'
    text = f"""
        name = "both"
        steps = 50
        runs = 1
        metrics = ["rmse"]
        domain.name = "{domain}"
        truth.states = 20
        truth.rollouts = 3
        algorithms = [{td}, {{ {algorithm} }}]
    """
    with pytest.raises(InputError, match=f"^algorithms: {said}"):
        run(load_spec(text), tmp_path / "store", workers=1)
    assert list(Store(tmp_path / "store").ids()) == []


CAR = """
name = "car"
steps = 100
runs = 1
metrics = ["rmse"]
truth = { states = 20, rollouts = 5, rows = 100 }
algorithms = [{ name = "TD", parameters = { step_size = 0.1 } }]
domain.name = "mountain_car"
"""


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("features = { name = 'fourier' }", "features.parameters: order is missing; give it"),
        (
            "features = { name = 'fourier', parameters = { order = -1 } }",
            "features.parameters: order must be a whole number of at least 0, got -1",
        ),
        (
            "features = { name = 'radial', parameters = { bins = 3, width = 0 } }",
            "features.parameters: width: 0 is not positive",
        ),
        (
            "features = { name = 'tiles', parameters = { tilings = 2, bins = [3, 4, 5] } }",
            "features.parameters: bins: 3 given for 2 variables",
        ),
        (
            "domain.parameters.order = -1",
            "domain.parameters: order must be a whole number of at least 0, got -1",
        ),
        ("domain.parameters.epsilon_behavior = 'a'", "domain.parameters: epsilon_behavior must"),
    ],
)
def test_a_mistake_is_told_by_the_table_it_is_in(lines: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run(load_spec(CAR + lines), tmp_path, workers=1)
    assert str(caught.value).startswith(sentence)


def test_a_metric_without_a_finite_model_is_told_by_its_own_key(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^metrics: rmsbe is not known where"):
        run(load_spec(CAR.replace('"rmse"', '"rmsbe"')), tmp_path, workers=1)
