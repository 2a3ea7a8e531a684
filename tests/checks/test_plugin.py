"""An algorithm of another package: found by entry point, checked, and its faults reported by pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from o2td import LSTD, TD, TreeBackup
from o2td.checks import DoesNotApply, all_checks, check_learner, check_solver
from o2td.errors import InputError

MODULE = '''
"""A package that adds a learner and a solver to o2td."""

from o2td import LSTD
from o2td.learners import WeightedLearner


class HalfTD(WeightedLearner):
    """TD whose trace passes on half of the ratio."""

    check_parameters = ({"trace": 0.3},)

    def __init__(self, step_size="auto", trace=0.0, initial_theta=None):
        super().__init__(step_size, trace=trace, initial_theta=initial_theta)

    def trace_decay(self, rho, target_prob, behavior_prob):
        return 0.5 * self.trace * rho


class BrokenTD(HalfTD):
    """The same, and it counts each ratio twice."""

    def _fill_rows(self, block, out):
        super()._fill_rows(block, out)
        out["gain"] *= block.rho


class TimidLSTD(LSTD):
    """LSTD under another name."""
'''

TESTS = """
import pytest
from o2td.checks import all_checks

@pytest.mark.parametrize("check", all_checks("learners", "halftd"), ids=str)
def test_conformance(check):
    check()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds an installed package, as an installer leaves it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "timid_methods.py").write_text(MODULE)
    info = folder / "timid_methods-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: timid-methods\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(
        "[o2td.learners]\nHalfTD = timid_methods:HalfTD\nBrokenTD = timid_methods:BrokenTD\n"
        "[o2td.solvers]\nTimidLSTD = timid_methods:TimidLSTD\n"
    )
    (info / "RECORD").write_text("timid_methods.py,,\n")
    return folder


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=site
    )


def test_entry_points_join_the_checks(site: Path) -> None:
    code = (
        "from o2td.checks import all_checks\n"
        "for kind in ('learners', 'solvers'):\n"
        "    print(sorted({type(check.subject).__name__ for check in all_checks(kind)}))\n"
        "print(len({check.label for check in all_checks('learners', 'halftd')}))\n"
    )
    done = run(site, "-c", code)
    assert done.returncode == 0, done.stderr
    learners, solvers, settings = done.stdout.splitlines()
    assert "'HalfTD'" in learners
    assert "'BrokenTD'" in learners
    assert "'TD'" in learners
    assert "'TimidLSTD'" in solvers
    assert settings == "3"  # defaults, with traces, and the class's own


def test_three_lines_are_a_test_suite(site: Path) -> None:
    (site / "test_half_td.py").write_text(TESTS)
    done = run(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_half_td.py")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    # Two of its settings keep traces; the third says that checks of traces do not apply.
    assert " skipped" in done.stdout


def test_a_broken_plugin_is_told_what_was_expected(site: Path) -> None:
    (site / "test_broken.py").write_text(TESTS.replace("halftd", "brokentd"))
    done = run(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_broken.py")
    assert done.returncode == 1
    assert "expected that the average of its steps is alpha (b - A x)" in done.stdout
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert failed
    assert all("drift" in line or "rest_at_limit" in line for line in failed)


def test_a_saved_plugin_is_loaded_by_its_registered_name(site: Path) -> None:
    code = (
        "import o2td, numpy as np\n"
        "from timid_methods import HalfTD\n"
        "rows = o2td.Transitions(np.eye(2), 1.0, np.eye(2), 0.5)\n"
        "HalfTD(trace=0.5).partial_fit(rows).save('half.npz')\n"
        "print(repr(o2td.Learner.load('half.npz')))\n"
    )
    done = run(site, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "HalfTD(trace=0.5)"


def test_reports() -> None:
    reports = check_learner(TreeBackup)
    assert isinstance(reports, list)
    assert len(reports) > 1
    plain = reports[0]
    assert plain.label == "TreeBackup()"
    assert "trace" in plain.not_applicable["trace_reaches_the_end"]
    single = check_solver(LSTD(ridge=0.1))
    assert not isinstance(single, list)
    assert "ridge" in single.not_applicable["duplicates"]
    assert str(single).startswith("LSTD(")


def test_a_check_that_makes_no_sense_says_so() -> None:
    check = next(c for c in all_checks("learners", TD()) if c.name == "trace_reaches_the_end")
    with pytest.raises(DoesNotApply, match="no trace"):
        check()


def test_refusals() -> None:
    with pytest.raises(InputError, match="learners"):
        all_checks("learner")
    with pytest.raises(InputError, match="did you mean"):
        all_checks("solvers", "lsdt")
    with pytest.raises(InputError, match="class, an instance or a name"):
        all_checks("learners", 3)
