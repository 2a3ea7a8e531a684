"""`compare`: several policies on one log, with intervals of their paired differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from o2td.arguments import shown, text
from o2td.arrays import Floats
from o2td.errors import InputError, import_extra
from o2td.evaluation.arguments import check_arguments, method_names
from o2td.evaluation.bootstrap import LANES
from o2td.evaluation.comparison import Comparison, Standing
from o2td.evaluation.contrasts import Contrasts
from o2td.evaluation.differences import (
    LOGGED,
    Difference,
    NamedCase,
    joint,
    lanes_of,
    measure,
    moved,
    paired_lanes,
)
from o2td.evaluation.episodes import check_options
from o2td.evaluation.evaluate import conclude, lift_of, logged_value
from o2td.evaluation.log_test import LogTest
from o2td.evaluation.moments import Spread
from o2td.evaluation.plan import together
from o2td.evaluation.result import Evaluation
from o2td.evaluation.shared_log import SharedLog, run_together
from o2td.evaluation.starts import Starts
from o2td.evaluation.statistic import Passes
from o2td.evaluation.study import SHORT, Settings, Study
from o2td.evaluation.thresholds import CANNOT, CAUTION, TRUST, Thresholds
from o2td.evaluation.verdicts import Case
from o2td.registry import LOG_TESTS
from o2td.sources import LogSource
from o2td.sources.several import open_policies

RESERVED = (LOGGED, "value", "lift")
_DRAWS = 25  # draws of the approximation error in each bootstrap lane
Pair = tuple[str, str]


def compare(
    logs: Any,
    discount: float | None = None,
    policies: Mapping[str, Any] | None = None,
    baseline: str = LOGGED,
    features: Any = "auto",
    methods: Sequence[str] | str | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    *,
    trace: float | None = None,
    lanes: int = LANES,
    thresholds: Thresholds | None = None,
    horizon: int | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Comparison:
    """Which of several policies is worth most, and by how much, from logs of another one.

    One estimator computes all differences, on features shared by all policies: the one that can be
    trusted for most policies and has the narrowest intervals. Intervals are paired: two estimates
    from the same episodes share part of their error, which cancels in the difference.

    Parameters
    ----------
    logs
        As for `evaluate`; a source that is already open is accepted, but its own target is ignored.
    discount
        Gamma.
    policies
        Name to policy: a callable, an object with `predict_proba`, a module, an (S, A) array, or the
        name of a log column that holds the policy's probability of the action taken (a column of
        lists, or the common prefix of several columns, gives those of all actions; ``"rho:NAME"`` a
        ratio, ``"logprob:NAME"`` a log-probability).
    baseline
        What the policies are compared with: "logged" (the policy that made the log) or one of them.
    features, methods, confidence, seed, trace, lanes, thresholds, horizon, progress, options
        As for `evaluate`; `value_model` may also map policies' names to a model each.

    Examples
    --------
    >>> import pandas as pd
    >>> from o2td import evaluation
    >>> log = pd.DataFrame({"episode": range(60), "state": 0, "action": [0, 1] * 30,
    ...                     "reward": [0.0, 1.0] * 30, "terminated": True})
    >>> log["behavior_prob"] = 0.5
    >>> policies = {"A": [[0.5, 0.5]], "B": [[0.2, 0.8]]}
    >>> both = evaluation.compare(log, discount=1.0, policies=policies)
    >>> found = both.difference("B", "A")
    >>> round(found.value, 6), found.verdict, found.words
    (0.3, 'trust', 'B is better')
    >>> both.best, both.require("B - A > 0.1").holds
    ('B', True)
    """
    given = confidence, seed, trace, lanes, thresholds, features, horizon
    confidence, trace = check_arguments(*given)
    names = _names(policies, baseline)
    assert policies is not None  # noqa: S101
    named = method_names(methods)
    settings = Settings(
        features, confidence, seed, lanes, trace, thresholds or Thresholds(), False, horizon
    )
    sources = _sources(logs, discount, policies, options)
    log = SharedLog(sources, horizon)
    studies = [Study(log.views[0], settings)]
    studies += [Study(view, settings, studies[0]) for view in log.views[1:]]
    tests = [[LOG_TESTS[name]() for name in LOG_TESTS] for _ in studies]
    jobs = [
        together([*(test.collect(study) for test in own), study.collect(*named)])
        for study, own in zip(studies, tests, strict=True)
    ]
    crossed = Crossed(names, studies)
    starts = [Starts(source) for source in sources]
    limited = import_extra("threadpoolctl", "logs").threadpool_limits(1, user_api="blas")
    with ExitStack() as stack:
        stack.enter_context(limited)
        for place, one in enumerate(starts):
            stack.enter_context(one.noting(progress if place == 0 else None))
            stack.enter_context(sources[place].until(horizon))
        run_together(log, [*jobs, crossed.collect()])
        return _answer(names, baseline, studies, tests, starts, crossed)


def _names(policies: Any, baseline: Any) -> list[str]:
    if not isinstance(policies, Mapping) or not policies:
        raise InputError(
            f"policies must be names with their policies, such as {{'A': a, 'B': b}}, got"
            f" {shown(policies)}"
        )
    names = list(policies)
    for name in names:
        if not isinstance(name, str) or not name.strip() or name in RESERVED:
            raise InputError(
                f"policies: {shown(name)} cannot be a policy's name; choose another"
                f" ({', '.join(RESERVED)} mean something else)"
            )
    if text("baseline", baseline) not in (LOGGED, *names):
        raise InputError(
            f"baseline: {shown(baseline)} is unknown; there are {', '.join([LOGGED, *names])}"
        )
    return names


def _sources(
    logs: Any, discount: float | None, policies: Mapping[str, Any], options: dict[str, Any]
) -> list[LogSource]:
    opened = isinstance(logs, LogSource)
    check_options(options, opened)
    if opened and discount is not None and logs.discount != discount:
        raise InputError(
            f"discount: {discount}, but the source was opened with {logs.discount}; leave it out"
        )
    for name, policy in policies.items():
        if policy is None:
            raise InputError(
                f"policies[{name!r}]: None is not a policy; pass one, or the name of a column"
            )
    given = {name: value for name, value in options.items() if name != "target"}
    return open_policies(logs, policies, discount=discount, **given)


class Crossed:
    """Differences between the same estimators of several studies."""

    def __init__(self, names: list[str], studies: list[Study]) -> None:
        self.names, self.studies = names, studies
        self.contrasts = Contrasts()
        self._numbers: dict[tuple[Pair, str], int] = {}

    def collect(self) -> Passes:
        """Wait for the first pass and the fits, then trace the influence of episodes."""
        yield []
        yield []
        columns = [study.columns() for study in self.studies]
        for one, two in combinations(range(len(self.studies)), 2):
            for method in columns[one].keys() & columns[two].keys():
                number = self.contrasts.want(
                    self.studies[one]._traced(columns[one][method]),
                    self.studies[two]._traced(columns[two][method]),
                )
                self._numbers[(self.names[one], self.names[two]), method] = number
        yield [self.contrasts]

    def corrections(self, of: str, over: str) -> list[Spread]:
        """The corrections by weighted histories to the difference of the two references."""
        names = {method for _, method in self._numbers if method.startswith(SHORT)}
        found = (self.spread(of, over, name) for name in sorted(names))
        return [one for one in found if one is not None]

    def spread(self, of: str, over: str, method: str) -> Spread | None:
        """The influence of episodes on a difference; its skewness changes with the sign."""
        if ((of, over), method) in self._numbers:
            return self.contrasts.spread(self._numbers[(of, over), method])
        if ((over, of), method) not in self._numbers:
            return None
        found = self.contrasts.spread(self._numbers[(over, of), method])
        return replace(found, mean=-found.mean, skew=-found.skew)


def _answer(
    names: list[str],
    baseline: str,
    studies: list[Study],
    tests: list[list[LogTest]],
    starts: list[Starts],
    crossed: Crossed,
) -> Comparison:
    answers: dict[str, Evaluation] = {}
    cases: dict[str, dict[str, Case]] = {}
    for name, study, own, begun in zip(names, studies, tests, starts, strict=True):
        answers[name], found = conclude(study, own, begun, name)
        cases[name] = {case.method: case for case in found}
    view = View(dict(zip(names, studies, strict=True)), cases, crossed)
    view.method = _common(view, answers)
    pairs = _pairs(names, baseline)
    measured = [view.difference(*pair) for pair in pairs]
    lanes = [paired_lanes(view.case(of), view.case(over)) for of, over in pairs]
    spreads = [view.spread(*pair) for pair in pairs]
    settings = studies[0].settings
    differences = joint(measured, lanes, spreads, settings.confidence)
    chances = _chances(view, [*names, LOGGED], settings.seed)
    standings = [view.standing(name, chances.get(name), answers[name]) for name in names]
    standings.sort(key=_rank)
    return Comparison(
        baseline, view.method, standings, differences, answers, view.logged_row(chances)
    )


def _rank(one: Standing) -> tuple[bool, float]:
    """Sort key: by value, with policies that have no answer last."""
    return one.verdict == CANNOT or one.value is None, -(one.value or 0.0)


class View:
    """All policies by one method."""

    method = ""

    def __init__(
        self, studies: dict[str, Study], cases: dict[str, dict[str, Case]], crossed: Crossed
    ) -> None:
        self.studies, self.cases, self.crossed = studies, cases, crossed
        first = next(iter(studies.values()))
        self.settings, self.logged = first.settings, first.logged()

    def case(self, name: str) -> Case:
        """The estimate of a policy."""
        return self.logged if name == LOGGED else self.cases[name][self.method]

    def lanes(self, name: str) -> Floats:
        """The estimate of a policy in each bootstrap lane."""
        return lanes_of(self.case(name))

    def spread(self, of: str, over: str) -> Spread | None:
        """The influence of episodes on a difference."""
        if over == LOGGED:
            return self.studies[of].lift_spread(self.method)
        return self.crossed.spread(of, over, self.method)

    def difference(self, of: str, over: str) -> Difference:
        """How much more one policy is worth than another."""
        if over == LOGGED:
            return lift_of(self.studies[of], self.case(of), self.logged, of)
        one, two = self.case(of), self.case(over)
        reference = self.studies[of].reference, self.studies[over].reference
        error = moved(one, two, reference, self.crossed.corrections(of, over))
        spread = self.spread(of, over)
        return measure(NamedCase(of, one), NamedCase(over, two), spread, self.settings, error)

    def standing(self, name: str, chance: float | None, answer: Evaluation) -> Standing:
        """A policy's value by the method of the comparison."""
        row = answer[self.method].as_dict()
        own = answer.recommended.method
        reasons = list(row["reasons"])
        if own != self.method:
            reasons.append(f"for this policy alone {own} would be recommended")
        reasons += self.studies[name].source.assumptions
        numbers = ("value", "low", "high", "standard_error", "approximation_error", "verdict")
        found: dict[str, Any] = {one: row[one] for one in numbers}
        return Standing(name, self.method, **found, reasons=reasons, best=chance)

    def logged_row(self, chances: Mapping[str, float]) -> dict[str, Any]:
        """The policy that made the log."""
        return {**logged_value(self.logged), "probability_best": chances.get(LOGGED)}


