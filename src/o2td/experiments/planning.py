"""From a spec to shards: pieces of work, each named by the digest of everything that determines it.

A shard is one run (or a few short ones) of one case, with every setting of every algorithm on one
shared stream of transitions. Its key is a JSON document; its id is the key's digest. Equal keys
give equal files, no matter who computes them and in which order.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from o2td._version import __version__
from o2td.arguments import instance
from o2td.errors import InputError
from o2td.experiments.spec import AlgorithmSpec, Spec
from o2td.experiments.validate import suggestion
from o2td.registry import DOMAINS, FEATURES, LEARNERS, SOLVERS, Registry

FORMAT = 1  # of keys and files; a change makes all stored results foreign
_BATCHES = (1, 2, 5, 10)  # divisors of 20 and 200, so that profiles share their shards
_WORTHWHILE = 0.1  # seconds of work in a shard


@dataclass(frozen=True)
class Shard:
    """One piece of work: its key (canonical JSON) and the key's digest."""

    key: str
    id: str
    runs: int
    seconds: float  # a rough guess of the time it takes

    @classmethod
    def of(cls, key: dict[str, Any], seconds: float) -> Shard:
        """The shard with this key, whose runs take `seconds` each."""
        text, runs = canonical(key), key["runs"][1] - key["runs"][0]
        return cls(text, digest(text), runs, runs * seconds)


@dataclass(frozen=True)
class ProblemCase:
    """One combination of domain parameters and sampling scheme."""

    domain: dict[str, Any]
    features: dict[str, Any] | None
    scheme: str


