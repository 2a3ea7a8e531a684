"""Statistics of several directions at once, from which `LSTD(trace="auto")` chooses.

A direction has `e_{t+1} = lambda gamma_{t+1} min(rho_t, clip) e_t + phi_{t+1}` and the system
`S = sum_t rho_t e_t [Delta_t, r_t]^T`. Three of them exist in an adjusted form as well, which uses that
`rho_t - 1` has mean zero whatever came before:

    S - (sum_t (rho_t - 1) e_t phi_t^T) (sum_t (rho_t - 1)^2 phi_t phi_t^T)^-1
        (sum_t (rho_t - 1) rho_t phi_t [Delta_t, r_t]^T)

subtracts from `rho delta` its regression on `(rho - 1) phi`, and with it the noise due to which
actions happened to be drawn. It does for features what normalising ratios by state does for states.

Row t belongs to group `t mod groups(d)`, and sums are stored by group. Groups give the variance of
any answer, and a segment that follows another has its groups rotated, so that segments compose
exactly and in any grouping. With many features each group informs about many directions, so fewer
groups suffice. The number of groups is prime, so that a stream with a short period still visits all
of them equally.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from o2td.arrays import Floats, Ints
from o2td.solvers import row_loops, sparse_loops
from o2td.solvers.backward import decays, left_behind, totals
from o2td.solvers.base import Arrays, Statistics, refuse_overflow
from o2td.solvers.kept_rows import Question, answers, copied, size
from o2td.solvers.system import dense_rows, few_entries, refuse_wide
from o2td.transitions import SparseRows, Transitions

_MANY = 100  # features
_BLOCK = 1 << 17  # numbers in a block of rows: fits in the second-level cache
_REPEATS = 2  # rows per state from which a table's rows are summed by state first


def groups(d: int) -> int:
    """The number of groups for d features."""
    return 17 if d <= _MANY else 7


class Direction(NamedTuple):
    """lambda, the bound on ratios in the trace (infinite if none), whether it is adjusted.

    `shrinkage` times `C` is added to `A`, which moves the answer towards a constant.
    """

    trace: float
    clip: float
    adjusted: bool
    shrinkage: float = 0.0

    def __str__(self) -> str:
        clipped = f", ratios in traces clipped at {self.clip:g}" if self.clip < np.inf else ""
        shrunk = f", shrunk by {self.shrinkage:g}" if self.shrinkage else ""
        return f"λ = {self.trace:g}{clipped}{', adjusted' if self.adjusted else ''}{shrunk}"


TRACES = ((0.0, np.inf), (0.5, np.inf), (0.9, 1.0), (0.9, np.inf), (1.0, np.inf))
ADJUSTED = (0, 1, 2)  # places in TRACES
SHRUNK = (2, 3)
SHRINKAGE = (0.03, 0.3)
DIRECTIONS = (
    *(Direction(*trace, False) for trace in TRACES),
    *(Direction(*TRACES[k], True) for k in ADJUSTED),
    *(Direction(*TRACES[k], False, share) for k in SHRUNK for share in SHRINKAGE),
)


@dataclass(eq=False)
class Directions(Statistics):
    """Sums by group and trace; the last row of each is its dependence on the incoming trace.

    `system` (groups, traces, d + 1, d + 1) sums `rho e [Delta, r]^T`, `noise` (groups, adjusted,
    d + 1, d) `(rho - 1) e phi^T`. `total` (d,) sums phi, `gram` (d, d) `phi phi^T`; `spread` (d, 2d + 1)
    has `(rho - 1)^2 phi phi^T` and `(rho - 1) rho phi [Delta, r]^T` side by side, `moments` the second
    and fourth powers of `rho - 1`.

    Where rows are `kept`, `system` and `noise` have one group, the sums over all rows: solving never
    needs the groups in full, only merging and saving do.
    """

    system: Floats
    noise: Floats
    total: Floats
    gram: Floats
    spread: Floats
    moments: Floats
    carry: Floats  # (traces, d)
    through: Floats  # (traces,)
    rows: int
    kept: Transitions | None

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of features."""
        return len(self.gram)

    def then(self, other: Self) -> Self:
        """`self` followed by `other`, as one pass over both would give."""
        turn = self.rows % groups(self.d)
        own, adjusted = self._by_group(), list(ADJUSTED)
        system, noise = (np.roll(part, turn, axis=0) for part in other._by_group())
        joined = type(self)(
            own[0] + _after(system, self.carry, self.through),
            own[1] + _after(noise, self.carry[adjusted], self.through[adjusted]),
            self.total + other.total,
            self.gram + other.gram,
            self.spread + other.spread,
            self.moments + other.moments,
            other.carry + other.through[:, None] * self.carry,
            self.through * other.through,
            self.rows + other.rows,
            None,
        )
        refuse_overflow(joined.arrays())
        return joined

    def arrays(self) -> Arrays:
        """All sums by name; from here on they are by group, as in a saved solver."""
        (self.system, self.noise), self.kept = self._by_group(), None
        return self.held()

    def held(self) -> Arrays:
        """All sums by name, those of rows that are kept over all groups."""
        return {name: np.asarray(x) for name, x in vars(self).items() if name != "kept"}

    def totals(self) -> tuple[Floats, Floats]:
        """`system` and `noise` summed over groups, without the part due to an incoming trace."""
        return self.system.sum(axis=0)[:, :-1], self.noise.sum(axis=0)[:, :-1]

    def against(self, whole: list[Floats], drawn: list[Floats]) -> list[Floats]:
        """`system whole - noise drawn` of each trace in each group: (groups, m, d).

        `whole` has vectors (m, d + 1) for each trace, and `drawn` (m, d), zero if it has no `noise`.
        """
        if self.kept is not None:
            asked = [
                Question(*x) for x in zip(*zip(*TRACES, strict=True), whole, drawn, strict=True)
            ]
            return answers(self.kept, asked, groups(self.d))
        left = [self.system[:, k, :-1] @ vectors.T for k, vectors in enumerate(whole)]
        for place, k in enumerate(ADJUSTED):
            left[k] -= self.noise[:, place, :-1] @ drawn[k].T
        return [np.asarray(x.swapaxes(1, 2)) for x in left]

    def _by_group(self) -> tuple[Floats, Floats]:
        if self.kept is None:
            return self.system, self.noise
        sums = collect(self.kept, keep=False)
        return sums.system, sums.noise

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """The inverse of `arrays`, shapes checked."""
        d, k, m = len(arrays["gram"]), len(TRACES), len(ADJUSTED)
        shapes = {
            "system": (groups(d), k, d + 1, d + 1),
            "noise": (groups(d), m, d + 1, d),
            "total": (d,),
            "gram": (d, d),
            "spread": (d, 2 * d + 1),
            "moments": (2,),
            "carry": (k, d),
            "through": (k,),
        }
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise ValueError(f"{name} has the wrong shape")
        return cls(**{name: arrays[name] for name in shapes}, rows=int(arrays["rows"]), kept=None)


