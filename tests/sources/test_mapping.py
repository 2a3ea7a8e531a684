"""Names that are only alike never take the place of a name that is written exactly."""

from __future__ import annotations

import pytest

from o2td.errors import InputError
from o2td.sources import Columns
from o2td.sources.mapping import Mapped, find_columns, named_actions

BASE = ["episode", "obs_0", "obs_1", "reward", "terminated", "target_prob", "behavior_prob"]


@pytest.mark.parametrize(
    "alike", ["Reward", "REWARD", "target-prob", "Target.Prob", "OBS_0", "obs_00"]
)
@pytest.mark.parametrize("first", [True, False])
def test_the_exact_name_wins(alike, first):
    names = [alike, *BASE] if first else [*BASE, alike]
    found = find_columns(names, Columns(), "a.csv")
    assert found == find_columns(BASE, Columns(), "a.csv")
    assert alike not in found.all()


@pytest.mark.parametrize(
    ("gone", "alike", "role"),
    [
        ("reward", ["REWARD", "Reward"], "reward"),
        ("target_prob", ["target-prob", "Target.prob"], "target_prob"),
        ("obs_0", ["OBS_0", "obs_00"], "observation"),
        ("reward", ["REW", "Rew"], "reward"),
    ],
)
def test_of_two_that_are_only_alike_the_user_chooses(gone, alike, role):
    names = [name for name in BASE if name != gone] + alike
    with pytest.raises(InputError) as caught:
        find_columns(names, Columns(), "a.csv")
    said = f'a.csv: {role} could be column {alike[0]} or {alike[1]}; choose one, columns={{"{role}": …}}'
    assert str(caught.value) == said


def test_a_single_name_that_is_alike_is_found_and_exact_synonyms_win():
    names = ["EPISODE", "X.0", "x.1", "Rew", "rew", "Terminal", "rho"]
    found = find_columns(names, Columns(), "a.csv")
    assert found.one("episode") == "EPISODE"
    assert found.many("observation") == ("X.0", "x.1")
    assert found.one("reward") == "rew"


def test_a_pattern_takes_the_columns_written_like_it():
    names = ["x-0", "x-1", "X-0", "X-1"]
    assert find_columns(names, Columns(observation="X-*"), "a.csv").many("observation") == (
        "X-0",
        "X-1",
    )
    assert find_columns(names, Columns(observation="x-*"), "a.csv").many("observation") == (
        "x-0",
        "x-1",
    )


@pytest.mark.parametrize(
    ("numbers", "missing"), [((0, 1), None), ((1, 2), None), ((2, 3), 0), ((0, 1, 3), 2)]
)
def test_numbered_columns_begin_with_0_or_1_and_are_complete(numbers, missing):
    names = ["episode", "reward", "terminated", "rho", *(f"obs_{number}" for number in numbers)]
    if missing is None:
        assert len(find_columns(names, Columns(), "a.csv").many("observation")) == len(numbers)
        return
    with pytest.raises(InputError, match=rf"column obs_{missing} is missing before obs_3"):
        find_columns(names, Columns(), "a.csv")


def test_a_list_of_one_name_stays_a_list_and_one_name_of_a_role_of_several_becomes_one():
    names = ["episode", "x", "y", "a", "reward", "terminated", "rho"]
    for role, given, wanted in (
        ("observation", "x", ("x",)),
        ("observation", ["y", "x"], ("y", "x")),
        ("action", "a", "a"),
        ("action", ["a"], ("a",)),
        ("reward", "reward", "reward"),
    ):
        found = find_columns(names, Columns(**{"observation": ["x"]} | {role: given}), "a.csv")
        assert found.roles[role] == wanted
        assert found.many(role) == (wanted if isinstance(wanted, tuple) else (wanted,))
    with pytest.raises(InputError, match="columns: observation is an empty list; name at least"):
        find_columns(names, Columns(observation=[]), "a.csv")
    with pytest.raises(InputError, match=r"a.csv: no column 'z', which columns names for action"):
        find_columns(names, Columns(observation=["x"], action=["a", "z"]), "a.csv")


def test_columns_that_are_given_stay_and_others_are_found():
    names = ["pi_a", "pi_b", "target_prob_x", "target_prob_y", "behavior_prob_a", "behavior_prob_b"]
    given = Columns(target_probs=["pi_b", "pi_a"])
    log = Mapped({"target_probs": ("pi_b", "pi_a")})
    found, order = named_actions(log, names, {}, given)
    assert found.many("target_probs") == ("pi_b", "pi_a")
    assert found.many("behavior_probs") == ("behavior_prob_a", "behavior_prob_b")
    assert order == ["a", "b"]
    assert named_actions(log, names, {})[0].many("target_probs") == (
        "target_prob_x",
        "target_prob_y",
    )
