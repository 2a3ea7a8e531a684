"""Which experiment a store's files belong to: `experiments.json`, with one entry per experiment.

An entry holds what a reader wants to know about an experiment (title, notes, features, runs, steps,
seeds, versions) and the ids of its files: `shown` (the settings of the spec), `tuned` (each algorithm
at its best) and `sensitivity` (what tuning tried). Equal specs and versions give equal bytes. A store
without the file, such as one of an earlier version, is described from the keys of its files.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from o2td._version import __version__
from o2td.atomic import folder_lock, write_bytes
from o2td.errors import FormatError, InputError
from o2td.experiments.planning import canonical, digest, labelled
from o2td.experiments.spec import Spec
from o2td.experiments.store import Store

RECORD = "experiments.json"
WAYS = ("shown", "tuned", "sensitivity")
_FORMAT = 1
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
_MAX_BYTES = 1 << 26
_PACKAGES = ("numpy", "scipy", "numba", "polars", "pyarrow", "joblib", "matplotlib")


def describe(spec: Spec, **ids: Sequence[str]) -> dict[str, Any]:
    """The entry of a spec whose files have these ids, by way."""
    return {
        "title": spec.title,
        "notes": {a.label or a.name: a.note for a in spec.algorithms if a.note},
        "features": "" if spec.features is None else labelled(msgspec.to_builtins(spec.features)),
        "runs": spec.runs,
        "steps": spec.steps,
        "seed": spec.seed,
        "tuning_seed": spec.tuning.seed if spec.tuning is not None else None,
        **{way: list(ids.get(way, ())) for way in WAYS},
    }


def versions() -> dict[str, str]:
    """Versions of o2td, of Python, and of the packages that numbers and pictures depend on."""
    found = {"o2td": __version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def keep(store: Store, spec: Spec, **ids: Sequence[str]) -> None:
    """Write the entry of a spec to the store's record, without changing other experiments' entries.

    Ways that are not given are kept if the spec is still the same, so that running an experiment
    again does not forget that it was tuned.
    """
    entry = {**describe(spec, **ids), "spec": _fingerprint(spec), "versions": versions()}
    with folder_lock(store.path):
        try:
            experiments = read_record(store.path / RECORD)["experiments"]
        except (InputError, FormatError):
            experiments = {}
        before = experiments.get(spec.name, {})
        if before.get("spec") == entry["spec"]:
            entry |= {way: before[way] for way in WAYS if way not in ids}
        record = {"format": _FORMAT, "experiments": {**experiments, spec.name: entry}}
        text = json.dumps(record, sort_keys=True, indent=1) + "\n"
        write_bytes(store.path / RECORD, text.encode())


def _fingerprint(spec: Spec) -> str:
    """A name for what a spec computes, independent of its text for readers."""
    return digest(canonical(msgspec.to_builtins(msgspec.structs.replace(spec, title=""))))


class _ExperimentEntry(msgspec.Struct):
    """What every entry must have, and what those of earlier versions lack."""

    title: str
    notes: dict[str, str]
    runs: int
    steps: int
    seed: int
    tuning_seed: int | None
    shown: list[str]
    tuned: list[str]
    sensitivity: list[str]
    features: str = ""
    versions: dict[str, str] = msgspec.field(default_factory=dict)


def read_record(path: Path) -> dict[str, Any]:
    """Read a record and check it: `experiments` is always there, `studies` may be.

    Raises
    ------
    InputError
        There is none.
    FormatError
        It is damaged, or of a newer version.
    """
    try:
        with path.open("rb") as file:
            record = json.loads(file.read(_MAX_BYTES))
        if record["format"] > _FORMAT:
            raise FormatError(f"{path}: written by a newer version; update o2td")
        msgspec.convert(record["experiments"], dict[str, _ExperimentEntry])
        msgspec.convert(record.get("studies", {}), dict[str, list[str]])
    except FileNotFoundError:
        raise InputError(f"{path.parent}: no {path.name} there") from None
    except (*_DAMAGE, msgspec.MsgspecError):  # a ValueError from msgspec 0.20 on
        raise FormatError(
            f"{path}: damaged; run the same command again to write it again"
        ) from None
    return dict(record)


def from_files(store: Store) -> dict[str, Any]:
    """A record from the keys of a store's files, if none was written.

    An experiment whose spec was changed between runs has several forms in the store: each becomes a
    separate experiment here, numbered from the second on.
    """
    forms: dict[str, dict[str, dict[str, Any]]] = {}
    for folder in ("runs", "tuning"):
        for file in store.files(folder):
            name, _, kind = file.key["experiment"].partition(":")
            way = "sensitivity" if folder == "tuning" else {"": "shown", "tuned": "tuned"}.get(kind)
            if way is not None:
                _add(forms.setdefault(name, {}), way, file.id, file.key)
    experiments = {
        name if k == 0 else f"{name} ({k + 1})": entry
        for name, found in forms.items()
        for k, entry in enumerate(found.values())
    }
    return {"format": _FORMAT, "experiments": experiments}


def _add(forms: dict[str, dict[str, Any]], way: str, name: str, key: dict[str, Any]) -> None:
    """Put a file with those of its form: equal lengths and, as shown, equal settings."""
    length = canonical([key.get(part) for part in ("steps", "every", "sizes", "double", "metrics")])
    form = length + canonical(key.get("cells")) if way == "shown" else length
    match = form if way == "shown" else next((f for f in forms if f.startswith(length)), form)
    fresh = {"title": "", "notes": {}, "runs": 0, "steps": key.get("steps", 0), "seed": 0}
    made = {
        "features": labelled(key["features"]) if key.get("features") else "",
        "versions": {"o2td": str(key.get("version", ""))},
    }
    entry = forms.setdefault(match, {**fresh, **made, "tuning_seed": None, **{w: [] for w in WAYS}})
    entry[way].append(name)
    if way == "sensitivity":
        entry["tuning_seed"] = key.get("seed")
    else:
        entry["seed"] = key.get("seed", 0)
        entry["runs"] = max(entry["runs"], key["runs"][1])
