from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import invalidate_caches
from pathlib import Path

import pytest

from o2td.errors import InputError, O2TDError
from o2td.registry import DOMAINS, FEATURES, LEARNERS, SOLVERS, Registry


def install_plugin(folder: Path, entry_points: str, source: str, kind: str = "shapes") -> None:
    """Lay out a package as an installer would: its module and its metadata."""
    (folder / "o2td_plugin.py").write_text(source)
    info = folder / "o2td_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: o2td-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[o2td.{kind}]\n{entry_points}\n")
    invalidate_caches()  # finders remember what a folder held


@pytest.fixture
def plugin_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "o2td_plugin", raising=False)
    yield tmp_path
    sys.modules.pop("o2td_plugin", None)


def test_a_plugin_is_found_also_where_the_backport_of_importlib_metadata_is_in_use(
    plugin_path: Path,
) -> None:
    """Dask imports it, and its entry points are of another class than the standard library's."""
    pytest.importorskip("importlib_metadata")
    install_plugin(plugin_path, "Cone = o2td_plugin:Cone", "class Cone: pass\n")
    assert Registry("shapes")["cone"]() is not None


def test_names_fold_case_and_dashes_and_keep_their_spelling() -> None:
    shapes = Registry("shapes")
    shapes.register("Big_Box", list)
    assert shapes["big-box"] is list
    assert "BIG_BOX" in shapes
    assert 3 not in shapes
    assert list(shapes) == ["Big_Box"]
    assert len(shapes) == 1


def test_a_taken_name_is_refused_but_the_same_factory_twice_is_not() -> None:
    shapes = Registry("shapes")
    shapes.register("box", list)
    shapes.register("box", list)
    with pytest.raises(InputError, match="'BOX' is taken"):
        shapes.register("BOX", dict)
    assert shapes["box"] is list


@pytest.mark.parametrize(
    ("asked", "advice"), [("bxo", "did you mean 'box'"), ("zzz", "choose from box, cone")]
)
def test_an_unknown_name_gets_advice(asked: str, advice: str) -> None:
    shapes = Registry("shapes")
    shapes.register("cone", dict)
    shapes.register("box", list)
    with pytest.raises(InputError, match=advice):
        shapes[asked]


def test_a_plugin_is_listed_without_being_imported(plugin_path: Path) -> None:
    install_plugin(plugin_path, "Cone = o2td_plugin:Cone", "class Cone: pass\n")
    shapes = Registry("shapes")
    assert shapes.names() == ["Cone"]
    assert "o2td_plugin" not in sys.modules
    assert shapes["cone"].__name__ == "Cone"
    assert shapes["cone"] is shapes["CONE"]


def test_a_plugin_cannot_replace_a_member(plugin_path: Path) -> None:
    install_plugin(plugin_path, "box = o2td_plugin:Box", "class Box: pass\n")
    shapes = Registry("shapes")
    shapes.register("Box", list)
    with pytest.warns(UserWarning, match="'box' of the package o2td-plugin is ignored"):
        names = shapes.names()
    assert names == ["Box"]
    assert shapes["box"] is list


@pytest.mark.parametrize("source", ["import o2td_has_no_such_module\n", "Cone = 3\n", ""])
def test_a_broken_plugin_is_named_and_harms_no_other(plugin_path: Path, source: str) -> None:
    install_plugin(plugin_path, "Cone = o2td_plugin:Cone", source)
    shapes = Registry("shapes")
    shapes.register("box", list)
    assert shapes["box"] is list
    with pytest.raises(O2TDError, match="'Cone' of the package o2td-plugin"):
        shapes["cone"]


def test_the_home_is_imported_on_first_use_only(plugin_path: Path) -> None:
    (plugin_path / "o2td_plugin.py").write_text("")
    shapes = Registry("shapes", home="o2td_plugin")
    assert "o2td_plugin" not in sys.modules
    assert shapes.names() == []
    assert "o2td_plugin" in sys.modules


def test_a_home_that_fails_to_import_fails_every_time(plugin_path: Path) -> None:
    (plugin_path / "o2td_plugin.py").write_text("1 / 0\n")
    shapes = Registry("shapes", home="o2td_plugin")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            shapes.names()


@pytest.mark.parametrize("registry", [LEARNERS, SOLVERS, DOMAINS, FEATURES])
def test_o2td_s_own_registries_name_their_package(registry: Registry) -> None:
    assert registry._home == f"o2td.{registry.kind}"
