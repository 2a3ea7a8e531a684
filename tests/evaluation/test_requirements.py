"""Requirements: what they may say, and when they hold."""

from __future__ import annotations

import pytest

from o2td.errors import InputError
from o2td.evaluation.requirements import parse


def test_the_approximation_error_counts_on_the_deciding_side():
    from o2td.evaluation.requirements import Quantity, check

    found = Quantity("value", 1.0, 0.8, 1.2, 0.3, "trust")
    assert check("value > 0.6", lambda _: found).holds is None
    assert check("value > 0.4", lambda _: found).holds is True
    assert check("value > 1.4", lambda _: found).holds is None
    assert check("value > 1.6", lambda _: found).holds is False
    lost = Quantity("value", 1.0, 0.8, 1.2, 0.0, "cannot answer")
    assert check("value > 0", lambda _: lost).holds is None


@pytest.mark.parametrize(
    "text",
    ["", "value", "value >", "> 3", "value > 3 4", "value ! 3", "1 > 0", "a - b - c > 0", "a + b > 0",
     "value > __import__('os')", "value >> 3", "value > 1 > 0"],
)  # fmt: skip
def test_what_is_no_requirement_is_refused_in_a_sentence(text):
    with pytest.raises(InputError, match="requirement"):
        parse(text)


def test_names_that_are_no_words_stand_in_quotes():
    found = parse("\"new policy\" - 'old-1' > -0.5")
    assert (found.plus, found.minus, found.bar) == ("new policy", "old-1", -0.5)
