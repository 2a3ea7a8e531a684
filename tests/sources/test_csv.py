"""CSV files: cells that are missing, and which cell is blamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from o2td import sources
from o2td.errors import InputError

COLUMNS = "episode,state,action,reward,terminated,behavior_prob,target_prob_left,target_prob_right"


def written(folder: Path, rows: int = 9, at: int = 3, **cells: str) -> Path:
    """Episodes of three rows with names of actions; `cells` replace those of row `at`."""
    lines = [COLUMNS]
    for k in range(rows):
        row = {"episode": f"run-{k // 3}", "state": k % 3, "action": ("left", "right")[k % 2]}
        row |= {"reward": 1.5, "terminated": k % 3 == 2, "behavior_prob": 0.5}
        row |= {"target_prob_left": 0.5, "target_prob_right": 0.5}
        row |= cells if k == at else {}
        lines.append(",".join(map(str, row.values())))
    file = folder / "log.csv"
    file.write_text("\n".join(lines))
    return file


def test_names_of_actions_and_episodes_are_read(tmp_path: Path) -> None:
    source = sources.open_logs(written(tmp_path), discount=0.9)
    (chunk,) = source.chunks()
    assert chunk.action.tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0]
    assert chunk.episode.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("cell", ["", "NA", "null", "NaN"])
def test_a_name_that_is_missing_is_no_name(tmp_path: Path, cell: str) -> None:
    file = written(tmp_path, action=cell)
    with pytest.raises(InputError, match=r"column action, row 4 .* is missing"):
        sources.open_logs(file, discount=0.9).scan()


@pytest.mark.parametrize(("rows", "at"), [(9, 3), (30_000, 29_500)])
def test_the_bad_cell_is_blamed_and_not_a_column_of_names_before_it(
    tmp_path: Path, rows: int, at: int
) -> None:
    """In the part of the file that types are taken from, and after it."""
    file = written(tmp_path, rows, at, reward="high")
    said = rf"column reward, row {at + 1} .* is 'high'; write a number"
    with pytest.raises(InputError, match=said):
        sources.open_logs(file, discount=0.9).scan()
