"""What the Dantzig selector says of a system without entries."""

from __future__ import annotations

import numpy as np
import pytest

from o2td.solvers.dantzig import select


@pytest.mark.parametrize(("b", "residual"), [([0.0, 0.0], 0.0), ([0.0, 3.0], 1.0)])
def test_a_system_without_entries_is_one_without_data(b: list[float], residual: float) -> None:
    chosen = select(np.zeros((2, 2)), np.array(b), 0.1)
    assert (chosen.status, chosen.rank, chosen.residual) == ("no data", 0, residual)
