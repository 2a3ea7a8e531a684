"""Names to factories: how a spec, the command line and the checks find an algorithm or a domain.

A spec never holds an import path, only a name that is looked up here. The names come from

- o2td's own package of that kind (its import registers them), and
- entry points of other installed packages, in the group ``o2td.<kind>``::

      [project.entry-points."o2td.learners"]
      MyTD = "my_package:MyTD"

Both are looked for on first use, so importing this module costs nothing. A name is found whatever
its case, and ``-`` and ``_`` are one: ``LEARNERS["lstd"]`` is ``LEARNERS["LSTD"]``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from threading import RLock
from typing import Any, NamedTuple

from o2td.errors import InputError, O2TDError

__all__ = [
    "DOMAINS",
    "ESTIMATORS",
    "FEATURES",
    "FORMATS",
    "LEARNERS",
    "LOG_TESTS",
    "SOLVERS",
    "Registry",
]

Factory = Callable[..., Any]


class _Listed(NamedTuple):
    """An entry point not loaded yet, of whichever class: importlib_metadata has its own."""

    point: EntryPoint


class Registry:
    """A table of named factories of one kind.

    Parameters
    ----------
    kind
        Plural noun; other packages add to the entry-point group ``o2td.<kind>``.
    home
        The module whose import registers o2td's own members, imported on first look-up.

    Examples
    --------
    >>> shapes = Registry("shapes")
    >>> shapes.register("Round-Table", dict)
    <class 'dict'>
    >>> shapes["round_table"](legs=4)
    {'legs': 4}
    >>> "ROUND-TABLE" in shapes, shapes.names()
    (True, ['Round-Table'])
    >>> shapes["round-tabel"]
    Traceback (most recent call last):
    o2td.errors.InputError: shapes: no 'round-tabel', did you mean 'Round-Table'?
    """

    def __init__(self, kind: str, home: str | None = None) -> None:
        self.kind = kind
        self._home = home
        self._found = False
        self._lock = RLock()
        self._members: dict[str, tuple[str, Factory | _Listed]] = {}

    def register(self, name: str, factory: Factory) -> Factory:
        """Add ``factory`` under ``name`` and return it; a name that is taken is refused."""
        key = _fold(name)
        taken = self._members.get(key)
        if taken is not None and taken[1] is not factory:
            raise InputError(f"{self.kind}: {name!r} is taken already; choose another name")
        self._members[key] = (name, factory)
        return factory

    def names(self) -> list[str]:
        """Return all registered names, in alphabetical order whatever their case."""
        self._find()
        return [self._members[key][0] for key in sorted(self._members)]

    def __getitem__(self, name: str) -> Factory:
        self._find()
        if not isinstance(name, str) or _fold(name) not in self._members:
            raise InputError(f"{self.kind}: no {name!r}, {self._advice(str(name))}")
        shown, member = self._members[_fold(name)]
        if isinstance(member, _Listed):
            member = self._load(shown, member.point)
            self._members[_fold(name)] = (shown, member)
        return member

    def __contains__(self, name: object) -> bool:
        self._find()
        return isinstance(name, str) and _fold(name) in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        self._find()
        return len(self._members)

    def __repr__(self) -> str:
        return f"Registry({self.kind!r})"

    def _find(self) -> None:
        """Import the home package, then list entry points without loading them."""
        with self._lock:
            if self._found:
                return
            # Set first: the home package may look itself up while it is being imported.
            self._found = True
            try:
                if self._home is not None:
                    import_module(self._home)
                for point in entry_points(group=f"o2td.{self.kind}"):
                    self._add_entry_point(point)
            except BaseException:
                self._found = False
                raise

    def _add_entry_point(self, point: EntryPoint) -> None:
        key = _fold(point.name)
        if key not in self._members:
            self._members[key] = (point.name, _Listed(point))
        else:
            warnings.warn(
                f"{self.kind}: {point.name!r} of {_owner(point)} is ignored, the name is taken",
                stacklevel=2,
            )

    def _load(self, name: str, point: EntryPoint) -> Factory:
        try:
            factory = point.load()
        except Exception as error:
            raise O2TDError(
                f"{self.kind}: {name!r} of {_owner(point)} cannot be loaded ({error}); "
                "update or remove that package"
            ) from error
        if not callable(factory):
            raise O2TDError(f"{self.kind}: {name!r} of {_owner(point)} is not callable")
        return factory  # type: ignore[no-any-return]

    def _advice(self, name: str) -> str:
        close = get_close_matches(_fold(name), self._members, n=1)
        if close:
            return f"did you mean {self._members[close[0]][0]!r}?"
        return f"choose from {', '.join(self.names()) or 'none registered yet'}"


def _fold(name: str) -> str:
    return name.casefold().replace("_", "-")


def _owner(point: EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist else f"{point.value}"


LEARNERS = Registry("learners", home="o2td.learners")
SOLVERS = Registry("solvers", home="o2td.solvers")
DOMAINS = Registry("domains", home="o2td.domains")
FEATURES = Registry("features", home="o2td.features")
ESTIMATORS = Registry("estimators", home="o2td.evaluation.estimators")
LOG_TESTS = Registry("log_tests", home="o2td.evaluation.log_tests")
FORMATS = Registry("formats", home="o2td.sources.formats")
