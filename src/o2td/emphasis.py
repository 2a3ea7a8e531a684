"""Emphasis: the weight `M_t` of the features that enter the trace, an option of both families.

| emphasis     | M_t                                                                           |
|--------------|-------------------------------------------------------------------------------|
| `Uniform`    | 1                                                                             |
| `FollowOn`   | `lambda i_t + (1 - lambda) F_t`, `F_t = i_t + gamma_t rho_{t-1} F_{t-1}` (ETD)  |
| `Omega`      | the answer of O2TD to "how long is phi along dphi", in four readings           |

Emphatic TD and O2TD are one learner with two choices of the weight. An emphasis stores its memory
in a dict of arrays, so that a learner can be saved and resumed exactly.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import as_float, choice, shown
from o2td.arrays import Floats
from o2td.errors import InputError
from o2td.parameters import Valued
from o2td.transitions import Transitions

if TYPE_CHECKING:
    from o2td.model import Model

Memory = dict[str, npt.NDArray[Any]]

__all__ = ["Emphasis", "FollowOn", "Omega", "Uniform", "as_emphasis"]

READINGS = ("printed", "sample", "state", "moments")
_STATE_LIMIT = 500_000_000  # entries of the (states, d) table that the state reading may hold


class Emphasis(Valued):
    """Base class of emphases; subclass it to add one.

    `inner` tells the weighted kernel to multiply the weight by `dphi.phi / |dphi|^2` itself.
    """

    inner = False
    uniform = False

    def check(self, batch: Transitions, memory: Memory) -> None:
        """Raise if a batch lacks what this emphasis needs, before anything changes."""

    def weigh(self, block: Transitions, memory: Memory, trace: float | Floats, out: Floats) -> None:
        """Fill `out` with M_t of every row and update `memory`."""
        raise NotImplementedError

    def shapes(self, memory: Memory, d: int) -> dict[str, tuple[int, ...]] | None:
        """Shapes in `memory` that compiled code relies on; None skips the check when loading."""
        return None

    def expected(self, model: Model, trace: float | Floats) -> Floats:
        """The long-run `E[M_t]` of each transition (s, a, s') of the model."""
        raise NotImplementedError


class Uniform(Emphasis):
    """`M_t = 1`: plain TD and gradient TD.

    >>> Uniform()
    Uniform()
    """

    uniform = True

    def weigh(self, block: Transitions, memory: Memory, trace: float | Floats, out: Floats) -> None:
        """Every row counts equally."""
        out[:] = 1.0

    def shapes(self, memory: Memory, d: int) -> dict[str, tuple[int, ...]]:
        """Nothing is remembered."""
        return {}

    def expected(self, model: Model, trace: float | Floats) -> Floats:
        """One."""
        return np.ones(len(model.state))


class FollowOn(Emphasis):
    """`M_t = lambda i_t + (1 - lambda) F_t` with `F_t = i_t + gamma_t rho_{t-1} F_{t-1}`.

    Sutton, Mahmood & White (2016); `decay` (beta) instead of gamma_t: Hallak et al. (2016).
    F is 0 before a start and where gamma_t = 0.

    >>> FollowOn(decay=0.5)
    FollowOn(decay=0.5)
    """

    def __init__(self, decay: float | None = None) -> None:
        found = None if decay is None else as_float(decay)
        if found is not None and not 0.0 <= found <= 1.0:
            raise InputError(f"decay must be in [0, 1] or None, got {shown(decay)}")
        self.decay = found

    def weigh(self, block: Transitions, memory: Memory, trace: float | Floats, out: Floats) -> None:
        """Run the recursion over the block."""
        from o2td.kernels.row_passes import follow_on

        carried = memory.setdefault("follow_on", np.zeros(2))
        interest = _ones(block.n) if block.interest is None else block.interest
        beta = -1.0 if self.decay is None else self.decay
        one = isinstance(trace, float)
        columns = (block.rho, block.discount, block.start, interest)
        follow_on(*columns, beta, trace if one else 0.0, carried, out)
        if not one:
            out[:] = trace * interest + (1.0 - trace) * out

    def shapes(self, memory: Memory, d: int) -> dict[str, tuple[int, ...]]:
        """`rho F` and gamma of the previous row."""
        return {"follow_on": (2,)}

    def expected(self, model: Model, trace: float | Floats) -> Floats:
        """`f = (I - P_gamma^T)^-1 (xi i)`, divided by xi."""
        interest = model.visits * model.interest
        if self.decay is None:
            coefficient = model.rho * model.discount
        else:
            coefficient = self.decay * model.rho * (model.discount != 0.0)
        followed = model.traced(interest, coefficient)
        seen = np.where(model.visits > 0.0, model.visits, 1.0)
        emphasis = (trace * interest + (1.0 - trace) * followed) / seen
        return np.asarray(emphasis[model.state])


class Omega(Emphasis):
    """O2TD's weight `omega`, which brings `omega rho phi dphi^T` closest to `phi phi^T`.

    Parameters
    ----------
    reading : "printed" | "sample" | "state" | "moments"
        - printed: the paper's eq. sto4 as printed, `dphi.phi / (rho |dphi|^2)`; the ratio cancels
          out of the update.
        - sample: with the ratio kept, `dphi.phi / |dphi|^2`.
        - state: with `D_s` the running mean of `rho dphi` over visits to s, `D_s.phi / |D_s|^2`; the
          paper's own requirement that omega depend only on the current state. Needs states.
        - moments: `E[rho dphi.phi | s] / E[rho |dphi|^2 | s]`, per state if states are given, else
          each regressed on phi in O(d).
    step_size, floor : float
        Of the regression: its rate over the largest `|phi|^2`, and the fraction of the mean
        denominator below which a predicted denominator is not trusted.

    Examples
    --------
    >>> Omega("state").reading
    'state'
    """

    def __init__(
        self, reading: str = "sample", step_size: float = 0.05, floor: float = 0.05
    ) -> None:
        choice("omega", reading, tuple(READINGS))
        self.reading, self.step_size, self.floor = reading, as_float(step_size), as_float(floor)
        if not (0.0 < self.step_size <= 1.0 and 0.0 < self.floor <= 1.0):
            raise InputError(
                f"omega's step_size and floor must be in (0, 1], got {shown(step_size)} and"
                f" {shown(floor)}"
            )

    @property
    def inner(self) -> bool:  # type: ignore[override]
        """Whether omega depends on the row alone, so that the kernel can compute it."""
        return self.reading in ("printed", "sample")

    def check(self, batch: Transitions, memory: Memory) -> None:
        """Check that states are given if needed, and that there is room for them."""
        if self.reading in ("state", "moments") and (
            self.reading == "state" or batch.state is not None
        ):
            each = batch.d if self.reading == "state" else 2
            size = int(states_of(batch).max(initial=-1)) + 1
            if size * each > _STATE_LIMIT:
                raise InputError(
                    f"omega={self.reading!r} keeps {each} numbers for each of {size} states, too many to"
                    " hold: number states from 0 without gaps, or use omega='moments' without state"
                )
        if batch.state is None and "omega_above" in memory:
            raise InputError("omega='moments' began with states; this batch has none: pass state")

    def weigh(self, block: Transitions, memory: Memory, trace: float | Floats, out: Floats) -> None:
        """The factor before `dphi.phi / |dphi|^2` (printed, sample) or omega itself."""
        if self.reading == "sample":
            out[:] = 1.0
        elif self.reading == "printed":
            with np.errstate(divide="ignore", over="ignore"):
                np.divide(1.0, block.rho, out=out)
            out[block.rho == 0.0] = 0.0
        elif self.reading == "state":
            self._by_state(block, memory, out)
        elif "along" in memory or block.state is None:
            self._by_regression(block, memory, out)
        else:
            self._by_moments(block, memory, out)

    def shapes(self, memory: Memory, d: int) -> dict[str, tuple[int, ...]]:
        """Sums by state, or the regression's weights: as many states as the first array has."""
        states = len(next(iter(memory.values()))) if memory else 0
        if self.reading == "state":
            return {"omega_total": (states, d), "omega_count": (states,)}
        if self.reading == "moments" and "along" in memory:
            return {"along": (d,), "square": (d,), "omega_scale": (3,)}
        names = ("omega_above", "omega_below") if self.reading == "moments" else ()
        return dict.fromkeys(names, (states,))

    def _by_state(self, block: Transitions, memory: Memory, out: Floats) -> None:
        from o2td.kernels.row_passes import omega_by_state

        state = states_of(block)
        size = max(int(state.max(initial=-1)) + 1, len(memory.get("omega_count", ())))
        total = grown(memory, "omega_total", (size, block.d))
        count = grown(memory, "omega_count", (size,))
        rows = (block.rows("phi"), block.rows("next_phi"))
        omega_by_state(*rows, state, block.discount, block.rho, total, count, out)

    def _by_moments(self, block: Transitions, memory: Memory, out: Floats) -> None:
        from o2td.kernels.row_passes import moments_by_state

        state = states_of(block)
        size = max(int(state.max(initial=-1)) + 1, len(memory.get("omega_above", ())))
        above, below = (grown(memory, name, (size,)) for name in ("omega_above", "omega_below"))
        rows = (block.rows("phi"), block.rows("next_phi"))
        moments_by_state(*rows, state, block.discount, block.rho, above, below, out)

    def _by_regression(self, block: Transitions, memory: Memory, out: Floats) -> None:
        from o2td.kernels.row_passes import moments_by_regression

        along, square = (grown(memory, name, (block.d,)) for name in ("along", "square"))
        scale = grown(memory, "omega_scale", (3,))
        rows = (block.rows("phi"), block.rows("next_phi"))
        own = (self.step_size, self.floor, scale, along, square)
        moments_by_regression(*rows, block.discount, block.rho, *own, out)

    def expected(self, model: Model, trace: float | Floats) -> Floats:
        """Omega at its limit: by transition (printed, sample) or by state."""
        from o2td.kernels.row_passes import omegas

        if self.reading == "state":
            mean = mean_dphi(model)
            square = (mean * mean).sum(axis=1)
            along = np.asarray(rowwise_dot(model.phi, mean))
            return ratio(along, square)[model.state]
        rows = pairs_of(model)
        omega = np.ones(len(model.state))
        if self.reading == "moments":
            along, square = omega.copy(), omega.copy()
            pair_moments(rows, along, square)
            above, below = model.by_state(model.rho * along), model.by_state(model.rho * square)
            return ratio(above, below)[model.state]
        omegas(rows.rows("phi"), rows.rows("next_phi"), rows.discount, omega)
        return omega if self.reading == "sample" else ratio(omega, model.rho)


@lru_cache(maxsize=8)
def _ones(n: int) -> Floats:
    """Cached ones: blocks have the same length, and fresh memory is slow."""
    ones = np.ones(n)
    ones.flags.writeable = False
    return ones


def as_emphasis(value: Any) -> Emphasis:
    """An `Emphasis`, or its short name: "uniform", "follow-on", "omega:state".

    Parameters
    ----------
    value : Emphasis or str
        The object itself, or the name.
    """
    if isinstance(value, Emphasis):
        return value
    name, _, reading = str(value).partition(":")
    if isinstance(value, str) and name == "uniform" and not reading:
        return Uniform()
    if isinstance(value, str) and name in ("follow-on", "follow_on"):
        try:
            return FollowOn(float(reading)) if reading else FollowOn()
        except ValueError:
            raise InputError(f"{value!r}: {reading!r} is not a number from 0 to 1") from None
    if isinstance(value, str) and name == "omega":
        return Omega(reading or "sample")
    raise InputError(
        f"emphasis must be Uniform(), FollowOn() or Omega(...), or 'uniform', 'follow-on',"
        f" 'omega:sample'; got {value!r}"
    )


def states_of(block: Transitions) -> npt.NDArray[np.int64]:
    """The states of a block, or an error that says what to pass."""
    if block.state is None:
        raise InputError(
            "this method aggregates by state and the transitions carry none: pass state="
            " (n,) integers, or an aggregation of your observations"
        )
    return block.state


def grown(memory: Memory, name: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The named array, extended with zeros along its first axis if it is too short."""
    old = memory.get(name)
    if old is None or len(old) < shape[0]:
        new = np.zeros(shape)
        if old is not None:
            new[: len(old)] = old
        memory[name] = new
    return memory[name]


def ratio(above: Floats, below: Floats) -> Floats:
    """`above / below`, 0 where below is not positive."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)


def rowwise_dot(phi: Any, dense: Floats) -> Floats:
    """The dot product of corresponding rows; `phi` may be CSR."""
    return np.asarray((phi * dense).sum(axis=1)).ravel()


def mean_dphi(model: Model) -> Floats:
    """`E[rho dphi | s]` for every state, dense (S, d)."""
    followed = model.rho * model.discount
    total = model.by_state(model.rho)[:, None] * dense(model.phi) - model.flow(followed) @ dense(
        model.phi
    )
    return np.asarray(total / np.where(model.visits > 0.0, model.visits, 1.0)[:, None])


def dense(phi: Any) -> Floats:
    """The feature matrix as an array."""
    return phi if isinstance(phi, np.ndarray) else np.asarray(phi.toarray())


def pairs_of(model: Model) -> Transitions:
    """The model's transitions as a batch, so that code for rows also computes expectations."""
    return Transitions.from_table(
        model.phi, model.state, model.reward, model.next_state, model.discount, rho=model.rho
    )


def pair_moments(rows: Transitions, along: Floats, square: Floats) -> None:
    """`dphi . phi` and `|dphi|^2` of each row."""
    from o2td.kernels.row_passes import moments_of_rows

    moments_of_rows(rows.rows("phi"), rows.rows("next_phi"), rows.discount, along, square)
