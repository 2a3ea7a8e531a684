"""The benchmark itself: it agrees before it times, records what it saw, and needs no compiler."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pytest

from benchmarks import speed
from benchmarks.speed import data, native, plain, timing, updates
from benchmarks.speed.record import Row, compare, load
from o2td.cli import main
from o2td.errors import FormatError, O2TDError

KEYS = {"algorithm", "layout", "d", "lanes", "ns_per_step", "ratio_to_c", "ratio_to_numpy"}
STREAMS = {
    "dense": lambda: data.dense(300, 13),
    "table": lambda: data.table(300, 13),
    "csr": lambda: data.sparse(300, 64, 5),
}
needs_compiler = pytest.mark.skipif(native.compiler() is None, reason="no C compiler here")


@pytest.fixture(scope="module")
def updates_in_c():
    return native.load()


@needs_compiler
def test_loading_the_c_leaves_small_numbers_alone(updates_in_c):
    """Code linked with -ffast-math sets the processor to flush what is below 2.2e-308 to zero."""
    smallest = np.array([5e-324])
    assert (smallest * np.ones(1))[0] > 0.0
    assert (np.array([2.3e-308]) * 0.5)[0] > 0.0


UNMEASURED = {(name, "csr") for name in updates.MORE}


@pytest.mark.parametrize(
    ("name", "layout"),
    [(k, layout) for layout in STREAMS for k in updates.KNOWN if (k, layout) not in UNMEASURED],
)
def test_all_three_compute_the_same(name, layout, updates_in_c):
    batch = STREAMS[layout]()
    assert batch.layout == layout
    updates.agreement(name, batch, updates_in_c)
    learner = updates.KNOWN[name][0](step_size=0.01).fit(batch)
    assert np.abs(learner.theta).max() > 0.0


def test_what_differs_is_not_timed(monkeypatch):
    def half(phi, next_phi, batch, alpha, alpha_w, theta, w):
        plain.td(phi, next_phi, batch, alpha / 2, alpha_w, theta, w)

    monkeypatch.setitem(plain.LOOPS, "td", half)
    with pytest.raises(O2TDError, match="TD on dense rows of 13 features in NumPy differs"):
        updates.agreement("TD", data.dense(50, 13), None)


@needs_compiler
def test_lanes_and_single_rows_agree_too(updates_in_c):
    size = updates.Size(repeats=2, share=0.01)
    for row in [*updates.lanes(size, updates_in_c, count=3, d=9), *updates.learn_one(size)]:
        assert row.ns_per_step > 0.0
        assert (row.ratio_to_c is None) == (row.measure == "learn_one")


def test_turns_are_taken_one_after_the_other():
    seen = []
    times = timing.interleave({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, 3)
    assert seen == ["a", "b"] * 4
    assert [len(t.seconds) for t in times.values()] == [3, 3]
    assert times["a"].least <= times["a"].median


@pytest.mark.slow
def test_quick_from_end_to_end(tmp_path, capsys):
    saved = tmp_path / "run.json"
    assert main(["bench", "--quick", "--json", "--save", str(saved)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert all(row.keys() >= KEYS for row in rows)
    for name in updates.METHODS:
        wanted = {(d, where) for d in (8, 201, 1000) for where in ("dense", "table")}
        found = {(r["d"], r["layout"]) for r in rows if r["algorithm"] == name and r["lanes"] == 1}
        assert found >= wanted | {(65_536, "csr"), (65_536, "dense")}
    measures = {row["measure"] for row in rows}
    assert measures >= {"lanes", "learn_one", "accumulation", "exponent", "sampling"}
    assert measures >= {"metrics", "experiment", "cold start"}
    for row in rows:
        for key in ("ns_per_step", "ratio_to_c", "ratio_to_numpy"):
            assert row[key] is None or (math.isfinite(row[key]) and row[key] > 0.0)
    record = json.loads(saved.read_text())
    assert record["rows"] == rows
    assert record["machine"]["versions"]["numpy"] == np.__version__
    assert [row.ns_per_step for row in load(saved)] == [row["ns_per_step"] for row in rows]


@needs_compiler
def test_a_run_is_shown_against_an_earlier_one(tmp_path, capsys, monkeypatch):
    now = [Row("update", "TD", "dense", 8, 1, 20.0, 1.0, 0.01).judged(1.0, "of C", "<=", 1.3)]
    monkeypatch.setattr(speed, "measure", lambda quick: iter(now))
    saved = tmp_path / "run.json"
    assert main(["bench", "--save", str(saved)]) == 0
    shown = capsys.readouterr().out
    assert "met: 1 of C, <= 1.3" in shown
    assert "1 of 1 targets met" in shown
    now[0] = Row("update", "TD", "dense", 8, 1, 10.0, 1.5, 0.01).judged(1.5, "of C", "<=", 1.3)
    assert main(["bench", "--against", str(saved)]) == 1
    shown = capsys.readouterr().out
    assert "Slower: update, TD, dense, d = 8, 1 lanes: 1.50 times what it took." in shown
    assert "missed" in shown


def test_comparison_prefers_ratios_and_knows_which_way_is_better():
    old = [Row("a", "TD", "dense", 8, 1, 10.0, 2.0), Row("b", "LSTD", "dense", 8, 1, 10.0)]
    old[1] = old[1].judged(0.9, "of GEMM", ">=", 0.5)
    new = [Row("a", "TD", "dense", 8, 1, 99.0, 1.0), Row("b", "LSTD", "dense", 8, 1, 10.0)]
    new[1] = new[1].judged(0.6, "of GEMM", ">=", 0.5)
    changes = compare([*new, Row("c", "TD", "dense", 8, 1, 1.0)], old)
    assert [round(change.factor, 3) for change in changes] == [0.5, 1.5]
    assert [change.slower for change in changes] == [False, True]
    assert new[1].met
    assert not Row("x", "TD", "dense", 8, 1).judged(2.0, "", "<=", 1.0).met
    assert Row("x", "TD", "dense", 8, 1).judged(None, "", "<=", 1.0).met is None


@pytest.mark.parametrize("text", ["", "[]", '{"format": 1}', '{"format": 1, "rows": [{"d": 1}]}'])
def test_what_is_not_a_saved_run_is_refused(tmp_path, capsys, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(FormatError, match="not a saved benchmark"):
        load(path)
    assert main(["bench", "--against", str(path)]) == 2
    assert "not a saved benchmark" in capsys.readouterr().err


def test_a_newer_format_says_so(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"format": 2, "rows": []}')
    with pytest.raises(FormatError, match="newer"):
        load(path)


def test_without_a_compiler_the_column_is_empty(monkeypatch, capsys):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert native.compiler() is None
    assert native.load() is None
    row = updates._update("TD", data.dense(50, 8), updates.Size(2, 0.01), None)
    assert row.ratio_to_c is None
    assert row.met is None
    assert row.ratio_to_numpy > 0.0
    monkeypatch.setattr(speed, "measure", lambda quick: iter([row]))
    assert main(["bench"]) == 0
    assert "No C compiler was found" in capsys.readouterr().out


@needs_compiler
def test_a_compiler_that_fails_is_named(monkeypatch, tmp_path):
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'error: cannot' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    with pytest.raises(O2TDError, match="does not compile the C updates: error: cannot"):
        native.load()


def test_a_ratio_of_turns_does_not_depend_on_one_that_was_spoiled():
    ours, other = timing.Times((2.0, 4.0, 9.0)), timing.Times((4.0, 8.0, 0.1))
    assert ours.over(other) == 0.5
