"""Frames of pandas are looked at once."""

from __future__ import annotations

import pandas as pd
import pytest

from o2td.errors import InputError
from o2td.sources.formats.frames import PandasFrame


def test_a_mixture_is_found_in_one_look_at_each_value():
    class Counted(float):
        looks = 0

        def __ne__(self, other):
            Counted.looks += 1
            return float.__ne__(self, other)

    values = [Counted(1.0) for _ in range(2000)]
    log = pd.DataFrame({"reward": pd.Series([*values, "x"], dtype=object)})
    with pytest.raises(InputError, match="row 2001 is 'x'"):
        list(PandasFrame(log).batches({"reward": "float"}, 65_536))
    assert Counted.looks <= 2 * len(values)
