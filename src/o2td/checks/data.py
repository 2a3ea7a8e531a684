"""The rows and problems that checks run on: small, fixed, and with every awkward case inside."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from o2td.problem import Problem
from o2td.transitions import Transitions

Fields = dict[str, Any]
SECOND = ("next_state_2", "discount_2", "rho_2")
LAYOUTS = ("dense", "csr", "table")


def stream(n: int = 90, seed: int = 0, weights: bool = False, states: int = 7) -> Fields:
    """Rows of several trajectories, by field, with a feature `table`.

    Some trajectories terminate (discount 0, successor -1), some are truncated (the next row is a
    start), some rows have ratio 0, and discounts differ. `weights`: features not negative with rows
    that sum to one, which every method takes.
    """
    rng = np.random.default_rng([seed, n])
    table = np.where(rng.random((states, 5)) < 0.3, 0.0, rng.normal(size=(states, 5)))
    table[:, 0] = 0.5
    if weights:
        table = np.abs(table) / np.abs(table).sum(axis=1, keepdims=True)
    following = rng.integers(states, size=n)
    discount = rng.choice([0.0, 0.5, 0.9, 0.9, 0.9, 0.9], size=n)
    discount[:3] = 0.9
    start = np.append(True, (rng.random(n) < 0.1)[1:] | (discount[:-1] == 0.0))
    state = np.where(start, rng.integers(states, size=n), np.roll(following, 1))
    behavior_prob = rng.choice([0.25, 0.5, 0.8], size=n)
    ratio = rng.choice([0.0, 0.5, 1.0, 1.0, 1.2], size=n)
    ratio[:3] = 1.0  # the first rows must be able to show an effect of earlier ones
    target_prob = behavior_prob * ratio
    return {
        "table": table,
        "state": state,
        "reward": rng.normal(size=n),
        "next_state": np.where(discount > 0.0, following, -1),
        "discount": discount,
        "start": start,
        "target_prob": target_prob,
        "behavior_prob": behavior_prob,
        "rho": target_prob / behavior_prob,
        "interest": rng.choice([0.5, 1.0, 2.0], size=n),
        "next_state_2": rng.integers(states, size=n),
        "discount_2": np.full(n, 0.9),
        "rho_2": rng.choice([0.5, 1.0, 1.5], size=n),
    }


def needs_second(subject: Any) -> bool:
    """Whether the subject is set to use a second, independent successor."""
    return getattr(subject, "double", None) is True or getattr(subject, "sampling", "") == "double"


def fields_for(subject: Any, weights: bool = False) -> Fields:
    """The rows of `stream`, without a second successor unless the subject uses it."""
    second = needs_second(subject)
    return {k: v for k, v in stream(weights=weights).items() if second or not k.endswith("_2")}


def batch(
    fields: Fields, layout: str = "dense", second: bool = False, **changes: Any
) -> Transitions:
    """The rows as `Transitions`; `changes` replace fields, and None leaves one out."""
    rows = {**fields, **{name: value for name, value in changes.items() if value is not None}}
    if not second:
        rows = {name: value for name, value in rows.items() if name not in SECOND}
    left_out = {name: None for name, value in changes.items() if value is None}
    if layout == "table":
        return Transitions.from_table(**{**rows, **left_out})
    return Transitions(**{**dense_fields(rows, layout), **left_out})


def rows_for(subject: Any, fields: Fields, layout: str = "dense", **changes: Any) -> Transitions:
    """The rows, with a second successor if the subject uses one."""
    return batch(fields, layout, needs_second(subject), **changes)


def dense_fields(rows: Fields, layout: str = "dense") -> Fields:
    """Arguments of `Transitions`, with features looked up in the table as separate arrays."""
    table = rows["table"]
    given = {name: value for name, value in rows.items() if name not in ("table", "next_state_2")}
    looked_up = {"phi": rows["state"], "next_phi": rows["next_state"]}
    if "next_state_2" in rows:
        looked_up["next_phi_2"] = rows["next_state_2"]
    for name, states in looked_up.items():
        features = np.ascontiguousarray(table[np.maximum(states, 0)])
        given[name] = features if layout == "dense" else as_csr(features)
    return given


def as_csr(features: Any) -> Any:
    """The same rows as a CSR array."""
    from scipy.sparse import csr_array

    return csr_array(features)


def select(fields: Fields, rows: Any) -> Fields:
    """Some of the rows, in the order given."""
    return {name: value if name == "table" else value[rows] for name, value in fields.items()}


def trajectories(fields: Fields) -> list[Fields]:
    """The rows of each trajectory, from one start to before the next."""
    bounds = [*np.flatnonzero(fields["start"]), len(fields["start"])]
    return [select(fields, np.arange(low, high)) for low, high in pairwise(bounds)]


@lru_cache(maxsize=4)
def problem(weights: bool = False) -> Problem:
    """A small off-policy problem whose importance-weighted traces have a finite variance."""
    rng = np.random.default_rng(11)
    states, actions, d = 6, 2, 3
    transition = rng.dirichlet(np.full(states, 0.6), size=(states, actions))
    discount = np.where(rng.random((states, actions, states)) < 0.1, 0.0, 0.8)
    behavior = np.full((states, actions), 0.5)
    toward = rng.choice([0.3, 0.7], size=states)
    features = rng.normal(size=(states, d))
    if weights:
        features = np.abs(features) / np.abs(features).sum(axis=1, keepdims=True)
    return Problem(
        transition,
        rng.normal(size=(states, actions, states)),
        discount,
        behavior=behavior,
        target=np.column_stack([toward, 1.0 - toward]),
        features=features,
    )


@lru_cache(maxsize=8)
def sampled(n: int, seed: int = 0, double: bool = False, weights: bool = False) -> Transitions:
    """Rows of `problem` in sequence."""
    return problem(weights).sample(n, seed=seed, double=double)
