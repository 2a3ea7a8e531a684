"""The status of a learner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """The status of a learner: "new", "ok" or "diverged", with the step at which it diverged."""

    kind: str
    step: int
    message: str

    def __str__(self) -> str:
        return self.message

    @classmethod
    def after(cls, steps: int, diverged: int) -> Status:
        """The status after `steps` steps, given the step at which it diverged (-1 if it did not).

        >>> print(Status.after(3, -1))
        3 steps
        """
        if diverged >= 0:
            said = "theta is what it was before; try a smaller step_size"
            return cls("diverged", diverged, f"diverged at step {diverged}: {said}")
        if steps == 0:
            return cls("new", 0, "nothing learned yet")
        return cls("ok", steps, f"{steps} steps")
