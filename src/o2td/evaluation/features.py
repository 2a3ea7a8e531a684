"""From `features=` to systems of equations: given, one weight per state, or chosen from data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from o2td.arguments import answer_of
from o2td.errors import InputError, option
from o2td.evaluation.basis import Cells, States, table_of
from o2td.evaluation.cells import CellSystem
from o2td.evaluation.episodes import Episodes
from o2td.evaluation.fitting import AnySystem
from o2td.evaluation.select import Choice, judge, panel, systems_of
from o2td.evaluation.survey import Survey, by_fold
from o2td.evaluation.systems import FOLDS, FeatureSystem
from o2td.features import Aggregation, Tabular, Transformer, parse
from o2td.sources.places import named

JUDGED = 20_000  # rows on which candidates are judged
_LEAST = 400  # with fewer rows nothing is judged


@dataclass(eq=False)
class Chosen:
    """The lead system, the panel of alternatives, and how they were chosen.

    `exact` says that the features can express any values (one weight per state of the log),
    `average` that the estimate is the panel's mean rather than the lead's own.
    """

    lead: Any
    panel: list[AnySystem] = field(default_factory=list)
    exact: bool = False
    average: bool = False
    account: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    size: int = 0
    tabular: Any = None
    kept: list[Choice] = field(default_factory=list)

    def again(self) -> Chosen:
        """The same features for another target: systems without sums."""
        panel: list[AnySystem] = list(systems_of(self.kept))
        return replace(self, lead=panel[0] if self.average else _empty(self.lead), panel=panel)

    @cached_property
    def states(self) -> States:
        """Dense features of states by the lead's map."""
        basis = self.lead.basis
        return basis if isinstance(basis, States) else States(basis.features)

    @property
    def online(self) -> States | Cells:
        """The system that online learners use."""
        basis: States | Cells = self.lead.basis
        return basis

    @property
    def width(self) -> int:
        """Number of features."""
        return int(getattr(self.lead.basis.features, "n_features_out_", None) or self.size)

    @cached_property
    def finer(self) -> CellSystem | None:
        """One weight per state, if the log has states and the lead is coarser than that."""
        plain = self.exact and isinstance(self.lead, CellSystem)
        return None if plain or self.tabular is None else CellSystem(Cells(self.tabular))


def _empty(system: AnySystem) -> AnySystem:
    if isinstance(system, CellSystem):
        return CellSystem(system.basis, uses_ratios=system.uses_ratios)
    return FeatureSystem(system.basis, system.trace, ridge=system.ridge)


def choose(
    survey: Survey,
    sample: Episodes,
    features: Any,
    trace: float | None,
    seed: int,
    others: Sequence[Episodes] = (),
) -> Chosen:
    """Resolve `features`; `others` are the same sample under other targets that share them."""
    states = sample.rows.state is not None and sample.rows.observation is None
    tabular = _fitted(Tabular(), survey, sample) if states else None
    if isinstance(features, str) and features == "auto":
        if states:
            chosen = _exact(tabular, "the log has states, so each gets its own weight")
        else:
            chosen = _auto(sample, seed, others)
    else:
        made = parse(features) if isinstance(features, str) else features
        fitted = _fitted(made, survey, sample, option("features", f"--features {features}"))
        chosen = _given(fitted, sample, trace or 0.0, states, seed, others)
    chosen.tabular = tabular
    if not chosen.size:
        basis = chosen.lead.basis
        one = sample.rows.input[:1]
        known = getattr(basis.features, "n_features_out_", None)
        chosen.size = int(known or basis.phi(one).shape[1])
    return chosen


def _exact(tabular: Any, why: str) -> Chosen:
    account = {"picked": "tabular", "why": why, "count": tabular.n_features_out_}
    return Chosen(CellSystem(Cells(tabular)), exact=True, account=account)


def _fitted(features: Any, survey: Survey, sample: Episodes, who: str = "features") -> Any:
    """Fit feature maps to the range of the whole log; leave callables and tables alone."""
    if hasattr(features, "shape") or not hasattr(features, "transform"):
        if not (hasattr(features, "shape") or callable(features)):
            raise InputError(
                f"{who}: {features!r} is not a text, a transformer, a callable or a table"
            )
        return table_of(features) if hasattr(features, "shape") else features
    if isinstance(features, Transformer):
        if sample.rows.observation is None and not isinstance(features, (Aggregation, Tabular)):
            tabular = option('features="tabular"', "--features tabular")
            raise InputError(
                f"{who}: {features.feature} needs columns of observations, and the log gives states;"
                f" use {tabular}, or say that the column is one, {named('observation', 'NAME')}"
            )
        # These maps learn nothing from data but its range.
        return features.fit(np.stack([survey.low, survey.high]))
    if hasattr(features, "fit"):
        answer_of(who, features.fit, sample.rows.input)
    return features


