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
ALLOWED = {
    "docs/test_prose.py": "o2td.report.style",
    "docs/test_ray.py": "o2td.experiments.pool",
    "evaluation/golden.py": "o2td.evaluation.episodes",
    "evaluation/logs.py": "o2td.evaluation.episodes o2td.evaluation.survey",
    "evaluation/test_bootstrap.py": "o2td.evaluation.moments",
    "evaluation/test_compare.py": (
        "o2td.evaluation.requirements o2td.evaluation.shared_log o2td.sources.several"
    ),
    "evaluation/test_coverage.py": "o2td.evaluation.basis",
    "evaluation/test_drift.py": "o2td.evaluation.log_tests.seen o2td.evaluation.log_tests.support",
    "evaluation/test_evaluate.py": (
        "o2td.evaluation.basis o2td.evaluation.estimators.etd o2td.evaluation.replicated"
    ),
    "evaluation/test_log_tests.py": (
        "o2td.evaluation.episodes "
        "o2td.evaluation.log_tests.clock "
        "o2td.evaluation.log_tests.seen "
        "o2td.evaluation.plan "
        "o2td.evaluation.study"
    ),
    "evaluation/test_magic.py": "o2td.evaluation.moments",
    "evaluation/test_moments.py": "o2td.evaluation.bootstrap",
    "evaluation/test_more.py": (
        "o2td.evaluation.bootstrap "
        "o2td.evaluation.estimators.lstd "
        "o2td.evaluation.families "
        "o2td.evaluation.verdicts"
    ),
    "evaluation/test_passes.py": (
        "o2td.evaluation.episodes "
        "o2td.evaluation.estimators.dr "
        "o2td.evaluation.estimators.lstd "
        "o2td.evaluation.histories "
        "o2td.evaluation.study"
    ),
    "evaluation/test_select.py": "o2td.evaluation.moments",
    "evaluation/test_systems.py": (
        "o2td.evaluation.basis "
        "o2td.evaluation.bootstrap "
        "o2td.evaluation.cells "
        "o2td.evaluation.survey"
    ),
    "evaluation/test_users.py": "o2td.evaluation.moments",
    "experiments/files.py": "o2td.experiments.planning",
    "experiments/killing.py": "o2td.experiments.work",
    "experiments/test_dask.py": "o2td.experiments.pool",
    "experiments/test_truth.py": "o2td.experiments.work",
    "kernels/test_ring_buffer.py": "o2td.kernels.metric_values o2td.kernels.vectors",
    "kernels/test_vectors.py": "o2td.learners.family o2td.learners.sweeping",
    "learners/test_metrics_thread.py": "o2td.learners.sweeping",
    "learners/test_replicates.py": "o2td.kernels.resampling o2td.kernels.weighted",
    "learners/test_short_streams.py": "o2td.learners.family",
    "learners/test_sweep.py": "o2td.kernels.metric_values",
    "paper/test_reproduction.py": "o2td.experiments.studies",
    "paper/test_specs.py": "o2td.experiments.planning o2td.experiments.tuning",
    "paper/test_truth.py": (
        "o2td.paper.board "
        "o2td.paper.comparisons "
        "o2td.paper.sections "
        "o2td.report.curves "
        "o2td.report.drawing "
        "o2td.report.truth_error"
    ),
    "reliability/test_clusters.py": "o2td.experiments.pool",
    "reliability/test_hostile.py": "o2td.checks.data",
    "reliability/test_writes.py": "o2td.evaluation.output",
    "reliability/writing.py": "o2td.evaluation.output",
    "report/test_curves.py": "o2td.report.cases o2td.report.drawing",
    "report/test_experiment.py": "o2td.report.cases o2td.report.ranking",
    "solvers/test_choice.py": "o2td.solvers.directions",
    "sources/test_behavior.py": "o2td.sources.places",
    "sources/test_files.py": "o2td.sources.formats.ndjson",
    "sources/test_refusals.py": "o2td.sources.formats.frames",
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
