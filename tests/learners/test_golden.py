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


def test_what_was_learned_is_what_was_learned_before(before):
    found = golden.results()
    assert set(found) == {name for name in before if not name.startswith("resumed")}
    for name, weights in found.items():
        np.testing.assert_allclose(weights, before[name], rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("path", sorted(golden.SAVED.glob("*.npz")), ids=lambda path: path.stem)
def test_files_written_before_are_resumed(before, path):
    expected = before[f"resumed {path.stem}"]
    np.testing.assert_allclose(golden.resumed(path), expected, rtol=0, atol=1e-12)
