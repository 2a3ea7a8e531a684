"""Write your own step: declare vectors, scalars and parameters, and say what one row does.

    @njit
    def step(row, p, s, theta, z):
        delta = td_error(row, theta)
        follow(z, row.decay, row.emphasis, row.phi)
        add(theta, row.alpha * row.rho * delta, z)

    class MyTD(StepLearner):
        vectors = ("theta", "z")
        traces = ("z",)
        step = staticmethod(step)

`row` is a `Row` (features, reward, discount, rho, alpha, ...), `p` holds the numeric parameters,
`s` the scalars carried from row to row (`scalars`; `s.steps`, the number of rows before this one,
is always there). The vectors follow in the order of `vectors`, those that are not traces first. The
functions for features and traces are `add`, `dot`, `follow`, `square`, `td_error`, `count`, `index`
and `value`; the same step works for dense, table and CSR rows. Without `@njit` it runs in plain
Python: slowly, but with all features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, ClassVar

import numpy as np

from o2td.arguments import answer_of, choice
from o2td.arrays import Floats
from o2td.kernels.access import add, count, dot, follow, index, square, td_error, value
from o2td.kernels.kept import CARRIED, address_of
from o2td.kernels.settle import After
from o2td.kernels.steps import COLUMNS, STREAMED, Row, StepLanes, driver_of, run_steps
from o2td.learners.declarations import check_scalars, check_step, reads_lambda
from o2td.learners.family import Arrays, Driver, Family, Parts, streams
from o2td.learners.step_sizes import Gauge, Measured, rule_of
from o2td.learners.traced import TraceLearner, TwoStepLearner
from o2td.transitions import Transitions

__all__ = [
    "Row",
    "StepLearner",
    "add",
    "count",
    "dot",
    "follow",
    "index",
    "square",
    "td_error",
    "value",
]

NOT_NUMBERS = (
    "step_size",
    "second_step_size",
    "initial_theta",
    "average",
    "l1",
    "radius",
    "clip",
    "replicates",
    "skip_zero_ratio",
)
Column = tuple[Any, int, int]  # an array, its address, and how far apart in bytes its streams are
OPTIONAL = {"interest": 1.0, "target_prob": np.nan, "behavior_prob": np.nan}


class StepFamily(Family):
    """Lanes that share one user-written step; each class has its own family."""

    rows = ("alpha", "alpha_w", "decay", "emphasis")
    step_sizes = ("alpha", "alpha_w")

    def __init__(self, step: Callable[..., None], name: str) -> None:
        self._step, self._name = step, name

    def settings(self, learners: Sequence[Any]) -> Arrays:
        """The parameters that are numbers."""
        given, lane = [], 0
        for k, learner in enumerate(learners):
            lane = lane + 1 if k and learner is learners[k - 1] else 0
            given.append(learner._numbers(lane))
        table = np.array([list(numbers.values()) for numbers in given], dtype=np.float64)
        return {"parameters": records(table, tuple(given[0]))}

    def constants(self, learners: Sequence[Any]) -> dict[str, float]:
        """What a single learner says of itself; several would each need columns of their own."""
        return learners[0]._constants() if len(learners) == 1 else {}

    def lanes(self, parts: Parts) -> StepLanes:
        """Columns of the streams, parameters, scalars, vectors and traces."""
        kind, state, n = parts.learners[0], parts.state, parts.block.n
        given = ("reward", "discount", "rho", "start")
        there = [name for name in OPTIONAL if getattr(parts.seen[0], name) is not None]
        source, found = streams(parts.seen, (*given, *there))
        held = {name: _placed(array) for name, array in (found | parts.rows).items()}
        for name, number in (OPTIONAL | parts.constants).items():
            if name not in held:
                held[name] = _same(1 << (n - 1).bit_length(), number)
        order, traced = _in_order(kind), len(kind.traces)
        vectors = tuple(state[name] for name in order[: len(order) - traced])
        traces = tuple(state[name] for name in kind.traces)
        return StepLanes(
            source=source,
            start=found["start"],
            columns=_columns(held, source),
            held=held,
            **dict[str, Any](parts.settings),
            scalars=records(state["scalars"], (*CARRIED, *kind.scalars)),
            theta=state["theta"],
            vectors=vectors,
            traces=traces,
            active=tuple(state[name] for name, _ in kind._lists()) if parts.block.sparse else (),
            size=state["size"],
        )

    def driver(self, lanes: Any, block: Transitions, after: After) -> Driver:
        """The driver of this step, compiled if the step is."""
        drive = driver_of(self._step, lanes.parameters.dtype.names)

        def run(rows: Any, following: Any, lanes: Any, *others: Any) -> None:
            given = drive, rows, following, lanes, after, *others
            with np.errstate(over="ignore", invalid="ignore"):
                answer_of(f"step of {self._name}", run_steps, *given, on=lambda: "these rows")

        return run


class StepLearner(TwoStepLearner):
    """Base class of learners defined by the step for one row.

    Class attributes: `vectors` (theta first) and those of them that are `traces`, `scalars` carried
    from row to row (initially 0), `needs` (fields of the transitions), and `step`. A class with its
    own parameters sets them in its constructor and passes the rest on; numeric ones reach the step
    as `p.name`. `mean_dynamics` is optional; `exact` and the checks use it.

    Parameters
    ----------
    second_step_size : optional
        alpha_w; None means the same as `step_size`.

    Examples
    --------
    TD(0) in plain Python:

    >>> import o2td
    >>> class Plain(StepLearner):
    ...     @staticmethod
    ...     def step(row, p, s, theta):
    ...         add(theta, row.alpha * row.rho * td_error(row, theta), row.phi)
    >>> batch = o2td.Transitions([[1.0]], [2.0], [[0.0]], discount=0.0)
    >>> Plain(0.5).partial_fit(batch).theta
    array([1.])
    """

    vectors: ClassVar[tuple[str, ...]] = ("theta",)
    scalars: ClassVar[tuple[str, ...]] = ()
    step: ClassVar[Callable[..., None]]
    finds_step: ClassVar[bool] = False
    """Whether the step itself chooses alpha if `step_size` is "auto".

    `row.alpha` is then negative, and the step uses `-row.alpha` times the alpha it chooses.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        check_scalars(cls.__name__, cls.scalars)
        if hasattr(cls, "step"):
            check_step(cls.__name__, cls.step, _in_order(cls))
            cls.family = StepFamily(cls.step, cls.__name__)
        if "step" in vars(cls):  # what was said of the step that it replaces does not hold
            own = {"postpones": False, "one_lambda": reads_lambda(cls.step)}
            for name, value in own.items():
                if name not in vars(cls):
                    setattr(cls, name, value)

    def _numbers(self, lane: int) -> dict[str, float]:
        """What the step gets as `p`: all numeric parameters, and lambda; lanes are replicates."""
        given = {"trace": self.trace if isinstance(self.trace, float) else np.nan}
        for name, number in self.get_params().items():
            own = name not in NOT_NUMBERS
            if own and isinstance(number, (bool, int, float, np.number)):
                given[name] = float(number)
        return given

    def vector(self, name: str) -> Floats:
        """A copy of one of the vectors.

        Parameters
        ----------
        name : str
            One of `vectors`.
        """
        name = choice("name", name, self.vectors)
        return np.array(self._arrays[name][0]) if self._arrays else np.empty(0)

    def scalar(self, name: str) -> float:
        """The current value of one of the carried scalars.

        Parameters
        ----------
        name : str
            One of `scalars`.
        """
        known = (*CARRIED, *self.scalars)
        place = known.index(choice("name", name, known))
        return float(self._arrays["scalars"][0, place]) if self._arrays else 0.0

    def _allocate(self, d: int) -> None:
        super()._allocate(d)
        self._arrays["scalars"] = np.zeros((self._width, len(CARRIED) + len(self.scalars)))

    @property
    def _decays(self) -> bool:
        return self._traced or type(self).trace_decay is not TraceLearner.trace_decay

    def _constants(self) -> dict[str, float]:
        alpha, alpha_w = self.step_size, self.second_step_size
        alpha_w = alpha if alpha_w is None else alpha_w
        own = type(self)._fill_rows is not StepLearner._fill_rows
        if own or self._settles or not (isinstance(alpha, float) and isinstance(alpha_w, float)):
            return {}
        found = {"alpha": alpha, "alpha_w": alpha_w}
        if self._emphasis.uniform:
            found["emphasis"] = 1.0
        if not self._decays:
            found["decay"] = 0.0
        return found

    def _fill_rows(self, block: Transitions, out: dict[str, Floats]) -> None:
        if "emphasis" in out:
            self._weigh(block, out["emphasis"])
            self._weigh_inner(block, out["emphasis"])
        if "decay" in out:
            self._fill_decays(block, out["decay"])
        if "alpha" in out:
            self._fill_steps(block, out)

    def _fill_decays(self, block: Transitions, out: Floats) -> None:
        if self._decays:
            passed = self.trace_decay(block.rho, block.target_prob, block.behavior_prob)
            self._fill_decay(block, passed, out)
        else:
            out.fill(0.0)

    def _fill_steps(self, block: Transitions, out: dict[str, Floats]) -> None:
        def measure() -> Measured:
            z = self._memory.setdefault("gauge", np.zeros(block.d))
            return self._measure(block, out["emphasis"], out["decay"], z, block.rho)

        lost = 1.0 - block.discount if self.cautious else None
        gauge = Gauge(self.steps, self._memory, measure, 0.0, len(self.vectors) > 2, lost=lost)
        if self._finds(self.step_size):
            out["alpha"][:] = -1.0
        else:
            rule_of(self.step_size).fill(gauge, out["alpha"])
        if self.second_step_size in (None, self.step_size):
            out["alpha_w"][:] = out["alpha"]
        else:
            if self._finds(self.second_step_size):
                out["alpha_w"][:] = -1.0
            else:
                gauge.fill_second(rule_of(self.second_step_size), out["alpha_w"])
        if "alpha_t" in out:
            out["alpha_t"][:] = out["alpha"]

    def _finds(self, size: Any) -> bool:
        return self.finds_step and isinstance(size, str)

    def _rule_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        return {**super()._rule_shapes(d), **({"gauge": (d,)} if "gauge" in self._memory else {})}


