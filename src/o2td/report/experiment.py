"""A page from any experiment's tables: learning curves, sensitivity curves and the numbers.

Takes only tables and plain values, so that any results can be drawn: a user's own experiment, or a
paper's with its own wording (:class:`Wording`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from o2td.atomic import write_bytes, writing
from o2td.errors import InputError, LateModule
from o2td.report.cases import LabelledCase, cases_of
from o2td.report.curves import METRICS, Panel, columns, draw_columns, final_rows
from o2td.report.drawing import Folder, styled, svg
from o2td.report.page import (
    Block,
    Details,
    Heading,
    Items,
    Page,
    Picture,
    Section,
    SideBySide,
    Table,
    Text,
)
from o2td.report.ranking import CROWDED, best, ends, ranked, several, shares, without
from o2td.report.sensitivity import at_the_edge, sensitivity_figure, sensitivity_panels, varied
from o2td.report.style import pretty, symbol
from o2td.report.truth_error import sentence

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

polars = LateModule("polars", "experiments")

_MOST_CASES = 12  # cases that are drawn; the files have all
_PANELS = (
    " The lower panel leaves out settings with a diverged run, whose share is in the upper one, where"
    " equal shares lie on top of each other. A curve that leaves the picture continues above it."
)
SENSITIVITY = f"Tuning runs, on separate seeds.{_PANELS}"
_OWN_GRID = f"How the error at the end depends on the settings.{_PANELS}"
_CHOSEN = (
    "Where a method was run with several settings, the curve is that of the least error at the end"
    " on these very runs, which flatters it; `--tune` chooses on other seeds."
)


@dataclass(frozen=True)
class Experiment:
    """Everything that a report shows of an experiment.

    `about` holds title, notes, runs, steps and seeds; `curves` a table for each way, `"shown"` and
    `"tuned"`, with mean and interval at every recorded step; `tried` what tuning tried; `truth`
    how true values were sampled.
    """

    name: str
    about: dict[str, Any]
    curves: dict[str, pl.DataFrame]
    tried: pl.DataFrame | None = None
    truth: dict[str, Any] | None = None


@dataclass(frozen=True)
class Wording:
    """A section's names for the two ways of choosing settings, and what it shows of them.

    `short` is the settings' name in the tables' files; `settings` heads their column, which
    has all settings with `every`. A crowded picture omits the methods in `leave_out`; without these
    it is split. Sensitivity is drawn for `parameters`, or for all that vary. With `best_first` the
    last errors are sorted and in view; else they are behind a heading, in the order of the spec.
    """

    shown: str = "Settings of the spec"
    best: str = "Best settings of the spec"
    tuned: str = "Tuned settings"
    short: str = "given"
    settings: str = "settings"
    every: bool = True
    leave_out: tuple[str, ...] = ()
    parameters: tuple[str, ...] | None = None
    notes: str = "Notes"
    best_first: bool = True

    def title(self, way: str, best: bool = False) -> str:
        """The words for a way; `best` if the best of several settings is shown."""
        return self.tuned if way == "tuned" else self.best if best else self.shown


def write_page(path: Path, experiments: Sequence[Experiment], figures: Path | None) -> Path:
    """Write one page of these experiments, and the figures' files if there is a folder."""
    folder, wording = Folder(figures), Wording()
    with styled():
        if len(experiments) == 1:
            parts = _parts(experiments[0], folder, wording)
            sections = [Section(_anchor(title), title, blocks) for title, blocks in parts.items()]
        else:
            sections = [section(one, folder) for one in experiments]
    first = experiments[0]
    page = Page(
        (first.about["title"] or first.name) if len(experiments) == 1 else "Results",
        _lead(first) if len(experiments) == 1 else f"{len(experiments)} experiments.",
        [*sections, _made(experiments)],
        "Numbers in brackets are 95 % intervals over runs. A run has diverged once a weight exceeds"
        " 10¹⁵⁰; until then its error counts, however large."
        + (f" The figures' numbers are in {figures.name}/*.csv." if figures is not None else ""),
    )
    made = page.html().encode()
    with writing(path):
        write_bytes(path, made)
    return path


def plot(experiment: Experiment, kind: str = "curves") -> Figure:
    """One figure of an experiment: `kind` is "curves" or "sensitivity"."""
    wording = Wording()
    with styled():
        if kind == "curves":
            return columns([p for group in _groups(experiment, wording) for p in group.panels])
        if kind != "sensitivity":
            raise InputError(f'kind: {kind!r}; choose "curves" or "sensitivity"')
        panels = [
            (f"{case.words}".lstrip(", ") or experiment.name, own, parameter)
            for case, own, parameter in _sensitivities(experiment, wording)
        ]
        if not panels:
            raise InputError(
                f"{experiment.name}: no parameter was varied; give a grid, or run with --tune"
            )
        return sensitivity_figure(panels)


