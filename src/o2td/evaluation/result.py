"""The result of an evaluation: estimates with intervals and verdicts, to print, plot and save."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from o2td.arguments import all_of, choice, listed, number, some_path, switch, text
from o2td.arrays import Floats
from o2td.documents import finite
from o2td.errors import InputError, import_extra
from o2td.evaluation.differences import Difference
from o2td.evaluation.log_test import Finding
from o2td.evaluation.output import Document
from o2td.evaluation.returns import ReturnDistribution, ReturnEstimate, share_of
from o2td.evaluation.value_model import ValueModel

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from o2td.evaluation.requirements import Requirement
    from o2td.evaluation.segments import Segment


@dataclass(frozen=True)
class Estimate:
    """One method's answer; values that could not be computed are None, and `reason` says why.

    Parameters
    ----------
    method : str
        Name of the method, such as "lstd".
    value : float or None
        The target's expected discounted reward from the log's start states.
    low, high : float or None
        The interval, at the requested confidence.
    interval : str
        How the interval was computed: sandwich or bootstrap.
    approximation_error : float or None
        How much other features would change the answer; 0 for methods without features.
    verdict : str
        "trust", "caution" or "cannot answer".
    reason, reasons : str, list of str
        Why the verdict is not "trust": in one sentence, and as a list.
    standard_error : float or None
        Standard error of `value`, with episodes as units.
    about : str
        What the method does, for readers of the report.
    title, kind : str
        The estimator's full name, and "fit", "history", "hybrid" or "learner".
    """

    method: str
    value: float | None
    low: float | None
    high: float | None
    interval: str
    approximation_error: float | None
    verdict: str
    reason: str
    reasons: list[str] = field(default_factory=list)
    standard_error: float | None = None
    about: str = ""
    title: str = ""
    kind: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, none of them NaN or infinite."""
        return {name: finite(value) for name, value in vars(self).items()}

    def covers(self, truth: float, widened: bool = False) -> bool:
        """Whether the interval contains `truth`; `widened` adds the approximation error to it."""
        if self.low is None or self.high is None:
            return False
        slack = (self.approximation_error or 0.0) if widened else 0.0
        return self.low - slack <= truth <= self.high + slack


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Document):
    """The answer to "what would this policy be worth?".

    `print` shows it as the command line does; a notebook adds a picture. `verdict` and `reasons`
    concern the whole question, those of an estimate one method. `estimates` lists the recommended
    one first. `logged` is the value of the policy that made the log, `lift` how much the target
    exceeds it (a paired `Difference`), and `segments` the value by segment of start states, if
    requested. `tests` holds the tests of the log, `diagnostics` what was measured, `features` which
    were chosen and why, and `audit` from what, when and how this was computed. `series` holds the
    data of figures, `starts` start states of the log, `_influence` the influence of each episode,
    if stored, and `_returns` the returns of episodes. `model` predicts values of states: it is
    LSTD's fit or, if `methods` leaves LSTD out, that of the recommended method or of the first that
    has one.

    Examples
    --------
    >>> import pandas as pd
    >>> from o2td import evaluation
    >>> log = pd.DataFrame({"episode": range(60), "state": 0, "reward": [0.0, 1.0] * 30,
    ...                     "terminated": True, "rho": [0.5, 1.5] * 30})
    >>> answer = evaluation.evaluate(log, discount=0.9, methods="lstd,wis")
    >>> answer
    Evaluation(trust: 0.75 [0.6284, 0.8444] by lstd)
    >>> answer.frame().select("method", "verdict").rows()
    [('lstd', 'trust'), ('wis', 'caution')]
    >>> answer.audit["discount"], answer.logged["value"]
    (0.9, 0.5)
    >>> lift = answer.lift
    >>> lift.value, lift.verdict, lift.words
    (0.25, 'trust', 'target is better')
    >>> answer.require("lift > 0.1").holds
    True
    """

    verdict: str
    reasons: list[str]
    estimates: list[Estimate]
    diagnostics: Mapping[str, Any]
    features: Mapping[str, Any]
    model: ValueModel | None = None
    series: Mapping[str, Any] = field(default_factory=dict)
    tests: list[Finding] = field(default_factory=list)
    logged: Mapping[str, Any] = field(default_factory=dict)
    audit: Mapping[str, Any] = field(default_factory=dict)
    starts: Iterable[Any] = ()
    _influence: Mapping[str, Any] | None = None
    lift: Difference | None = None
    segments: list[Segment] = field(default_factory=list)
    _returns: ReturnDistribution | None = None

    def __post_init__(self) -> None:
        all_of("estimates", self.estimates, Estimate, "estimates, as evaluate makes them", 1)

    @property
    def recommended(self) -> Estimate:
        """The recommended estimate, which is the first."""
        return self.estimates[0]

    def __getitem__(self, method: str) -> Estimate:
        text("method", method)
        for estimate in self.estimates:
            if estimate.method == method:
                return estimate
        known = ", ".join(estimate.method for estimate in self.estimates)
        raise InputError(f"estimates: no {method!r}; there are {known}")

    def values(self, states: Any, probabilities: Any = None) -> Floats:
        """`V(s)` of observations or states by `model`; `model.method` says whose fit it is.

        Parameters
        ----------
        states
            (n, k) observations, or (n,) states.
        probabilities
            (n, A), the target's probabilities there; needed if only LSTDQ was requested.
        """
        if self.model is None:
            raise InputError("values: no value function could be fitted to this log")
        return self.model.predict(states, probabilities)

    # -- how it shows itself -----------------------------------------------------------------------

    def __repr__(self) -> str:
        best = self.recommended
        if best.value is None or best.low is None or best.high is None:
            return f"Evaluation({self.verdict})"
        said = f"{best.value:.4g} [{best.low:.4g}, {best.high:.4g}] by {best.method}"
        return f"Evaluation({self.verdict}: {said})"

    def __str__(self) -> str:
        """The table of estimates, the verdict and what it rests on, as the command line prints them."""
        from o2td.evaluation.answer_text import text_of

        return text_of(self.as_dict())

    def _repr_html_(self) -> str:
        from o2td.report.evaluation_notebook import notebook_html

        return notebook_html(self.as_dict(), self.series)

    def frame(self) -> pl.DataFrame:
        """The estimates as a polars frame, one row per method; `.to_pandas()` converts it."""
        polars = import_extra("polars", "logs")
        rows = [estimate.as_dict() for estimate in self.estimates]
        made: pl.DataFrame = polars.DataFrame(rows, infer_schema_length=None)
        return made

    @property
    def influence(self) -> pl.DataFrame:
        """The influence of each episode on each estimate: a row per episode, a column per method.

        An estimate's standard error is the standard deviation of its column over the root of the
        number of episodes; the difference of two columns is the influence on a difference. Episodes
        count from 0 in the order of the log; -1 is one of which only the start is known.
        """
        if self._influence is None:
            raise InputError("influence: was not kept; pass influence=True to evaluate")
        made: pl.DataFrame = import_extra("polars", "logs").DataFrame(dict(self._influence))
        return made

    def plot(self) -> Figure:
        """A matplotlib figure of all estimates with their intervals."""
        from o2td.report.drawing import styled
        from o2td.report.evaluation_figures import estimates_figure

        with styled():
            return estimates_figure([estimate.as_dict() for estimate in self.estimates])

    def as_dict(self) -> dict[str, Any]:
        """The object that `o2td evaluate --json` prints."""
        found: dict[str, Any] = finite(
            {
                "verdict": self.verdict,
                "reasons": self.reasons,
                "estimates": [estimate.as_dict() for estimate in self.estimates],
                "policies": [self._row()],
                "differences": [] if self.lift is None else [self.lift.as_dict()],
                "logged": self.logged,
                "segments": [one.as_dict() for one in self.segments],
                "lift": None if self.lift is None else self.lift.as_dict(),
                "tests": [test.as_dict() for test in self.tests],
                "diagnostics": {**self.diagnostics, "features": self.features},
                "audit": self.audit,
            }
        )
        return found

    def _row(self) -> dict[str, Any]:
        """The policy of this answer as a row of a comparison."""
        best = self.recommended.as_dict()
        names = ("method", "value", "low", "high", "standard_error", "approximation_error")
        name = "target" if self.lift is None else self.lift.of
        verdict = {"verdict": self.verdict, "reasons": list(self.reasons)}
        return {"name": name, **{one: best[one] for one in names}, **verdict}

    def require(self, requirement: str) -> Requirement:
        """Whether a requirement holds, such as ``"lift > 0"`` or ``"value > 80"``.

        It holds if it does for the whole interval, widened by the approximation error.

        Parameters
        ----------
        requirement
            Two sides and one of >, >=, <, <=. `value` is the target's value, `logged` that of the
            policy that made the log, `lift` their difference.

        Examples
        --------
        >>> import pandas as pd
        >>> from o2td import evaluation
        >>> log = pd.DataFrame({"episode": range(60), "state": 0, "reward": [0.0, 1.0] * 30,
        ...                     "terminated": True, "rho": [0.5, 1.5] * 30})
        >>> print(evaluation.evaluate(log, discount=0.9).require("value > 0.7"))
        value > 0.7: undecided, value is 0.75 [0.6284, 0.8444]
        """
        from o2td.evaluation.requirements import of_evaluation

        return of_evaluation(self, requirement)

    def returns(
        self, quantiles: Sequence[float] = (0.1, 0.5, 0.9), cvar: float | None = 0.1
    ) -> list[ReturnEstimate]:
        """The distribution of returns under the target, by weighted histories.

        If the weights do not support it or episodes were truncated, there are reasons instead of
        numbers.

        Parameters
        ----------
        quantiles
            Fractions of the target's episodes; each number is the return that this fraction stays
            below.
        cvar
            A fraction: the mean over this fraction of the worst returns. None leaves it out.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from o2td import evaluation
        >>> rng = np.random.default_rng(0)
        >>> log = pd.DataFrame({"reward": rng.normal(size=900), "state": 0,
        ...                     "rho": rng.choice([0.5, 1.5], 900)})
        >>> answer = evaluation.evaluate(log, methods="lstd")
        >>> middle, worst = answer.returns(quantiles=[0.5], cvar=0.2)
        >>> middle.low < 0.0 < middle.high, worst.low < -1.4 < worst.high
        (True, True)
        """
        if self._returns is None:
            raise InputError("returns: this answer was made without them; evaluate the log again")
        levels = [share_of("quantiles", one) for one in listed("quantiles", quantiles, "shares")]
        found = [self._returns.quantile(level) for level in levels]
        if cvar is None:
            return found
        share = share_of("cvar", cvar)
        return [*found, self._returns.cvar(share)]

    def by_horizon(self) -> pl.DataFrame:
        """What the target earns over the first steps, by weighted per-decision histories.

        One row per number of steps: `value`, and the effective number of episodes; below ten there
        is no value.
        """
        polars, found = import_extra("polars", "logs"), self.series.get("horizon") or {}
        names = {"step": "steps", "value": "value", "size": "effective_episodes"}
        columns = {name: found.get(key, []) for key, name in names.items()}
        made: pl.DataFrame = polars.DataFrame(columns)
        return made

    def episodes_for(self, reach: float, of: str = "value") -> int:
        """How many more episodes would narrow the interval to about `value ± reach`.

        Based on the measured influence of episodes: the interval shrinks with the root of their
        number. The approximation error does not shrink and is not included.

        Parameters
        ----------
        reach
            Desired half-width of the interval.
        of
            "value" or "lift".

        Examples
        --------
        >>> import pandas as pd
        >>> from o2td import evaluation
        >>> log = pd.DataFrame({"episode": range(60), "state": 0, "reward": [0.0, 1.0] * 30,
        ...                     "terminated": True, "rho": [0.5, 1.5] * 30})
        >>> evaluation.evaluate(log, discount=0.9).episodes_for(0.05)
        220
        """
        wanted = number("reach", reach, above=0.0)
        found: Estimate | Difference | None = self.recommended
        if choice("of", of, ("value", "lift")) == "lift":
            found = self.lift
        if found is None or found.low is None or found.high is None:
            raise InputError(f"episodes_for: the {of} has no interval to shrink")
        count = int(self.diagnostics["episodes"])
        times = (found.high - found.low) / 2.0 / wanted
        needed = count * times * times
        if not isfinite(needed):
            raise InputError(f"reach: {reach:g} is too small for any number of episodes")
        return max(ceil(needed) - count, 0)

    # -- how it is kept ----------------------------------------------------------------------------

    def _page(self) -> bytes:
        from o2td.report.evaluation import logs_page

        return logs_page(self.as_dict(), self.series).html().encode()

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        force: bool = False,
        states: Iterable[Any] | None = None,
    ) -> Path:
        """Write `evaluation.json`, `report.html`, `values.parquet` and `model.npz`, all or none of them.

        Parameters
        ----------
        folder
            The folder, which must be empty or absent.
        force
            Replace an existing evaluation.
        states
            Parts (inputs, the target's probabilities or None) whose values are written; the log's
            start states by default.
        """
        from o2td.evaluation.output import check_folder, values_writer, write_folder

        target = some_path("folder", folder)
        check_folder(target, switch("force", force))
        files: dict[str, Any] = {"evaluation.json": self.to_json().encode()}
        if self.model is not None:
            parts = self.starts if states is None else listed("states", states, "parts")
            if states is not None and not (parts and all(isinstance(one, tuple) for one in parts)):
                raise InputError("states must be pairs of rows and their probabilities, or None")
            files["values.parquet"] = values_writer(self.model, parts)
            files["model.npz"] = self.model.save
        files["report.html"] = self._page()
        write_folder(target, files)
        return target
