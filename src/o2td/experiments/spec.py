"""An experiment as data: a TOML file, read into structs and checked before anything is built.

::

    name = "walk"
    steps = 1000
    runs = 20
    metrics = ["rmse"]

    [domain]
    name = "random_walk"

    [[algorithms]]
    name = "TD"
    grid = { step_size = [0.01, 0.1] }

A spec holds names, numbers and switches: no paths, no import paths, nothing that is executed.
Any mistake in it raises an :class:`~o2td.errors.InputError` that names the key.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from o2td.arguments import some_path, text
from o2td.errors import InputError
from o2td.experiments.validate import check, check_depth, short, suggestion

MAX_FILE_BYTES = 32 * 1024

Name = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._+-]*\Z", max_length=64)]
ShortText = Annotated[str, msgspec.Meta(max_length=2000)]
Runs = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Steps = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Seed = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
Parameters = dict[str, Any]
Grid = dict[str, list[Any]]
Sizes = Annotated[list[Steps], msgspec.Meta(max_length=1000)]


class _Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Base class of all tables of a spec: unknown keys are rejected."""


class DomainSpec(_Table, frozen=True):
    """The problem: a name in :data:`o2td.registry.DOMAINS` and its parameters.

    `seed = "run"` draws a new problem for every run; a number fixes it. `grid` lists several values
    of a parameter; each combination is a case with its own results.
    """

    name: Name
    seed: Seed | Literal["run"] | None = None
    parameters: Parameters = {}
    grid: Grid = {}


class FeaturesSpec(_Table, frozen=True):
    """The features of a simulated domain: a name in :data:`o2td.registry.FEATURES`."""

    name: Name
    parameters: Parameters = {}


class Truth(_Table, frozen=True):
    """How precisely errors are measured if the truth is known only by simulation.

    The value of `states` observations of the behaviour is the mean of `rollouts` returns each;
    the projected Bellman error comes from `rows` held-out transitions.
    """

    states: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 500
    rollouts: Annotated[int, msgspec.Meta(ge=2, le=1_000_000)] = 100
    rows: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 100_000
    seed: Seed = 4_000_000_001


class AlgorithmSpec(_Table, frozen=True):
    """A learner or solver with fixed `parameters` and lists (`grid`) of others.

    `label` distinguishes two entries of one algorithm. `starts = "ignored"` hides the marks of
    trajectory starts, so that traces continue across shuffled rows. `tune` names the parameters to
    tune (by default all those of the tuning grid that the algorithm has). `note` is for readers,
    such as the source of a step size, and changes nothing.
    """

    name: Name
    label: ShortText | None = None
    parameters: Parameters = {}
    grid: Grid = {}
    starts: Literal["kept", "ignored"] = "kept"
    note: ShortText = ""
    tune: list[Name] | None = None


class Tuning(_Table, frozen=True):
    """One grid for all algorithms, tried on separate seeds."""

    grid: Grid
    seed: Seed
    runs: Runs = 10
    metric: Name | None = None
    score: Literal["final", "area"] = "area"


class Profile(_Table, frozen=True):
    """What a named profile changes."""

    runs: Runs | None = None
    steps: Steps | None = None
    every: Steps | None = None
    tuning_runs: Runs | None = None


