"""Estimators that were tried beside those of `evaluate` on logs with states: what would they add?

    python -m benchmarks.honesty.candidates build/settle.jsonl

repeats the logs of a settling run and prints relative errors by group beside its stored estimates.

- *PHWIS*: weighted importance sampling by length of episodes (Doroudi, Thomas and Brunskill 2017).
- *MIS*: marginal importance sampling, state weights step by step (Xie, Ma and Wang 2019).
- *SOPE-k*: state weights up to k steps before a reward, ratios after them (Yuan et al. 2021).
- *MWL*: minimax weight learning (Uehara, Huang and Jiang 2020) in closed form with one weight per state
  and action, where double reinforcement learning on top of it is the same number.
- *SWITCH*: the doubly robust estimate whose weights end where they exceed a limit, the model's values
  taking over (Wang, Agarwal and Dudik 2017); the limit is 10, or the one of least estimated error.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.honesty.cells import CELLS
from benchmarks.honesty.record import errors
from benchmarks.honesty.run import read

Array = Any


class Rows:
    """Columns of a log that all candidates need."""

    def __init__(self, log: pd.DataFrame, discount: float) -> None:
        self.gamma = discount
        self.state, self.action, self.step = (
            log[name].to_numpy() for name in ("state", "action", "step")
        )
        self.reward, self.over = log.reward.to_numpy(), log.terminated.to_numpy(dtype=bool)
        self.ahead = log.next_state.to_numpy()
        self.rho = (log.target_prob / log.behavior_prob).to_numpy()
        self.episode = log.episode.to_numpy()
        self.episodes = len(np.unique(self.episode))
        self.states = int(max(self.state.max(), self.ahead.max())) + 1
        names = [name for name in log if str(name).startswith("target_prob_")]
        self.target = np.zeros((self.states, len(names)))
        self.target[self.state] = log[names].to_numpy()
        first = np.append(np.flatnonzero(self.step == 0), len(log))
        self.first, self.last = first[:-1], first[1:] - 1
        self.weight = np.empty(len(log))
        for low, high in pairwise(first.tolist()):
            self.weight[low:high] = np.cumprod(self.rho[low:high])


def phwis(rows: Rows) -> float:
    """Weighted importance sampling within groups of episodes of equal length."""
    gone = rows.gamma**rows.step * rows.reward
    total = np.add.reduceat(gone, rows.first)
    length, weight = rows.step[rows.last], rows.weight[rows.last]
    value = 0.0
    for steps in np.unique(length):
        mine = length == steps
        if weight[mine].sum() > 0.0:
            value += float(mine.mean() * (weight[mine] @ total[mine]) / weight[mine].sum())
    return value


def marginal(rows: Rows) -> Array:
    """`d_t(s)` of the target over that of the log, by step and state, from weighted transitions."""
    steps = int(rows.step.max()) + 1
    ratio = np.zeros((steps, rows.states))
    reach = np.bincount(rows.state[rows.first], minlength=rows.states) / rows.episodes
    for t in range(steps):
        now = rows.step == t
        seen = np.bincount(rows.state[now], minlength=rows.states) / rows.episodes
        ratio[t] = np.divide(reach, seen, out=np.zeros(rows.states), where=seen > 0.0)
        live = now & ~rows.over
        each = ratio[t, rows.state[live]] * rows.rho[live]
        reach = np.bincount(rows.ahead[live], each, minlength=rows.states) / rows.episodes
    return ratio


def mis(rows: Rows) -> float:
    """Each reward weighted by its state's weight at its step and the ratio of its action."""
    weight = marginal(rows)[rows.step, rows.state] * rows.rho
    return float((weight * rows.gamma**rows.step * rows.reward).sum() / rows.episodes)


def sope(rows: Rows, k: int) -> float:
    """State weights k steps before a reward, and the ratios of the k + 1 actions since then."""
    ratio, each = marginal(rows), rows.rho.copy()
    start = np.arange(len(rows.rho)) - np.minimum(rows.step, k)
    for back in range(1, k + 1):
        later = np.flatnonzero(rows.step >= back)
        each[later] *= rows.rho[later - back]
    weight = ratio[rows.step[start], rows.state[start]] * each
    return float((weight * rows.gamma**rows.step * rows.reward).sum() / rows.episodes)


