"""Large inputs: what `python -m benchmarks.scale` measured, and what follows for larger ones."""

from __future__ import annotations

import json
from typing import Any

from docs._tools.measure import ROOT

SCALE = ROOT / "docs" / "data" / "scale.json"
LOG = 100e9  # bytes
FILE = 100e6  # bytes per file
CORES = 80  # on ten machines
LINE = 125e6  # bytes per second into the one process that merges


def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCALE.read_text("utf-8"))
    return found


def measured() -> str:
    """A table of what was measured."""
    from docs._tools.blocks import table

    one = kept()
    scan, whole, hashed = one["scan"], one["evaluate"], one["hashed"]
    files, states, held = one["files"], one["states"], one["table"]
    rows = [
        [f"bare scan of {scan['rows']:,} rows", f"{scan['cpu']:.1f}", *_end(scan)],
        [f"`evaluate`, {whole['rows']:,} rows", f"{whole['cpu']:.1f}", *_end(whole)],
        *(
            [f"`evaluate`, {files['rows']:,} rows in {count} files", f"{cpu:.1f}", *_end(files)]
            for count, cpu in files["by_files"].items()
        ),
        [f"`evaluate`, {states['rows']:,} rows of walks over {states['states']:,} states",
         f"{states['cpu']:.1f}", *_end(states)],
        *(
            [f"`evaluate`, {2 * far['states']:,} rows of jumps among {far['states']:,} states",
             f"{far['cpu']:.1f}", *_end(far)]
            for far in one["jumping"]
        ),
        *(
            [f"a table of {held['states']:,} states, {held['rows']:,} rows, {name}",
             f"{held[name]:.1f}", *_end(held)]
            for name in ("TD", "LSTD")
        ),
        *(
            [f"sweep of {one[name]['lanes']:,} lanes × 20,000 rows", f"{one[name]['cpu']:.2f}",
             *_end(one[name])]
            for name in ("hundred", "lanes")
        ),
        *(
            [f"{hashed['rows']:,} rows hashed into {hashed['columns']:,} columns, {name}",
             f"{hashed[name]:.2f}", *_end(hashed)]
            for name in ("features", "TD", "TDC")
        ),
    ]  # fmt: skip
    return table(["", "seconds of the processor", "peak in MB", "code"], rows)


def _end(one: dict[str, Any]) -> list[str]:
    """Memory, and the commit that was measured."""
    return [str(one["peak_mb"]), one["code"]]


def ratio() -> str:
    """An evaluation's time over that of a bare scan of the same rows."""
    one = kept()
    return f"{one['evaluate']['cpu'] / one['scan']['cpu']:.0f}"


def clock() -> str:
    """Seconds of the clock that the whole evaluation took."""
    return f"{kept()['evaluate']['seconds']:,}"


def growth() -> str:
    """What files send back, for few rows and for ten times as many."""
    sent = kept()["sent"]
    more = sent["from_part"] / sent["from_fewer"] - 1.0
    return (
        f"{sent['from_fewer'] / 1e6:.1f} MB of a file of {sent['fewer_rows']:,} rows and"
        f" {sent['from_part'] / 1e6:.1f} MB of one of {sent['rows']:,}, {more:.0%} more for"
        f" {sent['rows'] // sent['fewer_rows']} times the rows"
    )


def paper() -> str:
    """A hundred gigabytes on ten machines, from the constants above."""
    one = kept()
    rows = LOG / (one["scan"]["bytes"] / one["scan"]["rows"])
    work = rows * one["evaluate"]["cpu"] / one["evaluate"]["rows"]
    back = LOG / FILE * one["sent"]["from_part"]
    sent = one["sent"]
    return (
        f"{rows / 1e9:.1f} billion rows, {work / 3600:.0f} hours of one core, so"
        f" {work / CORES / 60:.0f} minutes on {CORES} cores. Each of {sent['passes']} passes sends the"
        f" statistic to every worker, together {sent['to_worker'] / 1e6:.1f} MB, and every file's sums"
        f" come back, together {sent['from_part'] / 1e6:.0f} MB per file: {back / 1e9:.0f} GB for"
        f" {LOG / FILE:,.0f} files of {FILE / 1e6:.0f} MB, {back / LINE / 60:.0f} minutes at a gigabit"
        " a second into the one process that merges"
    )
