"""Specs that several tests of experiments run."""

from __future__ import annotations

TUNED = """
name = "tuned"
steps = 200
runs = 4
every = 50
seed = 5
metrics = ["rmse", "rmspbe"]
domain.name = "random_walk"

[[algorithms]]
name = "TD"

[[algorithms]]
name = "GTD2"
parameters = { second_step_size = 0.1 }

[[algorithms]]
name = "TDRC"
tune = ["step_size"]

[tuning]
seed = 6
runs = 5
score = "SCORE"

[tuning.grid]
step_size = [1e-6, 0.1, 1e200]
second_step_size = [{ ratio = 1.0 }, { ratio = 2.0 }]
"""
