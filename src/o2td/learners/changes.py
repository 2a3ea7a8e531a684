"""Parameters that are assigned to a learner: checked before they are used, in force from the next row.

The constructor checks them, with the messages that it always has, and derives from them what it
derives. What the stored arrays depend on cannot change between rows. What a step-size rule or an
emphasis remembers is of no use to another one, which begins afresh; so does a trace that was off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from o2td.emphasis import Memory
from o2td.errors import InputError
from o2td.learners.step_sizes import rule_of
from o2td.parameters import differ

if TYPE_CHECKING:
    from o2td.learners.base import Learner

__all__ = ["renew"]

OWN = frozenset({"_busy", "_packed"})  # of the object, whatever its parameters
LEARNED = OWN | {"_arrays", "_carried", "_memory", "_diverged", "_step"}


def renew(learner: Any, forgetting: bool = False) -> None:
    """Check assigned parameters and put them in force, or raise and change nothing."""
    if not learner._assigned:
        return
    made = learner._as_assigned()
    if forgetting or not learner.steps:
        learner._unbind()
        learner._adopt(made, OWN)
        return
    if _are_numbers(learner._assigned, made):
        learner._adopt(made, LEARNED)
        return
    before = learner._copied()
    vars(before).update(learner._assigned)  # what was derived is still that of these
    _check_arrays(learner, made)
    memory = _remembered(before, made)
    if getattr(made, "_traced", False) and not before._traced:
        for name in (*learner.traces, "bound", "size"):
            learner._arrays[name][:] = 0
    learner._adopt(made, LEARNED)
    learner._memory = memory


def _are_numbers(assigned: dict[str, Any], made: Learner) -> bool:
    """Whether only step sizes were assigned, numbers for numbers, as often as every row."""
    return assigned.keys() <= {"step_size", "second_step_size"} and all(
        type(value) is type(getattr(made, name)) is float for name, value in assigned.items()
    )


def _check_arrays(learner: Learner, made: Learner) -> None:
    """Refuse parameters on which the arrays depend, or what is in them."""
    made._allocate(learner._arrays["theta"].shape[1])
    changed = {
        name: value
        for name, value in (learner._assigned or {}).items()
        if differ(value, getattr(made, name))
    }
    names = [name for name in ("initial_theta", *learner.set_once) if name in changed]
    if names or _sizes(learner) != _sizes(made):
        _refuse(learner, names or list(changed))


def _sizes(learner: Learner) -> dict[str, int]:
    """The size of each array, but for lists of indices, which sparse rows need."""
    lists = {name for name, _ in learner._lists()}
    own = {name: array.size for name, array in learner._arrays.items() if name not in lists}
    return {**own, "lanes": learner._width}


def _remembered(before: Learner, made: Learner) -> Memory:
    """What the rules and the emphasis of `before` remember, if it serves those of `made`."""
    d, kept = before._arrays["theta"].shape[1], dict(before._memory)
    of_rules = before._rule_shapes(d).keys() - {"blocks"}
    own = {name: array for name, array in kept.items() if name not in {*of_rules, "blocks"}}
    if _rules(before) != _rules(made):
        kept = {name: array for name, array in kept.items() if name not in of_rules}
    old, new = before._weighting, made._weighting
    if old == new:
        return kept
    shapes = new.shapes(own, d) if type(old) is type(new) else {}
    if shapes is None:  # not known
        return kept
    for name, array in own.items():
        if name not in shapes:
            del kept[name]
        elif shapes[name] != array.shape:
            _refuse(before, list(before._assigned or ()))
    return kept


def _rules(learner: Learner) -> list[type]:
    """The kinds of both step sizes."""
    given = (getattr(learner, name, None) for name in ("step_size", "second_step_size"))
    return [type(None) if value is None else type(rule_of(value)) for value in given]


def _refuse(learner: Learner, names: list[str]) -> None:
    kind = type(learner).__name__
    raise InputError(
        f"{kind} has learned from {learner.steps} rows and cannot change {' and '.join(names)} on the"
        " way: reset() it, or clone() it with the other value, to begin anew"
    )
