"""The targets of `fuzz_calls.py`: everything public, found by walking modules and signatures."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

SKLEARN = ("X", "y", "sample_weight")

# Hooks that authors of learners write and only the package calls, with arrays that it made and checked;
# `o2td.checks` tests those of a plug-in. `step` is compiled, and the other two are in its inner loop.
HOOKS = {"Learner": {"correction", "step", "trace_decay"}, "Rule": {"step"}}
# These work for minutes if nothing is wrong, so they get a few seconds in which to refuse.
LONG = {"reproduce", "run_studies", "tune"}
# These draw pictures for a second if nothing is wrong, so only one in ten of their calls is made.
DRAWS = {"plot", "report", "reproduce"}


class Target(NamedTuple):
    """Something to call: `make` returns the callable, `text` is its source."""

    owner: str
    name: str
    text: str
    make: Callable[[], Any]
    signature: inspect.Signature
    exempt: tuple[str, ...] = ()


# -- what there is to call -------------------------------------------------------------------------


def public(module: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Public names of a module and of the modules among them, each object once."""
    seen: set[int] = set()
    todo = [(module, path)]
    while todo:
        holder, where = todo.pop()
        for name in sorted(getattr(holder, "__all__", [])):
            value = getattr(holder, name)
            if isinstance(value, types.ModuleType):
                todo.append((value, f"{where}.{name}"))
            elif id(value) not in seen:
                seen.add(id(value))
                yield f"{where}.{name}", value


def targets() -> list[Target]:
    import o2td
    from o2td import registry

    found: list[Target] = []
    for path, value in public(o2td, "o2td"):
        found += of_class(path, value) if inspect.isclass(value) else of_function(path, value)
    for table in ("LEARNERS", "SOLVERS", "DOMAINS", "FEATURES"):
        known = {one.text for one in found}
        for name in getattr(registry, table).names():
            value = getattr(registry, table)[name]
            path = f"o2td.registry.{table}[{name!r}]"
            if not any(text.endswith(f".{value.__name__}") for text in known):
                found += (
                    of_class(path, value) if inspect.isclass(value) else of_function(path, value)
                )
    return found


def signature(value: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None


def of_function(path: str, value: Any) -> Iterator[Target]:
    name = path.rpartition(".")[2]
    found = signature(value) if callable(value) else None
    if found is not None:
        yield Target(name, name, path, lambda: value, found)


def of_class(path: str, kind: Any) -> Iterator[Target]:
    if issubclass(kind, Exception) or inspect.isabstract(kind) or getattr(kind, "_is_protocol", 0):
        return
    found = signature(kind)
    exempt = SKLEARN if "sklearn" in path else ()
    if found is not None:
        yield Target(kind.__name__, "", path, lambda: kind, found)
    hooks = {one for base in kind.__mro__ for one in HOOKS.get(base.__name__, ())}
    for name, method in inspect.getmembers(kind, callable):
        if name.startswith("_") or name in hooks:
            continue
        if not getattr(method, "__module__", "o2td").startswith("o2td"):
            continue
        plain = isinstance(inspect.getattr_static(kind, name), (classmethod, staticmethod))
        found = signature(method)
        for make, text in [(lambda: kind, path)] if plain else subjects(kind):
            if found is not None:
                taken = list(found.parameters.values())
                rest = found if plain else found.replace(parameters=taken[1:])
                bound = partial(lambda make, name: getattr(make(), name), make, name)
                yield Target(kind.__name__, name, f"{text}.{name}", bound, rest, exempt)
    if getattr(kind, "__getitem__", None) and not hasattr(kind, "_fields"):
        one = inspect.Parameter("rows", inspect.Parameter.POSITIONAL_ONLY)
        for make, text in subjects(kind):
            bound = partial(lambda make: make().__getitem__, make)
            yield Target(
                kind.__name__, "[]", f"{text}.__getitem__", bound, inspect.Signature([one])
            )


def subjects(kind: Any) -> list[tuple[Callable[[], Any], str]]:
    """Objects of a class whose methods to call, each with the source that makes it."""
    import benchmarks.fuzz_values as v
    from o2td import features, registry
    from o2td.learners.base import Learner
    from o2td.solvers.base import Solver

    name = kind.__name__
    by_name: dict[str, list[Any]] = {
        "Transitions": [v.batch, v.sparse_batch, v.table_batch], "Problem": [v.problem, v.walk],
        "SimulatedProblem": [v.car], "LogSource": [v.log_source], "LogRows": [v.log_rows],
        "Evaluation": [v.answer], "Comparison": [v.comparison],
        "ValueModel": [v.value_model], "Spec": [v.spec], "Store": [v.store],
        "Quadratic": [v.quadratic], "ValueRegressor": [v.regressor, v.fitted_regressor],
        "Lane": [v.lane], "BehaviorModel": [v.behavior_model],
    }  # fmt: skip
    if name in by_name:
        return [(one, f"{one.__name__}()") for one in by_name[name]]
    for base, table, recipes in (
        (Learner, registry.LEARNERS, [v.learner, v.learned]),
        (Solver, registry.SOLVERS, [v.solver, v.solved]),
        (features.Transformer, registry.FEATURES, [v.feature_map, v.fitted_map]),
    ):
        if issubclass(kind, base):
            own = [key for key in table.names() if table[key] is kind]
            return [(partial(one, own[0]), f"{one.__name__}({own[0]!r})") for one in recipes if own]
    return []