def section(
    experiment: Experiment, folder: Folder, lead: str = "", wording: Wording | None = None
) -> Section:
    """Learning curves of every case, as given and tuned, with sensitivity and the last errors."""
    about = experiment.about
    made = Section(_anchor(experiment.name), about["title"] or experiment.name)
    made.add(Text(f"{lead} {_lead(experiment)}".strip()))
    for title, blocks in _parts(experiment, folder, wording or Wording()).items():
        made.add(*([Heading(title)] if wording is None else []), *blocks)
    return made


def _lead(experiment: Experiment) -> str:
    known = sentence(next(iter(experiment.curves.values())), experiment.truth)
    return f"{how(experiment.about)} {known}".strip()


def _parts(experiment: Experiment, folder: Folder, wording: Wording) -> dict[str, list[Block]]:
    """The blocks of an experiment, by what they show."""
    curves: list[Block] = []
    cases = cases_of(next(iter(experiment.curves.values())))
    if any(several(table) for table in experiment.curves.values()):
        curves.append(Text(_CHOSEN))
    if len(cases) > _MOST_CASES:
        curves.append(Text(f"The first {_MOST_CASES} of {len(cases)} cases are drawn."))
    for group in _groups(experiment, wording):
        curves += _side_by_side(folder, group, experiment, wording)
    parts = {"Error along the run": curves}
    pictures: dict[LabelledCase, list[Block]] = {}
    for case, own, name in _sensitivities(experiment, wording):
        label = experiment.name + case.suffix
        found = sensitivity_pictures(folder, label, own, case.words, wording, name)
        pictures.setdefault(case, []).extend(found)
    if pictures:
        text = SENSITIVITY if experiment.tried is not None else _OWN_GRID
        rows = [*pictures.values()]
        if all(len(row) == 1 for row in rows):
            rows = [[picture for row in rows for picture in row]]
        parts["Error against the settings"] = [Text(text), *(SideBySide(row) for row in rows)]
    by_note: dict[str, list[str]] = {}
    for label, note in experiment.about["notes"].items():
        by_note.setdefault(note, []).append(pretty(label))
    notes = [f"{', '.join(labels)}: {note}" for note, labels in by_note.items()]
    if notes:
        parts[wording.notes] = [
            Text(f"{wording.notes}. {'; '.join(notes)}.") if wording.leave_out else Items(notes)
        ]
    return parts


def runs_and_steps(about: dict[str, Any]) -> str:
    """The number of runs and steps, and the seeds."""
    tuned = f", tuned on seed {about['tuning_seed']}" if about["sensitivity"] else ""
    return f"{about['runs']:,} runs of {about['steps']:,} steps, seed {about['seed']}{tuned}"


def how(about: dict[str, Any]) -> str:
    """How learning curves were made, and how to read them."""
    return (
        f"{runs_and_steps(about)}. Bands and brackets are 95 % intervals over runs; where a band would"
        " reach zero it is as wide below the mean as above, on the log axis. Curves that leave the"
        " picture continue outside it."
    )


def sensitivity_pictures(
    folder: Folder,
    label: str,
    tried: pl.DataFrame,
    words: str,
    wording: Wording,
    parameter: str = "step_size",
) -> list[Picture]:
    """Error and share of diverged runs against a parameter, one picture per panel.

    `words` end the titles. The files hold all panels.
    """
    crowded = tried["algorithm"].n_unique() > CROWDED
    tried_shown = without(tried, wording.leave_out) if crowded else tried
    plain = parameter == "step_size"
    name = f"{label}-sensitivity" if plain else f"{label}-sensitivity-{parameter}"
    what = "the step size" if plain else symbol(parameter)
    title = f"Sensitivity to {what}{words}"
    panels = [(title, tried_shown, parameter)]
    folder.save(sensitivity_figure(panels), name)
    folder.table(tried, name)
    files = folder.files(name, "png", "svg", "csv")
    alt = f"Diverged runs and error against {what}, {name}"
    return [Picture(svg(one), alt, "", files) for one in sensitivity_panels(panels)]


# -- learning curves -------------------------------------------------------------------------------


class _Group(NamedTuple):
    """Panels side by side in one figure, and the cases that they show."""

    label: str
    cases: list[LabelledCase]
    panels: list[Panel]


def _groups(experiment: Experiment, wording: Wording) -> Iterator[_Group]:
    """The two ways of choosing settings side by side, or the cases if there is one way."""
    ways = list(experiment.curves)
    cases = cases_of(experiment.curves[ways[0]])[:_MOST_CASES]
    for group in [[case] for case in cases] if len(ways) > 1 else [cases]:
        label = experiment.name + (group[0].suffix if len(ways) > 1 else "")
        panels = [
            panel
            for case in group
            for way in ways
            for panel in _panels(experiment, case, way, wording)
        ]
        yield _Group(label, group, panels)


