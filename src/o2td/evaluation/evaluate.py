"""`evaluate`: the value of one policy from logs of another, with an interval and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from o2td.arguments import switch
from o2td.documents import finite
from o2td.errors import import_extra
from o2td.evaluation.arguments import check_arguments, method_names
from o2td.evaluation.audit import facts
from o2td.evaluation.bootstrap import LANES
from o2td.evaluation.differences import LOGGED, Difference, NamedCase, measure
from o2td.evaluation.episodes import Log
from o2td.evaluation.families import weight_doubts
from o2td.evaluation.horizon import HorizonLog
from o2td.evaluation.log_test import BIASED, Finding, LogTest
from o2td.evaluation.plan import run_passes
from o2td.evaluation.result import Estimate, Evaluation
from o2td.evaluation.returns import ReturnDistribution
from o2td.evaluation.segments import by_segment, labels_of
from o2td.evaluation.starts import Starts
from o2td.evaluation.study import Settings, Study
from o2td.evaluation.thresholds import CANNOT, Thresholds
from o2td.evaluation.value_model import ValueModel
from o2td.evaluation.verdicts import Case, agreement, doubt_fits, judge, preferred, recommend, veto
from o2td.registry import LOG_TESTS


def evaluate(
    logs: Any,
    discount: float | None = None,
    features: Any = "auto",
    methods: Sequence[str] | str | None = None,
    target: Any = None,
    confidence: float = 0.95,
    seed: int = 0,
    *,
    trace: float | None = None,
    lanes: int = LANES,
    thresholds: Thresholds | None = None,
    influence: bool = False,
    horizon: int | None = None,
    segments: Any = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Evaluation:
    """The value of the target policy, `E[V(s_0)]`, from logs of another policy.

    The mean is over the distribution of start states, of which the log holds a sample, so intervals
    include the uncertainty about it. They resample episodes, never rows.

    Parameters
    ----------
    logs
        A source of `o2td.sources`, or anything that `o2td.sources.open_logs` takes: paths or a
        frame.
    discount
        Gamma; optional if the source or a column has it.
    features
        "auto" (chosen on held-out episodes; one weight per state if the log has states), a text
        such as "fourier:3", a transformer, or an (S, d) table.
    methods
        Some of lstd, plugin, lstdq, tstep, stacked, lagged, magic, lstd_auto, lsetd, sotd, arctd,
        o2td, etd, tdrc, is, wis, pdis, wpdis, dr, wdr and those of other packages. None means those
        that fit the log and can be recommended; "all" means all that fit the log.
    target
        A policy, for `open_logs`.
    confidence
        Confidence level of the intervals.
    seed
        Seed of the bootstrap and of random choices; the same seed and log give the same answer.
    trace
        Lambda of LSTD if `features` are given (default 0); "auto" features choose their own.
    lanes
        Number of bootstrap lanes.
    thresholds
        The thresholds that decide the verdicts.
    influence
        Store the influence of each episode on each estimate, for `Evaluation.influence`.
    horizon
        Number of steps over which rewards count. None means until episodes terminate.
    segments
        Also compute the value by segment of start states: a column that the policy sees, or a
        function of observations (or states) that returns a label per row, none of them missing
        (None or NaN). All rows count for each segment.
    progress
        Called with the number of rows of each chunk that is read.
    options
        Further options of `open_logs`: `columns`, `behavior`, `sort`, `densities`, `actions` (the
        log's names of the actions in the policy's order), and `value_model`, a V or Q of your own
        that `dr` and `wdr` correct instead of their own fit.

    Examples
    --------
    >>> import pandas as pd
    >>> from o2td import evaluation
    >>> log = pd.DataFrame({"episode": range(60), "state": 0, "reward": [0.0, 1.0] * 30,
    ...                     "terminated": True, "rho": [0.5, 1.5] * 30})
    >>> answer = evaluation.evaluate(log, discount=0.9)
    >>> answer.verdict, answer.recommended.method, round(answer.recommended.value, 6)
    ('trust', 'lstd', 0.75)
    """
    given = confidence, seed, trace, lanes, thresholds, features, horizon
    confidence, trace = check_arguments(*given)
    named, keep = method_names(methods), switch("influence", influence)
    bounds = thresholds or Thresholds()
    log = Log.of(logs, discount, target, **options)
    if horizon is not None:
        log = HorizonLog(log, horizon)
    if segments is not None:
        labels_of(segments, log.source)  # reject an unknown column before anything is read
    settings = Settings(features, confidence, seed, lanes, trace, bounds, keep, horizon)
    study = Study(log, settings)
    tests = [LOG_TESTS[name]() for name in LOG_TESTS]
    # On systems of a few hundred rows, threads that wait for each other cost more than they save.
    limited = import_extra("threadpoolctl", "logs").threadpool_limits(1, user_api="blas")
    starts = Starts(log.source)
    with limited, starts.noting(progress), log.source.until(horizon):
        run_passes(log, [*(test.collect(study) for test in tests), study.collect(*named)])
        return conclude(study, tests, starts, segments=segments)[0]


def conclude(
    study: Study,
    tests: list[LogTest],
    starts: Starts,
    name: str = "target",
    segments: Any = None,
) -> tuple[Evaluation, list[Case]]:
    """The answer after all passes, and the cases that it rests on."""
    findings = [found for test in tests if (found := test.find(study)) is not None]
    cases = study.cases()
    for case in study.judged(cases):
        judge(case, study)
        _heed(case, findings, study)
    bounds = study.settings.thresholds
    doubt_fits(cases, study)
    best = recommend(cases)
    agreed = agreement(best, cases, bounds)
    veto(best, cases, study)
    answer = _answer(study, findings, starts, cases, best, agreed, name)
    if segments is None:
        return answer, cases

    def judged(case: Case, own: Study) -> None:
        judge(case, own)
        _heed(case, findings, own)

    method = best.method if best.estimator.kind == "fit" else study.reference.method
    return replace(answer, segments=by_segment(study, segments, method, judged)), cases


def _answer(
    study: Study,
    findings: list[Finding],
    starts: Starts,
    cases: list[Case],
    best: Case,
    agreed: list[dict[str, Any]],
    name: str,
) -> Evaluation:
    model = _model(study, best, cases)
    logged = study.logged()
    ordered = [best, *(case for case in cases if case is not best)]
    whose = None if model is None else model.method
    return Evaluation(
        best.verdict,
        [*best.reasons, *study.choice.remarks, *study.source.assumptions],
        [_estimate(case) for case in ordered],
        finite(
            {**_diagnostics(study, best, agreed), **_given_values(study, cases), "model": whose}
        ),
        finite(study.choice.account),
        model,
        finite({**study.survey.series(), **_series(study, cases)}),
        findings,
        logged_value(logged),
        finite(facts(study)),
        starts,
        _influence(study, cases) if study.settings.influence else None,
        _lift(study, cases, logged, name),
        _returns=_returns(study),
    )


def _returns(study: Study) -> ReturnDistribution:
    """The distribution of returns, with notes on the weights and on how episodes end."""
    doubts: list[tuple[str, str]] = [(doubt[0], doubt[1]) for doubt in weight_doubts(study.grounds)]
    cut, bounds = study.grounds.cut, study.settings.thresholds
    if cut > bounds.cut_caution:
        doubts.append((CANNOT, f"truncated episodes leave about {cut:.0%} of the return unknown"))
    asked = study.settings
    sample = study.weighed.returns
    return ReturnDistribution(sample, doubts, asked.confidence, asked.seed, asked.lanes)


def _lift(study: Study, cases: list[Case], logged: Case, name: str) -> Difference:
    """The lift by the most trusted estimator; among equals, by that with the narrowest interval."""
    found = {id(case): lift_of(study, case, logged, name) for case in cases}

    def doubt(case: Case) -> float:
        ends = found[id(case)].ends()
        return np.inf if ends is None else ends[1] - ends[0]

    return found[id(preferred(cases, doubt))]


def lift_of(study: Study, case: Case, logged: Case, name: str) -> Difference:
    """How much an estimate exceeds the value of the policy that made the log."""
    spread = study.lift_spread(case.method)
    sides = NamedCase(name, case), NamedCase(LOGGED, logged)
    return measure(*sides, spread, study.settings, case.approximation)


def logged_value(case: Case) -> dict[str, Any]:
    """The logged policy's own value, with its interval."""
    numbers = (case.value, case.interval.low, case.interval.high, case.interval.standard_error)
    names = ("value", "low", "high", "standard_error")
    found = dict(zip(names, map(float, numbers), strict=True))
    made: dict[str, Any] = finite({**found, "interval": case.interval.name})
    return made


