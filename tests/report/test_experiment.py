"""The page of an experiment that has nothing to do with the paper, from the spec to the browser."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

import o2td
from o2td import experiments
from o2td.cli import main
from o2td.errors import FormatError, InputError, O2TDError
from o2td.report.experiment import Experiment, Wording, _panels, cases_of, several
from tests.browser import WIDTHS, chromium, stumbles
from tests.report.conftest import SPEC

CAR = """
name = "car"
steps = 40
runs = 1
metrics = ["rmse"]
domain.name = "mountain_car"
features = { name = "tiles", parameters = { bins = 4, tilings = 2 } }
truth = { states = 3, rollouts = 2 }
algorithms = [{ name = "TD", parameters = { step_size = 0.01 } }]
"""


def test_the_frame_holds_every_value(folder: Path) -> None:
    frame = experiments.load(folder).frame()
    learned, solved = 7 * 10, 2
    assert len(frame) == 4 * 4 * 2 * (learned + solved)
    assert frame.equals(experiments.results(folder, "walk", spec=experiments.load_spec(SPEC)))


def test_the_page_says_what_was_run_and_no_error_is_negative(folder: Path, tmp_path: Path) -> None:
    found = experiments.load(folder)
    assert found.totals("walk").filter(diverged_share=0.0)["low"].min() < 0.0  # of some setting
    text = found.report(tmp_path / "page.html").read_text("utf-8")
    assert "random_walk(form=tabular), random_walk(form=dependent)" in text
    assert "Sensitivity to λ" in text or "against λ" in text
    assert "[−" not in text


def test_a_page_or_its_figures_that_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    found = experiments.load(folder)
    with pytest.raises(InputError, match="none: there is no such folder; create it first"):
        found.report(tmp_path / "none" / "page.html")
    (tmp_path / "file").touch()
    with pytest.raises(O2TDError, match=r"cannot be written \(File exists\); nothing was changed"):
        found.report(tmp_path / "page.html", figures=tmp_path / "file")
    with pytest.raises(InputError, match="figures must be the path"):
        found.report(tmp_path / "page.html", figures=3)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_page_shows_the_best_settings_and_says_so(folder: Path, tmp_path: Path) -> None:
    page = experiments.load(folder).report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [tmp_path / "page.html"]
    assert "<h1>Traces on a walk</h1>" in page
    assert "Best settings of the spec, tabular form, rows in order" in page
    assert "which flatters it" in page
    assert "α = 30" in page.partition("All settings")[2]
    assert "&lt;mine&gt;: a guess &amp; more" in page
    assert "<mine>" not in page


def test_last_errors_come_best_first(folder: Path) -> None:
    results = experiments.load(folder)
    case = cases_of(results.curves("walk"))[0]
    (panel,) = _panels(results.experiment("walk"), case, "shown", Wording())
    assert len(panel.lines()) == 3
    totals = case.of(results.totals("walk")).filter(metric="rmse", algorithm="TD")
    good = totals.filter(diverged_share=0.0).sort("mean")["parameters"][0]
    assert ("TD", good) in panel.lines()


def test_figures_are_saved_where_asked(tuned: Path) -> None:
    results = experiments.load(tuned)
    page = results.report(tuned / "report.html", tuned / "figures").read_text(encoding="utf-8")
    names = {path.name for path in (tuned / "figures").iterdir()}
    assert {"walk-tabular-iid.png", "walk-tabular-iid.csv"} <= names
    assert "walk-tabular-iid-sensitivity.svg" in names
    assert 'href="figures/walk-tabular-iid.csv"' in page
    assert "Tuned settings, tabular form, rows shuffled" in page


def test_the_page_says_how_it_was_made(folder: Path, tmp_path: Path) -> None:
    page = experiments.load(folder).report(tmp_path / "page.html").read_text(encoding="utf-8")
    made = page[page.index("How this was made") :]
    assert "the domain's own" in made
    assert o2td.__version__ in made
    assert version("numpy") in made
    spec = experiments.load_spec(CAR)
    experiments.run(spec, tmp_path / "car", workers=1)
    assert experiments.load(tmp_path / "car").about("car")["features"] == "tiles(bins=4, tilings=2)"
    record = tmp_path / "car" / "experiments.json"
    text = json.loads(record.read_text())
    for name in ("features", "versions"):  # as earlier versions wrote it
        del text["experiments"]["car"][name]
    record.write_text(json.dumps(text))
    old = experiments.load(tmp_path / "car").report(tmp_path / "old.html")
    assert '<td data-label="features" class="none">–</td>' in old.read_text(encoding="utf-8")
    record.unlink()
    assert experiments.load(tmp_path / "car").about("car")["features"] == "tiles(bins=4, tilings=2)"


@pytest.mark.browser
def test_the_page_reads_well(tuned: Path, tmp_path: Path) -> None:
    path = experiments.load(tuned).report(tmp_path / "page.html")
    with chromium() as browser:
        for width in WIDTHS:
            assert stumbles(browser, path, width) == []


def test_plots_are_figures(folder: Path, tuned: Path) -> None:
    assert len(experiments.load(folder).plot().axes) == 4 * 3  # two metrics and a legend a case
    assert len(experiments.load(folder).plot(kind="sensitivity").axes) == 4 * 2 * 3
    assert len(experiments.load(tuned).plot("walk").axes) == 8 * 3
    with pytest.raises(InputError, match="no 'wlak', did you mean 'walk'"):
        experiments.load(folder).plot("wlak")
    with pytest.raises(InputError, match='choose "curves" or "sensitivity"'):
        experiments.load(folder).plot(kind="pie")


def test_nothing_varied_is_said(tmp_path: Path) -> None:
    text = SPEC.replace("grid = { step_size = [0.03, 0.1, 30.0], trace = [0.0, 0.9] }", "tune = []")
    experiments.run(experiments.load_spec(text), tmp_path, workers=1)
    with pytest.raises(InputError, match="no parameter was varied"):
        experiments.load(tmp_path).plot(kind="sensitivity")


def test_running_again_does_not_forget_the_tuning(tuned: Path) -> None:
    spec = experiments.load_spec(SPEC)
    before = (tuned / "experiments.json").read_bytes()
    experiments.run(spec, tuned, workers=1)
    assert (tuned / "experiments.json").read_bytes() == before
    changed = experiments.load_spec(SPEC.replace("steps = 300", "steps = 330"))
    experiments.run(changed, tuned, workers=1)
    assert experiments.load(tuned).about("walk")["tuned"] == []


def test_a_store_without_a_record_is_read_from_its_files(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "old"
    shutil.copytree(folder, out)
    experiments.run(experiments.load_spec(SPEC.replace("[0.03, 0.1, 30.0]", "[0.2]")), out)
    (out / "experiments.json").unlink()
    results = experiments.load(out)
    assert results.experiments == ["walk", "walk (2)"]
    old, new = experiments.load(folder).frame(), [results.runs(n) for n in results.experiments]
    assert sorted(len(table) for table in new) == sorted([len(old), 4 * 4 * 2 * (3 * 10 + 2)])
    assert results.about("walk")["runs"] == 4
    with pytest.raises(InputError, match="holds no results yet"):
        experiments.load(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 1}', '{"format": 1, "experiments": [3]}'])
def test_a_damaged_record_is_one_sentence(folder: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "experiments.json").write_text(text)
    with pytest.raises(FormatError, match=r"experiments\.json: damaged"):
        experiments.load(tmp_path)


def test_a_crowded_picture_is_split(folder: Path) -> None:
    polars = pytest.importorskip("polars")
    one = experiments.load(folder).experiment("walk")
    case = cases_of(one.curves["shown"])[0]
    few = case.of(one.curves["shown"]).filter(algorithm="LSTD")
    many = polars.concat([few.with_columns(algorithm=polars.lit(f"m{k}")) for k in range(13)])
    crowd = Experiment("crowd", one.about, {"shown": many})
    panels = _panels(crowd, case, "shown", Wording())
    assert [len(panel.lines()) for panel in panels] == [7, 6]
    assert panels[1].title.endswith("methods 8 to 13 by error")
    assert not several(many)


def test_the_command_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "walk.toml").write_text(SPEC.replace("runs = 4", "runs = 1"))
    words = ["run", str(tmp_path / "walk.toml"), "--out", str(tmp_path / "out"), "--workers", "1"]
    assert main([*words, "--no-page"]) == 0
    assert not (tmp_path / "out" / "report.html").exists()
    assert "page in" not in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    page = Path(json.loads(capsys.readouterr().out)["page"])
    assert page == tmp_path / "out" / "report.html"
    assert page.stat().st_size > 10_000
