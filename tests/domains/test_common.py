"""What makes a domain shares no random numbers with what samples it."""

from __future__ import annotations

import numpy as np

from o2td import domains


def test_a_domain_and_its_sample_share_no_random_numbers() -> None:
    """With one stream for both, the first draws of a state would be the ones that made its row."""
    problem = domains.random_mdp(states=30, actions=2, features=30, seed=9)
    from o2td.domains.common import generator
    from o2td.sampling import raw_numbers, streams

    made = generator(9).random(200)
    drawn = (raw_numbers(streams(9, 1)[0], 200) >> np.uint64(11)) * 2.0**-53
    assert not np.isin(made, drawn).any()
    assert problem.n_states == 30
