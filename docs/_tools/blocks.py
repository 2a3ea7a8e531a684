"""Tables that pages hold between markers, by name: `baird table`, `claims` and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from docs._tools import board, claims, compared, honesty, mutants, near, scale
from docs._tools.measure import ROOT, family
from docs._tools.values import number


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are aligned to the right."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" + "--:|" * (len(head) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def blocks(data: dict[str, Any]) -> dict[str, Callable[[], str]]:
    """Every block by name."""
    from docs._tools import pages

    return {
        **pages.made(data),
        **{f"verdict {k}": partial(claims.verdict, k) for k in range(1, 17)},
        "claims": claims.shown,
        "leaderboard table": lambda: table(*board.rows()),
        "nearness table": lambda: _nearness(data),
        "learner intervals": lambda: table(*near.intervals()),
        "near-optimal table": lambda: table(*near.lines()),
        "near-optimal textbook": lambda: table(*near.lines("textbook")),
        "near-optimal fresh": lambda: table(*near.lines("fresh")),
        "near-optimal later": lambda: table(*near.lines("later")),
        "near-optimal families": lambda: table(*near.families()),
        "stability table": lambda: _stability(data),
        "baird table": lambda: _baird(data),
        "geometry table": lambda: _geometry(data),
        "domains": _domains,
        "estimators": _estimators,
        "thresholds": _thresholds,
        "coverage table": _coverage,
        "words table": _words,
        "honesty sizes": honesty.sizes,
        "honesty kinds": honesty.kinds,
        "honesty defects": honesty.defects,
        "honesty unseen": honesty.unseen,
        "honesty errors": honesty.errors,
        "honesty alarms": honesty.alarms,
        "honesty time": honesty.time,
        "honesty candidates": honesty.candidates,
        "honesty fits": honesty.fits,
        "honesty chosen": honesty.chosen,
        "honesty auto": honesty.auto,
        "honesty bandit": honesty.bandit,
        "honesty first": honesty.first,
        "compare sizes": compared.sizes,
        "compare table": compared.shown,
        "compare best": compared.best,
        "compare by problem": compared.best_by_problem,
        "returns table": compared.returns,
        "unknown behaviour": compared.unknown,
        "mutation figure": mutants.figure,
        "mutation groups": mutants.groups,
        "mutation verdicts": mutants.verdicts,
        "mutation survivors": mutants.survivors,
        "scale clock": scale.clock,
        "scale growth": scale.growth,
        "scale measured": scale.measured,
        "scale paper": scale.paper,
        "scale ratio": scale.ratio,
    }


def _linked(label: str) -> str:
    from docs._tools.pictures import short

    return f"[{short(label)}](../methods/{family(label)}.md)"


def _nearness(data: dict[str, Any]) -> str:
    """A line for each group of methods that have the same limits."""
    from docs._tools.pictures import groups

    rows = data["nearness"]
    lines = []
    for names in groups(rows):
        first = rows[names[0]]
        told = ", ".join(map(_linked, names))
        lines.append([told, number(first["median"]), number(first["worst"])])
    return table(["method", "median", "worst"], lines)


def _stability(data: dict[str, Any]) -> str:
    rows = data["stability"]
    bad = sorted(rows, key=lambda name: (-rows[name]["on"] - rows[name]["off"], name))
    shown = [name for name in bad if rows[name]["on"] + rows[name]["off"]]
    shown += [name for name in rows if "emphasis" in name]
    lines = [[_linked(n), f"{rows[n]['on']}", f"{rows[n]['off']}"] for n in shown]
    rest = len(rows) - len(shown)
    lines.append([f"each of the other {rest}", "0", "0"])
    return table(["learner", "unstable on-policy", "unstable off-policy"], lines)


def _baird(data: dict[str, Any]) -> str:
    found = data["paper"]["baird"]
    lines = []
    for name in found["star"]["rmse"]:
        cells = [found[form][error][name] for form in ("star", "survey") for error in _ERRORS]
        lines.append([name, *map(number, cells)])
    head = [f"{error.upper()}, {form}" for form in ("star", "survey") for error in _ERRORS]
    return table(["method", *head], lines)


_ERRORS = ("rmse", "rmspbe")


def _geometry(data: dict[str, Any]) -> str:
    found = data["geometry"]
    order = sorted(found["ratio"], key=found["ratio"].__getitem__)
    lines = []
    for name in order:
        values = ", ".join(number(v) for v in found["points"][name])
        lines.append([name, f"({values})", number(found["rmse"][name])])
    return table(["point", "its value in the three states", "RMSE"], lines)


def _domains() -> str:
    import inspect

    from o2td.errors import O2TDError
    from o2td.registry import DOMAINS

    lines = []
    for name in DOMAINS.names():
        factory = DOMAINS[name]
        summary = (inspect.getdoc(factory) or "").split("\n")[0]
        try:
            problem = factory()
            size = f"{getattr(problem, 'n_states', '∞')} / {problem.d}"
        except (O2TDError, TypeError):
            size = "–"
        lines.append(f"| `{name}` | {size} | {summary} |")
    return "\n".join(["| name | states / features | what it is |", "|---|--:|---|", *lines])


def _estimators() -> str:
    """What `o2td evaluate` computes: its short names, spelled out."""
    import inspect

    from o2td.registry import ESTIMATORS

    lines = []
    for name in ESTIMATORS.names():
        known = ESTIMATORS[name]
        default = "yes" if known.recommendable else "`--all`"
        about = (inspect.getdoc(known) or "").split("\n")[0]
        lines.append(f"| `{name}` | {known.title} | {about} | {default} |")
    return "\n".join(
        ["| name | full name | what it is | by default |", "|---|---|---|---|", *lines]
    )


def _coverage() -> str:
    """How often intervals covered the truth, by kind of log."""
    rows = []
    for name, study in record().items():
        if "covers lstd" in study:
            found = [study["covers lstd"], None, study["rmse"]]
        elif "interval covers" in study:
            found = [study["interval covers"], study["with approximation error"]]
            found.append(study["rmse recommended"])
        else:
            continue
        shares = ["–" if share is None else f"{share:.1%}" for share in found[:2]]
        rows.append([name, str(study["sets"]), *shares, number(found[2])])
    head = ["logs", "data sets", "95 % interval", "with approximation error", "RMSE"]
    return table(head, rows)


def _words() -> str:
    """How often intervals covered the truth, by their verdict."""
    found = record()["words"]
    rows = []
    for verdict in ("trust", "caution", "cannot answer"):
        cells = [verdict]
        for which in ("recommended", "all"):
            hits = found.get(f"{which}, {verdict}", {"covered": 0.0, "of": 0})
            cells.append(f"{hits['covered']:.0%} of {hits['of']}" if hits["of"] else "–")
        rows.append(cells)
    return table(["verdict", "recommended estimates covered", "all estimates covered"], rows)


def record() -> dict[str, Any]:
    """What `benchmarks/coverage_record.py` made of the studies."""
    import json

    text = (ROOT / "docs" / "data" / "coverage.json").read_text("utf-8")
    record: dict[str, Any] = json.loads(text)
    return record


def _thresholds() -> str:
    """The table in the docstring of the thresholds' own module."""
    import inspect
    from importlib.util import find_spec

    if find_spec("o2td.evaluation.thresholds") is None:
        return ""
    from o2td.evaluation import thresholds

    text = inspect.getdoc(thresholds) or ""
    lines = (line for line in text.split("\n") if line.startswith("|"))
    return "\n".join(lines).replace("|---|---|", "|---|--:|", 1)
