"""One colour and mark per method in the whole project."""

from __future__ import annotations

from o2td.registry import LEARNERS, SOLVERS
from o2td.report import style
from o2td.report.style import look, looks

READINGS = [f"O2TD {reading}" for reading in ("printed", "sample", "state", "moments")]


def test_no_two_methods_look_alike() -> None:
    names = [n for n in (*LEARNERS.names(), *SOLVERS.names()) if n != "O2TD"]
    seen: dict[object, str] = {}
    for name in (*names, *READINGS, "best"):
        own = look(name)
        if own.colour in style._UNKNOWN:
            continue  # a newcomer or a plug-in without a look of its own
        assert own not in seen, f"{name} looks like {seen.get(own)}"
        seen[own] = name
    assert len(seen) > 38


def test_a_method_without_a_look_has_one_colour_in_all_its_variants() -> None:
    variants = [look(f"NewTD{rest}") for rest in ("", " lambda 0.9", " power=0.5")]
    assert len({own.colour for own in variants}) == 1


def test_a_trace_changes_the_dashes_alone() -> None:
    for name in ("TD", "ETD", "LSTD"):
        plain, traced = look(name), look(f"{name} lambda 0.9")
        assert (plain.colour, plain.marker) == (traced.colour, traced.marker)
        assert traced.dash == "--"


def test_newcomers_in_one_figure_differ() -> None:
    assert len(set(looks(f"m{k}" for k in range(13)).values())) == 13
