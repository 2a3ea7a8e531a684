"""Reproducing: what is finished is kept, names are checked, earlier calls are remembered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from o2td.errors import InputError
from o2td.experiments import Store, StudyPlan, run_studies, study
from o2td.paper import STUDIES, reproduce


def only(name: str) -> dict[str, StudyPlan]:
    """One of the paper's studies."""
    return {name: STUDIES[name]}


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'fig-baird'"):
        reproduce(["fig-bard"], out=tmp_path)
    with pytest.raises(InputError, match="profile must be one of 'quick', 'full'"):
        reproduce(["fig-oblique"], "quik", tmp_path)
    with pytest.raises(InputError, match="workers must be a whole number from 1 to 10000, got 0"):
        reproduce(["fig-oblique"], out=tmp_path, workers=0)
    assert not list(tmp_path.iterdir())


def test_a_second_call_computes_nothing_and_both_are_remembered(tmp_path: Path) -> None:
    first = reproduce(["fig-oblique"], out=tmp_path, workers=1)
    second = reproduce(["fig-oblique", "tab-boyan"], out=tmp_path, workers=1)
    third = reproduce(["tab-boyan"], out=tmp_path, workers=1)
    assert sum(part.computed for part in first.parts) == 1
    assert sum(part.computed for part in second.parts) > 1
    assert sum(part.computed for part in third.parts) == 0
    record = json.loads((tmp_path / "reproduction.json").read_text())
    assert len(record["calls"]) == 3
    assert set(record["studies"]) == {"geometry"}
    assert set(record["experiments"]) == {"tab-boyan"}


def test_a_damaged_record_is_written_anew(tmp_path: Path) -> None:
    reproduce(["fig-oblique"], out=tmp_path, workers=1)
    for text in ("{", "[]", '{"format": 1, "calls": 3}'):
        (tmp_path / "reproduction.json").write_text(text)
        reproduce(["fig-oblique"], out=tmp_path, workers=1)
        record = json.loads((tmp_path / "reproduction.json").read_text())
        assert len(record["calls"]) == 1


def test_a_study_is_the_same_by_one_worker_and_by_two(tmp_path: Path) -> None:
    for workers in (1, 2):
        store = Store(tmp_path / str(workers))
        report = run_studies(only("published"), store, workers=workers)
        assert report.complete
        assert report.computed == 4
    one, two = (sorted((tmp_path / w / "studies").iterdir()) for w in ("1", "2"))
    assert [p.name for p in one] == [p.name for p in two]
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]


def test_a_damaged_part_is_done_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_studies(only("geometry"), store, workers=1)
    (path,) = (tmp_path / "studies").iterdir()
    good = path.read_bytes()
    path.write_bytes(good[:100] + bytes([good[100] ^ 1]) + good[101:])
    report = run_studies(only("geometry"), store, workers=1)
    assert report.computed == 1
    assert path.read_bytes() == good


def test_what_a_study_yields_is_what_is_read(tmp_path: Path) -> None:
    (shard,) = STUDIES["geometry"].shards("geometry", "quick")
    run_studies(only("geometry"), Store(tmp_path).create(), workers=1)
    table = study(Store(tmp_path), [shard.id])
    records = list(STUDIES["geometry"].run(0, 1, STUDIES["geometry"].seed))
    assert table["value"].to_list() == [record.value for record in records]
    assert table["method"].cast(str).to_list() == [record.method for record in records]
    assert set(table["study"].cast(str)) == {"geometry"}


def test_profiles_share_the_parts_they_have_in_common() -> None:
    for name, one in STUDIES.items():
        quick, full = (
            {shard.id for shard in one.shards(name, profile)} for profile in ("quick", "full")
        )
        assert quick <= full
