"""Results of the honesty study (docs/data/honesty.json) as tables."""

from __future__ import annotations

import json
from typing import Any

from docs._tools.measure import ROOT

HONESTY = ROOT / "docs" / "data" / "honesty.json"
BANDIT = ROOT / "docs" / "data" / "open_bandit.json"
FIRST = ROOT / "docs" / "data" / "first_logs.json"
_POLICIES = {"random": "uniform", "bts": "Thompson sampling"}
_WORDS = ("trust", "caution", "cannot answer")


def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(HONESTY.read_text("utf-8"))
    return found


def sizes() -> str:
    """The study in one sentence."""
    study = kept()
    return (
        f"{study['answers']:,} answers on logs of {study['cells']} settings, up to {study['sets']}"
        f" each. {study['cells'] - study['settled_on']} of the settings played no part in choosing"
        " thresholds, and all logs were drawn after the thresholds had been chosen on others."
    )


def kinds() -> str:
    """Verdicts by kind of task."""
    return _words(lambda kind: not kind.startswith("defect"))


def defects() -> str:
    """Verdicts by defect, for defects that a test can see."""
    unseen = kept()["unseen"]
    return _words(lambda kind: kind.startswith("defect") and kind not in unseen)


def unseen() -> str:
    """Verdicts by defect, for defects that leave no trace."""
    hidden = kept()["unseen"]
    return _words(lambda kind: kind in hidden)


def _words(chosen: Any) -> str:
    from docs._tools.blocks import table

    study = kept()
    rows = []
    for kind, found in study["kinds"].items():
        if not chosen(kind):
            continue
        cells = [_share(found[word]) for word in _WORDS]
        before = _trusted(study["before"].get(kind))
        rows.append([kind.removeprefix("defect: "), str(found["answers"]), *cells, before])
    return table(["", "answers", *_WORDS, "*trust* in 0.1"], rows)


def _trusted(found: dict[str, Any] | None) -> str:
    return "–" if found is None else f"{found['answers']}: {_share(found['trust'])}"


def _share(found: dict[str, int]) -> str:
    return "–" if not found["of"] else f"{found['covered']} of {found['of']}"


def errors() -> str:
    """Relative mean squared errors by group."""
    from docs._tools.blocks import table

    study = kept()
    rows = []
    for group, found in study["errors"].items():
        others = [name for name in found if name != "recommended"]
        best = ", ".join(f"{name} {found[name]:.2g}" for name in others[:3])
        before = study["errors_before"].get(group, {}).get("recommended")
        shown = "–" if before is None else f"{before:.2g}"
        rows.append([group, f"{found['recommended']:.2g}", best, shown])
    return table(["group", "recommended", "best estimates", "recommended in 0.1"], rows)


def alarms() -> str:
    """False alarms, in sentences."""
    found = kept()["alarms"]
    listed = ", ".join(f"{name} {count}" for name, count in found["tests"].items()) or "none"
    return (
        f"On {found['logs']} sound logs some test failed {found['any']} times"
        f" ({found['any'] / max(found['logs'], 1):.1%}): {listed}."
    )


def time() -> str:
    """What the tests of a log cost, in a sentence."""
    found = sorted(kept()["time"].values())
    return (
        f"The tests add between {found[0]:.0%} and {found[-1]:.0%} to the processor time of everything"
        f" else that `evaluate` does, {found[len(found) // 2]:.0%} in the middle of {len(found)} logs."
    )


def candidates() -> str:
    """Relative errors of the estimators that were tried and left out, beside the recommended one's."""
    from docs._tools.blocks import table

    tried = kept()["candidates"]
    names = tried["names"]
    rows = []
    for group, found in tried["errors"].items():
        best = min(found, key=lambda name: found[name] if name not in names else float("inf"))
        shown = [f"{found['recommended']:.2g}", f"{best} {found[best]:.2g}"]
        rows.append([group, *shown, *(f"{found[name]:.2g}" for name in names)])
    return table(["group", "recommended", "best of those kept", *names], rows)


def fits() -> str:
    """Errors of LSTD by trace on given bases."""
    from docs._tools.blocks import table

    found = kept()["fits"]
    heads = [f"λ = {trace}" if trace != "auto" else '`trace="auto"`' for trace in found["traces"]]
    rows = [
        [row["task"], row["features"], *(f"{error:.2f}" for error in row["errors"])]
        for row in found["rows"]
    ]
    return table(["task", "features", *heads], rows)


def chosen() -> str:
    """Errors of the fits on the features that `evaluate` chooses."""
    from docs._tools.blocks import table

    found = kept()["chosen"]
    names = list(dict.fromkeys(name for row in found for name in row["errors"]))
    rows = [
        [
            row["task"],
            str(row["sets"]),
            *(f"{row['errors'][name]:.2f}" if name in row["errors"] else "–" for name in names),
        ]
        for row in found
    ]
    return table(["task", "logs", *names], rows)


def auto() -> str:
    """Errors and coverage of LSTD with fixed and with chosen traces."""
    from docs._tools.blocks import table

    names = ("lstd", "lstd_auto")
    rows = [
        [
            row["task"],
            str(row["sets"]),
            *(f"{row['errors'][name]:.2f}" for name in names),
            *(f"{row['covered'][name]} of {row['sets']}" for name in names),
        ]
        for row in kept()["auto"]
    ]
    covered = [f"`{name}` covers" for name in names]
    return table(["task", "logs", *(f"`{name}`" for name in names), *covered], rows)


def bandit() -> str:
    """Answers on the logs of the Open Bandit Dataset."""
    from docs._tools.blocks import table

    rows = []
    for one in json.loads(BANDIT.read_text("utf-8"))["answers"]:
        truth = f"{one['truth']:.2%} ± {1.96 * one['error']:.2%}"
        said = f"{one['value']:.2%} [{one['low']:.2%}, {one['high']:.2%}]"
        policies = [_POLICIES[one[name]] for name in ("logged", "target")]
        rows.append([one["campaign"], *policies, truth, said, one["verdict"]])
    return table(["campaign", "logged by", "asked for", "its own log", "answer", "verdict"], rows)


def first() -> str:
    """Words and coverage on logs that people try first."""
    from docs._tools.blocks import table

    rows = []
    for name, one in json.loads(FIRST.read_text("utf-8")).items():
        held = (one["trust covered"], one["covered"] - one["trust covered"])
        given = (one["trust"], one["answers"] - one["trust"])
        words = [f"{part} of {of}" if of else "–" for part, of in zip(held, given, strict=True)]
        rows.append([name, str(one["answers"]), *words])
    return table(["log", "answers", "trust", "caution"], rows)