def _influence(study: Study, cases: list[Case]) -> dict[str, Any]:
    """Episode numbers and the influence of each on each estimate, one column per method."""
    kept = study.influences.kept
    found = {"episode": np.concatenate([number for number, _, _ in kept])}
    for case in cases:
        influence = case.outcome.influence
        if case.outcome.interval is None and influence is not None:
            assert influence.values is not None  # noqa: S101  # they were asked for
            found[case.method] = influence.values
    return found


def _heed(case: Case, findings: list[Finding], study: Study) -> None:
    """Note which failed log tests concern an estimate of this kind."""
    kind, spared = case.estimator.kind, case.estimator.spared(study)
    if study.settings.horizon is not None and kind in BIASED and "clock" not in spared:
        case.contradicted, case.faults = True, case.faults + 1.0
        case.note(CANNOT, f"it ignores time, but the value over {study.steps} steps was requested")
    for found in findings:
        if found.passed or found.name in spared:
            continue
        if kind in found.biased or kind in found.kinds:
            case.contradicted |= kind in found.biased
            case.faults += (kind in found.biased) * case.estimator.fault(found.name)
            case.note(found.verdict, found.reason)


def _model(study: Study, best: Case, cases: list[Case]) -> ValueModel | None:
    """LSTD's value function or, if LSTD was not requested, the recommended or first estimator's.

    Weighted histories have none; if nothing else was requested, LSTD's is used again.
    """
    base = study.reference
    first = [best, *cases]
    for case in (base, *first) if base in cases else (*first, base):
        found = case.outcome.model
        if found is not None and np.isfinite(found[0]).all():
            return ValueModel.of(*found, case.method, study.source)
    return None


