"""Pages that are made from the code: one a method, the reference, the commands, the domains.

A new algorithm, domain or public name gets its place without an edit here.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from _tools.blocks import table
from _tools.measure import GARNETS, ROOT, family
from _tools.outputs import terminal
from _tools.values import number

SNIPPETS = ROOT / "docs" / "methods"
WORDS = ROOT / "docs" / "reference"
TITLES = {
    "transitions": "Transitions",
    "problem": "Problems",
    "learners": "Learners and sweeps",
    "solvers": "Solvers",
    "sklearn": "scikit-learn",
}


def generated(data: dict[str, Any], figures: set[str]) -> dict[str, str]:
    """Markdown of every generated page by its path."""
    pages = {f"methods/{name.lower()}.md": text for name, text in _methods(data, figures)}
    pages["methods/index.md"] = _methods_index(data)
    pages["reference/commands.md"] = _commands()
    pages |= dict(_reference())
    for name in ("CONTRIBUTING", "CHANGELOG"):
        pages[f"{name.lower()}.md"] = _root_page((ROOT / f"{name}.md").read_text("utf-8"))
    return pages


def nav(pages: dict[str, str]) -> dict[str, list[Any]]:
    """Entries for the generated sections, in the order of the registries."""
    from o2td.registry import LEARNERS, SOLVERS

    reference = sorted(path for path in pages if path.startswith("reference/"))
    return {
        "Methods": [
            "methods/index.md",
            {"Online learners": [{n: f"methods/{n.lower()}.md"} for n in LEARNERS.names()]},
            {"Batch solvers": [{n: f"methods/{n.lower()}.md"} for n in SOLVERS.names()]},
        ],
        "Reference": reference,
    }


def summary(factory: Any) -> str:
    """The first line of a method's module, or of its own docstring."""
    module = inspect.getdoc(sys.modules[factory.__module__]) or inspect.getdoc(factory) or ""
    return module.split("\n")[0]


def _methods(data: dict[str, Any], figures: set[str]) -> Iterator[tuple[str, str]]:
    from o2td.registry import LEARNERS, SOLVERS

    for registry in (LEARNERS, SOLVERS):
        for name in registry.names():
            factory = registry[name]
            parts = [f"# {name}", _prose(name, factory), "## Measured here"]
            parts.append(_figures(name, figures))
            parts += [_landing(name, data), _near(name, data)]
            if registry is LEARNERS:
                parts.append(_stable(name, data))
            parts += ["## Use", _api(_path(factory), 3)]
            yield name, "\n\n".join(part for part in parts if part) + "\n"


def _figures(name: str, figures: set[str]) -> str:
    words = {
        "limits": f"Limits of {name} among those of other methods",
        "data": f"Error of {name} on the collision problem as data come in",
    }
    return "\n".join(
        f"![{alt}](../images/method-{name}-{part}.svg)"
        for part, alt in words.items()
        if f"method-{name}-{part}" in figures
    )


def _prose(name: str, factory: Any) -> str:
    """The hand-written part, or the module's own words for a method that has none."""
    written = SNIPPETS / f"{name}.md"
    if written.exists():
        return written.read_text("utf-8").strip()
    return inspect.getdoc(sys.modules[factory.__module__]) or inspect.getdoc(factory) or ""


def _landing(name: str, data: dict[str, Any]) -> str:
    """Three tables, a row a setting and a column a problem; why where there is no answer."""
    found = {p: entry["methods"] for p, entry in data["landings"].items()}
    labels = [label for label in next(iter(found.values())) if family(label) == name]
    without: dict[tuple[str, str], list[str]] = {}
    for problem, rows in found.items():
        for label in labels:
            if rows[label]["rmse"] is None:
                without.setdefault((label, rows[label]["reason"]), []).append(problem)
    notes = [f"{', '.join(p)}, `{label}`: {why}." for (label, why), p in without.items()]
    usable = [p for p in found if any(found[p][label]["rmse"] is not None for label in labels)]
    if not usable:
        return "\n".join(["It lands on none of the reference problems:", "", *_bullets(notes)])
    parts = [_LANDING, _matrix("RMSE / best", found, labels, usable, _ratio(data))]
    if any(found[p][label]["stable"] is not None for p in usable for label in labels):
        bound = lambda problem, row: number(row["max_step_size"])  # noqa: E731
        parts.append(_matrix("largest step size", found, labels, usable, bound))
    worst = lambda problem, row: number(row["amplification"])  # noqa: E731
    parts += [_matrix("amplification", found, labels, usable, worst), "\n".join(_bullets(notes))]
    return "\n\n".join(parts)


_LANDING = (
    "Exact limits on small problems, as if rows never ended. *Largest step size* is where the mean"
    " dynamics turn unstable; noise asks for less. *Amplification* is the worst RMSE / best over all"
    " rewards; a dash says that there is no direction X. *Exact*: the limit is V itself."
)


def _ratio(data: dict[str, Any]) -> Callable[[str, dict[str, Any]], str]:
    def shown(problem: str, row: dict[str, Any]) -> str:
        if row["stable"] is False:
            return "unstable"
        exact = data["landings"][problem]["about"]["best"] < 1e-9
        return "exact" if exact and row["rmse"] < 1e-9 else number(row["suboptimality"])

    return shown


def _matrix(
    title: str,
    found: dict[str, Any],
    labels: list[str],
    problems: list[str],
    cell: Callable[[str, dict[str, Any]], str],
) -> str:
    rows = []
    for label in labels:
        landed = [(p, found[p][label]) for p in problems]
        cells = ["–" if row["rmse"] is None else cell(p, row) for p, row in landed]
        rows.append([f"`{label}`", *cells])
    return table([title, *problems], rows)


