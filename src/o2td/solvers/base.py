"""What every batch solver shares: accumulate statistics, merge them, solve, report.

A solver reduces rows to `Statistics` whose size does not depend on their number. `update` computes
the statistics of a batch and appends them, so one pass, many chunks and several machines run the
same code. With traces, order matters: `merge(other)` means that the rows of `other` come later. A
batch that contains an error changes nothing.
"""

from __future__ import annotations

import contextlib
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from o2td import archive
from o2td.arguments import shown
from o2td.arrays import FeatureRows, Floats, points
from o2td.errors import FormatError, InputError, NoAnswerError
from o2td.linear_algebra import Solution, conclude
from o2td.model import Model, known_model
from o2td.parameters import (
    Parameter,
    Parameterized,
    defaults_of,
    differ,
    refuse_unknown,
    whole_signature,
)
from o2td.transitions import Transitions

VAR_POSITIONAL, VAR_KEYWORD = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
Arrays = dict[str, npt.NDArray[Any]]


class Statistics(ABC):
    """Sums over rows from which a solver computes its answer."""

    d: int
    rows: int

    @abstractmethod
    def then(self, other: Self) -> Self:
        """Statistics of these rows followed by those of `other`; may reuse the memory of `self`.

        Raises before anything is changed.
        """

    @abstractmethod
    def arrays(self) -> Arrays:
        """All numbers by name, in the form that `from_arrays` reads."""

    def held(self) -> Arrays:
        """The numbers as stored, which must be finite: `arrays`, or what they are computed from."""
        return self.arrays()

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Statistics from what `arrays` gave."""


class Solver(Parameterized, ABC):
    """Base class of batch solvers; a subclass collects statistics and solves them."""

    statistics: ClassVar[tuple[type[Statistics], ...]]
    of_actions: ClassVar[bool] = False  # whether theta gives values of actions, not of states
    selects: bool = False  # whether the rows decide which of several answers is given
    solved_with: ClassVar[tuple[str, ...]] = ()
    """Parameters that the sums do not depend on: they may change after rows were added."""
    __signature__: ClassVar[inspect.Signature] = inspect.Signature()
    _takes_any: ClassVar[bool] = False  # whether its constructor looks at what it is given itself

    _sums: Statistics | None = None
    _solution: Solution | None = None

    def __init_subclass__(cls) -> None:
        cls.__signature__ = whole_signature(cls)
        kinds = {x.kind for x in cls.__signature__.parameters.values()}
        cls._takes_any = not kinds.isdisjoint((VAR_POSITIONAL, VAR_KEYWORD))
        for name in cls.parameters():
            if not hasattr(cls, name):
                setattr(cls, name, Parameter(name, "_solution"))

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Refuse parameters that this solver does not have, under its name."""
        known = defaults_of(cls)
        if not cls._takes_any and (len(given) > len(known) or not named.keys() <= known.keys()):
            refuse_unknown(cls, given, named)
        return super().__new__(cls)

    # -- data --------------------------------------------------------------------------------------

    def fit(self, transitions: Transitions) -> Self:
        """Forget everything, then learn from `transitions` and solve."""
        self._renew(forgetting=True)
        sums = self._collected(transitions, self._collect)
        self._sums, self._solution = sums, None
        return self.solve()

    def update(self, transitions: Transitions) -> Self:
        """Add rows that follow the earlier ones."""
        self._renew()
        collect = self._collect_more if self.rows else self._collect
        return self._append(self._collected(transitions, collect))

    def merge(self, other: Self) -> Self:
        """Add the rows that `other` has seen, as if they came after this solver's own."""
        for one in (self, other):
            if isinstance(one, Solver):
                one._renew()
        if type(other) is not type(self) or other.get_params() != self.get_params():
            raise InputError(
                f"cannot merge {shown(other)} into {self!r}: solver and parameters must agree"
            )
        if other is self:
            raise InputError("cannot merge a solver into itself: its rows would count twice")
        return self if other._sums is None else self._append(other._sums)

    def reset(self) -> Self:
        """Forget all rows."""
        self._renew(forgetting=True)
        self._sums = self._solution = None
        return self

    # -- answers -----------------------------------------------------------------------------------

    def solve(self) -> Self:
        """Compute `theta` and `solution` from the statistics."""
        self._renew()
        if self._sums is None:
            raise InputError(f"{type(self).__name__} has seen no data; call fit or update first")
        if self._sums.rows == 0:
            self._solution = conclude(np.zeros(self._sums.d), "no data", 0, np.inf, 0.0)
        else:
            with _memory(self._sums.d):
                self._solution = self._solve(self._sums)
        return self

    @property
    def solution(self) -> Solution:
        """The answer with status, rank, condition and residual; solved again after new rows."""
        if self._solution is None:
            self.solve()
        assert self._solution is not None  # noqa: S101
        return self._solution

    @property
    def theta(self) -> Floats:
        """Weights of the features."""
        return self.solution.theta

    @property
    def rows(self) -> int:
        """Number of rows seen."""
        return 0 if self._sums is None else self._sums.rows

    def predict(self, phi: FeatureRows) -> Floats:
        """`phi theta` for features (n, d), dense or sparse, or one row (d,)."""
        rows, single = points(phi, len(self.theta))
        values = np.asarray(rows @ self.theta)
        return values[0] if single else values

    def limit(self, model: Model) -> Floats:
        """`theta` from infinitely many rows of `model`, without ridge if that is added to a sum.

        Raises `NoAnswerError` if an iterative search for it is abandoned.
        """
        self._renew()
        answer = self._limit(known_model(model))
        if answer.status == "not converged":
            raise NoAnswerError(
                f"the limit of {type(self).__name__} was not found within {answer.iterations}"
                f" steps on {model.n_states} states with {model.d} features; take fewer of them"
            )
        return answer.theta

    # -- parameters and files ----------------------------------------------------------------------

    def _forget(self) -> None:
        self.reset()

    def _renew(self, forgetting: bool = False) -> None:
        """Check assigned parameters as the constructor does, and that the sums remain theirs."""
        if not self._assigned:
            return
        made, before = self._as_assigned(), self._assigned
        late = [
            name
            for name, value in before.items()
            if name not in self.solved_with and differ(value, getattr(made, name))
        ]
        if late and self.rows and not forgetting:
            raise InputError(
                f"{type(self).__name__} has sums over {self.rows} rows, which depend on"
                f" {' and '.join(late)}: reset() it, or clone() it with the other value, to begin anew"
            )
        self._adopt(made, ("_sums", "_solution"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and statistics to `path`, atomically."""
        self._renew()
        header: dict[str, Any] = {"parameters": self.get_params(), "statistics": None}
        arrays: Arrays = {}
        if self._sums is not None:
            header["statistics"] = type(self._sums).__name__
            arrays = self._sums.arrays()
        archive.save(path, f"solver {type(self).__name__}", header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load a solver that `save` wrote; it continues as if it had never stopped."""
        header, arrays = archive.load(path, f"solver {cls.__name__}")
        try:
            _check_loaded(arrays)
            solver = cls(**header["parameters"])
            kinds = {kind.__name__: kind for kind in cls.statistics}
            name = header["statistics"]
            if name is not None:
                solver._sums = kinds[name].from_arrays(arrays)
                extra = getattr(solver._sums, "extra", None)
                if extra is not None and extra.shape != cls._extra(solver._sums.d):
                    raise ValueError("extra has the wrong shape")
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise FormatError(f"{path}: does not hold a {cls.__name__} ({error})") from None
        return solver

    # -- for subclasses ----------------------------------------------------------------------------

    @abstractmethod
    def _collect(self, batch: Transitions) -> Statistics:
        """Statistics of one batch."""

    def _collect_more(self, batch: Transitions) -> Statistics:
        """Statistics of a batch that follows others, whose sums it is added to at once."""
        return self._collect(batch)

    @abstractmethod
    def _solve(self, sums: Any) -> Solution:
        """The answer from statistics of at least one row."""

    @abstractmethod
    def _limit(self, model: Model) -> Solution:
        """The answer from the expectations of a finite problem."""

    @staticmethod
    def _extra(d: int) -> tuple[int]:
        """The shape of `System.extra`, if this solver stores its sums in a `System`."""
        return (0,)

    def _collected(
        self, batch: Transitions, collect: Callable[[Transitions], Statistics]
    ) -> Statistics:
        if not isinstance(batch, Transitions):
            raise InputError(f"pass Transitions, not {type(batch).__name__}")
        # Overflow is reported below, with a remedy, instead of as a warning.
        with _memory(batch.d), np.errstate(over="ignore", invalid="ignore"):
            sums = collect(batch)
        refuse_overflow(sums.held())
        return sums

    def _append(self, sums: Statistics) -> Self:
        if self._sums is None or (self._sums.rows == 0 and self._sums.d == sums.d):
            self._sums = sums
        elif type(sums) is not type(self._sums):
            raise InputError(
                "this batch has another kind of successors or states than earlier ones"
            )
        elif sums.d != self._sums.d:
            raise InputError(f"this batch has {sums.d} features, earlier ones had {self._sums.d}")
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                joined = self._sums.then(sums)
            refuse_overflow(joined.arrays())
            self._sums = joined
        self._solution = None
        return self


@contextlib.contextmanager
def _memory(d: int) -> Iterator[None]:
    """Turn a memory error into one sentence: sums over `d` features are too large."""
    try:
        yield
    except (MemoryError, ValueError) as error:
        if isinstance(error, ValueError) and "too big" not in str(error):
            raise
        raise InputError(
            f"the sums over {d} features do not fit into memory; use fewer features"
        ) from None


def _check_loaded(arrays: Arrays) -> None:
    """Check that loaded sums are possible: a forged file must not contain what no rows can give."""
    for name, array in arrays.items():
        if array.dtype not in (np.float64, np.int64, np.int32, np.bool_):
            raise ValueError(f"{name} has type {array.dtype}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")
        if name.endswith("rows") and not (array.shape == () and 0 <= int(array) < 2**62):
            raise ValueError(f"{name} is out of range")


def stored_csr(name: str, arrays: Arrays, shape: tuple[int, int]) -> Any:
    """A CSR array from its three saved parts, checked because compiled code trusts its indices."""
    from scipy.sparse import csr_array

    data, indices, indptr = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    whole = (
        data.shape == indices.shape == (data.size,)
        and indptr.shape == (shape[0] + 1,)
        and (indices.dtype.kind, indptr.dtype.kind) == ("i", "i")
        and (indptr[0], indptr[-1]) == (0, data.size)
        and (np.diff(indptr) >= 0).all()
        and (data.size == 0 or (indices.min() >= 0 and indices.max() < shape[1]))
    )
    if not whole:
        raise ValueError(f"{name} is not a sparse matrix")
    return csr_array((data, indices, indptr), shape=shape)


def refuse_overflow(arrays: Arrays) -> None:
    """Raise if sums have overflowed the floating-point range."""
    for array in arrays.values():
        with np.errstate(over="ignore", invalid="ignore"):
            if array.dtype.kind != "f" or np.isfinite(array.sum()):  # then all of them are
                continue
        if not np.isfinite(array).all():
            raise InputError(
                "the sums over this batch overflow; scale the features or rewards, or clip rho"
            )


def model_rows(model: Model) -> tuple[Transitions, Floats]:
    """Every transition of a model as one row of a table, and its long-run probability."""
    rows = Transitions.from_table(
        model.phi,
        model.state.astype(np.int64),
        model.reward,
        np.where(model.discount > 0.0, model.next_state, -1).astype(np.int64),
        model.discount,
        rho=model.rho,
    )
    return rows, model.probability
