"""What a column is read as depends on its type, unless it is named."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.errors import InputError
from tests.sources.small_logs import log_of, opened, refused


def test_real_numbers_under_a_short_name_are_observations_unless_named_as_states():
    log = log_of().rename(columns={"state": "s"})
    (chunk,) = opened(log).chunks()  # whole numbers are states
    assert chunk.observation is None
    assert chunk.state.tolist() == [0, 1, 2] * 4
    real = log.assign(s=log.s + 0.5)
    (chunk,) = opened(real).chunks()
    assert chunk.state is None
    assert chunk.observation[:, 0].tolist() == [0.5, 1.5, 2.5] * 4
    with pytest.raises(InputError, match=r"column s, row 1 .* is 0\.5; write a whole number"):
        opened(real, columns={"state": "s"}).scan()
    (chunk,) = opened(log.astype({"s": float}), columns={"state": "s"}).chunks()
    assert chunk.observation is None
    assert chunk.state.tolist() == [0, 1, 2] * 4


def test_states_as_floats_count_up_to_where_floats_tell_them_apart():
    state = np.zeros(12)
    state[4] = 2.0**53
    (chunk,) = opened(log_of(state=state)).chunks()
    assert chunk.state[4] == 2**53
    state[4] += 2.0
    refused(r"column state, row 5 .* above 2\*\*53 apart", log_of(state=state))
