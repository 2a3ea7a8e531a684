"""Arguments of an evaluation: taken at their bounds and inside, refused beyond."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td.errors import InputError
from o2td.evaluation import Thresholds
from o2td.evaluation.arguments import check_arguments, method_names

GOOD = {"confidence": 0.9, "seed": 0, "trace": None, "lanes": 50, "thresholds": None}
GOOD |= {"features": "fourier:3", "horizon": None}


@pytest.mark.parametrize(
    ("name", "good", "bad", "said"),
    [
        ("horizon", [1, 25, np.int64(3)], [0, -1, 2.0, "3", True], "is not a number of steps"),
        ("horizon", [10**9], [10**9 + 1, 10**400], "pass at most 1,000,000,000, or leave it out"),
        ("confidence", [0.001, 0.5, 0.999], [0.0, 1.0, -0.5, 1.5, True, "a"], "between 0 and 1"),
        ("seed", [0, 7, (1, 2), [3], np.array([4, 5])], [-1, 0.5, (), (1, -2), True], "from 0 up"),
        ("lanes", [0, 20, 100_000], [1, 19, 100_001, -20, 20.0, True], "at least 20, at most 100,000"),
        ("thresholds", [None, Thresholds()], [{}, 3], "is not a table of thresholds"),
        ("trace", [None, 0.0, 0.5, 1.0], [-0.01, 1.01, "a", True], r"is not in \[0, 1\]"),
    ],
)  # fmt: skip
def test_arguments_at_their_bounds(name, good, bad, said):
    for one in good:
        check_arguments(**{**GOOD, name: one})
    for one in bad:
        with pytest.raises(InputError, match=said) as caught:
            check_arguments(**{**GOOD, name: one})
        assert str(caught.value).startswith(name)


def test_traces_are_chosen_with_the_features():
    check_arguments(**{**GOOD, "features": "auto", "trace": 0.0})
    with pytest.raises(InputError, match=r"trace: 0\.5 cannot be combined with features"):
        check_arguments(**{**GOOD, "features": "auto", "trace": 0.5})


def test_tables_of_features():
    table = np.arange(6.0).reshape(3, 2)
    for good in (table, table.astype(int), table > 2, csr_array(table)):
        check_arguments(**{**GOOD, "features": good})
    for bad in (table[0], table[:, :0], table[:0], table[None]):
        with pytest.raises(InputError, match=r"pass \(S, d\), a row of features for each state"):
            check_arguments(**{**GOOD, "features": bad})
    for bad in (table.astype(str), table.astype(complex), table.astype(object)):
        with pytest.raises(InputError, match=r"a table of .*; pass numbers"):
            check_arguments(**{**GOOD, "features": bad})
    table[2, 0] = np.nan
    with pytest.raises(InputError, match="one of state 2 is not a finite number"):
        check_arguments(**{**GOOD, "features": table})
    with pytest.raises(InputError, match="features: one is not a finite number"):
        check_arguments(**{**GOOD, "features": csr_array(table)})


def test_names_of_methods():
    assert method_names(None) == (None, False)
    assert method_names(" ALL ") == (None, True)
    assert method_names("lstd, WIS,lstd") == (["lstd", "wis"], False)
    assert method_names(("dr", " is ")) == (["dr", "is"], False)
    for bad, said in [
        ("", "none is named"), ([], "none is named"), (3, "is not a list of names"),
        ("lstd,no", "'no' is not known"), ([1], "1 is not known"), ("lstd,", "'' is not known"),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=f"^methods: .*{said}"):
            method_names(bad)
