"""The ratio `rho = pi(a|s) / b(a|s)` of each row, from whatever the log and the user give.

The target's probability comes from a policy passed in Python, else from per-action columns, one
column of probabilities, or of log-probabilities. The behaviour's comes from a policy or a fitted
model, else from its column, else from a model estimated from the log. A column of ratios is used
as it is, unless a target policy is passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from o2td.arrays import Floats
from o2td.errors import InputError, option
from o2td.sources.arrow_cells import LARGEST
from o2td.sources.log_rows import UNLIKE, inputs_of, successors_of
from o2td.sources.mapping import Mapped, in_order
from o2td.sources.places import Where, named
from o2td.sources.policies import SUM_ROUNDING, action_order, probabilities_of
from o2td.sources.values import OwnValues

Place = Callable[[int], tuple[Where, int]]
_ALIKE = 1e-3  # tolerance between two columns of one probability
_ROUNDING = 1e-6  # how far outside [0, 1] a probability may be before it is refused


@dataclass
class RatioRule:
    """How ratios are obtained from one log."""

    mapped: Mapped
    target: Any = None  # policy, (S, A) array, "behavior" or None
    behavior: Any = None  # policy, (S, A) array, model or None
    densities: bool = False
    actions: tuple[Any, ...] | None = None  # the log's names, if they are coded
    log: str = "logs"  # its name in messages
    values: OwnValues | None = None  # a value function of the user's
    ordered: bool = False  # whether something says in which order a policy has the actions

    def __post_init__(self) -> None:
        has = self.mapped.roles.__contains__
        if isinstance(self.target, str) and self.target != "behavior":
            raise InputError(f'target: {self.target!r} is unknown; pass a policy or "behavior"')
        if isinstance(self.behavior, str):
            raise InputError(
                f"behavior: {self.behavior!r} is unknown; pass a policy, or nothing to have it read from"
                " the log's columns or, without such, estimated from the log"
            )
        self.given = self.target is None and has("rho")
        self.on_policy = isinstance(self.target, str)
        self.policy = None if self.on_policy else self.target
        wants = self.policy is not None or any(
            has(role) for role in ("target_probs", "target_prob", "target_logprob")
        )
        if not (self.given or self.on_policy or wants):
            raise InputError(f"{self.log}: the target's probabilities are missing; {_needed()}")
        self.listed = self.behavior is None and not has("behavior_prob") and has("behavior_probs")
        known = self.behavior is not None or any(
            has(role) for role in ("behavior_prob", "behavior_logprob", "behavior_probs")
        )
        self.estimate = not (self.given or self.on_policy or known)
        self.discrete = not (self.given or self.on_policy) and (
            self.estimate or self.listed or self.policy is not None or has("target_probs")
        )
        if (self.discrete or self._matrix(self.behavior)) and not has("action"):
            raise InputError("logs: no column for action, which the ratio needs; add or name it")
        # Whether actions must be whole numbers: probabilities of all of them are looked up.
        asked = self.listed or has("target_probs") or self.policy is not None
        self.numbered = self.discrete or asked or self._matrix(self.behavior)
        several = self.mapped.many("action")
        if self.estimate and len(several) > 1:
            raise InputError(
                f"logs: columns {', '.join(several[:4])} hold real numbers, whose probabilities cannot"
                f" be estimated; {densities_needed()}"
            )
        if self.numbered and len(several) > 1:
            raise InputError(
                f"{self.log}: columns {', '.join(several[:4])} hold {len(several)} numbers for each"
                " action, and probabilities of all actions are those of numbered ones; write the number"
                f" of the action in one column, or {densities_needed()}"
            )

    @staticmethod
    def _matrix(policy: Any) -> bool:
        return policy is not None and not hasattr(policy, "taken")

    def __str__(self) -> str:
        if self.on_policy:
            return "1 (the target is the policy that made the log)"
        if self.given:
            return f"column {self.mapped.one('rho')}"
        return f"{self._target_name()} / {self._behavior_name()}"

    def _target_name(self) -> str:
        if self.policy is not None:
            return "target policy"
        names = self.mapped.many("target_probs")
        if names:
            return f"column {names[0]} …"
        return f"column {self.mapped.one('target_prob') or self.mapped.one('target_logprob')}"

    def _behavior_name(self) -> str:
        if self.estimate or hasattr(self.behavior, "taken"):
            return "behaviour estimated from the log"
        if self.behavior is not None:
            return "behaviour policy"
        if self.listed:
            return f"column {self.mapped.many('behavior_probs')[0]} …"
        return f"column {self.mapped.one('behavior_prob') or self.mapped.one('behavior_logprob')}"

    # -- one chunk ---------------------------------------------------------------------------------

    def apply(self, rows: dict[str, Any], place: Place, notes: Any) -> None:
        """Fill in `rho` and the probabilities of a chunk's rows; remove the raw columns."""
        n = len(rows["reward"])
        self._target_matrix(rows, place, notes)
        target_log, behavior_log = rows.pop("target_logprob"), rows.pop("behavior_logprob")
        listed = rows.pop("behavior_probs")
        if self.listed and rows["action"] is not None:
            _check_rows(listed, self.mapped.many("behavior_probs")[0], place)
            rows["behavior_prob"] = self._take(listed, rows["action"], place)
        if self.on_policy or self.given:
            ratio = np.ones(n) if self.on_policy else rows["rho"]
            self._range(ratio, "rho", place, low=0.0, high=np.inf, log=False)
            rows["rho"] = ratio
            if self.on_policy:
                rows["target_prob"] = rows["behavior_prob"]
            else:
                self._probabilities(rows, target_log, behavior_log, place, notes)
            return
        self._probabilities(rows, target_log, behavior_log, place, notes)
        logs = self.policy is None and self.behavior is None and rows["target_probs"] is None
        if logs and rows["target_prob"] is None and rows["behavior_prob"] is None:
            rows["rho"] = self._log_ratio(target_log, behavior_log, place)
            return
        rows["rho"] = self._quotient(rows, target_log, behavior_log, place, notes)
        if self.densities:
            rows["target_prob"] = rows["behavior_prob"] = None

    def _target_matrix(self, rows: dict[str, Any], place: Place, notes: Any) -> None:
        """pi(.|s) of the rows and of their successors, if a policy or columns give it."""
        inputs = inputs_of(rows["observation"], rows["state"])
        rows["target_probs"] = self.target_matrix(inputs, rows["target_probs"], place)
        if self.policy is not None:
            if rows["next_observation"] is not None:
                successors = rows["next_observation"]
            else:
                successors = successors_of(rows["state"], rows["next_state"])
            following = self._asked(self.policy, successors, "target")
            rows["next_target_probs"] = np.where(rows["terminated"][:, None], 0.0, following)
        if rows["target_probs"] is not None and not (self.on_policy or self.given):
            given = rows["target_prob"]
            rows["target_prob"] = self._take(rows["target_probs"], rows["action"], place)
            if given is not None and self.policy is None:
                apart = np.abs(given - rows["target_prob"])
                differ = int((apart > _ALIKE * (1.0 + rows["target_prob"])).sum())
                if differ:
                    notes[UNLIKE] += differ

    def target_matrix(
        self, inputs: npt.NDArray[Any], given: Floats | None, place: Place
    ) -> Floats | None:
        """pi(.|s) of some inputs: the policy's, else that of columns, checked, else None."""
        if self.policy is not None:
            return self._asked(self.policy, inputs, "target")
        if given is not None:
            _check_rows(given, self.mapped.many("target_probs")[0], place)
        return given

    def _asked(self, policy: Any, inputs: npt.NDArray[Any], name: str) -> Floats:
        """A policy's probabilities, in the order of the log's actions if it names its own."""
        matrix = probabilities_of(policy, inputs, name)
        own = action_order(policy, None, None) or []
        if self.actions is None or len(own) != matrix.shape[1] or set(own) != set(self.actions):
            return matrix
        return np.asarray(matrix[:, [own.index(one) for one in self.actions]])

    @property
    def assumes_order(self) -> bool:
        """Whether nothing says which of the target's probabilities belongs to which named action."""
        if self.actions is None or self.ordered or self.given or self.on_policy:
            return False
        if self.policy is not None:
            return not hasattr(self.policy, "classes_")
        columns = self.mapped.many("target_probs")
        return bool(columns) and in_order(self.actions, columns) is None

    def _take(self, matrix: Floats, action: npt.NDArray[Any], place: Place) -> Floats:
        if self.actions is not None and len(self.actions) != matrix.shape[1]:
            raise InputError(
                f"logs: {matrix.shape[1]} probabilities, and the log names {len(self.actions)} actions"
                f" ({', '.join(map(str, self.actions[:8]))}); say which is which, actions=[…], or name"
                " the columns of probabilities after the actions, such as target_prob_NAME"
            )
        bad = (action < 0) | (action >= matrix.shape[1])
        if bad.any():
            name = self.mapped.many("action")[0]
            remedy = f"the policy has {matrix.shape[1]} actions; number them from 0"
            _refuse(place, int(np.argmax(bad)), name, f"is {action[np.argmax(bad)]}", remedy)
        taken: Floats = matrix[np.arange(len(matrix)), action.astype(np.int64)]
        return taken

    def _probabilities(
        self, rows: dict[str, Any], target_log: Any, behavior_log: Any, place: Place, notes: Any
    ) -> None:
        """Check both probabilities, and take the behaviour's from a policy or model if given."""
        if hasattr(self.behavior, "taken"):
            inputs = inputs_of(rows["observation"], rows["state"])
            rows["behavior_prob"] = self.behavior.taken(inputs, rows["action"], rows["key"])
            least = getattr(self.behavior, "floor", 0.0)
            low = int((rows["behavior_prob"] <= least).sum())
            if low:
                notes[f"estimated probability of the action raised to {least:.2g}"] += low
        elif self.behavior is not None:
            inputs = inputs_of(rows["observation"], rows["state"])
            matrix = self._asked(self.behavior, inputs, "behavior")
            rows["behavior_prob"] = self._take(matrix, rows["action"], place)
        top = np.inf if self.densities else 1.0
        for role in ("target_prob", "behavior_prob"):
            if rows[role] is not None:
                rows[role] = self._range(rows[role], role, place, 0.0, top, log=False)
        for role, values in (("target_logprob", target_log), ("behavior_logprob", behavior_log)):
            if values is not None and not self.densities:
                self._range(values, role, place, -np.inf, 0.0, log=True)

    def _range(
        self, values: Floats, role: str, place: Place, low: float, high: float, log: bool
    ) -> Floats:
        stray = 0.0 if role == "rho" else _ROUNDING
        bad = (values < low - stray) | (values > high + stray)
        if bad.any():
            row = int(np.argmax(bad))
            remedy = "a ratio is zero or more" if role == "rho" else "a probability is in [0, 1]"
            if log:
                remedy = "the logarithm of a probability is at most 0"
            if role != "rho" and values[row] > high:
                wanted = option("densities=True", "--densities")
                remedy += f"; pass {wanted} if actions are continuous"
            _refuse(place, row, self.mapped.one(role) or role, f"is {values[row]:g}", remedy)
        if (values < low).any() or (values > high).any():
            return np.clip(values, low, high)
        return values

    def _log_ratio(self, target: Floats, behavior: Floats, place: Place) -> Floats:
        impossible = (behavior == -np.inf) & (target > -np.inf)
        if impossible.any():
            self._zero(int(np.argmax(impossible)), "behavior_logprob", "-inf", place)
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.where(target == -np.inf, 0.0, np.exp(target - behavior))
        return self._finite(ratio, place, "target_logprob")

    def _quotient(
        self, rows: dict[str, Any], target_log: Any, behavior_log: Any, place: Place, notes: Any
    ) -> Floats:
        for role, values in (("target_prob", target_log), ("behavior_prob", behavior_log)):
            if rows[role] is None:
                rows[role] = np.exp(values)
        target, behavior = rows["target_prob"], rows["behavior_prob"]
        zero = behavior <= 0.0
        if zero.any():
            if (zero & (target > 0.0)).any():
                row = int(np.argmax(zero & (target > 0.0)))
                self._zero(row, "behavior_prob", "0", place)
            notes["behaviour and target probability are both 0, ratio read as 0"] += int(zero.sum())
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(zero, 0.0, target / behavior)
        return self._finite(ratio, place, "behavior_prob")

    def _zero(self, row: int, role: str, value: str, place: Place) -> NoReturn:
        _refuse(
            *(place, row, self.mapped.one(role) or role),
            f"is {value} for the action taken, which the target may take",
            "correct the probability, or leave the episode out",
        )

    def _finite(self, ratio: Floats, place: Place, role: str) -> Floats:
        bad = ~(ratio <= LARGEST)
        if bad.any():
            row = int(np.argmax(bad))
            name = self.mapped.one(role) or role
            _refuse(place, row, name, "gives a ratio that overflows", "correct the probabilities")
        return ratio


