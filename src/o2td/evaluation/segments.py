"""The value by segment of start states, each from all rows of the log.

A segment asks about some of the start states: the equations are the same, only the start
distribution differs. So every episode counts in the fit. Methods that weight whole histories would
have to leave out all other episodes, so only fits answer by segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import answer_of, shown, text
from o2td.arrays import as_array
from o2td.documents import finite
from o2td.errors import InputError, option
from o2td.evaluation.episodes import Episodes, Log
from o2td.evaluation.shared_log import run_together
from o2td.evaluation.statistic import Statistic
from o2td.evaluation.study import Study
from o2td.evaluation.thresholds import CANNOT, CAUTION
from o2td.evaluation.verdicts import Case
from o2td.sources import Source
from o2td.sources.places import named

MOST = 20
Labels = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


@dataclass(frozen=True)
class Segment:
    """The value from the start states of one segment.

    Parameters
    ----------
    segment : str
        Its label.
    starts : int
        Episodes of the log that start in it; the rows of all others count too.
    value, low, high : float or None
        The target's value from there, with the interval.
    approximation_error : float or None
        How far other features would move it.
    verdict, reasons : str, list of str
        "trust", "caution" or "cannot answer", and why.
    method : str
        The estimator.

    Examples
    --------
    >>> Segment("north", 40, 1.0, 0.8, 1.2, 0.0, "caution").as_dict()["starts"]
    40
    """

    segment: str
    starts: int
    value: float | None
    low: float | None
    high: float | None
    approximation_error: float | None
    verdict: str
    reasons: list[str] = field(default_factory=list)
    method: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, none of them NaN or infinite."""
        return {name: finite(value) for name, value in vars(self).items()}


def labels_of(segments: Any, source: Source) -> Labels:
    """A function from observations (or states) at starts to labels: the user's, or a column."""
    if callable(segments):
        return lambda inputs: _returned(answer_of("segments", segments, inputs), len(inputs))
    text("segments", segments)
    state, seen = source.mapped.one("state"), source.mapped.many("observation")
    coding = source.codings.get(segments) if isinstance(segments, str) else None
    if not seen and segments == state:
        values = None if coding is None else np.array([str(one) for one in coding.values])
        return lambda inputs: inputs.astype(str) if values is None else values[inputs]
    if seen and coding is not None and coding.kind == "levels":
        places = [seen.index(name) for name in coding.names]
        names = np.array([str(one) for one in coding.values])
        return lambda inputs: names[_level(inputs[:, places])]
    if segments in seen:
        place = seen.index(segments)
        return lambda inputs: np.array([f"{one:g}" for one in inputs[:, place]])
    made = {name: one.column for one in source.codings.values() for name in one.names}
    known = list(dict.fromkeys(made.get(name, name) for name in seen or [state] if name))
    one_of = f"name one of {', '.join(known)}, or this one too" if known else "name it one"
    who = option("segments", "--segment")
    raise InputError(
        f"{who}: {segments!r} is not a column that the policy sees; {one_of}, {named('observation')}"
        " (values are fitted on what the policy sees, so they cannot differ by anything else), or"
        " pass a function of observations (or states) in Python"
    )


def _returned(answer: Any, count: int) -> npt.NDArray[Any]:
    """The labels that a function returned, as texts: one for each row, and none missing."""
    try:
        labels = as_array("segments", answer)
    except InputError:  # ragged, or masked
        labels = np.zeros(())
    if labels.ndim != 1 or len(labels) != count:
        said = f"{len(labels)} labels" if labels.ndim == 1 else shown(answer)
        raise InputError(
            f"segments: the function returned {said} for {count} rows; return one label for each"
        )
    lacking = [_lacks(one) for one in labels.tolist()] if labels.dtype.kind in "fMmO" else []
    if any(lacking):
        raise InputError(
            f"segments: the function returned {shown(labels[lacking.index(True)])} in place of a label;"
            ' return one for each row, such as "unknown"'
        )
    return labels.astype(str)


def _lacks(label: Any) -> bool:
    """Whether this stands for no label: None, NaN, NaT, or pandas' NA."""
    return label is None or type(label).__name__ in ("NAType", "NaTType") or label != label


def _level(columns: Any) -> Any:
    return np.where(columns.any(axis=1), columns.argmax(axis=1) + 1, 0)


def by_segment(
    main: Study, segments: Any, method: str, judged: Callable[[Case, Study], None]
) -> list[Segment]:
    """The value by segment, the most frequent first; `judged` gives an estimate its verdict."""
    labels = labels_of(segments, main.source)
    log = Segmented(main.log, labels)
    names = log.names()
    studies = [Study(Log(main.source), main.settings, main) for _ in names]
    run_together(log, [study.collect([method]) for study in studies])
    return [
        _segment(name, count, study, method, judged)
        for (name, count), study in zip(names.items(), studies, strict=True)
    ]


def _segment(
    name: str, count: int, study: Study, method: str, judged: Callable[[Case, Study], None]
) -> Segment:
    case = next(one for one in study.cases() if one.method == method)
    for one in study.judged([case]):
        judged(one, study)
    bounds = study.settings.thresholds
    if count < bounds.episodes_none:
        case.note(CANNOT, f"{count} episodes start here: too few to know where they start")
    elif count < bounds.episodes_caution:
        case.note(CAUTION, f"only {count} episodes start here")
    found = case.interval
    ends = (finite(float(case.value)), finite(float(found.low)), finite(float(found.high)))
    error = finite(case.approximation)
    return Segment(name, count, *ends, error, case.verdict, list(case.reasons), method)


class Segmented:
    """Several views of a log, each with the starts of one segment only."""

    def __init__(self, log: Log, labels: Labels) -> None:
        self.log, self.labels = log, labels
        self._names: dict[str, int] = {}

    def names(self) -> dict[str, int]:
        """Labels and how many episodes start with each, the most frequent first."""
        counts: dict[str, int] = {}
        for block in self.log.blocks():
            own, lone = self._labelled(block)
            for label, count in zip(
                *np.unique([*own[block.opens], *lone], return_counts=True), strict=True
            ):
                counts[str(label)] = counts.get(str(label), 0) + int(count)
            if len(counts) > MOST:
                who = option("segments", "--segment")
                raise InputError(
                    f"{who}: more than {MOST} different values ({', '.join(list(counts)[:4])}, …);"
                    " pass a function that groups them"
                )
        self._names = dict(sorted(counts.items(), key=lambda item: -item[1]))
        return self._names

    def _labelled(self, block: Episodes) -> tuple[Any, Any]:
        own = self.labels(block.rows.input[block.first[:-1]])
        lone = () if block.lone is None else self.labels(block.lone.input)
        return own, lone

    def blocks(self) -> Iterator[list[Episodes]]:
        """Block by block, one view per segment."""
        for block in self.log.blocks():
            own, lone = self._labelled(block)
            made = []
            for name in self._names:
                kept = None if block.lone is None else block.lone.take(np.asarray(lone) == name)
                kept = None if kept is None or not len(kept) else kept
                made.append(replace(block, opens=block.opens & (own == name), lone=kept))
            yield made

    def collect(self, wanted: Mapping[int, Sequence[Statistic]]) -> None:
        """Run one pass; statistics are keyed by the number of their segment."""
        for blocks in self.blocks():
            for place, members in wanted.items():
                for member in members:
                    member.add(blocks[place])
