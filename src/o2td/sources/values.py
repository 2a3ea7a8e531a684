"""A value function of the user's own, as a model or as columns of the log.

A model is what takes a batch of observations (or states) and returns V, one number per row, or Q,
one per action: a callable, an object with `predict`, a PyTorch module, or an array by state. Columns
are `v` or `q`, and `next_v` for what follows the last row of an episode that was cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import answer_of
from o2td.arrays import Floats, Ints
from o2td.errors import InputError, option
from o2td.sources.arrow_cells import LARGEST
from o2td.sources.log_rows import LogRows
from o2td.sources.mapping import Mapped
from o2td.sources.modules import ask_module, is_module
from o2td.sources.places import Where, named
from o2td.sources.policies import numbers

ARGUMENT = "value_model"
Place = Callable[[int], tuple[Where, int]]
_SHAPES = "return one number per row (V), or one per action (Q)"


class OwnValues:
    """V(s), or Q(s, a) for every action, of each row and of its successor."""

    def __init__(self, mapped: Mapped, model: Any = None) -> None:
        self._model, self._v = model, mapped.one("v")
        self._q, self._next = mapped.many("q"), mapped.one("next_v")
        self._action = mapped.one("action") or "action"
        self.of_actions: bool | None = None if model is not None else bool(self._q)
        given = [name for name in (self._v, *self._q[:1]) if name is not None]
        if model is not None and given:
            raise InputError(
                f"{ARGUMENT}: column {given[0]} gives values, too; leave out one of them"
            )
        if len(given) > 1:
            raise InputError(
                f"columns: v ({given[0]}) and q ({given[1]} …) both give values; leave out one of"
                " them"
            )
        if model is None and not given:
            raise InputError(
                f"columns: next_v ({self._next}) alone is not enough; name v or q as well"
            )
        usable = callable(model) or hasattr(model, "predict") or _is_table(model)
        if model is not None and not usable:
            raise InputError(
                f"{ARGUMENT}: {type(model).__name__} is not a value model; pass a function of"
                " observations (or states), an object with predict, or an array by state"
            )

    @classmethod
    def of(cls, mapped: Mapped, model: Any) -> OwnValues | None:
        """The values that a model or columns give, or None."""
        named_ones = any(role in mapped.roles for role in ("v", "q", "next_v"))
        return cls(mapped, model) if model is not None or named_ones else None

    def __str__(self) -> str:
        if self._v is not None:
            return f"V of column {self._v}"
        if self._q:
            return f"Q of columns {self._q[0]} … {self._q[-1]}"
        kind = {None: "values", True: "Q", False: "V"}[self.of_actions]
        if _is_table(self._model):
            return f"{kind} of an array by state"
        return f"{kind} of {getattr(self._model, '__name__', type(self._model).__name__)}"

    # -- rows --------------------------------------------------------------------------------------

    def apply(self, rows: LogRows, raw: dict[str, Any], place: Place) -> LogRows:
        """The same rows with `value`, `next_value` and, of Q, `action_value`.

        `raw` holds the columns `v`, `q` of these rows and `next_v`, `next_q` of their successors.
        """
        if self._model is not None:
            here, after = self._both(rows, place)
        elif self._q:
            here, after = raw["q"], raw["next_q"]
        else:
            here, after = raw["v"], raw["next_v"]
        if here.ndim == 1:
            value, taken, following = here, None, after
        else:
            value = self._mean(here, rows.target_probs, rows.action)
            assert rows.action is not None  # noqa: S101
            assert rows.next_target_probs is not None  # noqa: S101
            taken = self._taken(here, rows.action.astype(np.int64), place)
            following = (rows.next_target_probs * after).sum(axis=1)
            given = raw.get("next_v")
            following = following if given is None else np.where(np.isnan(given), following, given)
        following = np.where(rows.terminated, 0.0, following)
        if np.isnan(following).any():
            self._refuse_cut(int(np.argmax(np.isnan(following))), place)
        return replace(rows, value=value, action_value=taken, next_value=following)

    def at_starts(
        self, inputs: npt.NDArray[Any], chances: Floats | None, raw: dict[str, Any], place: Place
    ) -> Floats:
        """V where episodes start of which nothing else is known."""
        if self._model is not None:
            here = self._call(inputs, place)
        else:
            here = raw["q"] if self._q else raw["v"]
        return here if here.ndim == 1 else self._mean(here, chances, chances)

    def _mean(self, values: Floats, chances: Floats | None, action: Any) -> Floats:
        """`sum_a pi(a|s) Q(s, a)`."""
        name = f"column {self._q[0]}" if self._q else ARGUMENT
        if chances is None or action is None:
            either = option("pass target=policy, or ", "")
            raise InputError(
                f"{name}: values of {values.shape[1]} actions need the target's probabilities of all"
                f" actions; {either}add columns target_prob_0 … and action, or give V instead"
            )
        if chances.shape[1] != values.shape[1]:
            raise InputError(
                f"{name}: values of {values.shape[1]} actions, and the target has"
                f" {chances.shape[1]}; give one for each"
            )
        return np.asarray((chances * values).sum(axis=1))

    def _taken(self, values: Floats, action: Ints, place: Place) -> Floats:
        """`Q(s, a)` of the logged actions."""
        bad = (action < 0) | (action >= values.shape[1])
        if bad.any():
            where, index = place(int(np.argmax(bad)))
            what = f"values are of {values.shape[1]} actions; number the actions from 0"
            where.refuse(index, self._action, f"is {action[np.argmax(bad)]}", what)
        return np.asarray(values[np.arange(len(values)), action])

    def _refuse_cut(self, row: int, place: Place) -> None:
        where, index = place(row)
        name = self._v or (self._q[0] if self._q else ARGUMENT)
        also = "" if self._v else ", or columns next_target_prob_0 …"
        where.refuse(
            *(index, name, "is not known after this last row of an episode that was cut"),
            f"name a column of the value that follows, {named('next_v')}{also}",
        )

    # -- a model -----------------------------------------------------------------------------------

    def _both(self, rows: LogRows, place: Place) -> tuple[Floats, Floats]:
        """Values of rows and of successors; what the next row is, is not computed again."""
        here, other = self._call(rows.input, place), rows.elsewhere()
        after = np.zeros_like(here)
        after[:-1] = here[1:]
        if len(other):
            after[other] = self._call(rows.next_input[other], lambda row: place(int(other[row])))
        return here, after

    def _call(self, inputs: npt.NDArray[Any], place: Place) -> Floats:
        """V (n,) or Q (n, A) of some inputs, checked."""
        model = self._model
        if _is_table(model):
            found = self._of_states(inputs, place)
        else:

            def rows() -> str:
                file, row = place(0)[0].of(place(0)[1])
                return f"{len(inputs)} rows from {file}, row {row} on"

            found = numbers(answer_of(ARGUMENT, _answer, model, inputs, on=rows), ARGUMENT)
        if found.ndim == 2 and found.shape[1] == 1:
            found = found[:, 0]
        if found.ndim not in (1, 2) or len(found) != len(inputs):
            raise InputError(
                f"{ARGUMENT}: it returned shape {found.shape} for {len(inputs)} rows; {_SHAPES}"
            )
        bad = ~(np.abs(found) <= LARGEST)
        if bad.any():
            at = int(np.argmax(bad if bad.ndim == 1 else bad.any(axis=1)))
            file, row = place(at)[0].of(place(at)[1])
            raise InputError(
                f"{ARGUMENT}: it is {float(found[bad][0]):g} in row {row} of {file} or right after it;"
                " return a finite number for every row"
            )
        self.of_actions = found.ndim == 2
        return found

    def _of_states(self, inputs: npt.NDArray[Any], place: Place) -> Floats:
        table = numbers(self._model, ARGUMENT)
        if table.ndim not in (1, 2):
            raise InputError(
                f"{ARGUMENT}: an array of shape {table.shape}; pass V (states,) or Q (states,"
                " actions), or a function"
            )
        if inputs.ndim != 1:
            raise InputError(f"{ARGUMENT}: an array by state needs a log with states")
        if len(inputs) and inputs.max() >= len(table):
            file, row = place(int(inputs.argmax()))[0].of(place(int(inputs.argmax()))[1])
            raise InputError(
                f"{ARGUMENT}: state {inputs.max()} is in row {row} of {file} or right after it, the"
                f" array has {len(table)} rows; give one for each state"
            )
        return np.asarray(table[inputs])


def _is_table(model: Any) -> bool:
    return isinstance(model, (list, tuple)) or (hasattr(model, "shape") and not callable(model))


def _answer(model: Any, inputs: npt.NDArray[Any]) -> Any:
    """What a model says of inputs, called in its own manner."""
    if is_module(model):
        return ask_module(model, inputs, ARGUMENT)
    if getattr(model, "of_actions", False):
        return model.action_values(inputs)
    if hasattr(model, "predict"):
        flat = inputs.ndim == 1 and not getattr(model, "states", False)
        return model.predict(inputs[:, None] if flat else inputs)
    return model(inputs)
