"""Information about a log: the roles of its columns, and what a pass over it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from o2td.sources.coding import Coding


@dataclass(frozen=True)
class LogInfo:
    """What a source is and what a pass found; counts are complete after one full pass.

    `dropped` counts rows left out and `notes` what was handled, both by reason. `files` has the
    files' names, `mapping` the column of each role, `ratio` says where rho comes from, `remarks`
    what a reader should know. `verified` says that every file had checksums and they matched;
    `unverified` names the files without any. `codings` are for columns that are not numbers.
    `rows`, `transitions` and `episodes` count what was read, and `complete` says that this is
    everything.

    >>> import pandas as pd
    >>> from o2td import sources
    >>> steps = {"traj": [0, 0], "s": [3, 1], "r": 1.0, "terminal": [0, 1], "ratio": 1.0}
    >>> log = pd.DataFrame(steps)
    >>> print(sources.open_logs(log, discount=0.9).scan())
    files: 1 (frame)
    episode: traj
    state: s
    reward: r
    terminated: terminal
    rho: ratio
    ratio: column ratio
    rows: 2, transitions: 2, episodes: 1
    no column for step: rows are taken to be in order, without gaps
    """

    files: tuple[str, ...]
    mapping: Mapping[str, str | tuple[str, ...]]
    ratio: str
    verified: bool
    unverified: tuple[str, ...] = ()
    complete: bool = False
    rows: int = 0
    transitions: int = 0
    episodes: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    codings: Mapping[str, Coding] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [
            f"files: {len(self.files)} ({', '.join(self.files[:3])}{', …' * (len(self.files) > 3)})"
        ]
        for role, found in self.mapping.items():
            names = (found,) if isinstance(found, str) else found
            shown = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)})"
            lines.append(f"{role}: {shown}")
        lines += [f"coded {column}: {coding}" for column, coding in self.codings.items()]
        lines.append(f"ratio: {self.ratio}")
        if self.complete:
            lines.append(
                f"rows: {self.rows}, transitions: {self.transitions}, episodes: {self.episodes}"
            )
        lines += [f"dropped, {reason}: {count}" for reason, count in self.dropped.items()]
        lines += [f"{reason}: {count}" for reason, count in self.notes.items()]
        if not self.verified:
            lines.append(
                f"no checksums, read unverified: {len(self.unverified)} of {len(self.files)} files"
            )
        return "\n".join([*lines, *self.remarks])
