"""Stores made by hand: what a report reads, with numbers that a test chooses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from o2td.experiments import Results, Store
from o2td.paper import load
from tests.experiments.files import FORMAT, Labels, forged


class Made:
    """A reproduction's folder, written piece by piece."""

    def __init__(self, path: Path) -> None:
        self.store = Store(path).create()
        self.experiments: dict[str, Any] = {}
        self.studies: dict[str, list[str]] = {}

    def study(self, name: str, rows: list[dict[str, Any]]) -> Made:
        """Records of a study; a row has quantity and value, the rest has defaults."""
        full = [{"domain": "garnet", "method": "", "index": 0, "x": 0.0, **row} for row in rows]
        key = {"format": FORMAT, "experiment": name, "runs": [0, 1], "seed": 1, "n": len(full)}
        columns: dict[str, Any] = {"study": Labels.of([name] * len(full))}
        for column in ("domain", "method", "quantity"):
            columns[column] = Labels.of([row[column] for row in full])
        columns["index"] = np.array([row["index"] for row in full], dtype=np.int64)
        columns["x"] = np.array([row["x"] for row in full], dtype=float)
        columns["value"] = np.array([row["value"] for row in full], dtype=float)
        self.studies[name] = [self._write(key, columns, "studies")]
        return self

    def runs(self, name: str, rows: list[dict[str, Any]], way: str = "shown") -> Made:
        """Values of runs; a row has algorithm, run, metric, step and value, maybe truth_error."""
        full = [{"domain": "d()", "scheme": "sequential", "parameters": "{}", **r} for r in rows]
        arrow = pytest.importorskip("pyarrow")
        key = {"format": FORMAT, "experiment": name, "runs": [0, 1], "rows": len(full), "way": way}
        columns: dict[str, Any] = {"experiment": Labels.of([name] * len(full))}
        for column in ("domain", "scheme", "algorithm", "parameters"):
            columns[column] = Labels.of([row[column] for row in full])
        columns["run"] = np.array([row["run"] for row in full], dtype=np.int32)
        columns["metric"] = Labels.of([row["metric"] for row in full])
        columns["step"] = np.array([row["step"] for row in full], dtype=np.int64)
        columns["value"] = np.array([row["value"] for row in full], dtype=float)
        gone = np.array([row.get("diverged", -1) for row in full], dtype=np.int64)
        columns["diverged"] = arrow.array(gone, mask=gone < 0)
        if any("truth_error" in row for row in full):
            columns["truth_error"] = arrow.array([row.get("truth_error") for row in full])
            key["truth"] = {"states": 40, "rollouts": 30}
        self._about(name)[way] = [self._write(key, columns, "runs")]
        return self

    def sensitivity(self, name: str, rows: list[dict[str, Any]]) -> Made:
        """What tuning tried; a row has algorithm, parameters, mean and diverged_share."""
        full = [{"domain": "d()", "scheme": "sequential", "chosen": False, **r} for r in rows]
        key = {"format": FORMAT, "experiment": name, "runs": [0, 1], "rows": len(full)}
        columns: dict[str, Any] = {"experiment": Labels.of([name] * len(full))}
        for column in ("domain", "scheme", "algorithm", "parameters"):
            columns[column] = Labels.of([row[column] for row in full])
        columns["metric"] = Labels.of(["rmse"] * len(full))
        columns["score"] = Labels.of(["area"] * len(full))
        columns["runs"] = np.full(len(full), 10)
        for column in ("mean", "low", "high"):
            columns[column] = np.array([row["mean"] for row in full], dtype=float)
        columns["diverged_share"] = np.array([row["diverged_share"] for row in full], dtype=float)
        columns["chosen"] = np.array([row["chosen"] for row in full])
        self._about(name)["sensitivity"] = [self._write(key, columns, "tuning")]
        return self

    def results(self) -> Results:
        """Write the record and read it all back."""
        record = {
            "format": 1,
            "profile": "quick",
            "versions": {"o2td": "0"},
            "machine": "here",
            "calls": [{"profile": "quick", "seconds": 1.0, "computed": 1, "found": 0}],
            "experiments": self.experiments,
            "studies": self.studies,
            "study_seeds": dict.fromkeys(self.studies, 1),
        }
        (self.store.path / "reproduction.json").write_text(json.dumps(record))
        return load(self.store.path)

    def _about(self, name: str) -> dict[str, Any]:
        empty: dict[str, Any] = {"title": name, "notes": {}, "runs": 20, "steps": 100, "seed": 1}
        empty |= {"tuning_seed": 2, "shown": [], "tuned": [], "sensitivity": []}
        found: dict[str, Any] = self.experiments.setdefault(name, empty)
        return found

    def _write(self, key: dict[str, Any], columns: dict[str, Any], folder: str) -> str:
        name, data = forged(key, columns)
        self.store.write(name, data, folder)
        return name


@pytest.fixture
def made(tmp_path: Path) -> Callable[[], Made]:
    """Makes empty folders to fill."""
    count = iter(range(100))
    return lambda: Made(tmp_path / f"made{next(count)}")
