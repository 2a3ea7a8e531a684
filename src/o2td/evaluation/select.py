"""`features="auto"`: chooses basis, trace and ridge on held-out episodes, without the truth.

Every candidate is fitted on four fifths of the episodes and judged on the rest, five times, by the
kernel Bellman loss and by the error against weighted per-decision returns. A basis is rejected if
one of its losses exceeds the best by more than `REJECT` standard errors. Returns can reject one
only if their weights keep at least `ENOUGH` of the episodes effective and the difference rests on
at least `CARRYING` episodes, because a few heavy ones favour whatever happens to suit them. The
losses cannot decide among the rest, whose answers still differ, some too high and some too low, so
all of them are kept as a panel, each without and with a long trace. The estimate is two thirds of
the midmean without a trace plus one third of the midmean with one, and the distances of the fits
from it show how much the choice of features changes the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from o2td.arrays import Floats, Ints
from o2td.evaluation.basis import States
from o2td.evaluation.candidates import RIDGES, TRACES, candidates, nested
from o2td.evaluation.episodes import Episodes
from o2td.evaluation.fitting import across
from o2td.evaluation.losses import Yardstick
from o2td.evaluation.moments import Spread
from o2td.evaluation.survey import folds_of
from o2td.evaluation.systems import FOLDS, FeatureSystem, slices
from o2td.sources import LogRows

REJECT = 3.0
ENOUGH = 0.5  # share of the episodes
CARRYING = 30.0  # episodes that must share in a difference of errors against returns
UNSTABLE = 10.0  # multiple of the kernel loss's median noise: the fit is unstable across folds


@dataclass(eq=False)
class Choice:
    """A candidate and its losses on held-out episodes."""

    features: Any
    name: str
    d: int
    trace: float
    ridge: float
    bellman: float
    bellman_noise: float
    returns: Floats  # per episode; their sum is the mean squared error
    value: float
    verdict: str = ""

    @property
    def returns_error(self) -> float:
        """Root of the weighted mean squared error against returns."""
        return float(np.sqrt(self.returns.sum()))

    def as_dict(self) -> dict[str, Any]:
        """For reports."""
        return {
            "features": self.name,
            "count": self.d,
            "trace": self.trace,
            "ridge": self.ridge,
            "kernel_bellman_loss": self.bellman,
            "kernel_bellman_noise": self.bellman_noise,
            "returns_error": self.returns_error,
            "value": self.value,
            "verdict": self.verdict,
        }


def judge(block: Episodes, seed: int) -> list[Choice]:
    """All candidates on the episodes of `block`, across folds."""
    yardstick = Yardstick.of(block, seed)
    inputs = np.asarray(block.rows.input, dtype=np.float64).reshape(len(block.rows), -1)
    maps = list(candidates(inputs, seed, len(inputs)))
    inside = nested(maps)
    judged: dict[int, list[Choice]] = {}
    for k in dict.fromkeys(whole for whole, _ in inside):
        members = {m: index for m, (whole, index) in enumerate(inside) if whole == k}
        judged |= _judged(
            States(maps[k]), {m: (maps[m], members[m]) for m in members}, block, yardstick
        )
    found = [choice for k in range(len(maps)) for choice in judged[k]]
    found = [choice for choice in found if np.isfinite([choice.value, choice.bellman]).all()]
    _reject(found, yardstick.effective >= ENOUGH * block.count)
    return found


def _judged(
    whole: States, members: dict[int, tuple[Any, Ints]], block: Episodes, yardstick: Yardstick
) -> dict[int, list[Choice]]:
    """For each member, one choice per trace, with the ridge of least kernel Bellman loss.

    A member is a map whose features are among those of `whole`, with their places: features and
    sums are computed once for all of them.
    """
    parts = slices(block, whole.features.n_features_out_)
    systems = [FeatureSystem(whole, trace) for trace in TRACES]
    for part in parts:
        rows, fold = whole.rows(part), folds_of(part.key, FOLDS)
        for system in systems:
            system.add(part, rows, fold, None)
    tried = [
        (k, system.part(States(features), index, ridge))
        for k, (features, index) in members.items()
        for system in systems
        for ridge in RIDGES
    ]
    theta = np.column_stack([one.lift(across(one)) for _, one in tried])
    values = np.concatenate([whole.phi(part.rows.input) @ theta for part in parts])
    corrected = _corrected(whole, block.rows.take(yardstick.at), theta)
    fold = np.repeat(folds_of(block.key, FOLDS), np.diff(block.first))
    mine = [slice(k * FOLDS, (k + 1) * FOLDS) for k in range(len(tried))]
    at = fold[yardstick.at]
    losses, noises = yardstick.bellman(np.column_stack([own(corrected[:, m], at) for m in mine]))
    found: dict[int, list[Choice]] = {k: [] for k in members}
    for n, (k, system) in enumerate(tried):
        returns = yardstick.returns_error(block, own(values[:, mine[n]], fold))
        value = float(system.start() @ system.solve().theta)
        fit = (len(members[k][1]), system.trace, system.ridge, float(losses[n]), float(noises[n]))
        basis = system.basis
        found[k].append(Choice(members[k][0], basis.name, *fit, returns, value))
    each = len(RIDGES)
    for k, choices in found.items():
        pairs = [choices[low : low + each] for low in range(0, len(choices), each)]
        found[k] = [min(pair, key=lambda choice: choice.bellman) for pair in pairs]
    return found


def systems_of(kept: list[Choice], kind: type[States] = States) -> list[FeatureSystem]:
    """One system per choice; one whose features are among another's shares its sums."""
    maps = list({id(choice.features): choice.features for choice in kept}.values())
    inside = {id(maps[k]): found for k, found in enumerate(nested(maps))}
    bases = [kind(one) for one in maps]
    wholes: dict[tuple[int, float], FeatureSystem] = {}
    made = []
    for choice in kept:
        whole, index = inside[id(choice.features)]
        shared = wholes.setdefault((whole, choice.trace), FeatureSystem(bases[whole], choice.trace))
        own_basis = next(basis for basis in bases if basis.features is choice.features)
        made.append(shared.part(own_basis, index, choice.ridge))
    return made