def _panels(experiment: Experiment, case: LabelledCase, way: str, wording: Wording) -> list[Panel]:
    """One panel, or several if one would be crowded."""
    table = case.of(experiment.curves[way])
    title = wording.title(way, several(table)) + case.words
    table = best(table)
    algorithms = table["algorithm"].unique(maintain_order=True).to_list()
    if len(algorithms) <= CROWDED:
        return [Panel(title, table, every=wording.every)]
    if wording.leave_out:
        solvers = [a for a in algorithms if table.filter(algorithm=a)["step"].n_unique() == 1]
        shown = without(table, (*wording.leave_out, *solvers))
        return [Panel(title, shown, every=wording.every)]
    order = [row["algorithm"] for row in ends(table).sort("diverged_share", "mean").to_dicts()]
    return [
        Panel(
            f"{title}, methods {first + 1} to {last} by error",
            table.filter(polars.col("algorithm").is_in(order[first:last])),
            every=wording.every,
        )
        for first, last in shares(len(order))
    ]


def _side_by_side(
    folder: Folder, group: _Group, experiment: Experiment, wording: Wording
) -> list[Block]:
    """The panels as pictures side by side, and their final errors as tables."""
    pictures = draw_columns(folder, group.label, group.panels)
    files = folder.files(group.label, "png", "svg", "csv")
    shown = [
        Picture(data, f"Error along the run, {panel.title.lower()}", "", files)
        for data, panel in zip(pictures, group.panels, strict=True)
    ]
    tables, frames = [], []
    for case in group.cases:
        for way, curves in experiment.curves.items():
            table = case.of(curves)
            short = "tuned" if way == "tuned" else wording.short
            frames.append(table.with_columns(step_sizes=polars.lit(short)))
            tables.append(_last_errors(table, case, way, experiment, wording))
    folder.table(polars.concat(frames), group.label)
    if not wording.best_first:
        return [SideBySide(shown), Details(f"Numbers, {group.label}", tables)]
    every = sum(len(table.rows) for table in tables)
    first = [
        _last_errors(ranked(best(own)), case, way, experiment, wording, best=several(own))
        for case in group.cases
        for way, curves in experiment.curves.items()
        for own in [case.of(curves)]
    ]
    more = [] if every == sum(len(table.rows) for table in first) else tables
    return [SideBySide(shown), *first, *([Details("All settings", more)] if more else [])]


def _last_errors(
    table: pl.DataFrame,
    case: LabelledCase,
    way: str,
    experiment: Experiment,
    wording: Wording,
    best: bool = False,
) -> Table:
    """The final error of every setting, with those at the edge of the tuning grid marked."""
    tried = experiment.tried if way == "tuned" else None
    edge = at_the_edge(case.of(tried)) if tried is not None else set()
    panel = Panel("", table, every=wording.every)
    names = ["method", wording.settings, *(METRICS.get(m, m) for m in panel.metrics)]
    names.append("diverged runs")
    title = wording.title(way, best) + case.words
    words = f"{title}: error at the end, mean and 95 % interval over finite runs"
    return Table(names, final_rows(panel, edge), words, names[2:], stack=wording.best_first)


# -- sensitivity -----------------------------------------------------------------------------------


def _sensitivities(
    experiment: Experiment, wording: Wording
) -> Iterator[tuple[LabelledCase, pl.DataFrame, str]]:
    """Every case with its table of scores and the parameter on the axis.

    The scores are those of tuning or, if nothing was tuned, the final errors of the spec's grid.
    """
    table = experiment.tried
    if table is None and "shown" not in experiment.curves:
        return
    if table is None:
        table = ends(experiment.curves["shown"]).with_columns(score=polars.lit("final"))
    cases = cases_of(next(iter(experiment.curves.values())))
    for case in cases[:_MOST_CASES]:
        own = case.of(table)
        for name in varied(own):
            if wording.parameters is None or name in wording.parameters:
                yield case, own, name


# -- how it was made -------------------------------------------------------------------------------


def _made(experiments: Sequence[Experiment]) -> Section:
    names = ["experiment", "domain", "features", "runs", "steps", "seed", "seed of tuning"]
    rows = []
    for one in experiments:
        domains = next(iter(one.curves.values()))["domain"].unique(maintain_order=True)
        seeds = [str(one.about["tuning_seed"]) if one.about["sensitivity"] else "–"]
        counts = (f"{one.about[key]:,}" for key in ("runs", "steps"))
        features = one.about.get("features", "–") or "the domain's own"
        row = [one.name, ", ".join(domains), features, *counts, str(one.about["seed"]), *seeds]
        rows.append(row)
    made = Section("made", "How this was made").add(
        Table(
            names, rows, "Seeds: equal seeds and versions give equal bytes", names[3:], stack=True
        )
    )
    known = [one.about.get("versions", {}) for one in experiments]
    packages = dict.fromkeys(name for one in known for name in one)
    versions = [
        [name, ", ".join(dict.fromkeys(one[name] for one in known if name in one))]
        for name in packages
    ]
    return made.add(Table(["package", "version"], versions, "Versions")) if versions else made


def _anchor(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
