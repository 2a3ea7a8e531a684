"""Observations that hide a velocity: their change joins them, and the answer is right."""

from __future__ import annotations

import numpy as np
import pandas as pd

from o2td import evaluation
from o2td.evaluation.estimators.lagged import lagged

from .episodes import block_of


def hidden_velocity(seed: int, episodes: int = 250, steps: int = 12) -> pd.DataFrame:
    """A particle whose position is seen and whose velocity keeps its direction; both actions push."""
    rng = np.random.default_rng([seed, 5])
    place = rng.uniform(-1.0, 1.0, episodes)
    speed = np.zeros(episodes)
    parts = []
    for step in range(steps):
        action = (rng.random(episodes) < 0.5).astype(int)
        speed = 0.9 * speed + 0.2 * (2 * action - 1)
        ahead = place + speed
        rho = np.where(action == 1, 1.2, 0.8)
        columns = {"episode": np.arange(episodes), "step": step, "obs_0": place, "action": action}
        parts.append(
            pd.DataFrame({**columns, "next_obs_0": ahead, "reward": ahead - place, "rho": rho})
        )
        place = ahead
    log = pd.concat(parts).sort_values(["episode", "step"], ignore_index=True)
    return log.assign(terminated=log.step == steps - 1, truncated=False)


def test_changes_join_observations_within_their_episode():
    log = hidden_velocity(0, 2, 3)
    block = lagged(block_of(log))
    seen, ahead = block.rows.observation, block.rows.next_observation
    assert (seen[block.first[:-1], 1] == 0.0).all()
    assert np.allclose(seen[1, 1], log.obs_0[1] - log.obs_0[0])
    assert np.allclose(seen[1:3], ahead[:2])


def test_it_is_made_where_the_row_before_matters_and_only_there():
    log = hidden_velocity(1)
    answer = evaluation.evaluate(log, discount=0.9, methods="lstd,lagged")
    found = answer["lagged"]
    assert "of the observation and its change" in found.about
    assert not any("the previous row removes" in reason for reason in found.reasons)
    assert any("the previous row removes" in reason for reason in answer["lstd"].reasons)
    whole = log.assign(obs_1=log.groupby("episode").obs_0.diff().fillna(0.0))
    whole["next_obs_1"] = whole.next_obs_0 - whole.obs_0
    plain = evaluation.evaluate(whole, discount=0.9, methods="lstd,lagged")
    assert plain["lagged"].value is None
    assert "adds little" in plain["lagged"].reason
