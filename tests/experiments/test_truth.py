"""True values from roll-outs: their standard error is right, stored, and read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from o2td import Problem, domains, exact, metrics
from o2td.cli import main
from o2td.experiments import Spec, Store, load_spec, plan, results, run, scores, summary, tune
from o2td.simulated import SimulatedProblem
from tests.experiments.files import COLUMNS, encode

STATES, ROLLOUTS, SEED = 40, 20, 7

SPEC = f"""
name = "battery"
steps = 200
runs = 4
runs_per_shard = 2
every = 100
metrics = ["rmspbe", "rmse"]
domain.name = "energy_storage"
truth = {{ states = {STATES}, rollouts = {ROLLOUTS}, rows = 500, seed = {SEED} }}
algorithms = [
  {{ name = "TD", parameters = {{ step_size = 0.01 }} }},
  {{ name = "LSTD", parameters = {{ ridge = 1e-3 }} }},
]
tuning = {{ seed = 5, runs = 2, metric = "rmse", grid = {{ step_size = [0.001, 0.01] }} }}
"""


@pytest.fixture(scope="module")
def spec() -> Spec:
    return load_spec(SPEC)


def coin(p: float) -> SimulatedProblem:
    """One toss: heads, taken with probability p, pays what is seen, and the episode ends."""
    made = Problem.simulated(
        reset=lambda rng: np.array([1.0 + 3.0 * rng.random()]),
        step=lambda x, action, rng: (x, float(x[0] * action), True),
        behavior=lambda x: np.array([0.5, 0.5]),
        target=lambda x: np.array([1.0 - p, p]),
        features=lambda X: X,
        discount=0.9,
    )
    assert isinstance(made, SimulatedProblem)
    return made


def test_standard_error_in_closed_form() -> None:
    """V(x) = p x, a return has variance x^2 p (1 - p): all of it is known."""
    p, runs = 0.3, 100
    problem = coin(p)
    x = problem.observations(800, seed=1)
    found = problem.rollout_value(x, runs=runs, seed=2)
    known = x[:, 0] * np.sqrt(p * (1.0 - p) / runs)
    # A sample's spread of 100 tosses is off by 5 % or so; the mean over 800 of them by 0.2 %.
    np.testing.assert_allclose(found.standard_error, known, rtol=0.35)
    np.testing.assert_allclose(np.mean(found.standard_error / known), 1.0, atol=0.01)
    assert found.noise == pytest.approx(np.sqrt(np.mean(known**2)), rel=0.01)
    # Measured against these values, V itself has that RMSE: the mean of 800 squares has a spread of 5 %.
    assert metrics.held_out(x, found.mean).value([p]) == pytest.approx(found.noise, rel=0.08)
    # And a theta that is off by e x has sqrt(e^2 mean x^2 + noise^2).
    off = np.hypot(0.1 * np.sqrt(np.mean(x**2)), found.noise)
    assert metrics.held_out(x, found.mean).value([p + 0.1]) == pytest.approx(off, rel=0.04)


def test_standard_error_against_an_exact_value() -> None:
    """A chain with a finite model, simulated: deviations from the exact V have unit variance."""
    walk = domains.random_walk()
    value, states = exact.value(walk), np.flatnonzero(~walk.terminal)
    pairs = walk.pairs

    def step(x: Any, action: int, rng: np.random.Generator) -> tuple[Any, float, bool]:
        own = (pairs.state == int(x[0])) & (pairs.action == action)
        (k,) = np.flatnonzero(own)
        after = int(pairs.next_state[k])
        return np.array([float(after)]), float(pairs.reward[k]), bool(walk.terminal[after])

    problem = Problem.simulated(
        reset=lambda rng: np.array([float(states[0])]),
        step=step,
        behavior=lambda x: walk.behavior[int(x[0])],
        target=lambda x: walk.target[int(x[0])],
        features=lambda X: X,
        discount=1.0,
    )
    seen = np.tile(states, 6)[:, None].astype(float)
    found = problem.rollout_value(seen, runs=200, seed=3)
    deviation = (found.mean - value[seen[:, 0].astype(int)]) / found.standard_error
    # 30 nearly normal deviations: their mean square has a spread of 0.26.
    assert np.mean(deviation**2) == pytest.approx(1.0, abs=1.0)
    assert abs(deviation.mean()) < 0.75


def test_returns_that_are_all_the_same_have_no_error() -> None:
    car = domains.mountain_car()
    found = car.rollout_value(car.observations(20, seed=0, every=10), runs=7)
    assert (found.standard_error == 0.0).all()
    assert found.noise == 0.0


def test_stored_error_is_that_of_the_roll_outs(spec: Spec, tmp_path: Path) -> None:
    run(spec, tmp_path, workers=1)
    table = results(tmp_path)
    problem = domains.energy_storage()
    seen = problem.observations(STATES, seed=(SEED, 0), every=10)
    noise = problem.rollout_value(seen, runs=ROLLOUTS, seed=(SEED, 1)).noise
    assert noise > 0.0
    assert table.filter(metric="rmse")["truth_error"].to_list() == [noise] * 12
    assert table.filter(metric="rmspbe")["truth_error"].null_count() == 12
    for made in (summary(table), summary(scores(table)), summary(scores(table, "area"))):
        np.testing.assert_allclose(made.filter(metric="rmse")["truth_error"], noise, rtol=1e-12)
        assert made.filter(metric="rmspbe")["truth_error"].null_count() > 0


def test_exact_truth_stores_no_such_column(small_text: Any, tmp_path: Path) -> None:
    run(load_spec(small_text()), tmp_path, workers=1)
    (first, *_) = Store(tmp_path).files()
    assert first.frame().columns == COLUMNS["runs"]
    assert results(tmp_path)["truth_error"].null_count() == len(results(tmp_path))


def test_a_store_from_before_the_column_still_reads(spec: Spec, tmp_path: Path) -> None:
    """All files old, then one old among new ones: what is finished is kept, and tuning goes on."""
    run(spec, tmp_path / "new", workers=1)
    store, shards = Store(tmp_path / "old").create(), plan(spec)
    files = {
        one.id: (tmp_path / "new" / "runs" / f"{one.id}.parquet").read_bytes() for one in shards
    }
    for shard in shards:
        store.write(shard.id, _without(files[shard.id], shard.key))
    tmp_path /= "old"
    assert run(spec, tmp_path, workers=1).found == len(shards)
    old = results(tmp_path)
    assert old["truth_error"].null_count() == len(old) == 24
    assert old["truth_error"].dtype == pl.Float64
    store.write(shards[0].id, files[shards[0].id])
    mixed = results(tmp_path)
    assert mixed.drop("truth_error").equals(old.drop("truth_error"))
    shown = summary(mixed).filter(metric="rmse")["truth_error"]
    assert shown.null_count() == 0
    assert tune(spec, tmp_path, workers=1).tried.complete


def _without(data: bytes, key: str) -> bytes:
    """The file as it was written before the column was there."""
    import io

    import pyarrow.parquet as parquet

    table = parquet.read_table(io.BytesIO(data)).drop_columns(["truth_error"])
    return encode(key, {name: table[name].combine_chunks() for name in table.column_names})


def test_the_command_tells_it_below_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "battery.toml").write_text(SPEC)
    assert main(["run", str(tmp_path / "battery.toml"), "--out", str(tmp_path / "out")]) == 0
    error = results(tmp_path / "out")["truth_error"].max()
    assert f"true values are roll-outs, standard error {error:.3g}" in capsys.readouterr().out
