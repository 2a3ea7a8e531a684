"""A page to play with: one problem's geometry, limits, stability and learning, in a browser.

The page is one HTML file that needs no network. It holds the problem, and computes in JavaScript what
`o2td.exact` computes here; the tests compare the two.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from o2td._version import __version__
from o2td.arguments import file_path, instance, listed, text
from o2td.atomic import write_bytes, writing
from o2td.errors import InputError
from o2td.problem import Problem
from o2td.report.style import look

__all__ = ["page", "write"]

MOST = {"states": 30, "actions": 6, "features": 12}
_SCRIPTS = ("linear.js", "theory.js", "plots.js", "stage.js", "page.js")
_METHODS = {  # key in the scripts: label here and in `report.style`
    "best": ("best", "best"),
    "td": ("TD(λ)", "TD"),
    "etd": ("ETD(λ)", "ETD"),
    "rg": ("residual gradient", "RG"),
    "o2td-printed": ("O²TD printed", "O2TD printed"),
    "o2td-sample": ("O²TD sample", "O2TD sample"),
    "o2td-state": ("O²TD state", "O2TD state"),
    "o2td-moments": ("O²TD moments", "O2TD moments"),
    "sotd": ("SOTD", "SOTD"),
}


def write(path: str | Path, problems: Sequence[Problem], title: str | None = None) -> Path:
    """Write the page of some problems, the first of which is shown first.

    Parameters
    ----------
    path : str or Path
        The file to write.
    problems : sequence of Problem
        Finite problems of at most 30 states, 6 actions and 12 features.
    title : str, optional
        The page's heading.

    Examples
    --------
    >>> import tempfile
    >>> from o2td import domains, interactive
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = interactive.write(f"{folder}/baird.html", [domains.baird()])
    ...     made.stat().st_size > 10_000
    True
    """
    path = file_path(path)
    made = page(problems, title).encode()
    with writing(path):
        write_bytes(path, made)
    return path


def page(problems: Sequence[Problem], title: str | None = None, back: str = "") -> str:
    """The page as text; `back` is the address of a page that explains it.

    Parameters
    ----------
    problems : sequence of Problem
        Finite problems of at most 30 states, 6 actions and 12 features.
    title : str, optional
        The page's heading.
    back : str
        A link for its foot.

    Examples
    --------
    >>> from o2td import domains, interactive
    >>> "<title>Baird</title>" in interactive.page([domains.baird()], title="Baird")
    True
    """
    heading = text("title", "Every method is an oblique projection" if title is None else title)
    text("back", back)
    given = {
        "problems": [_plain(problem) for problem in listed("problems", problems, "problems")],
        "methods": [
            {"key": key, "label": label, **look(name)._asdict()}
            for key, (label, name) in _METHODS.items()
        ],
    }
    home = files(__package__)
    parts = {name: home.joinpath(name).read_text("utf-8") for name in (*_SCRIPTS, "page.css")}
    # Nothing inside a script may look like its end.
    data = json.dumps(given, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return Template(home.joinpath("page.html").read_text("utf-8")).substitute(
        title=html.escape(heading),
        style=parts["page.css"].strip(),
        version=__version__,
        back=f' · <a href="{html.escape(back, quote=True)}">the chapter of the book</a>'
        if back
        else "",
        problems=data,
        script="\n".join(parts[name].strip() for name in _SCRIPTS),
    )


def _plain(problem: Problem) -> dict[str, Any]:
    """A problem as numbers and lists; refused if a page could not show it."""
    instance("problems", problem, Problem, "finite problems")
    sizes = (problem.n_states, problem.n_actions, problem.d)
    for (what, most), size in zip(MOST.items(), sizes, strict=True):
        if size > most:
            raise InputError(
                f"an interactive page shows at most {most} {what}, and {problem.name} has {size};"
                f" build it with fewer {what}, or use o2td analyze without --interactive"
            )
    p, phi = problem.pairs, problem.features
    start = problem.initial_theta
    return {
        "name": problem.name,
        "states": problem.n_states,
        "actions": problem.n_actions,
        "pairs": [
            [int(s), int(a), int(t), *map(float, rest)] for s, a, t, *rest in zip(*p, strict=True)
        ],
        "behavior": problem.behavior.tolist(),
        "target": problem.target.tolist(),
        "phi": np.asarray(phi.toarray() if hasattr(phi, "toarray") else phi).tolist(),
        "start": problem.start.tolist(),
        "terminal": problem.terminal.tolist(),
        "interest": problem.interest.tolist(),
        "initial_theta": None if start is None else np.asarray(start).tolist(),
    }
