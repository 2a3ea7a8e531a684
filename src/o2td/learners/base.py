"""What every online learner shares: parameters, state, `partial_fit`, `learn_one`, files.

A learner is one lane. Its state is only what the next row needs: arrays (theta, traces, w), a few
scalars of the previous row, and the memory of its emphasis. `partial_fit` runs one lane and `sweep`
runs many through the driver of its family.
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypedDict, overload

import numpy as np
import numpy.typing as npt

from o2td.arguments import number
from o2td.arrays import FeatureRows, Floats, as_array, freeze, points
from o2td.compiled import refuse_uncompiled
from o2td.emphasis import Emphasis, Memory, Uniform
from o2td.errors import InputError, NoAnswerError
from o2td.kernels.packing import BOUND, CARRIED, HEAD, STEPS
from o2td.learners.changes import renew
from o2td.learners.declarations import check_needs, check_vectors
from o2td.learners.family import Family
from o2td.learners.group import Group
from o2td.learners.loaded import read, write
from o2td.learners.parameters import LearnerParameters, as_average
from o2td.learners.replicates import Prediction, as_replicates, bars
from o2td.learners.state import Lanes
from o2td.learners.status import Status, status_after
from o2td.learners.threads import OneAtATime
from o2td.model import Model, known_model
from o2td.parameters import Parameter, whole_signature
from o2td.transitions import Transitions

Step = Callable[[Floats, Any, Any, float, float, float, int], int]
LARGEST_FEATURE = 1e150  # one step then stays finite, see HUGE in the kernels
_MARKS = {False: 0, True: 1}  # NumPy's booleans too
_NEVER = np.array([-1])
BLOCK = 65_536  # rows prepared at a time: their row arrays stay in the cache


class Axes(TypedDict, total=False):
    """Parameters of every learner."""

    average: bool | float
    l1: float
    radius: float | None
    replicates: int
    initial_theta: npt.ArrayLike | None


def _of_a_model(method: Callable[[Any, Model], Any]) -> Callable[[Any, Model], Any]:
    """A learner's `mean_dynamics`, which refuses what is no model, and what makes it non-linear."""

    @functools.wraps(method)
    def checked(self: Any, model: Model) -> Any:
        renew(self)
        self._refuse_settled()
        return method(self, known_model(model))

    return checked


