"""Tables from a store: what was computed is what is read, and no run is dropped unseen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from o2td import TD, domains, metrics
from o2td.errors import InputError
from o2td.experiments import Store, load_spec, results, run, scores, sensitivity, summary, tune
from tests.experiments.specs import TUNED

COLUMNS = [
    *("experiment", "series", "domain", "scheme", "algorithm", "parameters"),
    *("run", "metric", "step", "value", "diverged", "truth_error"),
]


@pytest.fixture
def table(small_text: Callable[..., str], tmp_path: Path) -> pl.DataFrame:
    run(load_spec(small_text(runs=6, each=2)), tmp_path, workers=1)
    return results(tmp_path)


def test_values_are_those_of_the_learner_itself(table: pl.DataFrame) -> None:
    assert table.columns == COLUMNS
    problem = domains.random_walk()
    rmse = metrics.rmse(problem)
    for k in range(6):
        batch = problem.sample(60, seed=(3, k))
        learner = TD(step_size=0.1)
        expected = [rmse.value(learner.partial_fit(batch[a : a + 20]).theta) for a in (0, 20, 40)]
        stored = table.filter(run=k, parameters='{"step_size":0.1}')
        assert stored["step"].to_list() == [20, 40, 60]
        np.testing.assert_allclose(stored["value"].to_numpy(), expected, rtol=1e-12)


def test_a_diverged_run_is_infinite_with_its_step(table: pl.DataFrame) -> None:
    fast = table.filter(algorithm="TD too fast")
    assert fast["diverged"].null_count() == 0
    for step, value, diverged in fast.select("step", "value", "diverged").iter_rows():
        assert (value == np.inf) == (step >= diverged)
    others = table.filter(pl.col("algorithm") != "TD too fast")
    assert others["diverged"].null_count() == len(others)
    assert others["value"].is_finite().all()


def test_summary_is_students_interval_over_finite_runs(table: pl.DataFrame) -> None:
    found = summary(table)
    values = table.filter(parameters='{"step_size":0.1}', step=60)["value"].to_numpy()
    row = found.filter(parameters='{"step_size":0.1}', step=60).row(0, named=True)
    low, high = stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
    np.testing.assert_allclose(
        [row["mean"], row["low"], row["high"], row["median"]],
        [values.mean(), low, high, np.median(values)],
    )
    assert (row["runs"], row["finite"], row["diverged_share"]) == (6, 6, 0.0)
    lost = found.filter(algorithm="TD too fast", step=60).row(0, named=True)
    assert (lost["runs"], lost["finite"], lost["diverged_share"]) == (6, 0, 1.0)
    assert {lost[k] for k in ("mean", "low", "high", "median")} == {np.inf}
    assert not found.select(pl.col("mean", "low", "high", "median").is_nan().any()).row(0)[0]


def test_one_run_has_no_interval(small_text: Callable[..., str], tmp_path: Path) -> None:
    run(load_spec(small_text(runs=1, each=1)), tmp_path, workers=1)
    row = summary(scores(results(tmp_path))).row(0, named=True)
    assert (row["low"], row["high"], row["runs"]) == (-np.inf, np.inf, 1)


def test_scores_are_last_and_mean_values(table: pl.DataFrame) -> None:
    one = table.filter(run=2, parameters='{"step_size":0.1}')
    pick = {"run": 2, "parameters": '{"step_size":0.1}'}
    assert scores(table).filter(**pick)["value"][0] == one["value"][-1]
    area = scores(table, "area").filter(**pick)["value"][0]
    np.testing.assert_allclose(area, one["value"].mean())
    with pytest.raises(InputError, match="final"):
        scores(table, "best")


def test_an_earlier_form_of_a_spec_is_not_mixed_in(
    small_text: Callable[..., str], tmp_path: Path
) -> None:
    first = load_spec(small_text())
    second = load_spec(small_text().replace("seed = 3", "seed = 4"))
    for spec in (first, second):
        run(spec, tmp_path, workers=1)
    assert results(tmp_path)["series"].n_unique() == 2
    one = results(tmp_path, spec=second)
    assert one["series"].n_unique() == 1
    assert len(results(tmp_path)) == 2 * len(one)
    assert not one["value"].equals(results(tmp_path, spec=first)["value"])


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no results yet"):
        results(tmp_path)
    with pytest.raises(InputError, match="nothing was tuned there yet"):
        sensitivity(tmp_path)


# -- what a spec can say ---------------------------------------------------------------------------

EVERYTHING = """
name = "everything"
steps = 300
runs = 2
every = 100
sizes = [50, 300]
scheme = ["sequential", "iid"]
metrics = ["rmse", "rmspbe", "rmsbe", "theta_norm"]

[domain]
name = "garnet"
seed = "run"
parameters = { states = 10, actions = 2, features = 3, branching = 2 }
grid = { discount = [0.5, 0.9] }

[[algorithms]]
name = "ETD"
parameters = { step_size = { power = [0.1, 0.5] } }

[[algorithms]]
name = "ETD"
label = "ETD carried"
parameters = { step_size = { power = [0.1, 0.5] } }
starts = "ignored"

[[algorithms]]
name = "GTD2"
parameters = { step_size = "auto", emphasis = "omega:moments" }

