"""The statistics `A = sum_t z_t Delta_t^T`, `b = sum_t z_t r_t`, and how they depend on the past.

Blocks of rows `[z, ...]` and `[Delta, r]` are filled by compiled loops and multiplied by one call
to BLAS. A segment that starts inside a trajectory has traces that depend on earlier rows: `z_t` is
affine in the incoming trace `c` (a vector) and the incoming follow-on weight `f` (a number), hence
so are the sums. A segment stores both parts,

    A = A_0 + c g^T + f H,    c_out = c_0 + u c + f y,    f_out = f_0 + k f,

so two segments compose exactly and in any grouping. A start sets u = k = 0, y = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from o2td.arrays import Floats, freeze
from o2td.errors import InputError
from o2td.model import Model
from o2td.solvers import row_loops
from o2td.solvers.backward import decays, left_behind, totals
from o2td.solvers.base import Arrays, Statistics, refuse_overflow, stored_csr
from o2td.transitions import DenseRows, SparseRows, Transitions

SPARSE_FEATURES = 4096  # sparse features beyond this number give a sparse A
_BLOCK = 1 << 17  # numbers in a block of rows: fits in the second-level cache
_RUN = 1 << 12  # rows that a sparse product adds up one by one
_SPARSE = 8  # features per entry of a row from which entries are added one by one
_REPEATS = 4  # rows per state from which a table's transitions are summed first


class Side(NamedTuple):
    """Rows `weight_t (own_t phi_t - step_t phi'_t)`; `step` is None if there is no successor."""

    weight: Floats
    own: float = 1.0
    step: Floats | None = None
    which: str = "next_phi"


@dataclass(eq=False)
class Dependence:
    """How a segment depends on earlier rows; `follow` is None if the weights are uniform."""

    carry: Floats  # c_0
    slope: Floats  # y
    scalars: Floats  # u, f_0, k
    through: Floats  # g, with b's part last
    follow: Floats | None  # H, with b's part as last column

    def then(self, other: Dependence) -> Dependence:
        """Both segments as one."""
        (u, f, k), (u2, f2, k2) = self.scalars, other.scalars
        follow = None
        if self.follow is not None and other.follow is not None:
            follow = self.follow + k * other.follow + np.outer(self.slope, other.through)
        return Dependence(
            other.carry + u2 * self.carry + f * other.slope,
            u2 * self.slope + k * other.slope,
            np.array([u * u2, f2 + k2 * f, k * k2]),
            self.through + u * other.through,
            follow,
        )

    def inflow(self, other: Dependence) -> Floats:
        """What these rows add to `[A, b]` of `other`, which follows them."""
        gain = np.outer(self.carry, other.through)
        return gain if other.follow is None else gain + self.scalars[1] * other.follow


@dataclass(eq=False)
class System(Statistics):
    """`A` (d, d), `b` (d,), sums that need no matrix and, with traces, the dependence on the past."""

    A: Any
    b: Floats
    rows: int
    extra: Floats
    past: Dependence | None = None

    @property
    def d(self) -> int:  # type: ignore[override]
        """Number of features."""
        return len(self.b)

    def then(self, other: Self) -> Self:
        """`self` followed by `other`, as one pass over both would give."""
        A, b = self.A + other.A, self.b + other.b
        joined = type(self)(A, b, self.rows + other.rows, self.extra + other.extra)
        if self.past is not None and other.past is not None:
            gain = self.past.inflow(other.past)
            joined.A, joined.b = A + gain[:, :-1], b + gain[:, -1]
            joined.past = self.past.then(other.past)
        refuse_overflow(joined.arrays())
        return joined

    def arrays(self) -> Arrays:
        """All sums by name; a sparse `A` as its three arrays."""
        arrays = {"b": self.b, "rows": np.asarray(self.rows), "extra": self.extra}
        if self.past is not None:
            arrays |= {name: v for name, v in vars(self.past).items() if v is not None}
        if isinstance(self.A, np.ndarray):
            return {"A": self.A, **arrays}
        parts = {f"A.{part}": getattr(self.A, part) for part in ("data", "indices", "indptr")}
        return {**parts, **arrays}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """The inverse of `arrays`, shapes checked."""
        d = len(arrays["b"])
        shapes = {"A": (d, d), "b": (d,), "carry": (d,), "slope": (d,), "scalars": (3,)}
        shapes |= {"through": (d + 1,), "follow": (d, d + 1)}
        for name, shape in shapes.items():
            if name in arrays and arrays[name].shape != shape:
                raise ValueError(f"{name} has the wrong shape")
        A: Any = arrays.get("A")
        if A is None:
            A = stored_csr("A", arrays, (d, d))
        past = None
        if "carry" in arrays:
            carry, slope, scalars, through = (
                arrays[name] for name in ("carry", "slope", "scalars", "through")
            )
            past = Dependence(carry, slope, scalars, through, arrays.get("follow"))
        return cls(A, arrays["b"], int(arrays["rows"]), arrays["extra"], past)


def product(
    batch: Transitions, left: Side, right: Side, reward: Floats, extra: Floats | None = None
) -> System:
    """`A = sum_t left_t right_t^T`, `b = sum_t left_t reward_t`, without traces."""
    if batch.layout == "table" and batch.n >= _REPEATS * batch.table.shape[0]:
        A, b = _by_pairs(batch, left, right, reward)
    elif batch.sparse:
        A, b = _by_products(batch, left, right, reward)
    else:
        A, b = _by_blocks(batch, left, right, reward)
    return System(A, b, batch.n, np.zeros(0) if extra is None else extra)


def traced(
    batch: Transitions,
    trace: float,
    emphatic: bool = False,
    decay: float | None = None,
) -> System:
    """`A = sum_t z_t Delta_t^T` with `z_t = rho_t (lambda gamma_t z_{t-1} + M_t phi_t)`."""
    d, n = batch.d, batch.n
    refuse_wide(batch, *(("follow-on weights", "take LSTD") if emphatic else ()))
    if not emphatic and (few := few_entries(batch)):
        return _traced_sparse(batch, few, trace)
    p = 2 * d + 1 if emphatic else d + 1
    sums: Any = np.zeros((p, d + 1))
    table: Any = batch.table
    dense_table = isinstance(table, np.ndarray) and n >= table.shape[0]
    spread = np.zeros((table.shape[0], p)) if dense_table else None
    carry, slope, scalars = np.zeros(d), np.zeros(d), np.array([1.0, 0.0, 1.0])
    interest = freeze(np.ones(n)) if batch.interest is None else batch.interest
    beta = -1.0 if decay is None else decay
    size = max(16, min(n, _BLOCK // p))
    Z, D = np.empty((size, p)), np.empty((size, d + 1))
    for low in range(0, n, size):
        part = batch[low : low + size]
        phi, m = dense_rows(part, "phi"), part.n
        vectors = (part.rho, part.discount, part.start, interest[low : low + m])
        row_loops.traces(*phi, *vectors, trace, beta, emphatic, carry, slope, scalars, Z[:m])
        if spread is not None:
            row_loops.scatter(Z[:m], part.state, part.next_state, part.discount, spread)
            sums[:, d] += part.reward @ Z[:m]
        else:
            later, ones = dense_rows(part, "next_phi"), freeze(np.ones(m))
            row_loops.combine(*phi, *later, ones, ones, part.discount, D[:m])
            D[:m, d] = part.reward
            sums += Z[:m].T @ D[:m]
    if spread is not None:
        sums[:, :d] = spread.T @ table
    past = Dependence(
        carry, slope, scalars, sums[d].copy(), sums[d + 1 :].copy() if emphatic else None
    )
    return System(sums[:d, :d].copy(), sums[:d, d].copy(), n, np.zeros(0), past)


def few_entries(batch: Transitions) -> list[SparseRows]:
    """Rows and successors of a batch whose rows have few entries beside d; otherwise nothing."""
    rows = [batch.rows(which) for which in ("phi", "next_phi")]
    both = [one for one in rows if isinstance(one, SparseRows)]
    entries = sum(int((x.indptr[x.at + 1] - x.indptr[x.at]).sum()) for x in both)
    return both if 0 < _SPARSE * entries <= batch.n * batch.d else []


def _traced_sparse(batch: Transitions, rows: list[SparseRows], trace: float) -> System:
    """The same for rows with few entries."""
    d, keep = batch.d, decays(batch, trace)
    y = (batch.rho, batch.rho * batch.discount, batch.rho * batch.reward)
    sums = totals(batch, rows, keep, *y)
    carry, through = left_behind(batch, keep)
    past = Dependence(carry, np.zeros(d), np.array([through, 0.0, 1.0]), sums[d].copy(), None)
    return System(sums[:d, :d].copy(), sums[:d, d].copy(), batch.n, np.zeros(0), past)


def refuse_wide(batch: Transitions, why: str = "traces", remedy: str = "pass trace=0") -> None:
    """Raise if the sums of sparse features would fill a dense matrix that is too large."""
    if batch.sparse and batch.d > SPARSE_FEATURES:
        raise InputError(
            f"phi has {batch.d} sparse features: {why} fill a dense matrix of that size;"
            f" {remedy}, or give at most {SPARSE_FEATURES} features"
        )


def expected(model: Model, inflow: Floats, trace: float, target: bool = False) -> System:
    """`A = Y^T L Phi`, `b = Y^T R` with `Y = (I - lambda P_gamma^T)^-1 diag(inflow) Phi`.

    L is `E[rho | s] - P_gamma`, or `1 - P_gamma` with the ratio on the `target`; they differ where the
    behaviour leaves out actions.
    """
    table, carried = model.table, trace * model.rho * model.discount
    seen = np.where(model.visits > 0.0, model.visits, 1.0)
    reward = model.by_state(model.rho * model.reward) / seen
    if trace > 0.0:
        reward = model.ahead(reward, carried)
    A = model.once(
        ("expected", inflow, trace, target), lambda: _expected_matrix(model, inflow, trace, target)
    )
    return System(A, table.T @ (inflow * reward), 1, np.zeros(0))


def _expected_matrix(model: Model, inflow: Floats, trace: float, target: bool) -> Floats:
    """`Phi^T diag(inflow) (I - lambda P_gamma)^-1 L Phi`.

    `(I - lambda P)^-1 P Phi = ((I - lambda P)^-1 Phi - Phi) / lambda`, so that one solve serves every
    inflow.
    """
    table, followed = model.table, model.rho * model.discount
    if trace == 0.0:
        share = inflow / np.where(model.visits > 0.0, model.visits, 1.0)
        own = model.by_state(model.rho)[:, None] * table
        return np.asarray((share[:, None] * table).T @ (own - model.flow(followed) @ table))
    carried = trace * model.rho * model.discount
    whole = model.features_ahead(np.ones(model.n_states), carried)
    own = whole if target else model.features_ahead(model.share(model.rho), carried)
    return np.asarray((inflow[:, None] * table).T @ (own - (whole - table) / trace))


def dense_rows(part: Transitions, which: str) -> DenseRows:
    """Features of a block as a matrix and an index; CSR rows are made dense."""
    rows = part.rows(which)
    if isinstance(rows, DenseRows):
        return rows
    block = np.empty((part.n, part.d))
    needed = np.flatnonzero(part.discount > 0.0) if which == "next_phi" else np.arange(part.n)
    held = np.zeros((len(needed), part.d))
    row_loops.gather_csr(rows.data, rows.indices, rows.indptr, rows.at[needed], held)
    block[:] = 0.0
    block[needed] = held
    return DenseRows(freeze(block), freeze(np.arange(part.n)))


def _by_blocks(
    batch: Transitions, left: Side, right: Side, reward: Floats
) -> tuple[Floats, Floats]:
    d, n = batch.d, batch.n
    size = max(64, min(n, _BLOCK // d))
    Z, D, out = np.empty((size, d)), np.empty((size, d + 1)), np.empty((d, d + 1))
    sums = np.zeros((d, d + 1))
    for low in range(0, n, size):
        part = batch[low : low + size]
        m = part.n
        _fill(part, left, low, Z[:m])
        _fill(part, right, low, D[:m])
        D[:m, d] = reward[low : low + m]
        np.matmul(Z[:m].T, D[:m], out=out)
        sums += out
    return sums[:, :d].copy(), sums[:, d].copy()


def _fill(part: Transitions, side: Side, low: int, out: Floats) -> None:
    m = part.n
    phi = part.rows("phi")
    later = phi if side.step is None else part.rows(side.which)
    step = np.zeros(m) if side.step is None else side.step[low : low + m]
    vectors = (side.weight[low : low + m], np.full(m, side.own), step)
    row_loops.combine(*phi, *later, *(freeze(vector) for vector in vectors), out)


def _by_products(batch: Transitions, left: Side, right: Side, reward: Floats) -> tuple[Any, Floats]:
    """For sparse rows: one sparse product per block; `A` stays sparse if it is large.

    A sparse product adds row by row. Blocks are short, and added in pairs, so that its rounding
    errors stay small.
    """
    size = max(_RUN, min(batch.d, _BLOCK))

    def total(low: int, high: int) -> tuple[Any, Floats]:
        if high - low > size:
            middle = low + (high - low) // 2
            (A, b), (A_2, b_2) = total(low, middle), total(middle, high)
            return A + A_2, b + b_2
        part = batch[low:high]
        Z, D = (sparse_rows(part, side, low) for side in (left, right))
        return Z.T @ D, Z.T @ reward[low:high]

    A, b = total(0, batch.n)
    return (A.tocsr() if batch.d > SPARSE_FEATURES else A.toarray(order="C")), b


def sparse_rows(part: Transitions, side: Side, low: int = 0) -> Any:
    """The rows of one side as a CSR array; successors with step 0 are not read."""
    weight = side.weight[low : low + part.n]
    rows = scale_rows(part.phi, weight * side.own)
    if side.step is None:
        return rows
    return rows - scale_rows(getattr(part, side.which), weight * side.step[low : low + part.n])


def scale_rows(rows: Any, weight: Floats) -> Any:
    """`diag(weight) rows` for CSR rows; those of weight zero vanish whatever they hold."""
    from scipy.sparse import csr_array

    each = np.repeat(weight, np.diff(rows.indptr))
    data = np.where(each == 0.0, 0.0, rows.data) * each
    return csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def _by_pairs(batch: Transitions, left: Side, right: Side, reward: Floats) -> tuple[Any, Floats]:
    """For a table whose states recur often: `A = table^T W table`, W summed by pairs of states."""
    from scipy.sparse import coo_array

    S = batch.table.shape[0]
    W: Any = coo_array((S, S))
    first = np.zeros(S)
    for low in range(0, batch.n, 1 << 20):
        part = batch[low : low + (1 << 20)]
        ends = [_entries(part, side, low) for side in (left, right)]
        joined = [(i, j, v * w) for i, v in ends[0] for j, w in ends[1]]
        i, j, v = (np.concatenate(values) for values in zip(*joined, strict=True))
        W = W + coo_array((v, (i, j)), shape=(S, S)).tocsr()
        for i, v in ends[0]:
            first += np.bincount(i, v * reward[low : low + part.n], minlength=S)
    A = batch.table.T @ (W.tocsr() @ batch.table)
    if hasattr(A, "toarray"):
        A = A.tocsr() if batch.d > SPARSE_FEATURES else A.toarray(order="C")
    return A, np.asarray(batch.table.T @ first)


def _entries(part: Transitions, side: Side, low: int) -> list[tuple[Any, Floats]]:
    """Where the rows of a side are in the table, and their coefficients."""
    weight = side.weight[low : low + part.n]
    entries = [(part.state, weight * side.own)] if side.own else []
    if side.step is not None:
        name = {"next_phi": "next_state", "next_phi_2": "next_state_2"}[side.which]
        step = weight * side.step[low : low + part.n]
        entries.append((np.maximum(getattr(part, name), 0), -step))
    return entries