def _after(sums: Floats, carry: Floats, through: Floats) -> Floats:
    """Sums for an incoming trace `carry`, which depends on earlier rows through `through`."""
    gained = sums.copy()
    gained[:, :, :-1] += carry[None, :, :, None] * sums[:, :, -1:, :]
    gained[:, :, -1] *= through[None, :, None]
    return gained


def collect(batch: Transitions, keep: bool = True) -> Directions:
    """The sums of one batch, by group unless it is better to keep its rows."""
    refuse_wide(batch)
    d, k, m = batch.d, len(TRACES), len(ADJUSTED)
    by_state = isinstance(batch.table, np.ndarray) and batch.n >= _REPEATS * batch.table.shape[0]
    few = [] if by_state else few_entries(batch)
    places = batch.table.shape[0] + 1 if by_state else d + 1
    most = 8 * groups(d) * (k + m) * places * (d + 1)  # bytes of the sums by group
    kept = keep and bool(by_state or few) and size(batch) <= most
    count = 1 if kept else groups(d)
    sums = Directions(
        np.zeros((count, k, d + 1, d + 1)),
        np.zeros((count, m, d + 1, d)),
        np.zeros(d),
        np.zeros((d, d)),
        np.zeros((d, 2 * d + 1)),
        np.zeros(2),
        np.zeros((k, d)),
        np.ones(k),
        batch.n,
        copied(batch) if kept else None,
    )
    off = batch.rho - 1.0
    squares = off**2
    sums.moments += squares.sum(), (squares**2).sum()
    traced = 1 if kept else k  # directions whose sums are made from the first row to the last
    if by_state:
        _add_by_state(sums, batch, off, traced)
    elif few:
        _add_sparse(sums, batch, few, traced, bool(off.any()))
    else:
        rows = count * max(64, _BLOCK // (count * (d + 1)))
        for low in range(0, batch.n, rows):
            _add(sums, batch[low : low + rows], off[low : low + rows])
    if kept:
        _add_backward(sums, batch, few, off)
    return sums


def _add(sums: Directions, part: Transitions, off: Floats) -> None:
    """Add a block whose first row belongs to group 0."""
    d, n = part.d, part.n
    rows, later, ones = dense_rows(part, "phi"), dense_rows(part, "next_phi"), np.ones(part.n)
    phi, right = np.empty((n, d)), np.empty((n, d + 1))
    row_loops.combine(*rows, *rows, ones, ones, np.zeros(n), phi)
    row_loops.combine(*rows, *later, ones, ones, part.discount, right)
    right[:, d] = part.reward
    sums.total += phi.sum(axis=0)
    sums.gram += phi.T @ phi
    uneven = bool(off.any())
    if uneven:
        weighted = off[:, None] * phi
        sums.spread[:, :d] += weighted.T @ weighted
        sums.spread[:, d:] += weighted.T @ (part.rho[:, None] * right)
    left, noise = np.empty((n, d + 1)), np.empty((n, d + 1))
    for k in range(len(TRACES)):
        noisy = uneven and k in ADJUSTED
        vectors = (part.rho, part.discount, part.start)
        carried = (sums.carry[k], sums.through[k : k + 1])
        row_loops.directions(*rows, *vectors, *TRACES[k], *carried, left, noise[: n * noisy])
        _by_group(left, right, sums.system[:, k])
        if noisy:
            _by_group(noise, phi, sums.noise[:, ADJUSTED.index(k)])


def _add_backward(sums: Directions, batch: Transitions, few: list[SparseRows], off: Floats) -> None:
    """Sums over all rows for the directions with a trace."""
    rho, uneven = batch.rho, bool(off.any())
    y = (rho, rho * batch.discount, rho * batch.reward)
    for k in range(1, len(TRACES)):
        keep = decays(batch, *TRACES[k])
        sums.system[0, k] = totals(batch, few, keep, *y)
        if uneven and k in ADJUSTED:
            sums.noise[0, ADJUSTED.index(k)] = totals(batch, few, keep, off)
        sums.carry[k], sums.through[k] = left_behind(batch, keep)


def _add_sparse(
    sums: Directions, batch: Transitions, rows: list[SparseRows], traced: int, uneven: bool
) -> None:
    """For rows with few entries: sums are transposed, because traces are added to whole rows."""
    count, d = len(sums.system), batch.d
    systems = np.zeros((traced, count, d + 1, d + 1))
    noises = np.zeros((min(traced, len(ADJUSTED)), count, d, d + 1))
    triples = [row[:4] for row in rows]
    earned = (batch.rho, batch.discount, batch.reward)
    for k, (trace, clip) in enumerate(TRACES[:traced]):
        noise = noises[ADJUSTED.index(k)] if k in ADJUSTED else noises[0, :0]
        through = sums.through[k : k + 1]
        if trace == 0.0:
            through *= not batch.start[0]
            moments = (sums.total, sums.gram, sums.spread)
            sparse_loops.pairs(*triples, *earned, through[0], *moments, systems[k], noise)
            through[0] = 0.0
        else:
            given = (batch.start, trace, clip, sums.carry[k], through)
            noise = noise if uneven else noise[:0]
            sparse_loops.directions(*triples, *earned, *given, systems[k], noise)
    if traced == len(TRACES):
        sums.system, sums.noise = systems.transpose(1, 0, 3, 2), noises.transpose(1, 0, 3, 2)
    else:
        sums.system[:, 0], sums.noise[:, 0] = systems[0].swapaxes(1, 2), noises[0].swapaxes(1, 2)


def _by_group(left: Floats, right: Floats, out: Floats) -> None:
    product = np.empty(out.shape[1:])
    for group in range(min(len(out), len(left))):
        np.matmul(left[group :: len(out)].T, right[group :: len(out)], out=product)
        out[group] += product


def _add_by_state(sums: Directions, batch: Transitions, off: Floats, traced: int) -> None:
    """For a table whose states recur often: sum the trace rows by state first."""
    table, d = batch.table, batch.d
    S, state, rho = len(table), np.asarray(batch.state), np.asarray(batch.rho)
    visits, squares = (np.bincount(state, w, minlength=S) for w in (np.ones(batch.n), off**2))
    sums.total += visits @ table
    sums.gram += (visits[:, None] * table).T @ table
    sums.spread[:, :d] += (squares[:, None] * table).T @ table
    weight = off * rho
    own, earned = (np.bincount(state, w, minlength=S) for w in (weight, weight * batch.reward))
    ahead = _moved(weight * batch.discount, state, np.asarray(batch.next_state), S, table)
    sums.spread[:, d:] += table.T @ np.column_stack([own[:, None] * table - ahead, earned])
    count = len(sums.system)
    systems = np.zeros((traced, count, S + 1, d + 1))
    noises = np.zeros((min(traced, len(ADJUSTED)), count, S, d + 1))
    uneven, often = bool(off.any()), batch.n >= count * S
    for k, (trace, clip) in enumerate(TRACES[:traced]):
        some = batch[:1] if trace == 0.0 and often else batch
        ends = (some.state, some.next_state)
        vectors = (some.rho, some.discount, some.start, some.reward)
        carried = (sums.carry[k], sums.through[k : k + 1])
        noise = noises[ADJUSTED.index(k)] if uneven and k in ADJUSTED else noises[0, :0]
        out = (systems[k], noise)
        row_loops.directions_by_state(table, *ends, *vectors, trace, clip, *carried, *out)
        if trace == 0.0 and often:
            _add_without_trace(batch, off, *out)
    for k, group in np.ndindex(*systems.shape[:2]):
        sums.system[group, k, :, :d] = (table.T @ systems[k, group, :S]).T
        sums.system[group, k, :, d] = systems[k, group, S]
    for k, group in np.ndindex(*noises.shape[:2]):
        sums.noise[group, k] = (table.T @ noises[k, group]).T


def _add_without_trace(batch: Transitions, off: Floats, system: Floats, noise: Floats) -> None:
    """Rows after the first where lambda = 0: `e = phi`, so weights by pair of states suffice."""
    table, rho, count = batch.table, batch.rho[1:], len(system)
    S, d = table.shape
    place = np.arange(1, batch.n) % count * S
    state, later = (np.asarray(x)[1:] for x in (batch.state, batch.next_state))

    def weighed(weight: Floats) -> Floats:
        found = np.bincount(place + state, weight, minlength=count * S).reshape(count, S)
        return np.asarray(found, dtype=np.float64)

    ahead = _moved(rho * batch.discount[1:], place + later, state, count * S, table)
    system[:, :S, :d] += weighed(rho)[..., None] * table - ahead.reshape(count, S, d)
    system[:, S, :d] += weighed(rho * batch.reward[1:]) @ table
    if len(noise):
        noise[..., :d] += weighed(off[1:])[..., None] * table


def _moved(weight: Floats, place: Ints, state: Ints, places: int, table: Floats) -> Floats:
    """`sum_t weight_t phi(state_t)` by place; rows of weight 0 are not read."""
    from scipy.sparse import csr_array

    some = weight != 0.0
    pairs = (weight[some], (place[some], state[some]))
    return np.asarray(csr_array(pairs, shape=(places, len(table))) @ table)
