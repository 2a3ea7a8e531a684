"""Learners give what they gave before, and read the files that they wrote."""

from __future__ import annotations

import numpy as np
import pytest

from . import golden


@pytest.fixture(scope="module")
def before():
    with np.load(golden.FILE) as stored:
        return {
            str(name): values[np.isfinite(values)]
            for name, values in zip(stored["names"], stored["values"], strict=True)
        }


def compare(found, before, learner, ways):
    """Every setting of the learner that was kept for one of these ways of learning, and no other."""
    kept = {
        name: weights
        for name, weights in before.items()
        if name.startswith(f"{learner}(") and name.rpartition(") ")[2].partition(" ")[2] in ways
    }
    assert set(found) == set(kept)
    for name, weights in found.items():
        np.testing.assert_allclose(weights, kept[name], rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("layout", golden.LAYOUTS)
@pytest.mark.parametrize("name", golden.SETTINGS)
def test_what_was_fitted_is_what_was_fitted_before(before, name, layout):
    compare(dict(golden.fitted(name, layout)), before, name, [layout])


@pytest.mark.parametrize("name", golden.SETTINGS)
def test_what_was_learned_row_by_row_is_what_was_learned_before(before, name):
    compare(dict(golden.followed(name)), before, name, ["one", "plain"])


@pytest.mark.parametrize("layout", golden.LAYOUTS)
@pytest.mark.parametrize("name", golden.SETTINGS)
def test_what_was_learned_side_by_side_is_what_was_learned_before(before, name, layout):
    compare(dict(golden.swept(name, layout)), before, name, [f"swept {layout}"])


@pytest.mark.parametrize("path", sorted(golden.SAVED.glob("*.npz")), ids=lambda path: path.stem)
def test_files_written_before_are_resumed(before, path):
    expected = before[f"resumed {path.stem}"]
    np.testing.assert_allclose(golden.resumed(path), expected, rtol=0, atol=1e-12)
