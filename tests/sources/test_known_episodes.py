"""Episodes that were seen are remembered in little memory."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.sources.known_episodes import KnownEpisodes


def _held(seen):
    return sum(len(ends) for run in seen._runs for ends in {id(a): a for a in run}.values())


@pytest.mark.parametrize("step", [1, -1])
def test_episodes_in_order_are_remembered_by_the_ends_of_their_run(step):
    seen = KnownEpisodes()
    for low in range(0, 50_000, 500):
        assert seen.add(step * np.arange(low, low + 500)) is None
    assert _held(seen) == 2
    for known in (0, 777, 49_999):
        assert seen.add(step * np.array([60_000, known])) == 1
    assert seen.add(step * np.array([50_000, 70_000])) is None


def test_episodes_in_any_order_are_remembered_by_one_number_each():
    rng = np.random.default_rng(0)
    names = rng.permutation(rng.choice(1 << 62, 20_000).astype(np.uint64))
    seen, known = KnownEpisodes(), set()
    for part in np.array_split(names, 40):
        expected = [k for k, name in enumerate(part.tolist()) if name in known]
        assert seen.add(part) == (expected[0] if expected else None)
        known |= set(part.tolist())
    assert _held(seen) == len(known)
    assert seen.add(names[[5, 5]]) == 0
    assert seen.add(np.array([3, 4, 3], dtype=np.uint64)) == 2


def test_gaps_between_runs_are_not_taken_for_episodes():
    rng = np.random.default_rng(1)
    numbers = rng.permutation(np.flatnonzero(rng.random(5000) < 0.7))
    seen = KnownEpisodes()
    for part in np.array_split(numbers, 23):
        assert seen.add(part) is None
    missing = np.setdiff1d(np.arange(5000), numbers)
    assert all(seen.add(np.array([one])) == 0 for one in numbers[:50])
    assert seen.add(missing) is None
    assert _held(seen) <= 4


@pytest.mark.parametrize("seed", range(20))
def test_runs_and_single_episodes_are_kept_apart(seed):
    """Some parts are runs of neighbours, some are scattered; all are held against a set."""
    rng = np.random.default_rng(seed)
    seen, known = KnownEpisodes(), set()
    for _ in range(30):
        low, size = int(rng.integers(3000)), int(rng.integers(1, 40))
        part = low + (np.arange(size) if rng.random() < 0.5 else 7 * np.arange(size))
        expected = next((k for k, name in enumerate(part.tolist()) if name in known), None)
        assert seen.add(part) == expected
        if expected is None:
            known |= set(part.tolist())
