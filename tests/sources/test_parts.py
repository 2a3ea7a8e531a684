"""Files that paths name."""

from __future__ import annotations

import pytest

from o2td.errors import InputError
from o2td.sources.parts import files_of


def test_paths_that_name_nothing(tmp_path):
    with pytest.raises(InputError, match="no path was given; name files, folders or globs"):
        files_of([])
    with pytest.raises(InputError, match="no log files in this folder; it needs"):
        files_of(tmp_path)
