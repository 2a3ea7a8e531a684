"""One lane and many, of the updates that C, NumPy and the compiled kernels all have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.speed import data, plain
from benchmarks.speed.native import Native
from benchmarks.speed.record import Row
from benchmarks.speed.timing import Times, interleave
from o2td.errors import O2TDError
from o2td.learners import ETD, GTD2, GTD2MP, O2TD, TD, TDCMP, TDRC, Learner, sweep
from o2td.transitions import Transitions

__all__ = ["METHODS", "agreement", "lanes", "learn_one", "updates"]

Floats = npt.NDArray[np.float64]
Update = Callable[[float, float, Floats, Floats], None]

TOLERANCE = 1e-10
ROW_BYTES = (
    1 << 27
)  # of features per stream: beyond all caches, so that the overhead of a call is small
MOST_ROWS = 1 << 16  # so that one repetition takes milliseconds
METHODS: dict[str, tuple[Callable[..., Learner], float]] = {
    "TD": (TD, 0.1),
    "O2TD": (O2TD, 0.01),
    "ETD": (ETD, 0.002),
    "GTD2": (GTD2, 0.1),
}
MORE: dict[str, tuple[Callable[..., Learner], float]] = {
    "TDRC": (TDRC, 0.1),
    "GTD2MP": (GTD2MP, 0.1),
    "TDCMP": (TDCMP, 0.1),
}
"""Not measured on sparse rows, nor with many lanes."""
KNOWN = METHODS | MORE


@dataclass(frozen=True)
class Size:
    """How much to measure."""

    repeats: int
    share: float  # of a full run's rows

    def rows(self, d: int, least: int = 400) -> int:
        """The number of rows in a stream of d features."""
        return max(least, int(self.share * min(MOST_ROWS, ROW_BYTES / (16 * d))))


def updates(size: Size, native: Native | None) -> Iterator[Row]:
    """One lane of each method, on streamed rows, on a table, and on sparse rows."""
    for d in (8, 201, 1000):
        for make in (data.dense, data.table):
            batch = make(size.rows(d), d)
            for name in KNOWN:
                yield _update(name, batch, size, native)
    batch = data.sparse(max(2000, int(size.share * MOST_ROWS)), 65_536, 16)
    for name in METHODS:
        yield _update(name, batch, size, native)


def _update(name: str, batch: Transitions, size: Size, native: Native | None) -> Row:
    few = batch[: 2000 if batch.sparse else max(20, 200_000 // (1000 + batch.d))]
    agreement(name, few, native)
    maker, alpha = KNOWN[name]
    learner = maker(step_size=alpha)
    turns: dict[str, Callable[[], Any]] = {
        "ours": lambda: learner.partial_fit(batch),
        "numpy": _going_on(plain.bind(name.lower(), few), alpha, batch.d),
    }
    if native is not None:
        turns["c"] = _going_on(native.bind(name.lower(), batch), alpha, batch.d)
    times = interleave(turns, size.repeats)
    row = _row("update", name, batch, 1, times["ours"], batch.n, times, few.n)
    return row.judged(row.ratio_to_c, "of C", "<=", 1.3)


def lanes(size: Size, native: Native | None, count: int = 64, d: int = 201) -> Iterator[Row]:
    """Many step sizes over one stream by `sweep`, against C one lane after another."""
    for name in METHODS:
        for make in (data.dense, data.table):
            batch = make(max(200, int(size.share * 2000)), d)
            maker, alpha = METHODS[name]
            sizes = alpha * np.geomspace(0.1, 1.0, count)
            learners = [maker(step_size=a) for a in sizes]
            turns: dict[str, Callable[[], Any]] = {"ours": _sweeping(learners, batch)}
            if native is not None:
                update = native.bind(name.lower(), batch)
                _check_lanes(name, sizes, learners, batch, update)
                turns["c"] = _each(update, sizes, d)
            times = interleave(turns, max(3, size.repeats // 8))
            row = _row("lanes", name, batch, count, times["ours"], batch.n * count, times, 0)
            yield row.judged(row.ratio_to_c, "of C", "<=", 0.8)


def learn_one(size: Size) -> Iterator[Row]:
    """One call per row, as in a system that learns online, against the NumPy loop."""
    batch = data.dense(max(200, int(size.share * 500)), 8)
    phi, next_phi = (list(rows.copy()) for rows in (batch.phi, batch.next_phi))
    numbers = (batch.reward, batch.discount, batch.rho, batch.start)
    reward, discount, rho, start = (column.tolist() for column in numbers)
    rows = list(zip(phi, reward, next_phi, discount, rho, start, strict=True))
    for name, (maker, alpha) in METHODS.items():
        learner = maker(step_size=alpha)

        def ours(learn: Callable[..., Any] = learner.learn_one) -> None:
            for row in rows:
                learn(*row)

        ours()
        theta, w = np.zeros((2, batch.d))
        plain.bind(name.lower(), batch)(alpha, alpha, theta, w)
        _same(f"learn_one of {name}", learner.theta, theta)
        loop = _going_on(plain.bind(name.lower(), batch), alpha, batch.d)
        times = interleave({"ours": ours, "numpy": loop}, size.repeats)
        row = _row("learn_one", name, batch, 1, times["ours"], batch.n, times, batch.n)
        yield row.judged(row.ratio_to_numpy, "of NumPy", "<=", 0.2)


def agreement(name: str, batch: Transitions, native: Native | None) -> None:
    """Refuse to time updates that do not compute the same: theta to 1e-10 of its largest entry."""
    maker, alpha = KNOWN[name]
    ours = maker(step_size=alpha).fit(batch).theta
    others: dict[str, Update] = {"NumPy": plain.bind(name.lower(), batch)}
    if native is not None:
        others["C"] = native.bind(name.lower(), batch)
    for told, update in others.items():
        theta, w = np.zeros((2, batch.d))
        update(alpha, alpha, theta, w)
        _same(f"{name} on {batch.layout} rows of {batch.d} features in {told}", ours, theta)


def _check_lanes(
    name: str, sizes: Floats, learners: list[Learner], batch: Transitions, update: Update
) -> None:
    swept = sweep(learners, batch).theta
    for lane in (0, len(learners) - 1):
        theta, w = np.zeros((2, batch.d))
        update(sizes[lane], sizes[lane], theta, w)
        _same(f"lane {lane} of {name}", swept[:, lane], theta)


def _same(told: str, ours: Floats, theirs: Floats) -> None:
    error = float(np.abs(ours - theirs).max() / (np.abs(theirs).max() or 1.0))
    if not error <= TOLERANCE:
        raise O2TDError(f"{told} differs from the kernel by {error:.1e}: not timed")


def _going_on(update: Update, alpha: float, d: int) -> Callable[[], None]:
    """Pass after pass over the same rows by a learner that is never reset."""
    theta, w = np.zeros((2, d))
    return lambda: update(alpha, alpha, theta, w)


def _each(update: Update, sizes: Floats, d: int) -> Callable[[], None]:
    def run() -> None:
        for alpha in sizes:
            theta, w = np.zeros((2, d))
            update(alpha, alpha, theta, w)

    return run


def _sweeping(learners: list[Learner], batch: Transitions) -> Callable[[], Any]:
    return lambda: sweep(learners, batch)


def _row(
    measure: str,
    name: str,
    batch: Transitions,
    count: int,
    ours: Times,
    steps: int,
    times: dict[str, Times],
    numpy_steps: int,
) -> Row:
    step = ours.least / steps
    return Row(
        measure,
        name,
        batch.layout,
        batch.d,
        count,
        ns_per_step=1e9 * step,
        ratio_to_c=step / (times["c"].least / steps) if "c" in times else None,
        ratio_to_numpy=step / (times["numpy"].least / numpy_steps) if "numpy" in times else None,
        median_ns_per_step=1e9 * ours.median / steps,
    )
