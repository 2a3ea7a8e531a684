"""Logs as named arrays: which of them are columns, and damage to those stored by columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from o2td import sources
from o2td.errors import FormatError


def test_without_known_rewards_columns_are_the_arrays_of_the_most_common_length() -> None:
    """Five arrays have six entries; two others have five."""
    t = np.arange(6)
    arrays = {"obs": np.stack([t, -t], axis=1) / 2, "gain": t / 4, "episode": t // 3}
    arrays |= {"rho": np.ones(6), "terminated": t % 3 == 2}
    arrays |= {"state": np.zeros(5, int), "next_state": np.zeros(5, int), "step": np.zeros(3)}
    (chunk,) = sources.open_logs(arrays, {"reward": "gain"}, discount=0.9).chunks()
    np.testing.assert_array_equal(chunk.reward, t / 4)
    np.testing.assert_array_equal(chunk.observation, arrays["obs"])
    assert chunk.state is None


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("column", [0, 1])
def test_one_bit_of_an_array_stored_by_columns_is_noticed(
    tmp_path: Path, width: int, column: int
) -> None:
    rng = np.random.default_rng(0)
    observations = np.asfortranarray(rng.normal(size=(60, width)))
    arrays = {"observations": observations, "rewards": np.ones(60)}
    arrays |= {"actions": np.zeros(60, dtype=int), "terminals": np.arange(60) % 10 == 9}
    file = tmp_path / "log.npz"
    np.savez(file, **arrays)
    raw = bytearray(file.read_bytes())
    at = raw.index(observations[:, column].tobytes()) + 100
    raw[at] ^= 1  # of the last digits of a number
    file.write_bytes(raw)
    with pytest.raises(FormatError, match="damaged"):
        list(sources.open_logs(file, discount=0.9, target="behavior").chunks())
