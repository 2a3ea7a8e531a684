"""The result of a comparison: ranked policies, their differences, and a verdict for each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from o2td.arguments import all_of, some_path, switch, text
from o2td.documents import finite, fixed, places
from o2td.errors import InputError, import_extra
from o2td.evaluation.differences import LOGGED, Difference
from o2td.evaluation.output import Document
from o2td.evaluation.requirements import Parsed, Quantity, Requirement, check, sides_of
from o2td.evaluation.result import Evaluation
from o2td.evaluation.thresholds import CANNOT

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Standing:
    """One policy of a comparison.

    Parameters
    ----------
    name : str
        Name of the policy.
    method : str
        The estimator, the same for all policies.
    value, low, high : float or None
        Its value from the start states, with the interval.
    standard_error, approximation_error : float or None
        Standard error of the value, and how much other features would change it.
    verdict, reasons : str, list of str
        Verdict on this policy's value, and why.
    best : float or None
        Probability that it is the best of all, including the policy that made the log.

    Examples
    --------
    >>> Standing("B", "lstd", 0.8, 0.7, 0.9, 0.05, 0.0, "trust").as_dict()["value"]
    0.8
    """

    name: str
    method: str
    value: float | None
    low: float | None
    high: float | None
    standard_error: float | None
    approximation_error: float | None
    verdict: str
    reasons: list[str] = field(default_factory=list)
    best: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, none of them NaN or infinite."""
        found = {name: finite(value) for name, value in vars(self).items() if name != "best"}
        return {**found, "probability_best": finite(self.best)}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Document):
    """The answer to "which of these policies is better, and by how much?".

    `comparison["A"]` is the full `Evaluation` of one policy. `verdict` and `reasons` concern the
    difference between the best policy and the baseline.

    Parameters
    ----------
    baseline : str
        What the policies are compared with.
    method : str
        The estimator of all differences.
    policies : list of Standing
        Ordered by value, the best first.
    differences : list of Difference
        Differences to the baseline first, then those between policies.
    answers : mapping
        The full evaluation of each policy, by name.
    logged : mapping
        The value of the policy that made the log.

    Examples
    --------
    >>> import pandas as pd
    >>> from o2td import evaluation
    >>> log = pd.DataFrame({"episode": range(60), "state": 0, "action": [0, 1] * 30,
    ...                     "reward": [0.0, 1.0] * 30, "terminated": True})
    >>> log["behavior_prob"] = 0.5
    >>> policies = {"A": [[0.5, 0.5]], "B": [[0.2, 0.8]]}
    >>> both = evaluation.compare(log, discount=1.0, policies=policies)
    >>> both
    Comparison(trust: B - logged 0.3 [0.2347, 0.3322] by lstd)
    >>> both.frame()["policy"].to_list()
    ['B', 'A']
    >>> both["A"].verdict
    'trust'
    """

    baseline: str
    method: str
    policies: list[Standing]
    differences: list[Difference]
    answers: Mapping[str, Evaluation]
    logged: Mapping[str, Any]

    def __post_init__(self) -> None:
        text("baseline", self.baseline)
        all_of("policies", self.policies, Standing, "standings, as compare makes them", 1)
        all_of("differences", self.differences, Difference, "differences, as compare makes them")
        for name in ("answers", "logged"):
            if not isinstance(getattr(self, name), Mapping):
                raise InputError(f"{name} must be a mapping, as compare makes it")

    # -- what it says ------------------------------------------------------------------------------

    @property
    def best(self) -> str:
        """The name of the policy with the highest value, including the baseline."""
        first, logged = self.policies[0], self.logged.get("value")
        unknown = first.verdict == CANNOT or first.value is None
        if self.baseline == LOGGED and logged is not None and (unknown or first.value < logged):
            return LOGGED
        return first.name

    @property
    def leading(self) -> Difference | None:
        """The difference between the best policy and the baseline, or the next one to it."""
        names = [one.name for one in self.policies if one.name != self.baseline]
        return self.difference(names[0], self.baseline) if names else None

    @property
    def verdict(self) -> str:
        """The verdict on the difference between the best policy and the baseline."""
        return self._first().verdict

    @property
    def reasons(self) -> list[str]:
        """Why the verdict is not "trust"."""
        return list(self._first().reasons)

    def _first(self) -> Difference | Standing:
        found = self.leading
        return self.policies[0] if found is None else found

    @property
    def conclusion(self) -> str:
        """Whether the best policy is better than the baseline, in one sentence."""
        found, by_log = self.leading, self.baseline == LOGGED
        base = "the policy that made the log" if by_log else self.baseline
        if found is None or found.value is None or found.verdict == CANNOT:
            return f"These logs do not tell whether a policy is better than {base}."
        row = found.as_dict()
        value, low, high = (fixed(row[name], places(row)) for name in ("value", "low", "high"))
        said = f"{found.of} is worth {value} more than {base}, [{low}, {high}]"
        if found.approximation_error:
            said += f", and ±{found.approximation_error:.2g} of approximation error"
        undecided = ": these logs do not tell which of them is better"
        return f"{said}{undecided if found.words == 'no clear difference' else ''}."

    def __getitem__(self, policy: str) -> Evaluation:
        text("policy", policy)
        if policy not in self.answers:
            raise InputError(f"policies: no {policy!r}; there are {', '.join(self.answers)}")
        return self.answers[policy]

    def difference(self, of: str, over: str | None = None) -> Difference:
        """How much more `of` is worth than `over` (default: the baseline).

        Parameters
        ----------
        of, over
            Names of policies; "logged" is the one that made the log.
        """
        first, second = text("of", of), self.baseline if over is None else text("over", over)
        for one in self.differences:
            if (one.of, one.over) == (first, second):
                return one
            if (one.of, one.over) == (second, first):
                return _turned(one)
        names = [LOGGED, *self.answers]
        wrong = next((name for name in (first, second) if name not in names), None)
        if wrong is not None:
            raise InputError(f"difference: no policy {wrong!r}; there are {', '.join(names)}")
        raise InputError(f"difference: {first!r} and {second!r} are the same; name two policies")

    def require(self, requirement: str) -> Requirement:
        """Whether a requirement holds, as in `Evaluation.require`.

        Parameters
        ----------
        requirement
            Such as ``"B - A > 0.1"``, ``"B > logged"`` or ``"A > 80"``; with only one policy
            besides the baseline, `value` and `lift` refer to it.
        """
        return check(requirement, lambda asked: self._quantity(asked, requirement))

    def _quantity(self, asked: Parsed, requirement: str) -> Quantity:
        plus, minus = sides_of(requirement, asked, list(self.answers), self.baseline)
        if minus is not None:
            found = self.difference(plus, minus)
            return Quantity.of(f"{plus} - {minus}", found.as_dict())
        if plus == LOGGED:
            return Quantity.of(LOGGED, self.logged)
        row = next(one for one in self.policies if one.name == plus)
        return Quantity.of(plus, row.as_dict())

    # -- how it shows itself -----------------------------------------------------------------------

    def __repr__(self) -> str:
        found = self.leading
        if found is None or found.value is None or found.low is None or found.high is None:
            return f"Comparison({self.verdict})"
        said = f"{found.value:.4g} [{found.low:.4g}, {found.high:.4g}] by {self.method}"
        return f"Comparison({self.verdict}: {found.of} - {found.over} {said})"

    def __str__(self) -> str:
        """The tables of policies and differences, as the command line prints them."""
        from o2td.evaluation.comparison_text import comparison_text

        return comparison_text(self.as_dict())

    def _repr_html_(self) -> str:
        from o2td.report.comparison import notebook_comparison

        return notebook_comparison(self.as_dict())

    def frame(self) -> pl.DataFrame:
        """The policies as a polars frame, one row per policy, with the difference to the baseline."""
        polars = import_extra("polars", "logs")
        rows = []
        for one in self.policies:
            row = one.as_dict()
            row["policy"] = row.pop("name")
            if one.name != self.baseline:
                found = self.difference(one.name).as_dict()
                names = ("value", "low", "high", "probability", "verdict")
                row |= {f"difference_{name}": found[name] for name in names}
            rows.append({"policy": row.pop("policy"), **row})
        made: pl.DataFrame = polars.DataFrame(rows, infer_schema_length=None)
        return made

    def plot(self) -> Figure:
        """A matplotlib figure of all differences with their intervals."""
        from o2td.report.comparison import differences_figure
        from o2td.report.drawing import styled

        with styled():
            return differences_figure([one.as_dict() for one in self.differences])

    def as_dict(self) -> dict[str, Any]:
        """The object that `o2td evaluate --target … --json` prints.

        It is that of the best policy, with the policies and differences of the comparison.
        """
        lead = self.answers[self.policies[0].name]
        found: dict[str, Any] = lead.as_dict()
        names = ("estimates", "diagnostics", "lift")
        policies = []
        for one in self.policies:
            own = self.answers[one.name].as_dict()
            policies.append({**one.as_dict(), **{name: own[name] for name in names}})
        tests = [
            {"policy": name, **test.as_dict()}
            for name, answer in self.answers.items()
            for test in answer.tests
        ]
        differences = [{**one.as_dict(), "words": one.words} for one in self.differences]
        found |= {
            "verdict": self.verdict,
            "reasons": self.reasons,
            "conclusion": self.conclusion,
            "baseline": self.baseline,
            "best": self.best,
            "method": self.method,
            "policies": policies,
            "differences": differences,
            "logged": dict(self.logged),
            "tests": tests,
            "audit": {**found["audit"], "columns": self._columns(), "ratio": self._ratios()},
        }
        made: dict[str, Any] = finite(found)
        return made

    def _ratios(self) -> str:
        return "; ".join(f"{name}: {one.audit['ratio']}" for name, one in self.answers.items())

    def _columns(self) -> dict[str, Any]:
        """The columns of the log by role; one that depends on the policy is named for each."""
        own = {name: one.audit["columns"] for name, one in self.answers.items()}
        return _by_policy(own)

    def log_lines(self) -> list[str]:
        """How the log was read, one role per line, as `Evaluation.series` has it for one policy."""
        own = {}
        for name, one in self.answers.items():
            split = [line.partition(": ") for line in one.series["log"]]
            own[name] = {role: f"{colon}{rest}" for role, colon, rest in split}
        return [f"{role}{rest}" for role, rest in _by_policy(own).items()]

    # -- how it is kept ----------------------------------------------------------------------------

    def _page(self) -> bytes:
        from o2td.report.comparison import comparison_page

        series = {**self.answers[self.policies[0].name].series, "log": self.log_lines()}
        return comparison_page(self.as_dict(), series).html().encode()

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write `evaluation.json` and `report.html`, both or neither.

        Parameters
        ----------
        folder
            The folder, which must be empty or absent.
        force
            Replace an existing evaluation.
        """
        from o2td.evaluation.output import check_folder, write_folder

        target = some_path("folder", folder)
        check_folder(target, switch("force", force))
        write_folder(
            target, {"evaluation.json": self.to_json().encode(), "report.html": self._page()}
        )
        return target


def _by_policy(own: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Entries by role; what differs between policies is given for each of them.

    >>> own = {"A": {"state": "s", "rho": "a"}, "B": {"state": "s", "rho": "b"}}
    >>> _by_policy(own)
    {'state': 's', 'rho of A': 'a', 'rho of B': 'b'}
    """
    found: dict[str, Any] = {}
    for role in dict.fromkeys(role for entries in own.values() for role in entries):
        said = [entries.get(role) for entries in own.values()]
        if all(one == said[0] for one in said):
            found[role] = said[0]
        else:
            found |= {f"{role} of {name}": own[name][role] for name in own if role in own[name]}
    return found


def _turned(one: Difference) -> Difference:
    """The same difference the other way round."""

    def minus(value: float | None) -> float | None:
        return None if value is None else 0.0 - value

    return replace(
        one,
        of=one.over,
        over=one.of,
        value=minus(one.value),
        low=minus(one.high),
        high=minus(one.low),
        joint_low=minus(one.joint_high),
        joint_high=minus(one.joint_low),
        probability=None if one.probability is None else 1.0 - one.probability,
    )
