"""Checks of a spec beyond its types: known names, plain values, feasible sizes.

Sizes are rejected by arithmetic alone, before anything is expanded, allocated or imported.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from math import isfinite, prod
from typing import TYPE_CHECKING, Any

from o2td.errors import InputError

if TYPE_CHECKING:
    from o2td.experiments.spec import Spec

MAX_DOTS = 64  # in one line, decimal points aside
MAX_CELLS = 10_000  # settings of all algorithms together
MAX_CASES = 1_000  # combinations of domain parameters and schemes
MAX_WORK = 10**14  # cells × cases × runs × steps: months on one core
MAX_RECORDS = 10**9  # values stored
MAX_SHARD_RECORDS = 2 * 10**7  # values of one shard, which are held in memory together

METRICS = (
    *("rmse", "rmspbe", "rmsbe"),  # root mean square error of value, projected Bellman, Bellman
    *("rmspbe_dann", "rmsbe_dann"),  # as the code of Dann et al. computes them
    *("theta_norm", "theta_max"),  # distance from theta*, the second one of solvers only
)
SCHEMES = ("sequential", "iid")


def check_depth(text: str) -> None:
    """Reject keys with very many parts, on which TOML parsers take quadratic time."""
    for number, line in enumerate(text.splitlines(), start=1):
        dots = re.sub(r"[0-9]\.[0-9]", "", line).count(".")
        if dots > MAX_DOTS and not line.lstrip().startswith("#"):
            raise InputError(f"line {number}: nested too deeply; a spec needs four levels")


def suggestion(word: str, known: Any, otherwise: str = "") -> str:
    """`did you mean 'nearest'?`; if nothing is near, `otherwise`, or the list if that is empty."""
    names = list(known)
    folded = {name.casefold(): name for name in names}
    close = get_close_matches(word.casefold()[:64], folded, n=1)
    if close:
        return f"did you mean {folded[close[0]]!r}?"
    return otherwise or f"choose from {', '.join(names)}"


def check(spec: Spec) -> None:
    """Check everything that the types do not, cheapest first."""
    _check_values(spec)
    for k, metric in enumerate(spec.metrics):
        _one_of(f"metrics[{k}]", metric, METRICS)
    for k, scheme in enumerate(spec.schemes):
        _one_of("scheme" if isinstance(spec.scheme, str) else f"scheme[{k}]", scheme, SCHEMES)
    for key, values in (("metrics", spec.metrics), ("scheme", spec.schemes)):
        if len(set(values)) != len(values) or not values:
            raise InputError(f"{key}: list each once, and at least one")
    labels = [entry.label or entry.name for entry in spec.algorithms]
    for k, label in enumerate(labels):
        if label in labels[:k]:
            raise InputError(
                f"algorithms[{k}].label: {short(label)!r} is used twice; give each entry its own"
            )
    if sorted(set(spec.sizes)) != spec.sizes or any(size > spec.steps for size in spec.sizes):
        raise InputError("sizes: give increasing numbers of rows, none above steps")
    if spec.interval > spec.steps:
        raise InputError(f"every: {spec.every} is more than the {spec.steps} steps")
    _check_tuning(spec)
    _check_size(spec)


def _check_tuning(spec: Spec) -> None:
    if spec.tuning is None:
        return
    if spec.tuning.seed == spec.seed:
        raise InputError("tuning.seed: equal to seed; tune on seeds other than those shown")
    if spec.tuning.metric is not None:
        _one_of("tuning.metric", spec.tuning.metric, spec.metrics)
    if not spec.tuning.grid:
        raise InputError("tuning.grid: empty; list values of at least one parameter")
    for k, entry in enumerate(spec.algorithms):
        for j, name in enumerate(entry.tune or []):
            _one_of(f"algorithms[{k}].tune[{j}]", name, spec.tuning.grid)


def _check_size(spec: Spec) -> None:
    """Reject absurd sizes by arithmetic alone: nothing is expanded before this has passed."""
    entries = spec.algorithms
    cells = sum(prod(len(values) for values in entry.grid.values()) for entry in entries)
    tried = prod(len(v) for v in spec.tuning.grid.values()) if spec.tuning is not None else 1
    if tried > 1 and cells * tried > MAX_CELLS:
        raise InputError(f"tuning.grid: {_count(cells * tried)} settings, above {MAX_CELLS:,}")
    if cells > MAX_CELLS:
        raise InputError(
            f"algorithms: {_count(cells)} settings in their grids, above {MAX_CELLS:,}"
        )
    cases = len(spec.schemes) * prod(len(values) for values in spec.domain.grid.values())
    if cases > MAX_CASES:
        raise InputError(f"domain.grid: {_count(cases)} cases, above {MAX_CASES:,}")
    work = cells * cases * spec.runs * spec.steps
    if work > MAX_WORK:
        raise InputError(
            f"runs: {spec.runs:,} runs × {spec.steps:,} steps × {cells * cases:,} settings are"
            f" {work:.0e} steps, above the limit of {MAX_WORK:.0e}"
        )
    each = max(spec.steps // spec.interval, len(spec.sizes)) * len(spec.metrics)
    shard = cells * tried * each * (spec.runs_per_shard or 10)
    if shard > MAX_SHARD_RECORDS or cells * cases * spec.runs * each > MAX_RECORDS:
        raise InputError(
            f"every: {cells * cases * spec.runs * each:.0e} values would be stored; record less"
        )


def _check_values(spec: Spec) -> None:
    """Parameters are finite numbers, switches, plain words, and the two step-size forms."""
    tables = [("domain", spec.domain.parameters, spec.domain.grid)]
    if spec.features is not None:
        tables.append(("features", spec.features.parameters, {}))
    for k, entry in enumerate(spec.algorithms):
        tables.append((f"algorithms[{k}]", entry.parameters, entry.grid))
    if spec.tuning is not None:
        tables.append(("tuning", {}, spec.tuning.grid))
    for where, parameters, grid in tables:
        colon = where.startswith(("algorithms", "tuning"))
        for key, value in parameters.items():
            _check_key(f"{where}.parameters", key)
            if where == "domain" and key == "seed":
                raise InputError("domain.parameters.seed: write it as domain.seed")
            _check_value(f"{where}.parameters.{key}", value, colon)
        for key, values in grid.items():
            _check_key(f"{where}.grid", key)
            if not values:
                raise InputError(f"{where}.grid.{key}: empty; list at least one value")
            if key in parameters:
                raise InputError(f"{where}.grid.{key}: also under parameters; keep one of them")
            for k, value in enumerate(values):
                _check_value(f"{where}.grid.{key}[{k}]", value, colon)
                if value in values[:k]:
                    raise InputError(f"{where}.grid.{key}[{k}]: {value!r} is listed twice")


def _check_key(where: str, key: str) -> None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,63}", key):
        raise InputError(f"{where}: {short(key)!r} is not the name of a parameter")


def _check_value(where: str, value: Any, colon: bool) -> None:
    if isinstance(value, str):
        # Plain words only: nothing that could be a path, a module or an expression.
        pattern = r"[A-Za-z0-9][A-Za-z0-9_+.-]*" + (r"(:[A-Za-z0-9_+.-]+)?" if colon else "")
        if len(value) > 64 or ".." in value or not re.fullmatch(pattern, value):
            raise InputError(f"{where}: {short(value)!r} is not a plain word")
    elif isinstance(value, dict):
        _check_form(where, value)
    elif isinstance(value, list):
        if len(value) > 10_000:
            raise InputError(f"{where}: {len(value):,} numbers, above 10,000")
        for k, number in enumerate(value):
            _check_number(f"{where}[{k}]", number)
    else:
        _check_number(where, value)


def _check_form(where: str, value: dict[str, Any]) -> None:
    if value.keys() == {"power"} and isinstance(value["power"], list) and len(value["power"]) == 2:
        for k, number in enumerate(value["power"]):
            _check_number(f"{where}.power[{k}]", number)
    elif value.keys() == {"ratio"}:
        _check_number(f"{where}.ratio", value["ratio"])
    else:
        raise InputError(f"{where}: a table here is {{power = [c, p]}} or {{ratio = number}}")


def _check_number(where: str, value: Any) -> None:
    if not isinstance(value, (bool, int, float)):
        raise InputError(f"{where}: expected a number, a switch or a word, got {_kind(value)}")
    if isinstance(value, float) and not isfinite(value):
        raise InputError(f"{where}: {value} is not a finite number")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise InputError(f"{where}: the number does not fit in 64 bits")


def _one_of(where: str, word: str, known: Any) -> None:
    if word not in known:
        raise InputError(f"{where}: no {word!r}, {suggestion(word, known)}")


def _kind(value: Any) -> str:
    return {"list": "a list", "dict": "a table", "str": "text"}.get(
        type(value).__name__, f"a {type(value).__name__}"
    )


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**12 else "more than 10^12"


def short(text: str) -> str:
    """The text, shortened if it is long: an error shows a hostile key but not all of it."""
    return text if len(text) <= 60 else text[:57] + "..."