def _pairs(names: list[str], baseline: str) -> list[Pair]:
    """Pairs with the baseline, then between policies, then with the log if not the baseline."""
    to_base = [(name, baseline) for name in names if name != baseline]
    rest = [(two, one) for one, two in combinations(names, 2) if baseline not in (one, two)]
    logged = [(name, LOGGED) for name in names] if baseline != LOGGED else []
    return [*to_base, *rest, *logged]


def _common(view: View, answers: dict[str, Evaluation]) -> str:
    """The method for all policies: that with the best verdicts, then the narrowest intervals."""
    names = list(answers)
    shared = [
        method
        for method in view.cases[names[0]]
        if all(method in view.cases[name] for name in names)
    ]
    able = [m for m in shared if view.cases[names[0]][m].estimator.recommendable] or shared
    if not able:
        raise InputError(
            'methods: none fits this log for all policies; name some that do, methods="lstd,wdr"'
        )
    order = {TRUST: 0, CAUTION: 1, CANNOT: 2}

    def rank(method: str) -> tuple[Any, ...]:
        found = [view.cases[name][method] for name in names]
        words = sorted((order[case.verdict] for case in found), reverse=True)
        faults = max(max(c.faults, float(c.contradicted and not c.faults)) for c in found)
        one = found[0]
        finite = all(np.isfinite(case.value) for case in found)
        width = one.handicap(_doubt(view, method))
        kind = (one.weighs_histories, one.estimator.mends)
        return not finite, words, faults, *kind, width

    return min(able, key=rank)