def _auto(sample: Episodes, seed: int, others: Sequence[Episodes]) -> Chosen:
    judged = by_fold(first_episodes(sample))
    if len(judged.rows) < _LEAST or judged.count < 2 * FOLDS:
        return _few(judged, seed)
    choices = _judged(judged, seed, others)
    if not choices:
        raise InputError(
            "features: no candidate could be fitted to this log; pass "
            f"{option('features=', '--features')}"
        )
    kept = panel(choices)
    systems: list[AnySystem] = list(systems_of(kept))
    why = (
        f"{len(kept)} of {len(choices)} candidates are kept, those that held-out episodes do not show to"
        " be worse than the best: by the kernel Bellman loss and, where weights keep half of the"
        " episodes effective, by weighted returns; the estimate is a mean of the middle half of them, in"
        " which fits without a trace count twice; the first is the model"
    )
    account = {
        "picked": kept[0].name,
        "trace": kept[0].trace,
        "ridge": kept[0].ridge,
        "count": kept[0].d,
        "why": why,
        "rows_judged": len(judged.rows),
        "candidates": [choice.as_dict() for choice in choices],
    }
    return Chosen(systems[0], systems, average=True, account=account, kept=kept)


def _judged(judged: Episodes, seed: int, others: Sequence[Episodes]) -> list[Choice]:
    """Judge candidates; one that another target rejects is rejected here too, if any remains."""
    choices = judge(judged, seed)
    fit = [choice for choice in choices if not choice.verdict]
    for other in others:
        theirs = {
            (choice.name, choice.trace): choice.verdict
            for choice in judge(by_fold(first_episodes(other)), seed)
        }
        names = [(choice.name, choice.trace) for choice in fit]
        unfit = [theirs.get(name, "left out: no finite fit") for name in names]
        if all(unfit):
            continue
        for choice, why in zip(fit, unfit, strict=True):
            if why:
                choice.verdict = f"{why}, for another policy"
        fit = [choice for choice in fit if not choice.verdict]
    return choices


def _few(sample: Episodes, seed: int) -> Chosen:
    """Too few rows to judge by: features linear in the observations."""
    from o2td.features import Polynomial

    features = Polynomial(1).fit(np.asarray(sample.rows.input, dtype=np.float64))
    why = f"{len(sample.rows)} rows are too few to choose by, so the simplest basis is used"
    account = {"picked": "polynomial:1", "why": why, "count": features.n_features_out_}
    return Chosen(FeatureSystem(States(features), ridge=1e-8), account=account, remarks=[why])


def _given(
    features: Any,
    sample: Episodes,
    trace: float,
    states: bool,
    seed: int,
    others: Sequence[Episodes],
) -> Chosen:
    lead: AnySystem
    if hasattr(features, "state_of"):
        if trace:
            raise InputError(
                f"trace: {trace:g} needs features that states share; leave it out where each cell"
                " has a weight of its own"
            )
        lead = CellSystem(Cells(features))
        exact = states and isinstance(features, Tabular)
    else:
        lead, exact = FeatureSystem(States(features), trace, ridge=1e-9), False
    account: dict[str, Any] = {"picked": lead.label, "why": "given"}
    chosen = Chosen(lead, exact=exact, account=account)
    if exact or states:
        return chosen
    judged = by_fold(first_episodes(sample))
    if len(judged.rows) >= _LEAST and judged.count >= 2 * FOLDS:
        choices = _judged(judged, seed, others)
        chosen.kept = panel(choices) if choices else []
        chosen.panel = list(systems_of(chosen.kept))
        account["candidates"] = [choice.as_dict() for choice in choices]
        account["why"] = "given; the candidates show how other features would change the answer"
    return chosen


def first_episodes(sample: Episodes, rows: int = JUDGED) -> Episodes:
    """The first episodes of a sample, about `rows` rows."""
    if len(sample.rows) <= rows:
        return sample
    last = max(int(np.searchsorted(sample.first, rows)), min(2 * FOLDS, sample.count))
    lone = 0 if sample.lone is None else last * len(sample.lone) // sample.count
    return sample.pick(np.arange(sample.count) < last, slice(0, lone))