def _check_rows(matrix: Floats, name: str, place: Place) -> None:
    off = np.abs(matrix.sum(axis=1) - 1.0) > SUM_ROUNDING
    low = (matrix < -_ROUNDING).any(axis=1)
    if (off | low).any():
        row = int(np.argmax(off | low))
        said = f"and the columns beside it are {np.round(matrix[row], 4).tolist()}"
        _refuse(place, row, name, said, "write probabilities of all actions, which sum to 1")


def _refuse(place: Place, row: int, name: str, said: str, remedy: str) -> NoReturn:
    where, index = place(row)
    where.refuse(index, name, said, remedy)


def _needed() -> str:
    either = option('pass target=policy, or target="behavior"', "pass --on-policy")
    columns = named("target_prob") + option("", " or --target NAME=COLUMN")
    return (
        "add a column rho, or target_prob and behavior_prob (or log-probabilities), or target_prob_0 …,"
        f" or name yours, {columns}; or {either} to evaluate the policy that made the log"
    )


def densities_needed() -> str:
    """What a log of continuous actions must have."""
    either = option('target="behavior"', "--on-policy")
    wanted = option("densities=True", "--densities")
    return (
        "add a column behavior_logprob with the logarithm of the density that each action was drawn"
        f" from, and target_logprob with the target's, and pass {wanted}; or"
        f" pass {either} to evaluate the policy that made the log"
    )
