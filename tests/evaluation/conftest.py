from __future__ import annotations

from typing import Any

import pytest

from o2td import domains, exact


@pytest.fixture(scope="session")
def walk() -> tuple[Any, float]:
    """The random walk, and its exact value from the start."""
    problem = domains.random_walk()
    return problem, float(problem.start @ exact.value(problem))
