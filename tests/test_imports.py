"""Tests let the code move: they import public names, or the one module that their own path mirrors.

`tests/exact/test_dynamics.py` may look into `o2td.exact.dynamics`, and `tests/evaluation/test_drift.py`
into `o2td.evaluation.log_tests.drift`: the room and the name say which. All other tests see of o2td
what `o2td` itself, its rooms and their packages list in `__all__`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

TESTS = Path(__file__).parent

# Modules within a room that guides tell users to import.
DOCUMENTED = {"o2td.learners.step_learner"}

# Debts: tests that cannot do their work from outside yet, and what they look into. No new ones.
# The two test_blocks.py shrink the block sizes of several modules at once, which are nobody's public
# names; sums are the same whatever the sizes.
ALLOWED = {
    "evaluation/test_blocks.py": "o2td.evaluation.coverage o2td.evaluation.fitting "
    "o2td.evaluation.moments o2td.evaluation.systems o2td.evaluation.value_model",
    "evaluation/test_horizon_features.py": "o2td.evaluation.survey o2td.evaluation.systems",
    "kernels/test_pending.py": "o2td.kernels.access",
    "kernels/test_ring_buffer.py": "o2td.kernels.metric_values o2td.kernels.vectors",
    "kernels/test_settle.py": "o2td.kernels.access",
    "learners/test_short_streams.py": "o2td.learners.family",
    "reliability/writing.py": "o2td.evaluation.output",
    "solvers/test_blocks.py": "o2td.linear_algebra.least_squares o2td.solvers.aggregate "
    "o2td.solvers.differential_lstd o2td.solvers.directions o2td.solvers.system",
    "solvers/test_choice.py": "o2td.solvers.directions",
}


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Modules of o2td that a file imports, each with the name taken from it, or "" for itself."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names if one.name.startswith("o2td"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "o2td":
            for one in node.names:
                inner = f"{node.module}.{one.name}"
                yield (inner, "") if _is_module(inner) else (str(node.module), one.name)


def _is_module(name: str) -> bool:
    room, _, last = name.rpartition(".")
    found = import_module(room)
    listed = last in getattr(found, "__all__", ())
    return not listed and hasattr(found, "__path__") and find_spec(name) is not None


def public(module: str, name: str) -> bool:
    """Whether a module, or a name of it, is for everybody."""
    found = import_module(module)
    if module in DOCUMENTED:
        return not name.startswith("_")
    room = module.count(".") < 2 or hasattr(found, "__path__")
    return room and (not name or name in getattr(found, "__all__", (name.lstrip("_"),)))


def looked_into(path: Path) -> set[str]:
    """Modules that are neither public nor mirrored by this test, and that it imports from."""
    place = path.relative_to(TESTS)
    room, own = ".".join(("o2td", *place.parent.parts, "")), path.stem.removeprefix("test_")
    return {
        module
        for module, name in imported(path)
        if not (module.startswith(room) and module.rpartition(".")[2] == own)
        and not public(module, name)
    }


def test_tests_import_what_is_public_or_their_own_module() -> None:
    for path in sorted(TESTS.rglob("*.py")):
        place = path.relative_to(TESTS).as_posix()
        extra = looked_into(path) - set(ALLOWED.get(place, "").split())
        assert not extra, f"{place} imports from {extra}: take a public name, or move the test"


def test_debts_that_are_paid_are_struck_off() -> None:
    for place, modules in ALLOWED.items():
        assert (TESTS / place).is_file(), place
        assert looked_into(TESTS / place) == set(modules.split()), place