class Spec(_Table, frozen=True):
    """One experiment; see the module's example and :func:`load_spec`.

    Parameters
    ----------
    name : str
        Name of the experiment and its files.
    title : str
        Title for headings.
    domain : DomainSpec
        The problem.
    algorithms : list of AlgorithmSpec
        The learners and solvers to run on it.
    metrics : list of str
        The metrics to record, such as "rmse".
    steps : int
        Length of a run.
    runs : int
        Number of runs.
    seed : int
        Seed of all runs; each run has its own stream.
    every : int, optional
        Steps between records of learners.
    sizes : list of int
        Numbers of rows after which solvers are recorded; by default after all `steps`.
    scheme : str or list
        "sequential", "iid" or both.
    double : bool
        Draw a second successor of every state.
    features : FeaturesSpec, optional
        Features of a simulated domain, instead of its own.
    truth : Truth
        How errors are measured if they cannot be computed exactly.
    tuning : Tuning, optional
        What `tune` tries.
    profiles : dict
        Named changes, such as fewer runs.
    runs_per_shard : int, optional
        Number of runs that one task computes; it does not affect the results.
    """

    name: Name
    domain: DomainSpec
    algorithms: Annotated[list[AlgorithmSpec], msgspec.Meta(min_length=1, max_length=1000)]
    metrics: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=16)]
    steps: Steps
    runs: Runs
    title: ShortText = ""
    seed: Seed = 0
    every: Steps | None = None
    sizes: Sizes = []
    scheme: Name | list[Name] = "sequential"
    double: bool = False
    features: FeaturesSpec | None = None
    truth: Truth = Truth()
    tuning: Tuning | None = None
    profiles: dict[Name, Profile] = {}
    runs_per_shard: Runs | None = None

    @property
    def interval(self) -> int:
        """Number of steps between records of learners: `every`, or a hundredth of `steps`."""
        return self.every if self.every is not None else max(1, self.steps // 100)

    @property
    def schemes(self) -> list[str]:
        """The sampling schemes, one or several."""
        return [self.scheme] if isinstance(self.scheme, str) else list(self.scheme)

    def profile(self, name: str | None) -> Spec:
        """The spec with the overrides of one of its profiles; None changes nothing."""
        if name is None:
            return self
        if text("name", name) not in self.profiles:
            known = ", ".join(self.profiles) or "none"
            raise InputError(f"profiles: no {name!r} in {self.name}; it has {known}")
        chosen = self.profiles[name]
        changes: dict[str, Any] = {
            key: value
            for key in ("runs", "steps", "every")
            if (value := getattr(chosen, key)) is not None
        }
        if chosen.tuning_runs is not None and self.tuning is not None:
            changes["tuning"] = msgspec.structs.replace(self.tuning, runs=chosen.tuning_runs)
        changed = msgspec.structs.replace(self, **changes)
        check(changed)
        return changed


def load_spec(source: str | Path, *, where: str | None = None) -> Spec:
    r"""Read and check a spec.

    Parameters
    ----------
    source
        A path to a TOML file, or the TOML text itself (a string with a line break).
    where
        Its name in error messages; the file's name by default.

    Examples
    --------
    >>> text = '''
    ... name = "walk"
    ... steps = 100
    ... runs = 2
    ... metrics = ["rmse"]
    ... domain.name = "random_walk"
    ... algorithms = [{ name = "TD", grid = { step_size = [0.01, 0.1] } }]
    ... '''
    >>> load_spec(text).algorithms[0].grid
    {'step_size': [0.01, 0.1]}
    >>> load_spec(text.replace("runs", "rusn"))
    Traceback (most recent call last):
    o2td.errors.InputError: spec: rusn: unknown key, did you mean 'runs'?
    """
    if where is not None:
        text("where", where)
    if isinstance(source, str) and "\n" in source:
        name, data = where or "spec", source.encode(errors="surrogatepass")
    else:
        path = some_path("source", source)
        name = where or path.name
        try:
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"{source}: {why}") from None
    try:
        return _decode(data)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _decode(data: bytes) -> Spec:
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"larger than {MAX_FILE_BYTES // 1024} KiB, which no spec needs")
    try:
        text = data.decode("utf-8")
        check_depth(text)
        table = tomllib.loads(text)
        spec = msgspec.convert(table, Spec, strict=True)
    except msgspec.ValidationError as error:
        raise InputError(_sentence(str(error))) from None
    except RecursionError:
        raise InputError("nested too deeply; a spec needs four levels") from None
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text; save it as UTF-8") from None
    except ValueError as error:
        raise InputError(f"not TOML: {str(error)[:200]}") from None
    check(spec)
    return spec


_STRUCTS: dict[str, type[_Table]] = {
    "": Spec,
    "domain": DomainSpec,
    "features": FeaturesSpec,
    "algorithms": AlgorithmSpec,
    "truth": Truth,
    "tuning": Tuning,
    "profiles": Profile,
}


def _sentence(message: str) -> str:
    """Turn msgspec's `Expected ... - at $.path` into `path: expected ...`."""
    text, _, at = message.partition(" - at ")
    found = re.search(r"`\$\.?([^`]*)`", at)
    path = found.group(1) if found else ""
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", text, re.DOTALL):
        key = unknown.group(1)
        fields = _STRUCTS.get(path.split("[")[0], Spec).__struct_fields__
        where = f"{path}.{key}" if path else key
        return f"{short(where)}: unknown key, {suggestion(key, fields)}"
    if missing := re.fullmatch(r"Object missing required field `(.*)`", text):
        where = f"{path}.{missing.group(1)}" if path else missing.group(1)
        return f"{where}: missing; a spec must give it"
    if "matching regex" in text:
        return f"{path}: expected a plain name of letters, digits, '.', '_', '+' and '-'"
    return f"{path or 'the file'}: {text[:1].lower()}{text[1:]}".replace("`", "")
