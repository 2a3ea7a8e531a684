"""The paper's experiments as specs: all are there, planned, and with the printed step sizes."""

from __future__ import annotations

import json

import pytest

from o2td import paper
from o2td.errors import InputError
from o2td.experiments import plan

PRINTED = {
    "fig-baird": {"O2TD sample": 0.006, "O2TD printed": 0.006, "GTD2": 0.005},
    "fig-random-seq": {"ETD": 3e-6, "O2TD sample": 7e-4, "GTD2": 2e-3},
    "fig-random-iid": {"ETD": 2e-6, "O2TD sample": 6e-4, "GTD2": 9e-4},
    "fig-car-seq": {"ETD": 1e-3, "O2TD sample": 0.1, "GTD2": 0.2},
    "fig-car-iid": {"ETD": 2e-4, "O2TD sample": 0.05, "GTD2": 0.06},
}


def test_the_papers_specs_are_there() -> None:
    assert {"fig-sotd", "tab-boyan", "fig-energy", *PRINTED} <= set(paper.specs())
    with pytest.raises(InputError, match="did you mean 'fig-baird'"):
        paper.spec("fig-bard")
    with pytest.raises(InputError, match="no 'huge' in fig-baird; it has quick, full"):
        paper.spec("fig-baird", "huge")


@pytest.mark.parametrize("name", paper.specs())
def test_every_spec_is_planned_in_both_profiles(name: str) -> None:
    assert plan(paper.spec(name, "quick"))
    assert plan(paper.spec(name, "full"))


@pytest.mark.parametrize("name", ["fig-sotd", "tab-boyan", "fig-energy", *PRINTED])
def test_the_full_profile_goes_on_where_the_quick_one_ends(name: str) -> None:
    quick, full = plan(paper.spec(name, "quick")), plan(paper.spec(name, "full"))
    assert sum(shard.runs for shard in full) == 10 * sum(shard.runs for shard in quick)
    assert {shard.id for shard in quick} < {shard.id for shard in full}


@pytest.mark.parametrize("name", PRINTED)
def test_printed_step_sizes(name: str) -> None:
    spec = paper.spec(name)
    cells = [cell for shard in plan(spec) for cell in json.loads(shard.key)["cells"]]
    found = {cell["label"]: cell["parameters"].get("step_size") for cell in cells}
    assert PRINTED[name].items() <= found.items()
    assert spec.tuning is not None
    assert spec.tuning.seed != spec.seed
