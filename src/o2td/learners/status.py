"""How a learner fares."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """How a learner fares: "new", "ok" or "diverged", with the step at which it diverged."""

    kind: str
    step: int
    message: str

    def __str__(self) -> str:
        return self.message

    @classmethod
    def after(cls, steps: int, diverged: int) -> Status:
        """That of a learner after so many steps, which diverged at one of them or (-1) did not.

        >>> print(Status.after(3, -1))
        3 steps
        """
        if diverged >= 0:
            said = "theta is what it was before; try a smaller step_size"
            return cls("diverged", diverged, f"diverged at step {diverged}: {said}")
        if steps == 0:
            return cls("new", 0, "nothing learned yet")
        return cls("ok", steps, f"{steps} steps")
