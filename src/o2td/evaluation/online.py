"""The online learners and SOTD on a sample of the log, with intervals by leaving groups out.

A learner has no closed-form influence, so each is run once on all episodes of the sample and once
without each of `GROUPS` groups of them: a delete-a-group jackknife, `se^2 = (G-1)/G sum (v_g - v)^2`
(Kott 2001).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from o2td.errors import O2TDError
from o2td.evaluation.basis import Cells, States
from o2td.evaluation.episodes import Episodes, Floats, Keys
from o2td.evaluation.survey import folds_of
from o2td.features import GridAggregation
from o2td.transitions import Transitions

GROUPS = 10
BEYOND = 10.0
POINTS = 25  # of a learning curve
_CELLS = 400  # of the grid that SOTD gets where observations are continuous: it factorises them


@dataclass(frozen=True, eq=False)
class Replicated:
    """A value, the values without each group, and how it came about."""

    value: float
    replicates: Floats
    about: str
    curve: dict[str, Any] | None = None
    trouble: str = ""
    theta: Floats | None = None
    features: Any = None


def groups_of(key: Keys) -> Any:
    """The group of each episode, by its key alone, and not the same as its fold."""
    return folds_of(key * np.uint64(3) + np.uint64(1), GROUPS)


class Bench:
    """A sample of the log as transitions, ready for every learner and solver."""

    def __init__(self, block: Episodes, basis: States | Cells, most: float = np.inf) -> None:
        self.block, self.basis, self.most = block, basis, most
        self.group = groups_of(block.key)
        self.groups = np.unique(self.group)
        # Without a second group there is nothing left when one is left out.
        self.left_out = self.groups if len(self.groups) > 1 else self.groups[:0]

    def _transitions(self, chosen: Any = None) -> Transitions:
        block = self.block if chosen is None else self.block.pick(chosen)
        rows = block.rows
        shared: dict[str, Any] = {
            "discount": rows.discount,
            "rho": rows.rho,
            "start": block.begin,
        }
        if isinstance(self.basis, Cells):
            from scipy.sparse import eye_array

            here, ahead = self.basis.index(block)
            size = self.basis.features.n_features_out_
            table: Any = np.eye(size) if size <= 64 else eye_array(size, format="csr")
            return Transitions.from_table(table, here, rows.reward, ahead, **shared)
        return Transitions(*self._dense(block), **shared)

    def _dense(self, block: Episodes) -> tuple[Floats, Floats, Floats]:
        here, ahead = self.basis.both(block)  # type: ignore[union-attr]
        return here, block.rows.reward, ahead

    def _start(self, without: int | None = None) -> Any:
        """Mean features of the start states, of all groups but one if it is given."""
        block = self.block if without is None else self.block.pick(self.group != without)
        first = block.rows.input[block.first[:-1][block.opens]]
        if self.block.lone is not None:
            lone = self.block.lone
            lone = lone if without is None else lone.take(groups_of(lone.key) != without)
            first = np.concatenate([first, lone.input])
        if isinstance(self.basis, Cells):
            size = self.basis.features.n_features_out_
            state = self.basis.features.state_of(first)
            return np.bincount(state, minlength=size) / max(len(state), 1)
        return self.basis.phi(first).mean(axis=0)

    def learner(self, make: Callable[[], Any], about: str) -> Replicated:
        """A learner over the rows in order, with its learning curve."""
        batch, start = self._transitions(), self._start()
        learner = make()
        curve: dict[str, Any] = {"rows": [], "value": []}
        size = max(1, -(-batch.n // POINTS))
        for part in batch.chunks(size):
            learner.partial_fit(part)
            curve["rows"].append(learner.steps)
            curve["value"].append(float(start @ learner.theta))
        gone = Replicated(np.nan, np.zeros(0), about, curve, f"{about} diverged on this log")
        if learner.status.kind == "diverged" or not abs(curve["value"][-1]) <= self.most:
            return gone
        values = np.array(
            [float(self._start(g) @ make().partial_fit(self._left(g)).theta) for g in self.left_out]
        )
        if not (np.abs(values) <= self.most).all():
            return replace(gone, trouble=f"{gone.trouble} without some of its episodes")
        theta = np.array(learner.theta)
        made = (theta, self.basis.features)
        return Replicated(curve["value"][-1], values, about, curve, "", *made)

    def _left(self, group: int) -> Transitions:
        return self._transitions(self.group != group)

    def sotd(self) -> Replicated:
        """SOTD on states, or on the cells of a grid where observations are continuous."""
        from o2td.solvers import SOTD

        about = "SOTD on states"
        basis: Any = self.basis
        if isinstance(basis, States) and self.block.rows.observation is not None:
            basis = Cells(grid(self.block))
            about = f"SOTD on {basis.name}"
        parts = []
        for g in self.groups:
            bench = Bench(self.block.pick(self.group == g), basis)
            parts.append(SOTD().update(bench._transitions()))
        values, theta = [], np.zeros(0)
        for left in [None, *range(len(self.left_out))]:
            merged = SOTD()
            for k, part in enumerate(parts):
                if k != left:
                    merged.merge(part)
            start = Bench(self.block, basis)._start(None if left is None else self.groups[left])
            theta = np.array(merged.theta) if left is None else theta
            values.append(float(start @ merged.theta))
        made = (theta, basis.features)
        return Replicated(values[0], np.array(values[1:]), about, None, "", *made)


def grid(block: Episodes) -> GridAggregation:
    """An even grid over the observations with at most `_CELLS` cells, at least 2 a variable."""
    inputs = block.rows.input
    bins = max(2, int(min(_CELLS, len(inputs) / 20) ** (1.0 / inputs.shape[1])))
    return GridAggregation(bins).fit(np.concatenate([inputs, block.rows.next_input]))


def online(
    block: Episodes, basis: States | Cells, methods: list[str], most: float = np.inf
) -> dict[str, Replicated]:
    """The methods among `o2td, etd, tdrc, sotd`.

    A learner whose answer is beyond `most`, what rewards can add up to, by a factor of `BEYOND` has
    diverged, although its weights may be finite still.
    """
    from o2td.learners import ETD, O2TD, TDRC

    omega = "state" if isinstance(basis, Cells) else "moments"
    makers: dict[str, tuple[Callable[[], Any], str]] = {
        "o2td": (lambda: O2TD(step_size="auto", omega=omega), f"O2TD with {omega} omega"),
        "etd": (lambda: ETD(step_size="auto"), "ETD(0)"),
        "tdrc": (lambda: TDRC(step_size="auto"), "TDRC"),
    }
    bench, found = Bench(block, basis, BEYOND * most), {}
    for method in methods:
        try:
            if method == "sotd":
                found[method] = bench.sotd()
            else:
                make, about = makers[method]
                found[method] = bench.learner(make, f"{about}, one pass, automatic step size")
        except O2TDError as error:
            found[method] = Replicated(np.nan, np.zeros(0), method, None, str(error))
    return found