def _estimate(case: Case) -> Estimate:
    number = finite
    reason = "; ".join(case.reasons) or "passes every threshold"
    return Estimate(
        case.method,
        number(float(case.value)),
        number(float(case.interval.low)),
        number(float(case.interval.high)),
        case.interval.name,
        number(case.approximation),
        case.verdict,
        reason,
        list(case.reasons),
        number(float(case.interval.standard_error)),
        case.outcome.about,
        case.estimator.title,
        case.estimator.kind,
    )


def _diagnostics(study: Study, best: Case, agreed: list[dict[str, Any]]) -> dict[str, Any]:
    survey, info = study.survey, study.source.info
    mean, error = survey.step_support()
    return {
        "rows": survey.rows,
        "episodes": survey.episodes,
        "dropped": sum(info.dropped.values()),
        "dropped_by_reason": dict(info.dropped),
        "lone_starts": survey.weighed.lone,
        "notes": dict(info.notes),
        **survey.weights(),
        "support": min(survey.support(), 1.0 - best.unlogged),
        "unlogged_share": best.unlogged,
        "mean_rho": mean,
        "mean_rho_error": error,
        "zero_ratio_share": survey.zero / survey.rows,
        "truncated_share": 1.0 - survey.weighed.totals.ended / survey.episodes,
        "overlap": survey.overlap(),
        "condition": best.outcome.condition,
        "agreement": agreed,
        "ratio": info.ratio,
        "verified": info.verified,
        "unverified_files": list(info.unverified),
        "passes": study.log.passes,
        "population": "the target's value averaged over the distribution of start states, of which"
        " the log's are a sample",
        "thresholds": study.settings.thresholds.as_dict(),
    }


def _given_values(study: Study, cases: list[Case]) -> dict[str, Any]:
    """What is known about a value model of the user's."""
    if study.own is None:
        return {}
    name, by = str(study.source.own_values), [c for c in cases if c.estimator.kind == "hybrid"]
    note = (
        "It was not fitted here, so no cross-fitting is needed if it never saw these episodes. This"
        " cannot be checked; if it did see them, intervals may be too narrow."
    )
    said = f"The value model given ({name}) is not corrected by any requested method."
    if by:
        made = " and ".join(f"{case.value:.4g} by {case.method}" for case in by)
        said = (
            f"The value model given ({name}) says {study.control.mean:.4g}; corrected by weighted"
        )
        said += f" histories, {made}."
    value = study.control.mean if by else None
    found = {"from": name, "value": value, "cross_fitted": False, "said": f"{said} {note}"}
    return {"value_model": found}


def _series(study: Study, cases: list[Case]) -> dict[str, Any]:
    """Learning curves, the calibration of an estimated behaviour, and the choice of features."""
    series: dict[str, Any] = {
        "curves": {c.method: c.outcome.curve for c in cases if c.outcome.curve is not None}
    }
    behavior, account = study.source.behavior_model, study.choice.account
    if behavior is not None:
        series["calibration"] = vars(behavior.calibration)
    if "candidates" in account:
        listed = account["candidates"]
        columns = list(listed[0]) if listed else []
        series["choice"] = {
            "columns": columns,
            "rows": [[row[name] for name in columns] for row in listed],
            "why": account["why"],
        }
    series["log"] = str(study.source.info).splitlines()
    return series
