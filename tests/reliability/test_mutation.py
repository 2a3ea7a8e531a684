"""What the study of mutants found is what the pages say, and every survivor is judged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks import mutation
from benchmarks.mutants import Mutator, changed, mark, parsed, places, put
from benchmarks.mutation_record import LEAST, WHOLE, Outcome, record
from docs._tools import mutants
from docs._tools.blocks import blocks
from docs._tools.values import fill

ROOT = Path(__file__).parents[2]
KEPT = mutants.kept()


GROUPS = {"learners", "kernels", "solvers", "exact", "metrics", "evaluation", "sources"}


def test_nearly_all_mutants_of_every_group_are_killed() -> None:
    assert set(KEPT["groups"]) == GROUPS
    page = (ROOT / "docs" / "mutation.md").read_text("utf-8")
    for group, counts in KEPT["groups"].items():
        assert counts["met"] >= 25, group
        told = f"fewer than {LEAST:.0%} in {group}".replace("%", " %") in page
        assert told == (counts["killed"] < LEAST * counts["met"]), group
    killed, met = mutants.totals(KEPT)
    assert met >= 200
    missed = "fewer than the 90 % aimed at" in page
    assert missed == (killed < WHOLE * met)
    assert KEPT["controls"]["passed"] == KEPT["controls"]["met"] >= 20


def test_every_survivor_is_counted_once_and_judged() -> None:
    survived = Counter(one["group"] for one in KEPT["survivors"])
    for group, counts in KEPT["groups"].items():
        assert counts["met"] - counts["killed"] == survived[group], group
    for one in KEPT["survivors"]:
        kind, _, why = one["verdict"].partition(": ")
        assert kind in mutants.KINDS, one
        assert len(why) > 10, one


def test_pages_show_the_record() -> None:
    killed, met = mutants.totals(KEPT)
    shown = fill((ROOT / "docs" / "mutation.md").read_text("utf-8"), {}, blocks({}))
    assert f"{killed} of {met} ({killed / met:.1%})" in shown
    items = [line for line in shown.splitlines() if line.startswith("    - `")]
    assert len(items) == len(KEPT["survivors"]) == met - killed
    promises = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    (row,) = [line for line in promises.splitlines() if "benchmarks/mutation.py" in line]
    assert f"<!--= mutation figure -->{mutants.figure()}<!--/-->" in row
    assert "(mutation.md)" in promises
    assert "mutation.md" in (ROOT / "mkdocs.yml").read_text("utf-8")
    assert f"{killed} of {met} mutants ({killed / met:.1%}) killed" in mutants.figure()


def test_every_group_has_code_and_its_tests_are_where_it_says() -> None:
    for name, group in mutation.GROUPS.items():
        assert [test for test in group.tests if not (ROOT / test).exists()] == [], name
        for pattern in group.files:
            assert list((ROOT / "src" / "o2td").glob(pattern)), (name, pattern)


def test_what_went_wrong_in_the_study_itself_is_no_kill() -> None:
    fates = ["killed", "timeout", "crash", "survived", "no test", "error"]
    met = [Outcome("a", "file.py", "f", "x = 1", f"change {k}", f) for k, f in enumerate(fates)]
    found = record({"seed": 7}, met, ["survived", "killed"])
    assert found["groups"]["a"] == {"met": 6, "killed": 3, "of these by the time limit": 1}
    assert [one["fate"] for one in found["survivors"]] == ["survived", "no test", "error"]
    assert found["controls"] == {"met": 2, "passed": 1}


def test_each_place_is_one_change(tmp_path: Path) -> None:
    import ast

    path = tmp_path / "module.py"
    path.write_text(
        "def f(x, y=3):\n    if x < y and x:\n        x += 1\n    x[0] = -y\n    return g(x * 2.0)\n"
    )
    found = places(path)
    assert len(found) == 13
    plain = ast.dump(parsed(path))
    others = {ast.dump(Mutator(k).visit(parsed(path))) for k in range(len(found))}
    assert len(others) == 13
    assert plain not in others
    assert ast.dump(Mutator(-1).visit(parsed(path))) == plain
    assert {place.function for place in found} == {"f", ""}


def test_a_removed_call_of_super_leaves_a_function_that_can_be_put_in_place(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "class A:\n    def f(self):\n        self.x = 1\n\n\n"
        "class B(A):\n    def f(self):\n        super().f()\n        return self.x\n"
    )
    made: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), made)  # noqa: S102
    one = made["B"]()
    assert one.f() == 1
    ((index, at),) = [(k, at) for k, at in enumerate(places(path)) if at.function == "B.f"]
    assert at.what == "statement removed"
    assert put(changed(path, index, at)) == 1
    one.x = 7
    assert one.f() == 7


def test_pages_say_whose_code_was_met() -> None:
    for page in ("mutation.md", "reliability.md"):
        assert mutants.commits(KEPT) in (ROOT / "docs" / page).read_text("utf-8"), page


def test_marked_lines_say_when_they_are_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "def f(x):\n    y = 1\n    if x:\n        for k in [\n            x,\n        ]:\n"
        "            y += k\n    elif y:\n        y = 2\n    return y\n"
    )
    made: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), made)  # noqa: S102
    seen: list[int] = []
    monkeypatch.setattr("builtins.line_reached", seen.append, raising=False)
    assert put(mark(path, {3: 30, 5: 50, 8: 80, 9: 90})) == 1
    assert made["f"](3) == 4
    assert seen == [30, 50]  # the condition, then the loop around the line
    seen.clear()
    assert made["f"](0) == 2
    assert seen == [30, 80, 90]