[[algorithms]]
name = "SOTD"
grid = { weighting = ["normalized", "ordinary"] }
"""


def test_cases_schemes_solvers_and_problems_of_their_own(tmp_path: Path) -> None:
    report = run(load_spec(EVERYTHING), tmp_path, workers=1)
    assert report.failed == []
    table = results(tmp_path)
    assert table["domain"].n_unique() == table["scheme"].n_unique() == 2
    # Each of two runs draws its own garnet, the same for both schemes and all algorithms.
    assert len(table) == 2 * 4 * 4 * (3 * 3 + 2 * 2)
    solver = table.filter(algorithm="SOTD", metric="rmse")
    assert sorted(solver["step"].unique()) == [50, 300]
    # On rows that are all starts only the carried trace makes ETD differ from TD.
    iid = table.filter(scheme="iid", metric="rmse", step=300).sort("domain", "run")
    plain, carried = (iid.filter(algorithm=a)["value"] for a in ("ETD", "ETD carried"))
    assert not plain.equals(carried)
    walk = table.filter(scheme="sequential", metric="rmse", step=300).sort("domain", "run")
    plain, carried = (walk.filter(algorithm=a)["value"] for a in ("ETD", "ETD carried"))
    np.testing.assert_allclose(plain.to_numpy(), carried.to_numpy(), rtol=1e-12)


SIMULATED = """
name = "simulated"
steps = 200
runs = 2
metrics = ["rmse", "rmspbe"]
domain.name = "mountain_car"
features = { name = "fourier", parameters = { order = 2 } }
truth = { states = 20, rollouts = 3, rows = 2000 }
algorithms = [{ name = "TD", parameters = { step_size = 0.1 } }, { name = "LSTD" }]
"""


def test_a_simulated_domain_with_features_of_the_spec(tmp_path: Path) -> None:
    report = run(load_spec(SIMULATED), tmp_path, workers=1)
    assert report.failed == []
    table = results(tmp_path)
    assert table["value"].is_finite().all()
    # A higher order fits better in the long run; here it only must be another problem.
    other = load_spec(SIMULATED.replace("order = 2", "order = 3"))
    run(other, tmp_path, workers=1)
    assert not results(tmp_path, spec=other)["value"].equals(table["value"])


# -- tuning ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", ["final", "area"])
def test_tuning_picks_the_best_on_other_seeds_and_keeps_what_diverged(
    score: str, tmp_path: Path
) -> None:
    spec = load_spec(TUNED.replace("SCORE", score))
    tuned = tune(spec, tmp_path, workers=1)
    found = tuned.sensitivity
    assert found.equals(sensitivity(tmp_path))
    assert len(found) == 12
    wild = found.filter(pl.col("parameters").str.contains("1e\\+200|2e\\+200"))
    assert (wild["diverged_share"] == 1.0).all()
    assert not wild["chosen"].any()
    # The choice is the lowest mean of scores over the tuning runs, and those runs only.
    tried = results(tmp_path, "tuned:tuning").filter(metric="rmse")
    assert sorted(tried["run"].unique()) == list(range(5))
    means = summary(scores(tried, score)).filter(diverged_share=0.0)
    for name in ("TD", "GTD2", "TDRC"):
        best = means.filter(algorithm=name).sort("mean")["parameters"][0]
        assert found.filter(algorithm=name, chosen=True)["parameters"].to_list() == [best]
        shown = results(tmp_path, "tuned:tuned").filter(algorithm=name)
        assert shown["parameters"].unique().to_list() == [best]
        assert sorted(shown["run"].unique()) == list(range(4))
    # Other seeds, other streams: no shown value is one that was tuned on.
    shared = results(tmp_path, "tuned:tuned").join(tried, on=["parameters", "step", "value"])
    assert shared.is_empty()


def test_tuning_twice_changes_nothing(
    tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]
) -> None:
    spec = load_spec(TUNED.replace("SCORE", "area"))
    tune(spec, tmp_path, workers=1)
    before = contents(tmp_path)
    again = tune(spec, tmp_path, workers=1)
    assert again.tried.computed == 0
    assert again.shown is not None
    assert again.shown.computed == 0
    assert contents(tmp_path) == before


def test_where_every_setting_diverges_the_least_bad_is_shown_as_such(tmp_path: Path) -> None:
    text = TUNED.replace("SCORE", "area").replace("[1e-6, 0.1, 1e200]", "[1e200, 1e250]")
    found = tune(load_spec(text), tmp_path, workers=1).sensitivity.filter(algorithm="TD")
    assert found.filter(chosen=True)["diverged_share"].to_list() == [1.0]
    assert found.filter(chosen=True)["mean"].to_list() == [np.inf]


def test_tuning_needs_its_table(small_text: Callable[..., str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="tuning: small has no such table"):
        tune(load_spec(small_text()), tmp_path)


def test_the_key_of_a_file_tells_how_it_came_about(table: pl.DataFrame, tmp_path: Path) -> None:
    key = next(Store(tmp_path).files()).key
    assert (key["seed"], key["steps"], key["every"], key["runs"]) == (3, 60, 20, [0, 2])
    assert key["cells"][0]["parameters"] == {"step_size": 0.01}