def _corrected(basis: States, rows: LogRows, theta: Floats) -> Floats:
    """`rho delta` of some rows, one column per column of weights."""
    ahead = rows.discount[:, None] * (basis.phi(rows.next_input) @ theta)
    delta = rows.reward[:, None] + ahead - basis.phi(rows.input) @ theta
    return np.asarray(rows.rho[:, None] * delta)


def own(columns: Floats, fold: Any) -> Floats:
    """The column of each row's own fold."""
    return np.asarray(columns[np.arange(len(columns)), fold])


def _reject(choices: list[Choice], by_returns: bool) -> None:
    """Mark those whose loss is significantly above the best."""
    typical = float(np.median([choice.bellman_noise for choice in choices]))
    stable = [c for c in choices if c.bellman_noise <= UNSTABLE * typical] or choices
    least = min(stable, key=lambda c: max(c.bellman, 0.0) + c.bellman_noise)
    nearest = min(stable, key=lambda c: c.returns_error)
    for choice in choices:
        excess = max(choice.bellman, 0.0) - max(least.bellman, 0.0)
        worse = choice.returns - nearest.returns
        if choice.bellman_noise > UNSTABLE * typical:
            choice.verdict = "left out: unstable from fold to fold"
        elif excess > REJECT * np.hypot(choice.bellman_noise, least.bellman_noise):
            choice.verdict = "left out: its kernel Bellman loss is above the best's"
        elif by_returns and _clearly(Spread.of(worse)):
            choice.verdict = "left out: its error against returns is above the best's"


def _clearly(worse: Spread) -> bool:
    """Whether a mean is above zero beyond chance, and not because of a few episodes."""
    return worse.carrying >= CARRYING and worse.mean > REJECT * worse.error


def panel(choices: list[Choice]) -> list[Choice]:
    """Mark and return the candidates to keep, the one with the least losses first."""
    kept = [choice for choice in choices if not choice.verdict] or choices
    order = np.argsort([c.bellman for c in kept]).argsort()
    order = order + np.argsort([c.returns_error for c in kept]).argsort()
    kept = [kept[int(k)] for k in np.argsort(order, kind="stable")]
    for choice in kept:
        choice.verdict = "kept: neither loss is clearly above the best"
    return kept
