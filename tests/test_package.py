"""The built package, and what a user meets first: import, version, help, errors."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import venv
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import o2td

ROOT = Path(__file__).parents[1]
HEAVY = ("numba", "scipy", "polars", "matplotlib", "joblib", "sklearn", "pyarrow")


USE_NAMES = """
import o2td
for name in {names}:
    try:
        getattr(o2td, name)
    except o2td.errors.MissingExtraError:
        pass
"""


def exists(module: str) -> bool:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        return False
    return spec is not None and spec.origin is not None


def public_names() -> list[str]:
    homes = {**o2td._HOMES, **o2td._MODULES}
    return sorted(name for name, module in homes.items() if exists(module))


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    hidden = ("PYTHONPATH", "PYTHONHOME")
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env=clean, capture_output=True, text=True
    )


def answer(*command: str | Path, cwd: Path) -> str:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def core_requirements() -> set[str]:
    """Distributions that the core requirements bring, extras left out."""
    found: set[str] = set()
    waiting = [Requirement(line) for line in metadata.requires("o2td") or []]
    while waiting:
        requirement = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.name not in found:
            found.add(requirement.name)
            waiting += [Requirement(line) for line in metadata.requires(requirement.name) or []]
    return found


def new_environment(folder: Path) -> Path:
    """A virtual environment with pip and the core requirements alone, linked from this one.

    pip then resolves o2td's requirements for real, without the network, and a module that o2td
    needs but does not declare is not there to be imported.
    """
    venv.create(folder, with_pip=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in core_requirements():
        distribution = metadata.distribution(name)
        files = distribution.files or []
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())
    return folder / "bin"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    answer(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


def test_the_wheel_installs_and_works_outside_the_checkout(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    check_installed(wheel, tmp_path)


def test_the_sdist_builds_installs_and_works_outside_the_checkout(
    built: Path, tmp_path: Path
) -> None:
    (sdist,) = built.glob("*.tar.gz")
    answer(
        *(sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps"),
        *("--no-build-isolation", "--wheel-dir", tmp_path, sdist),
        cwd=tmp_path,
    )
    (wheel,) = tmp_path.glob("*.whl")
    check_installed(wheel, tmp_path)


def check_installed(wheel: Path, folder: Path) -> None:
    bin_folder = new_environment(folder / "venv")
    python = bin_folder / "python"
    answer(python, "-m", "pip", "install", "--no-index", wheel, cwd=folder)
    lines = answer(
        python, "-c", "import o2td; print(o2td.__version__, o2td.__file__)", cwd=folder
    ).split(maxsplit=1)
    assert lines[0] == o2td.__version__
    assert Path(lines[1]).is_relative_to(folder)
    assert (Path(lines[1]).parent / "py.typed").exists()
    assert "Usage: o2td" in answer(bin_folder / "o2td", "--help", cwd=folder)
    assert answer(bin_folder / "o2td", "--version", cwd=folder) == f"o2td {o2td.__version__}"
    assert answer(python, "-m", "pip", "check", cwd=folder) == "No broken requirements found."
    answer(python, "-c", USE_NAMES.format(names=public_names()), cwd=folder)


def seconds(*command: str | Path, cwd: Path) -> float:
    """Least processor time of five, which other work on the machine hardly changes."""
    times = []
    for _ in range(5):
        start = os.times()
        answer(*command, cwd=cwd)
        done = os.times()
        spent = done.children_user + done.children_system
        times.append(spent - start.children_user - start.children_system)
    return min(times)


def test_help_costs_little_more_than_importing_typer(tmp_path: Path) -> None:
    floor = seconds(sys.executable, "-c", "import typer", cwd=tmp_path)
    spent = seconds(sys.executable, "-m", "o2td", "--help", cwd=tmp_path)
    assert spent < 3 * floor, f"o2td --help took {spent:.2f} s, import typer {floor:.2f} s"


@pytest.mark.parametrize("command", ["import o2td", "from o2td.cli import main; main(['-h'])"])
def test_import_and_help_leave_heavy_modules_alone(command: str, tmp_path: Path) -> None:
    code = f"{command}\nimport sys\nprint([m for m in {HEAVY} if m in sys.modules])"
    assert answer(sys.executable, "-c", code, cwd=tmp_path).splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", public_names())
def test_a_public_name_is_there_and_is_remembered(name: str) -> None:
    assert getattr(o2td, name) is getattr(o2td, name)
    assert name in dir(o2td)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = o2td.nothing


def test_type_checkers_see_the_names_that_are_imported_late() -> None:
    tree = ast.parse(Path(o2td.__file__).read_text())
    seen = {
        alias.asname or alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    late = {**o2td._HOMES, **{name: m.rpartition(".")[0] for name, m in o2td._MODULES.items()}}
    assert seen == {name: late[name] for name in public_names()}


def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return [Requirement(line) for group in groups for line in group]


def locked() -> dict[str, list[Version]]:
    versions: dict[str, list[Version]] = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if "==" in line:
            requirement = Requirement(line.rstrip(" \\"))
            (pin,) = requirement.specifier
            versions.setdefault(requirement.name, []).append(Version(pin.version))
    return versions


def test_the_lock_meets_every_requirement_but_ray() -> None:
    versions = locked()
    for requirement in declared():
        if requirement.name in ("o2td", "ray"):
            continue
        assert requirement.name in versions, f"{requirement} is not locked; run make lock"
        assert all(v in requirement.specifier for v in versions[requirement.name]), requirement


def test_the_lock_has_hashes_and_no_addresses() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"//|index-url|find-links|trusted-host|(?<![\w.-])/\w", text)
    blocks = re.split(r"\n(?=[a-z])", text)
    assert all("--hash=sha256:" in block for block in blocks if "==" in block)


def test_no_requirement_has_an_upper_bound() -> None:
    bounds = {clause.operator for requirement in declared() for clause in requirement.specifier}
    assert bounds == {">="}
