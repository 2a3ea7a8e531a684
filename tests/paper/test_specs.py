"""The paper's experiments as specs: all are there, planned, and with the printed step sizes."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from o2td import paper
from o2td.errors import InputError
from o2td.experiments import plan, planning
from o2td.experiments.planning import cells
from o2td.experiments.tuning import tuning_shards

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
    found = {cell.label: cell.parameters["step_size"] for cell in cells(spec)}
    assert PRINTED[name].items() <= found.items()
    assert spec.tuning is not None
    assert spec.tuning.seed != spec.seed


# Digests of all shards' names in version 0.1.0: a change would make every stored result foreign.
KNOWN = {
    "board-collision": "f5e0aa64d6daf35d",
    "board-collision-batch": "d1f0320a2fafbc7d",
    "board-four-rooms": "44297c5d3ce975ee",
    "board-four-rooms-batch": "2397982dc93cd8a1",
    "board-garnet": "c89c0d042fe22632",
    "board-garnet-batch": "d7af25ff0f1fdcb5",
    "board-mountain-car": "914ccec7305e4169",
    "board-mountain-car-batch": "0ebf86c80865595a",
    "fig-baird": "29ab42aaef9f5906",
    "fig-car-iid": "cd4bffda6aa37f55",
    "fig-car-seq": "2cbb5e831427eddc",
    "fig-energy": "8c2178e033e686fe",
    "fig-random-iid": "ac346b284c89b14e",
    "fig-random-seq": "6580a9d188b274b3",
    "fig-sotd": "53910d8d8e1fc214",
    "more-car": "a47d6ca20b19e919",
    "more-collision": "e8a76d7d4d4dc306",
    "more-rooms": "317f62fb12d5df4d",
    "more-variance": "9ebaa328154abe41",
    "more-variance-batch": "12f084381010f522",
    "tab-boyan": "f1d38c2c889fb320",
    "tab-sotd": "d12276e8d53242f5",
}


@pytest.mark.parametrize("name", KNOWN)
def test_shards_keep_their_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "__version__", "0.1.0")
    one = paper.spec(name, "quick")
    tried = tuning_shards(one) if one.tuning is not None else []
    ids = "".join(shard.id for shard in [*plan(one), *tried])
    assert blake2b(ids.encode(), digest_size=8).hexdigest() == KNOWN[name]
