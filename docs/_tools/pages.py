"""Pages generated from the code: one per method, the reference, the commands, the domains.

A new algorithm, domain or public name appears without an edit here.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docs._tools.blocks import table
from docs._tools.measure import GARNETS, ROOT, family
from docs._tools.outputs import terminal
from docs._tools.values import number

SNIPPETS = ROOT / "docs" / "methods"
WORDS = ROOT / "docs" / "reference"
INNER = ("o2td.learners.step_sizes",)  # modules with a page of their own that `o2td` does not list
TITLES = {
    "transitions": "Transitions",
    "problem": "Problems",
    "learners": "Learners and sweeps",
    "solvers": "Solvers",
    "step_sizes": "Step sizes",
    "sklearn": "scikit-learn",
}


def missing() -> Iterator[Path]:
    """Create the pages that nobody has written yet, and give every method's page its head and end.

    What comes from the code stands between markers, and `refresh` fills it in.
    """
    from o2td.registry import LEARNERS, SOLVERS

    for registry in (LEARNERS, SOLVERS):
        for name in registry.names():
            path = SNIPPETS / f"{name}.md"
            text = path.read_text("utf-8") if path.exists() else f"{_prose(registry[name])}\n"
            text = text if text.startswith("# ") else f"# {name}\n\n{text}"
            mark = f"<!--= measured {name} -->"
            if mark not in text:
                text = f"{text.rstrip()}\n\n## Measured here\n\n{mark}\n<!--/-->\n"
            if _written(path, text):
                yield path
    for module in homes():
        path = WORDS / f"{_short(module)}.md"
        text = path.read_text("utf-8") if path.exists() else ""
        mark = f"<!--= about {module} -->"
        if mark not in text:
            title = TITLES.get(_short(module), _short(module).capitalize())
            if _written(path, f"# {title}\n\n{mark}\n<!--/-->\n\n{text}".rstrip() + "\n"):
                yield path
    if _written(WORDS / "commands.md", None):
        yield WORDS / "commands.md"


def _written(path: Path, text: str | None) -> bool:
    """Write a page that is new or changed; without a text, only if it is missing."""
    if (text is None and path.exists()) or (path.exists() and path.read_text("utf-8") == text):
        return False
    path.write_text(text or "# Commands\n\n<!--= commands -->\n<!--/-->\n", encoding="utf-8")
    return True


def made(data: dict[str, Any]) -> dict[str, Callable[[], str]]:
    """What pages take from the code, by the name of its marker."""
    from o2td.registry import LEARNERS, SOLVERS

    found: dict[str, Callable[[], str]] = {
        "commands": _commands,
        "methods": lambda: _methods_index(data),
    }
    for registry in (LEARNERS, SOLVERS):
        for name in registry.names():
            found[f"measured {name}"] = partial(_measured, name, registry is LEARNERS, data)
    for module in homes():
        found[f"about {module}"] = partial(_about, module)
    return found


def only_in_the_site(path: str) -> str:
    """What the site adds to a page: signatures and docstrings, which readers of the repository have."""
    from o2td.registry import LEARNERS, SOLVERS

    folder, _, name = path.removesuffix(".md").rpartition("/")
    registry = LEARNERS if name in LEARNERS.names() else SOLVERS
    if folder == "methods" and name in registry.names():
        return f"\n\n## Use\n\n{_api(_path(registry[name]), 3)}\n"
    known = {_short(module): module for module in homes()}
    if folder == "reference" and name in known:
        owned = import_module(known[name])
        entries = (_entry(owned, n) for n in _extended(owned, homes()[known[name]]))
        return "\n\n" + "\n\n".join(entry for entry in entries if entry) + "\n"
    return ""


def of_the_root() -> dict[str, str]:
    """Files in the repository's root that are also pages of the site."""
    return {
        f"{name.lower()}.md": _root_page((ROOT / f"{name}.md").read_text("utf-8"))
        for name in ("CONTRIBUTING", "CHANGELOG")
    }


def nav(listed: list[Any]) -> list[Any]:
    """The navigation; pages that it does not list come at the end of their folder's section."""
    known = set(re.findall(r"[\w./-]+\.md", repr(listed)))
    docs = ROOT / "docs"
    every = sorted(p.relative_to(docs).as_posix() for p in docs.rglob("*.md"))
    rest = [path for path in every if path not in known and not path.startswith("_")]
    sections = {"book": "The book", "guides": "Guides", "methods": "Methods", "": "Project"}
    sections |= {"reference": "Reference", "decisions": "Decisions"}
    return _extended_nav(
        listed,
        {
            section: [p for p in rest if p.rpartition("/")[0] == folder]
            for folder, section in sections.items()
        },
    )


def _extended_nav(listed: list[Any], more: dict[str, list[str]]) -> list[Any]:
    found = []
    for entry in listed:
        if isinstance(entry, dict):
            ((title, items),) = entry.items()
            if isinstance(items, list):
                entry = {
                    title: [*_extended_nav(items, more), *_grouped(title, more.get(title, []))]
                }
        found.append(entry)
    return found


def _grouped(title: str, paths: list[str]) -> list[Any]:
    """Methods by kind, in registry order; other pages in their given order."""
    if title != "Methods":
        return list(paths)
    from o2td.registry import LEARNERS, SOLVERS

    kinds = {"Online learners": LEARNERS.names(), "Batch solvers": SOLVERS.names()}
    return [
        {kind: [f"methods/{n}.md" for n in names if f"methods/{n}.md" in paths]}
        for kind, names in kinds.items()
    ]


