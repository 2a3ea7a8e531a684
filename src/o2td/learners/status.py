"""The status of a learner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """The status of a learner.

    Parameters
    ----------
    kind : str
        "new", "ok" or "diverged".
    step : int
        How many rows it has learned from, or the row at which it diverged.
    message : str
        The same in a sentence, with a remedy.
    """

    kind: str
    step: int
    message: str

    def __str__(self) -> str:
        return self.message


def status_after(steps: int, diverged: int) -> Status:
    """The status after `steps` steps; `diverged` is the step at which it did, -1 if it did not.

    >>> print(status_after(3, -1))
    3 steps
    """
    if diverged >= 0:
        said = "theta is what it was before; try a smaller step_size"
        return Status("diverged", diverged, f"diverged at step {diverged}: {said}")
    if steps == 0:
        return Status("new", 0, "nothing learned yet")
    return Status("ok", steps, f"{steps} steps")
