"""One grid for all algorithms, in shards that keep their names."""

from __future__ import annotations

import sys
from hashlib import blake2b

import pytest

from o2td import paper
from o2td.experiments import load_spec, plan
from o2td.experiments.tuning import tuning_cells, tuning_shards
from tests.experiments.specs import TUNED


def test_the_grid_is_one_for_all_that_have_the_parameter() -> None:
    cells = tuning_cells(load_spec(TUNED.replace("SCORE", "final")))
    count = {label: sum(c.label == label for c in cells) for label in ("TD", "GTD2", "TDRC")}
    assert count == {"TD": 3, "GTD2": 6, "TDRC": 3}


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
    monkeypatch.setattr(sys.modules[plan.__module__], "__version__", "0.1.0")
    one = paper.spec(name, "quick")
    tried = tuning_shards(one) if one.tuning is not None else []
    ids = "".join(shard.id for shard in [*plan(one), *tried])
    assert blake2b(ids.encode(), digest_size=8).hexdigest() == KNOWN[name]