def _bullets(notes: list[str]) -> list[str]:
    escape = str.maketrans({"<": "&lt;", "*": "\\*"})
    return [f"- {note.translate(escape)}" for note in dict.fromkeys(notes)]


def _near(name: str, data: dict[str, Any]) -> str:
    rows = {k: v for k, v in data["nearness"].items() if family(k) == name}
    if not rows:
        return ""
    told = (f"`{k}` {number(v['median'])} ({number(v['worst'])})" for k, v in rows.items())
    return (
        f"RMSE of the limit over that of the best approximation on {GARNETS} random off-policy"
        f" problems, median (worst): {', '.join(told)}."
    )


def _stable(name: str, data: dict[str, Any]) -> str:
    rows = {k: v for k, v in data["stability"].items() if family(k) == name}
    told = (f"`{k}` on {v['on']} and {v['off']}" for k, v in rows.items())
    return (
        f"Unstable mean dynamics among {GARNETS} on-policy and {GARNETS} off-policy random problems"
        f" (30 states, 5 features, discount 0.99): {', '.join(told)}."
    )


def _methods_index(data: dict[str, Any]) -> str:
    from o2td.registry import LEARNERS, SOLVERS

    parts = [(SNIPPETS / "Index.md").read_text("utf-8").strip()]
    for registry, title in ((LEARNERS, "Online learners"), (SOLVERS, "Batch solvers")):
        lines = ["| method | what it is | RMSE / best |", "|---|---|--:|"]
        for name in registry.names():
            near = data["nearness"].get(name, {}).get("median")
            line = summary(registry[name]).rstrip(".")
            lines.append(f"| [{name}]({name.lower()}.md) | {line} | {number(near)} |")
        parts += [f"## {title}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _reference() -> Iterator[tuple[str, str]]:
    """One page a public module; methods have their own pages, so they are linked from here."""
    import o2td

    homes: dict[str, list[str]] = {}
    for module, names in o2td._NAMES.items():
        homes[module] = list(names)
    for module in o2td._MODULES.values():
        if _exists(module):
            homes.setdefault(module, list(getattr(import_module(module), "__all__", ())))
    from o2td.registry import LEARNERS, SOLVERS

    methods = {*LEARNERS.names(), *SOLVERS.names()}
    for module, names in homes.items():
        short = module.rpartition(".")[2]
        written = WORDS / f"{short.capitalize()}.md"
        parts = [f"# {TITLES.get(short, short.capitalize())}", f"`{module}`", _about(module)]
        parts += [written.read_text("utf-8").strip()] if written.exists() else []
        owned = import_module(module)
        own = [name for name in names if name in methods and short in ("learners", "solvers")]
        if own:
            parts.append("Each has a page: " + _links(own) + ".")
        rest = [name for name in _extended(owned, names) if name not in methods]
        parts += [_entry(owned, name) for name in rest]
        yield f"reference/{short}.md", "\n\n".join(part for part in parts if part) + "\n"


def _extended(module: Any, names: list[str]) -> list[str]:
    """The names that a package lists as public beside those that stand in o2td itself."""
    more = [n for n in getattr(module, "__all__", ()) if n not in names]
    return [*names, *more]


def _links(names: list[str]) -> str:
    return ", ".join(f"[`{name}`](../methods/{name.lower()}.md)" for name in names)


def _about(module: str) -> str:
    text = inspect.getdoc(import_module(module)) or ""
    from _tools.doctests import fenced

    return fenced(text)


def _entry(module: Any, name: str) -> str:
    value = getattr(module, name)
    if inspect.isclass(value) or callable(value):
        return _api(_path(value), 2) if hasattr(value, "__module__") else ""
    if inspect.ismodule(value):
        return ""
    shown = ", ".join(map(str, value)) if isinstance(value, (tuple, list)) else repr(value)
    shown = shown if len(shown) < 300 else f"{type(value).__name__} of {len(value)} entries"
    return f"## {name}\n\n`{shown}`"


def _path(value: Any) -> str:
    value = getattr(value, "py_func", value)
    return f"{value.__module__}.{value.__qualname__}"


def _api(path: str, level: int) -> str:
    return f"::: {path}\n    options:\n      heading_level: {level}"


def _exists(module: str) -> bool:
    found = find_spec(module)
    return found is not None and found.origin is not None


def _commands() -> str:
    """What each command says of itself."""
    from o2td.cli.main import COMMANDS

    parts = ["# Commands", "Each command tells its options with `--help`; this is what they say."]
    for name, (module, _) in COMMANDS.items():
        if _exists(module):
            parts.append(f"## o2td {name}\n\n```text\n{_help(name)}\n```")
    parts.append(
        "Exit codes: 0 done; 1 done, and the answer is no; 2 the input or the usage is wrong, with"
        " one sentence on stderr; 130 interrupted."
    )
    return "\n\n".join(parts) + "\n"


def _help(name: str) -> str:
    from o2td.cli.main import main

    said = io.StringIO()
    with terminal(84), contextlib.redirect_stdout(said):
        main([name, "--help"])
    return "\n".join(line.rstrip() for line in said.getvalue().strip().split("\n"))


def _root_page(text: str) -> str:
    """A file of the repository's root as a page: links into docs/ stay, others become words."""

    def link(match: re.Match[str]) -> str:
        words, target = match[1], match[2]
        if target.startswith(("http", "#")):
            return match[0]
        if target.startswith("docs/") and target.endswith(".md"):
            return f"[{words}]({target.removeprefix('docs/')})"
        return words

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)]+)\)", link, text)