def summary(factory: Any) -> str:
    """The first line of a method's module, or of its own docstring."""
    module = inspect.getdoc(sys.modules[factory.__module__]) or inspect.getdoc(factory) or ""
    return module.split("\n")[0]


def _measured(name: str, learns: bool, data: dict[str, Any]) -> str:
    from docs._tools.pictures import names

    parts = [_figures(name, names(data)), _landing(name, data), _near(name, data)]
    parts += [_stable(name, data)] if learns else []
    return "\n\n".join(part for part in parts if part)


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


def _prose(factory: Any) -> str:
    """The module's docstring, for a method whose page is not written."""
    return inspect.getdoc(sys.modules[factory.__module__]) or inspect.getdoc(factory) or ""


def _landing(name: str, data: dict[str, Any]) -> str:
    """Three tables, one row per setting and one column per problem, or why there is no answer."""
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
    "Exact limits on small problems, with infinitely many rows. *Largest step size*: where the mean"
    " dynamics become unstable; with noise, use less. *Amplification*: the largest RMSE / best over"
    " all rewards; a dash means that there is no direction X. *Exact*: the limit is V itself."
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

    parts = []
    for registry, title in ((LEARNERS, "Online learners"), (SOLVERS, "Batch solvers")):
        lines = ["| method | what it is | RMSE / best |", "|---|---|--:|"]
        for name in registry.names():
            near = data["nearness"].get(name, {}).get("median")
            line = summary(registry[name]).rstrip(".")
            lines.append(f"| [{name}]({name}.md) | {line} | {number(near)} |")
        parts += [f"## {title}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def homes() -> dict[str, list[str]]:
    """Public modules with their public names."""
    import o2td

    found: dict[str, list[str]] = {}
    for name, module in o2td._HOMES.items():
        found.setdefault(module, []).append(name)
    for module in (*o2td._MODULES.values(), *INNER):
        if _exists(module):
            found.setdefault(module, list(getattr(import_module(module), "__all__", ())))
    return found


def _short(module: str) -> str:
    return module.rpartition(".")[2]


def _extended(module: Any, names: list[str]) -> list[str]:
    """The public names of a package that are not in o2td itself."""
    more = [n for n in getattr(module, "__all__", ()) if n not in names]
    return [*names, *more]


def _about(module: str) -> str:
    """A module's docstring and a table of its names; methods are linked to their pages."""
    from docs._tools.doctests import fenced
    from o2td.registry import LEARNERS, SOLVERS

    methods = {*LEARNERS.names(), *SOLVERS.names()}
    owned = import_module(module)
    lines = ["| name | what it is |", "|---|---|"]
    for name in _extended(owned, homes()[module]):
        shown = f"[`{name}`](../methods/{name}.md)" if name in methods else f"`{name}`"
        lines.append(f"| {shown} | {_line(getattr(owned, name))} |")
    table = ["\n".join(lines)] if len(lines) > 2 else []
    return "\n\n".join([f"`{module}`", fenced(inspect.getdoc(owned) or ""), *table])


def _line(value: Any) -> str:
    """The first sentence of a docstring, or the value itself."""
    if inspect.isclass(value) or callable(value) or inspect.ismodule(value):
        text = (inspect.getdoc(getattr(value, "py_func", value)) or "").split("\n\n")[0]
    else:
        shown = repr(value)
        text = (
            shown if len(shown) < 60 or not hasattr(value, "__len__") else f"{len(value)} entries"
        )
    return " ".join(text.split()).replace("|", "\\|")


def _entry(module: Any, name: str) -> str:
    from o2td.registry import LEARNERS, SOLVERS

    value = getattr(module, name)
    if name in LEARNERS.names() or name in SOLVERS.names():
        return ""  # it has a page of its own
    if callable(value) and str(getattr(value, "__module__", "")).startswith("o2td"):
        return _api(_path(value), 2)
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
    """The help of each command."""
    from o2td.cli.main import COMMANDS

    parts = ["Each command lists its options with `--help`:"]
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
    """A file in the repository's root as a page of docs/."""
    return re.sub(r"(\]\()(?!http|#)(?:docs/)?([^)]+\))", _moved, text)


def _moved(match: re.Match[str]) -> str:
    inside = match[0].startswith("](docs/")
    return f"]({'' if inside else '../'}{match[2]}"


def inward(text: str, path: str, repository: str) -> str:
    """Redirect links to files outside docs/: to their page, to the repository, or to plain text.

    >>> inward("[a](../CONTRIBUTING.md#b), [c](../../x/y.py), [d](e.md)", "start.md", "")
    '[a](contributing.md#b), c, [d](e.md)'
    >>> inward("[c](../../x/y.py)", "guides/logs.md", "https://host/o2td")
    '[c](https://host/o2td/blob/main/x/y.py)'
    """
    depth = path.count("/")
    roots = {f"{name}.md": f"{name.lower()}.md" for name in ("CONTRIBUTING", "CHANGELOG")}

    def link(match: re.Match[str]) -> str:
        words, target = match[1], match[2]
        file, mark, anchor = target.partition("#")
        if file in roots:
            return f"[{words}]({'../' * depth}{roots[file]}{mark}{anchor})"
        return f"[{words}]({repository.rstrip('/')}/blob/main/{target})" if repository else words

    return re.sub(r"(?<!!)\[([^\]]+)\]\((?:\.\./){" + str(depth + 1) + r",}([^)]+)\)", link, text)