def _doubt(view: View, method: str) -> float:
    """The mean half-width of all differences, including their approximation errors."""
    view.method = method
    names = [*view.studies, LOGGED]
    widths = []
    for one, two in combinations(names, 2):
        found = view.difference(one, two)
        ends = found.ends()
        widths.append(np.inf if ends is None else (ends[1] - ends[0]) / 2.0)
    return float(np.mean(widths))


def _chances(view: View, names: list[str], seed: Any) -> dict[str, float]:
    """How often each policy is the best one, over bootstrap lanes and the approximation error."""
    able = [
        name for name in names if view.case(name).verdict != CANNOT and len(view.lanes(name)) > 1
    ]
    if not able:
        return {}
    lanes = np.column_stack([view.lanes(name) for name in able])
    lanes = lanes[np.isfinite(lanes).all(axis=1)]
    blur = np.array([_blur(view, name, able) for name in able])
    draws = np.repeat(lanes, _DRAWS if blur.any() else 1, axis=0)
    if blur.any():
        draws = draws + blur * np.random.default_rng(seed).standard_normal(draws.shape)
    top = draws >= draws.max(axis=1, keepdims=True) - 1e-12 * np.abs(draws).max()
    share = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    return {name: float(one) for name, one in zip(able, share, strict=True)}


def _blur(view: View, name: str, others: list[str]) -> float:
    """A policy's own share of the approximation errors of its differences."""
    if name == LOGGED:
        return 0.0
    found = [
        view.difference(name, other).approximation_error or 0.0
        for other in others
        if other not in (name, LOGGED)
    ]
    if not found:
        return float(view.case(name).approximation or 0.0)
    return float(np.mean(found) / np.sqrt(2.0))