def mwl(rows: Rows) -> float:
    """Rewards times weights of state-action pairs whose flow balances under the target."""
    pairs = rows.states * rows.target.shape[1]
    pair = rows.state * rows.target.shape[1] + rows.action
    count = np.bincount(pair, minlength=pairs)
    start = np.bincount(rows.state[rows.first], minlength=rows.states) / rows.episodes
    flow = np.zeros((pairs, rows.states))
    live = ~rows.over
    np.add.at(flow, (pair[live], rows.ahead[live]), rows.gamma)
    flow /= np.maximum(count, 1)[:, None]
    onward = (flow[:, :, None] * rows.target).reshape(pairs, pairs)
    first = (start[:, None] * rows.target).ravel()
    visits = np.linalg.solve(np.eye(pairs) - (1.0 - 1e-9) * onward.T, first)
    mean = np.bincount(pair, rows.reward, minlength=pairs) / np.maximum(count, 1)
    return float(visits @ mean)


def action_values(rows: Rows, used: Array) -> Array:
    """`Q(s, a)` of a model of these rows; an action never tried in its state is worth 0."""
    actions = rows.target.shape[1]
    pairs, pair = rows.states * actions, (rows.state * actions + rows.action)[used]
    count = np.maximum(np.bincount(pair, minlength=pairs), 1)
    flow, live = np.zeros((pairs, rows.states)), ~rows.over[used]
    np.add.at(flow, (pair[live], rows.ahead[used][live]), rows.gamma)
    onward = (flow[:, :, None] * rows.target).reshape(pairs, pairs) / count[:, None]
    mean = np.bincount(pair, rows.reward[used], minlength=pairs) / count
    found = np.linalg.solve(np.eye(pairs) - (1.0 - 1e-9) * onward, mean)
    return found.reshape(rows.states, actions)


def corrections(rows: Rows) -> tuple[Array, Array]:
    """By episode `V(s_0)`, and by row `g_t w_t delta_t`, with Q of the other fifths of the episodes."""
    fold = rows.episode % 5
    value, delta = np.empty(len(fold)), np.empty(len(fold))
    for k in range(5):
        Q, mine = action_values(rows, fold != k), fold == k
        V = (rows.target * Q).sum(axis=1)
        ahead = np.where(rows.over[mine], 0.0, rows.gamma * V[rows.ahead[mine]])
        delta[mine] = rows.reward[mine] + ahead - Q[rows.state[mine], rows.action[mine]]
        value[mine] = V[rows.state[mine]]
    return value[rows.first], rows.gamma**rows.step * rows.weight * delta


def switch(rows: Rows, limit: float | None = None) -> float:
    """Doubly robust up to the first weight above `limit`; None takes that of least estimated error.

    The estimated error of a limit is the variance, plus the square of what the largest error of a
    row's prediction would add in the rows left out.
    """
    first, correction = corrections(rows)
    worst = np.abs(correction / np.maximum(rows.weight, 1e-300)).max()
    best = (np.inf, np.nan)
    levels = (
        np.quantile(rows.weight, [0.5, 0.8, 0.9, 0.95, 0.99, 1.0]) if limit is None else [limit]
    )
    for level in levels:
        above = np.maximum.accumulate((rows.weight > level) + 2.0 * rows.episode) % 2.0 > 0.0
        each = first + np.add.reduceat(np.where(above, 0.0, correction), rows.first)
        lost = worst * float((rows.weight * above).sum()) / rows.episodes
        best = min(best, (float(each.var()) / rows.episodes + lost**2, float(each.mean())))
    return best[1]


CANDIDATES = {
    "PHWIS": phwis,
    "MIS": mis,
    "SOPE-1": lambda rows: sope(rows, 1),
    "SOPE-3": lambda rows: sope(rows, 3),
    "MWL": mwl,
    "SWITCH-10": lambda rows: switch(rows, 10.0),
    "SWITCH": switch,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("answers", type=Path, help="answers of a settling run")
    parser.add_argument("--out", type=Path, default=Path("build/candidates.json"))
    given = parser.parse_args()
    rows = [row for row in read(given.answers) if CELLS[row["cell"]].group]
    for row in rows:
        log, discount, _ = CELLS[row["cell"]].log(row["purpose"], row["number"])
        columns = Rows(log, discount)
        row["values"] |= {name: make(columns) for name, make in CANDIDATES.items()}
    found = {"logs": len(rows), "names": list(CANDIDATES), "errors": errors(rows)}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for group, each in found["errors"].items():
        print(group, {name: f"{value:.2g}" for name, value in each.items()})


if __name__ == "__main__":
    main()
