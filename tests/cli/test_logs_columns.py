"""Roles of columns as they are typed on the command line."""

from __future__ import annotations

import pytest

from o2td.cli.logs_columns import parse_columns
from o2td.errors import InputError


@pytest.mark.parametrize("never", ["false", "never", "False"])
def test_continuing_logs_say_so_in_either_word(never: str) -> None:
    assert parse_columns([f"terminated={never}"]) == {"terminated": False}


def test_several_roles_may_stand_in_one_option() -> None:
    given = ["reward=click,behavior-prob=p,observation=x,y,action=a,b", "state=s"]
    assert parse_columns(given) == {
        "reward": "click",
        "behavior_prob": "p",
        "observation": ["x", "y"],
        "action": ["a", "b"],
        "state": "s",
    }


def test_a_role_of_one_column_takes_one() -> None:
    with pytest.raises(InputError, match="reward is one column; for several use --columns more"):
        parse_columns(["reward=click,profit"])