def _in_order(kind: Any) -> tuple[str, ...]:
    """The vectors as the step takes them: those that are not traces first."""
    return (*(name for name in kind.vectors if name not in kind.traces), *kind.traces)


@lru_cache(maxsize=16)
def _same(n: int, number: float) -> Column:
    """A column of one number for every stream, kept for the next block."""
    column = np.full(n, number)
    column.flags.writeable = False
    return column, address_of(column), 0


def _placed(array: Any) -> Column:
    array = np.ascontiguousarray(array)
    return array, address_of(array), array.strides[0]


def _columns(held: dict[str, Column], source: Any) -> Any:
    """Where each lane's `COLUMNS` begin: in its stream's arrays, or in its own."""
    first = np.array([[held[name][1] for name in COLUMNS]])
    if len(source) == 1:
        return first
    which = np.repeat(np.arange(len(source))[:, None], len(COLUMNS), axis=1)
    which[:, : len(STREAMED)] = source[:, None]
    return first + which * [held[name][2] for name in COLUMNS]


class Fields(np.record):  # type: ignore[misc]
    """A record of which a field called like a method, such as `trace`, is the field."""

    def __getattribute__(self, name: str) -> Any:
        fields = super().__getattribute__("dtype").names
        return self[name] if name in fields else super().__getattribute__(name)


def records(table: Floats, names: tuple[str, ...]) -> Any:
    """View the rows of a table as records with these names."""
    return np.ascontiguousarray(table).view(_record_of(names)).reshape(len(table))


@cache
def _record_of(names: tuple[str, ...]) -> Any:
    return np.dtype((Fields, [(name, np.float64) for name in names]))
