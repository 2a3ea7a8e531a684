"""`evaluate`: logs of one policy in, the value of another out, with an interval and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from o2td.evaluation.arguments import check_arguments, method_names
from o2td.evaluation.bootstrap import LANES
from o2td.evaluation.episodes import Log
from o2td.evaluation.model import ValueModel
from o2td.evaluation.plan import Plan
from o2td.evaluation.result import Estimate, Evaluation, finite
from o2td.evaluation.statistic import run_passes
from o2td.evaluation.study import Settings, Study
from o2td.evaluation.survey import Survey
from o2td.evaluation.thresholds import Thresholds
from o2td.evaluation.verdicts import Case, Grounds, agreement, doubt_fits, judge_case, recommend
from o2td.registry import LOG_TESTS
from o2td.sources.rows import NO_FINAL, UNHELD

__all__ = ["evaluate"]


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
    **options: Any,
) -> Evaluation:
    """The value of the target policy, `E[V(s_0)]`, from logs of another policy.

    The mean is over the start states' distribution, of which the log's are a sample: intervals
    cover the doubt about them too. They resample episodes, never rows.

    Parameters
    ----------
    logs
        A source of `o2td.sources`, or what `o2td.sources.open_logs` takes: paths or a frame.
    discount
        Gamma; may be left out where the source or a column has it.
    features
        "auto" (chosen on held-out episodes; one weight a state where the log has states), a text such
        as "fourier:3", a transformer, or an (S, d) table.
    methods
        Some of lstd, plugin, lstdq, lsetd, sotd, o2td, etd, tdrc, is, wis, pdis, wpdis, dr, wdr. None:
        all that fit the log.
    target
        A policy, for `open_logs`.
    confidence
        Of the intervals.
    seed
        Of the bootstrap and of random choices; the same seed and log give the same answer.
    trace
        Lambda of LSTD where `features` are given (default 0); "auto" chooses its own.
    lanes
        Bootstrap lanes.
    thresholds
        What the verdicts turn on.
    options
        More for `open_logs`: `columns`, `behavior`, `sort`, `densities`.

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
    check_arguments(confidence, seed, trace, lanes, thresholds, features)
    named = method_names(methods)
    bounds = thresholds or Thresholds()
    log = Log.of(logs, discount, target, **options)
    study = Study(log, Settings(confidence, seed, lanes, trace, bounds))
    tests = [LOG_TESTS[name]() for name in LOG_TESTS]
    run_passes(log, [study.collect(), *(test.collect(study) for test in tests)])
    findings = [found for test in tests if (found := test.find(study)) is not None]
    survey = study.survey
    plan = Plan(log, survey, features, named, trace, lanes, seed, confidence)
    cases = plan.cases()
    grounds = _grounds(survey, plan, bounds)
    base = plan.base
    for case in [base, *(case for case in cases if case is not base)]:
        judge_case(case, grounds, base)
        for found in findings:
            if not found.passed:
                case.note(found.verdict, found.reason)
    doubt_fits(cases, bounds)
    best = recommend(cases)
    agreed = agreement(best, cases, bounds)
    model = plan.model(best.method)
    ordered = [best, *(case for case in cases if case is not best)]
    return Evaluation(
        best.verdict,
        [*best.reasons, *plan.remarks],
        [_estimate(case) for case in ordered],
        finite({**_diagnostics(survey, plan, best, agreed, bounds), "model": _of(model)}),
        finite(plan.chosen),
        model,
        finite({**survey.series(), **plan.series()}),
        findings,
    )


def _grounds(survey: Survey, plan: Plan, bounds: Thresholds) -> Grounds:
    weights = survey.weights()
    info = plan.log.source.info
    dropped, unheld = info.dropped.get(NO_FINAL, 0), info.notes.get(UNHELD, 0)
    return Grounds(
        survey.episodes,
        weights["effective_sample_size"],
        weights["pareto_shape"],
        weights["max_weight_share"],
        survey.support(),
        survey.step_support(),
        survey.weighed.spread("plain").deviation,
        survey.left(),
        weights["effective_rows"],
        survey.endless,
        survey.hastened(dropped),
        survey.hastened(dropped, survey.unknown),
        survey.lost(unheld),
        survey.lost(unheld, alone=True),
        bounds,
    )


def _of(model: ValueModel | None) -> str | None:
    """The method whose value function is handed over."""
    return None if model is None else model.method


def _estimate(case: Case) -> Estimate:
    number = finite
    reason = "; ".join(case.reasons) or "no doubt that the thresholds know"
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
        case.about,
    )


def _diagnostics(
    survey: Survey, plan: Plan, best: Case, agreed: list[dict[str, Any]], bounds: Thresholds
) -> dict[str, Any]:
    info = plan.log.source.info
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
        "condition": best.condition,
        "agreement": agreed,
        "ratio": info.ratio,
        "verified": info.verified,
        "unverified_files": list(info.unverified),
        "passes": plan.log.passes,
        "population": "the target's value averaged over the distribution of start states, of which"
        " the log's are a sample",
        "thresholds": bounds.as_dict(),
    }
