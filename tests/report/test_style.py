"""One colour and mark per method in the whole project."""

from __future__ import annotations

from o2td.registry import LEARNERS, SOLVERS
from o2td.report.style import look

READINGS = [f"O2TD {reading}" for reading in ("printed", "sample", "state", "moments")]


def test_no_two_methods_look_alike() -> None:
    names = [n for n in (*LEARNERS.names(), *SOLVERS.names()) if n != "O2TD"]
    seen: dict[object, str] = {}
    for name in (*names, *READINGS, "best"):
        own = look(name)
        if own == look("no such method") or name not in KNOWN:
            continue  # a newcomer without a look of its own
        assert own not in seen, f"{name} looks like {seen.get(own)}"
        seen[own] = name
    assert len(seen) > 20


KNOWN = {
    *("ABTD", "ETD", "GTD", "GTD2", "GTD2MP", "HTD", "TD", "TDC", "TDCMP", "TDRC", "TreeBackup"),
    *("VTrace", "ResidualGradient", "LSTD", "LSETD", "SOTD", "DiagonalSOTD", "PluginOptimal"),
    *("MonteCarlo", "DantzigTD", "Averager", "BellmanResidual", "best", *READINGS),
}


def test_a_trace_changes_the_dashes_alone() -> None:
    for name in ("TD", "ETD", "LSTD"):
        plain, traced = look(name), look(f"{name} lambda 0.9")
        assert (plain.colour, plain.marker) == (traced.colour, traced.marker)
        assert traced.dash == "--"
