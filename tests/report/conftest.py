"""Results of an experiment that has nothing to do with the paper."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from o2td import experiments

SPEC = """
name = "walk"
title = "Traces on a walk"
steps = 300
runs = 4
metrics = ["rmse", "rmspbe"]
every = 30
sizes = [100, 300]
scheme = ["sequential", "iid"]
domain = { name = "random_walk", grid = { form = ["tabular", "dependent"] } }
algorithms = [
  { name = "TD", grid = { step_size = [0.03, 0.1, 30.0], trace = [0.0, 0.9] } },
  { name = "ABTD", label = "<mine>", parameters = { step_size = 0.1 }, note = "a guess & more" },
  { name = "LSTD" },
]
tuning = { seed = 5, runs = 2, grid = { step_size = [0.03, 0.1] } }
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("walk")
    experiments.run(experiments.load_spec(SPEC), out, workers=1)
    return out


@pytest.fixture(scope="module")
def tuned(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tuned") / "walk"
    shutil.copytree(folder, out)
    experiments.tune(experiments.load_spec(SPEC), out, workers=1)
    return out
