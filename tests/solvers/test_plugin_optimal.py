"""Pairs of states that occur, with their sums."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.solvers.plugin_optimal import _unique_pairs


@pytest.mark.parametrize("largest", [1, 7, 1000])
def test_pairs_that_occur_are_those_of_a_dictionary(largest: int) -> None:
    rng = np.random.default_rng(largest)
    pair, weight = rng.integers(0, largest, (2, 300)), rng.random(300)
    total: dict[tuple[int, int], float] = {}
    for s, t, w in zip(*pair.tolist(), weight.tolist(), strict=True):
        total[s, t] = total.get((s, t), 0.0) + w
    found, sums = _unique_pairs(pair, weight)
    assert list(zip(*found.tolist(), strict=True)) == sorted(total)
    assert sums.tolist() == [total[key] for key in sorted(total)]
    assert _unique_pairs(pair[:, :0], weight[:0])[0].shape == (2, 0)