@dataclass(frozen=True)
class Cell:
    """One setting of one algorithm."""

    kind: str
    name: str
    label: str
    parameters: dict[str, Any]
    starts: str = "kept"


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, shortest exact numbers.

    >>> canonical({"b": 0.1, "a": [1, True]})
    '{"a":[1,true],"b":0.1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """32 hexadecimal digits that name a key.

    >>> digest("{}") == digest("{}") != digest("[]")
    True
    """
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def plan(spec: Spec) -> list[Shard]:
    """All shards of a spec, in the order in which they are best run.

    >>> from o2td.experiments.spec import load_spec
    >>> spec = load_spec('''
    ... name = "walk"
    ... steps = 100
    ... runs = 20
    ... metrics = ["rmse"]
    ... domain.name = "random_walk"
    ... algorithms = [{ name = "TD", grid = { step_size = [0.01, 0.1] } }]
    ... ''')
    >>> [shard.runs for shard in plan(spec)]
    [10, 10]
    """
    settings = cells(spec)
    return [s for case in cases(spec) for s in shards(spec, case, settings, spec.name, spec.runs)]


def labelled(part: dict[str, Any]) -> str:
    """A domain or a feature map with its parameters, as readers see it.

    >>> labelled({"name": "garnet", "parameters": {"states": 30, "features": 5}})
    'garnet(features=5, states=30)'
    """
    inside = ", ".join(f"{name}={value}" for name, value in sorted(part["parameters"].items()))
    return f"{part['name']}({inside})"


def shards(
    spec: Spec,
    case: ProblemCase,
    settings: Sequence[Cell],
    name: str,
    runs: int,
    seed: int | None = None,
) -> list[Shard]:
    """The shards of one case with the given settings."""
    key = {
        "format": FORMAT,
        "version": __version__,
        "experiment": name,
        "domain": case.domain,
        "features": case.features,
        "scheme": case.scheme,
        "double": spec.double,
        "truth": msgspec.structs.asdict(spec.truth),
        "steps": spec.steps,
        "every": spec.interval,
        "sizes": spec.sizes or [spec.steps],
        "metrics": spec.metrics,
        "cells": [vars(cell) for cell in settings],
        "seed": spec.seed if seed is None else seed,
    }
    seconds = _seconds(spec, settings)
    enough = (size for size in _BATCHES if size * seconds >= _WORTHWHILE)
    size = spec.runs_per_shard or next(enough, _BATCHES[-1])
    return [
        Shard.of({**key, "runs": [first, min(first + size, runs)]}, seconds)
        for first in range(0, runs, size)
    ]


def cases(spec: Spec) -> list[ProblemCase]:
    """All combinations of domain parameters and schemes, names and parameters checked."""
    name, factory = _lookup("domain.name", spec.domain.name, DOMAINS)
    accepted = _parameters(factory)
    features = None
    if spec.features is not None:
        if "features" not in accepted:
            raise InputError(f"features: the domain {name} has its own; leave them out")
        feature, maker = _lookup("features.name", spec.features.name, FEATURES)
        _check_known("features", spec.features.parameters, _parameters(maker))
        _check_complete("features", spec.features.parameters, maker)
        features = {"name": feature, "parameters": spec.features.parameters}
    given = [*spec.domain.parameters, *spec.domain.grid]
    _check_known("domain", given, accepted)
    _check_complete("domain", [*given, "seed", "features"], factory)
    if spec.domain.seed is not None and "seed" not in accepted:
        raise InputError(f"domain.seed: {name} is not random; leave it out")
    return [
        ProblemCase(
            {"name": name, "parameters": chosen, "seed": spec.domain.seed}, features, scheme
        )
        for scheme in spec.schemes
        for chosen in combinations(spec.domain.parameters, spec.domain.grid)
    ]


def cells(spec: Spec) -> list[Cell]:
    """All settings of all algorithms, names and parameters checked."""
    instance("spec", spec, Spec, "a Spec, such as load_spec gives")
    found = []
    for k, entry in enumerate(spec.algorithms):
        kind, name, accepted = algorithm(k, entry)
        _check_known(f"algorithms[{k}]", [*entry.parameters, *entry.grid], accepted)
        for chosen in combinations(entry.parameters, entry.grid):
            found.append(
                Cell(kind, name, entry.label or name, scaled(k, chosen), starts=entry.starts)
            )
    return found


def algorithm(k: int, entry: AlgorithmSpec) -> tuple[str, str, list[str]]:
    """Kind (`learner` or `solver`), registered name and accepted parameters of an entry."""
    if entry.name in LEARNERS:
        name, factory = _lookup(f"algorithms[{k}].name", entry.name, LEARNERS)
        return "learner", name, _parameters(factory)
    if entry.name in SOLVERS:
        name, factory = _lookup(f"algorithms[{k}].name", entry.name, SOLVERS)
        return "solver", name, _parameters(factory)
    known = [*LEARNERS.names(), *SOLVERS.names()]
    advice = suggestion(entry.name, known, "o2td algorithms lists all of them")
    raise InputError(f"algorithms[{k}].name: no {entry.name!r}, {advice}")


def combinations(fixed: dict[str, Any], grid: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """`fixed` with every choice of one value from each list of `grid`.

    >>> list(combinations({"a": 1}, {"b": [2, 3]}))
    [{'a': 1, 'b': 2}, {'a': 1, 'b': 3}]
    """
    for values in itertools.product(*grid.values()):
        yield {**fixed, **dict(zip(grid, values, strict=True))}


def scaled(k: int, parameters: dict[str, Any]) -> dict[str, Any]:
    """Replace `{ratio = r}` by r times the step size, a number that the record can show."""
    result = dict(parameters)
    for key, value in parameters.items():
        if isinstance(value, dict) and "ratio" in value:
            step_size = parameters.get("step_size")
            if isinstance(step_size, bool) or not isinstance(step_size, (int, float)):
                raise InputError(
                    f"algorithms[{k}].parameters.{key}: a ratio needs a step_size that is a number"
                )
            result[key] = value["ratio"] * step_size
    return result


def _seconds(spec: Spec, settings: Sequence[Cell]) -> float:
    """A guess of a run's time from the spec alone: a measured time would change ids."""
    solvers = sum(cell.kind == "solver" for cell in settings)
    learners = len(settings) - solvers
    drawn = 0.1 if spec.domain.seed == "run" else 0.0
    fitted = 5e-3 * solvers * max(1, len(spec.sizes))
    return drawn + fitted + spec.steps * (1e-7 + 2e-7 * learners)


def _lookup(where: str, name: str, registry: Registry) -> tuple[str, Any]:
    try:
        factory = registry[name]
    except InputError as error:
        raise InputError(f"{where}: {str(error).partition(': ')[2]}") from None
    shown = next(known for known in registry if _fold(known) == _fold(name))
    return shown, factory


def _fold(name: str) -> str:
    return name.casefold().replace("_", "-")


def _parameters(factory: Any) -> list[str]:
    found = inspect.signature(factory).parameters.values()
    return [p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def _check_known(where: str, given: Any, accepted: Sequence[str]) -> None:
    for key in given:
        if key not in accepted:
            raise InputError(f"{where}: no parameter {key!r}, {suggestion(key, accepted)}")


def _check_complete(where: str, given: Any, factory: Any) -> None:
    for p in inspect.signature(factory).parameters.values():
        named = p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        if named and p.default is p.empty and p.name not in given:
            raise InputError(f"{where}.parameters: {p.name} is missing; give it a value")