class Learner(LearnerParameters, OneAtATime, Lanes):
    """An online learner at O(d) per step. Each subclass has its own file.

    A subclass belongs to a `family`. It lists the fields of `Transitions` that it requires in
    `needs`, the vectors of length d that it stores in `vectors`, and those of them that are
    eligibility traces in `traces`. Derive new methods from `WeightedLearner`, `GradientLearner` or
    `StepLearner`.
    """

    family: ClassVar[Family]
    needs: ClassVar[tuple[str, ...]] = ()
    discounted: ClassVar[bool] = True
    """Whether it predicts discounted values; otherwise its distance from them means nothing."""
    linear: ClassVar[bool] = True
    """Whether the learned weights are linear in the rewards; if so, the checks test it."""
    counts_rows: ClassVar[bool] = False
    """Whether it keeps more than theta across starts, such as a row count or step sizes."""
    moves_all: ClassVar[bool] = False
    """Whether a CSR row may change theta where neither the row nor a trace has entries."""
    postpones: ClassVar[bool] = False
    """Whether its step leaves moves along a trace pending on CSR rows (`kernels.pending`)."""
    own_step_sizes: ClassVar[tuple[str, ...]] = ()
    """Own parameters that are step sizes, too: the checks divide them where they scale features."""
    set_once: ClassVar[tuple[str, ...]] = ()
    """Parameters on which more than the sizes of its arrays depends: they cannot change on the way."""
    no_dynamics: ClassVar[str] = ""
    """Why there are no mean dynamics, if there are none."""
    simplified: ClassVar[str] = ""
    """What the mean dynamics hold fixed although the learner changes it, for readers."""
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls) -> None:
        check_vectors(cls.__name__, cls.vectors, cls.traces)
        check_needs(cls.__name__, cls.needs)
        cls.__signature__ = whole_signature(cls)
        if "mean_dynamics" in vars(cls):
            cls.mean_dynamics = _of_a_model(cls.mean_dynamics)  # type: ignore[method-assign,assignment]
        for name in cls.parameters():
            if not hasattr(cls, name):
                setattr(cls, name, Parameter(name, "_step"))  # which has their numbers packed

    def __init__(
        self,
        *,
        average: bool | float = False,
        l1: float = 0.0,
        radius: float | None = None,
        replicates: int = 0,
        initial_theta: npt.ArrayLike | None = None,
    ) -> None:
        if not hasattr(type(self), "family"):
            raise InputError(
                f"{type(self).__name__} states no algorithm; take a learner such as TD, or derive"
                " yours from WeightedLearner, GradientLearner or StepLearner"
            )
        self.average, self.l1 = as_average(average), number("l1", l1, low=0.0)
        self.radius = None if radius is None else number("radius", radius, above=0.0)
        self.replicates = as_replicates(self, replicates)
        self.initial_theta = initial_theta
        self._assigned = None  # those of bases may have been set before their own
        self.reset()

    def reset(self) -> Self:
        """Forget everything learned; parameters stay."""
        with self._held():
            self._forget()
        return self

    def _untrained(self) -> Self:
        """As `clone`, without checking again what our own constructors have accepted."""
        if self._assigned or not (type(self).__init__.__module__.startswith(f"{__package__}.")):
            return self.clone()
        return self._copied().reset()

    def _forget(self) -> None:
        renew(self, forgetting=True)
        self._unbind()
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._carried: Floats = np.zeros(CARRIED)
        self._memory: Memory = {}
        self._diverged = _NEVER.repeat(1 + self.replicates)

    @property
    def steps(self) -> int:
        """Number of rows learned from."""
        return int(self._carried[STEPS] if self._diverged[0] < 0 else self._diverged[0])

    # -- learning ----------------------------------------------------------------------------------

    def partial_fit(self, transitions: Transitions) -> Self:
        """Learn from every row in order; splitting the rows over several calls changes only rounding."""
        self._hold()
        try:
            self._learn(transitions)
        finally:
            self._release()
        return self

    def _learn(self, transitions: Transitions) -> None:
        renew(self)
        if self._check(transitions):
            group = Group([self])
            for block in transitions.chunks(max(1, BLOCK // self._width)):
                group.advance(block, [block], self.steps)
            if self._diverged[0] >= 0:
                self._unbind()

    def learn_one(
        self,
        phi: FeatureRows,
        reward: float,
        next_phi: FeatureRows,
        discount: float,
        rho: float = 1.0,
        start: bool = False,
        **fields: Any,
    ) -> Self:
        """Learn from one row; the same as `partial_fit` on a batch of one, without its overhead.

        `fields` are `target_prob`, `behavior_prob`, `interest` and `state`, if the method uses
        them.
        """
        if not fields:
            try:
                step = self._step or self._bind()
                mark = 0 if start is False else _MARKS[start]
                if step(self._packed, phi, next_phi, reward, discount, rho, mark) == 1:
                    return self
            except Exception:  # noqa: S110
                pass  # another dtype, read-only, not contiguous: to be converted
        return self._learn_row(phi, reward, next_phi, discount, rho, start, fields)

    def _learn_row(
        self,
        phi: FeatureRows,
        reward: float,
        next_phi: FeatureRows,
        discount: float,
        rho: float,
        start: bool,
        fields: dict[str, Any],
    ) -> Self:
        """Learn through a batch of one, which checks everything and works for every method."""
        given: dict[str, Any] = {"phi": phi, "next_phi": next_phi, **fields}
        if "target_prob" not in fields or "behavior_prob" not in fields:
            given["rho"] = rho
        for name, value in given.items():
            if not hasattr(value, "tocsr"):
                widen = np.atleast_2d if "phi" in name else np.atleast_1d
                given[name] = widen(as_array(name, value))
        row = Transitions(
            reward=reward, discount=discount, start=np.atleast_1d(as_array("start", start)), **given
        )
        return self.partial_fit(row)

    def _bind(self) -> Step:
        """The step for one row; the state moves into the packed array that it works on."""
        with self._held():
            return self._packing()

    def _packing(self) -> Step:
        """Pack the state into one array, of which `arrays` and `carried` become views."""
        refuse_uncompiled()
        renew(self)
        known = self._arrays and self._diverged[0] < 0 and not self._settles and self._width == 1
        step = self._one_row() if known else None
        if step is None:
            return _refuse_row
        self._forget_sparse()
        d = self._arrays["theta"].shape[1]
        packed = np.zeros(HEAD + d * len(self.vectors))
        packed[:CARRIED] = self._carried
        self._pack(packed)
        self._carried = packed[:CARRIED]
        for k, name in enumerate(self.vectors):
            view = packed[HEAD + k * d : HEAD + (k + 1) * d].reshape(1, d)
            view[:] = self._arrays[name]
            self._arrays[name] = view
        packed[BOUND] = self._arrays["bound"][0, 0]
        self._arrays["bound"] = packed[BOUND : BOUND + 1].reshape(1, 1)
        self._packed, self._step = packed, step
        return step

    def _one_row(self) -> Step | None:
        """The family's compiled step on a packed state, or None to fall back on a batch of one."""
        return None

    def _pack(self, packed: Floats) -> None:
        """Put the parameters that `one_row` reads where `kernels.packing` says."""

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # a shallow one would learn into the same arrays

    def __getstate__(self) -> dict[str, Any]:
        state = {k: v for k, v in self.__dict__.items() if k not in ("_packed", "_busy")}
        return {**state, "_carried": self._carried.copy(), "_step": None}

    def fit(self, transitions: Transitions) -> Self:
        """`reset`, then `partial_fit`."""
        with self._held():
            self._forget()
            self._learn(transitions)
        return self

    def _check(self, batch: Transitions) -> bool:
        """Reject invalid input before anything changes; returns False if there is nothing to do."""
        refuse_uncompiled()
        if not isinstance(batch, Transitions):
            raise InputError(f"partial_fit takes Transitions, got {type(batch).__name__}")
        for field in self.needs:
            if getattr(batch, field) is None:
                raise InputError(f"{type(self).__name__} needs {field} in the transitions")
        if batch.largest > LARGEST_FEATURE:
            raise InputError(
                f"the features go up to {batch.largest:.3g}; beyond {LARGEST_FEATURE:g} their"
                " products overflow: scale them"
            )
        self._weighting.check(batch, self._memory)
        if self._arrays and batch.d != self._arrays["theta"].shape[1]:
            raise InputError(
                f"the transitions have {batch.d} features, this learner has"
                f" {self._arrays['theta'].shape[1]}"
            )
        before = dict(self._arrays)
        try:
            if not self._arrays:
                self._allocate(batch.d)
            if batch.sparse != (self._arrays["active"].shape[1] > 0):
                (self._allocate_sparse if batch.sparse else self._forget_sparse)()
        except MemoryError:
            self._arrays = before
            raise InputError(
                f"{batch.d} features do not fit into memory; use fewer, or hash them"
            ) from None
        return batch.n > 0 and self._diverged[0] < 0

    def _check_retargeted(self, batch: Transitions) -> None:
        """Reject a lane's own ratios or discounts if the learner cannot use them."""

    @property
    def _weighting(self) -> Emphasis:
        """The emphasis in force."""
        return Uniform()

    def _fill_rows(self, block: Transitions, out: dict[str, Floats]) -> None:
        """Fill the row arrays that the family's kernel reads, and carry the last row on."""
        raise NotImplementedError

    # -- answers -----------------------------------------------------------------------------------

    @property
    def theta(self) -> Floats:
        """The weights that `predict` uses (the average, if averaging is on), read-only.

        Empty before the first row, when the number of features is not yet known.
        """
        with self._reading():
            return freeze(self._predicting.copy())

    @property
    def last_theta(self) -> Floats:
        """The weights after the last step, read-only; the same as `theta` if `average` is off."""
        with self._reading():
            return freeze(self._arrays["theta"][0].copy() if self._arrays else np.empty(0))

    def _moving(self) -> Floats:
        """The state that the mean dynamics describe: the last theta, and w if there is one."""
        own = self._arrays["w"][0] if "w" in self._arrays else np.empty(0)
        return np.concatenate([self.last_theta, own])

    @property
    def _settles(self) -> bool:
        """Whether anything happens after a step: averaging, l1-prox, projection."""
        return bool(self.average) or self.l1 > 0.0 or self.radius is not None

    @property
    def status(self) -> Status:
        """Whether the learner is new, fine, or diverged, and at which step."""
        return status_after(self.steps, int(self._diverged[0]))

    @overload
    def predict(self, phi: FeatureRows) -> Floats: ...

    @overload
    def predict(self, phi: FeatureRows, interval: float) -> Prediction: ...

    def predict(self, phi: FeatureRows, interval: float | None = None) -> Floats | Prediction:
        """`phi . theta` for each row of `phi` (dense or CSR), or for one vector.

        With `interval`, such as 0.95, a `Prediction` with `value`, `low` and `high`: a confidence
        interval for the learner's limit, estimated from its `replicates`.
        """
        with self._reading():
            if not self._arrays:
                raise InputError(
                    f"{type(self).__name__} has learned nothing yet: call partial_fit first"
                )
            theta = self._predicting
            rows, single = points(phi, len(theta))
            if interval is not None:
                return bars(self, rows, single, interval)
            values = np.asarray(rows @ theta)
            return values[0] if single else values

    def mean_dynamics(self, model: Model) -> Any:
        """`A`, `b` with `E[x_{t+1} - x_t] = alpha (b - A x)`, exact, on a finite problem."""
        why = self.no_dynamics or "its class does not state them"
        raise NoAnswerError(f"{type(self).__name__} gives no mean dynamics: {why}")

    def _refuse_settled(self) -> None:
        """Raise for prox and projection: not being linear, they have no matrix of mean dynamics."""
        if self.l1 > 0.0 or self.radius is not None:
            raise NoAnswerError(
                f"{self!r} gives no mean dynamics: l1 and radius make its average step non-linear"
            )

    # -- files -------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and state to an `.npz` without pickle; `load` resumes exactly."""
        write(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load what `save` wrote. `Learner.load` finds the class by its registered name."""
        return read(cls, path)


def _refuse_row(*row: Any) -> int:
    return 0
