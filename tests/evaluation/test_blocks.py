"""Rows, episodes and counts are handled in blocks: small ones give the answers that were kept."""

from __future__ import annotations

import pytest

from o2td.evaluation import coverage, fitting, moments, systems, value_model
from tests.evaluation import golden

KEPT = golden.kept()
SIZES = {
    (coverage, "_PART"): 64,
    (value_model, "_BLOCK"): 64,
    (fitting, "_COUNTED"): 8,
    (moments, "_COUNTS"): 512,
    (systems, "_STACK"): 256,
    (systems, "_ROWS"): 512,
}
CASES = (
    *("features_fourier", "features_aggregated", "features_fourier_with_trace"),
    *("states_with_ratios", "states_with_per_action_probabilities", "states_truncated_often"),
    *("settings_of_the_interval", "states_in_a_policy"),
)


@pytest.mark.parametrize("name", CASES)
def test_blocks_of_any_size_give_the_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for (module, constant), size in SIZES.items():
        assert getattr(module, constant) > size
        monkeypatch.setattr(module, constant, size)
    found = list(golden.compared(name, golden.account(name)))
    assert not found, "\n".join(found)
