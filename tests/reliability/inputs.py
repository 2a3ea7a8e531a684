"""The table of malformed inputs: what is wrong, in which field, in which row, and how to make it.

A `Bad` is one thing wrong with otherwise good rows. Entry points take the rows as keywords
(`fields`), so one table serves containers, learners, solvers, logs and scikit-learn alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

N, D, ROW = 5, 3, 3
Fields = dict[str, Any]
Change = Callable[[Fields], Fields]

FEATURES = ("phi", "next_phi", "next_phi_2")
NUMBERS = ("reward", "discount", "rho", "target_prob", "behavior_prob", "interest")
SECOND = ("discount_2", "rho_2")


class Bad(NamedTuple):
    """One malformed input: the sentence must name `field`, and `row` where one row is wrong."""

    id: str
    field: str
    row: int | None
    change: Change


def fields() -> Fields:
    """Rows that every entry point takes."""
    rng = np.random.default_rng(0)
    return {
        "phi": rng.normal(size=(N, D)),
        "reward": rng.normal(size=N),
        "next_phi": rng.normal(size=(N, D)),
        "discount": np.full(N, 0.9),
        "rho": np.array([1.0, 0.5, 0.0, 2.0, 1.0]),
        "start": np.array([True, False, False, True, False]),
        "state": np.array([0, 1, 2, 0, 1]),
        "next_state": np.array([1, 2, 0, 1, 2]),
        "target_prob": np.array([0.5, 0.25, 0.0, 1.0, 0.5]),
        "behavior_prob": np.full(N, 0.5),
        "interest": np.ones(N),
        "next_phi_2": rng.normal(size=(N, D)),
        "discount_2": np.full(N, 0.9),
        "rho_2": np.ones(N),
    }


def at(name: str, value: Any, row: int = ROW) -> Change:
    """One entry of a field replaced; of a row of features, the last."""

    def change(given: Fields) -> Fields:
        array = np.array(given[name])
        array[(row, -1) if array.ndim == 2 else row] = value
        return {name: array}

    return change


def to(name: str, make: Callable[[Any], Any]) -> Change:
    """A whole field replaced by a function of it."""
    return lambda given: {name: make(given[name])}


def _wrong_values() -> list[Bad]:
    cases = [
        Bad(f"{name} {value}", name, ROW, at(name, value))
        for name in (*FEATURES, *NUMBERS, *SECOND)
        for value in (np.nan, np.inf, -np.inf)
    ]
    outside = {
        "discount": (-0.1, 1.1, -5e-324, np.nextafter(1.0, 2.0)),
        "discount_2": (-0.1, 1.1),
        "rho": (-1.0, -5e-324),
        "rho_2": (-1.0,),
        "target_prob": (-0.1, 1.5),
        "behavior_prob": (-0.5, 0.0, -0.0, 1.5),
        "interest": (-1.0,),
        "state": (-1, -(2**63)),
        "next_state": (-1, -2),
    }
    cases += [
        Bad(f"{name} {value}", name, ROW, at(name, value))
        for name, values in outside.items()
        for value in values
    ]
    return cases


def _wrong_shapes() -> list[Bad]:
    cases = [
        Bad("phi one-dimensional", "phi", None, to("phi", lambda x: x[:, 0])),
        Bad("phi three-dimensional", "phi", None, to("phi", lambda x: x[None])),
        Bad("phi a number", "phi", None, to("phi", lambda x: 1.0)),
        Bad("phi ragged", "phi", None, to("phi", lambda x: [[1.0], [1.0, 2.0]])),
        Bad("phi without features", "phi", None, to("phi", lambda x: x[:, :0])),
        Bad("phi None", "phi", None, to("phi", lambda x: None)),
        Bad("next_phi too wide", "next_phi", None, to("next_phi", lambda x: np.ones((N, D + 1)))),
        Bad("next_phi too short", "next_phi", None, to("next_phi", lambda x: x[:-1])),
        Bad("next_phi CSR beside dense", "next_phi", None, to("next_phi", csr_array)),
        Bad("next_phi_2 too short", "next_phi_2", None, to("next_phi_2", lambda x: x[:-1])),
    ]
    for name in (*NUMBERS, *SECOND, "start", "state", "next_state"):
        cases += [
            Bad(f"{name} too short", name, None, to(name, lambda x: x[:-1])),
            Bad(f"{name} too long", name, None, to(name, lambda x: np.append(x, x[:1]))),
            Bad(f"{name} as a column", name, None, to(name, lambda x: x[:, None])),
            Bad(f"{name} empty", name, None, to(name, lambda x: x[:0])),
        ]
    return cases


def _wrong_types() -> list[Bad]:
    kinds: dict[str, Callable[[Any], Any]] = {
        "object": lambda x: np.asarray(x).astype(object),
        "complex": lambda x: np.asarray(x) + 0j,
        "float16": lambda x: np.asarray(x).astype(np.float16),
        "text": lambda x: np.asarray(x).astype(str),
        "times": lambda x: np.asarray(x).astype("datetime64[s]"),
        "masked": lambda x: np.ma.masked_array(x, np.arange(np.size(x)).reshape(np.shape(x)) == 1),
    }
    cases = [
        Bad(f"{name} {kind}", name, None, to(name, make))
        for name in ("phi", "next_phi", "reward", "discount", "rho", "target_prob", "interest")
        for kind, make in kinds.items()
    ]
    return [
        *cases,
        Bad("state of float", "state", None, to("state", lambda x: x.astype(float))),
        Bad("state of bool", "state", None, to("state", lambda x: x.astype(bool))),
        Bad("state beyond int64", "state", None, to("state", lambda x: [0, 1, 2, 2**63, 1])),
        Bad("next_state of float", "next_state", None, to("next_state", lambda x: x * 1.0)),
        Bad("start of 2", "start", ROW, to("start", lambda x: np.array([1, 0, 0, 2, 0]))),
        Bad("start nan", "start", ROW, to("start", lambda x: np.array([1, 0, 0, np.nan, 0]))),
        Bad("start of text", "start", None, to("start", lambda x: np.array(list("abcde")))),
        Bad("reward a dict", "reward", None, to("reward", lambda x: {"a": 1})),
        Bad("reward a generator", "reward", None, to("reward", lambda x: (v for v in x))),
        Bad("reward ragged", "reward", None, to("reward", lambda x: [1.0, [2.0], 3.0, 4.0, 5.0])),
    ]


ROWS: list[Bad] = [*_wrong_values(), *_wrong_shapes(), *_wrong_types()]


def row_of(given: Fields, row: int = ROW) -> Fields:
    """What `learn_one` takes of one row."""
    return {
        name: value[row]
        for name, value in given.items()
        if name not in ("next_phi_2", "discount_2", "rho_2", "next_state")
    }
