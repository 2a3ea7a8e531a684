"""A log as batches of transitions: the rows and successors of the log, however it is cut."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import LSTD
from o2td.features import Fourier, parse
from o2td.sources import open_logs


def _log(frame, truncated: bool):
    log = frame(episodes=40, seed=2, k=2)
    if not truncated:  # then every successor that counts is the row below
        log["terminated"] |= log.truncated
        log["truncated"] = False
    return log


@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 7, 8_192])
@pytest.mark.parametrize("kind", ["fourier:2", "tiles:4x4"])
def test_successors_are_those_of_the_log(frame, truncated, rows, kind):
    log = _log(frame, truncated)
    phi = parse(kind).fit(log[["obs_0", "obs_1"]].to_numpy())
    expected = phi.transform(log[["next_obs_0", "next_obs_1"]].to_numpy())
    batches = list(open_logs(log, discount=0.9).batches(phi, rows))
    assert all(batch.n <= rows for batch in batches)
    found = [batch.next_phi for batch in batches]
    dense = [part if isinstance(part, np.ndarray) else part.toarray() for part in found]
    alive = np.concatenate([batch.discount for batch in batches]) > 0.0
    assert alive.sum() == (~log.terminated).sum()
    whole = expected if isinstance(expected, np.ndarray) else expected.toarray()
    np.testing.assert_array_equal(np.concatenate(dense)[alive], whole[alive])


def test_a_solver_gets_the_same_from_batches_of_any_size(frame):
    log = _log(frame, truncated=True)
    source = open_logs(log, discount=0.9)
    phi = Fourier(2).fit(log[["obs_0", "obs_1"]].to_numpy())
    found = []
    for rows in (3, 64, 8_192):
        solver = LSTD(ridge=1e-6)
        for batch in source.batches(phi, rows):
            solver.update(batch)
        found.append(solver.theta)
    np.testing.assert_allclose(found[0], found[2], rtol=1e-8)
    np.testing.assert_allclose(found[1], found[2], rtol=1e-8)


def test_probabilities_of_the_log_are_those_of_batches(frame):
    log = _log(frame, truncated=False)
    log.loc[3, ["behavior_prob", "target_prob"]] = 0.0, 0.0  # neither is read there
    phi = Fourier(1).fit(log[["obs_0", "obs_1"]].to_numpy())
    (batch,) = open_logs(log, discount=0.9).batches(phi)
    np.testing.assert_array_equal(batch.target_prob, log.target_prob)
    np.testing.assert_array_equal(batch.behavior_prob, np.maximum(log.behavior_prob, 1e-300))
