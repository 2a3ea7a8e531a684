"""Values for `fuzz_calls.py`: good ones by parameter name, odd ones, and bent good ones.

A failure can be pasted into a shell after `from benchmarks.fuzz_values import *`.
"""

# ruff: noqa: E501, F401, F405  # some names are used in texts only
from __future__ import annotations

import datetime as dt
import os
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy import inf, nan
from scipy.sparse import coo_array, csr_array, csr_matrix

from benchmarks.fuzz_recipes import *  # noqa: F403
from benchmarks.fuzz_recipes import NEXT, PHI, PLACES, REWARD, SPEC, A, D, Made, N, S
from o2td import emphasis, features

# -- good values -----------------------------------------------------------------------------------

_PROBLEM = {
    "transition": np.full((S, A, S), 0.25), "reward": np.ones((S, A)), "discount": 0.9,
    "behavior": np.full((S, A), 0.5), "target": np.full((S, A), 0.5), "features": np.eye(S, D),
    "start": np.full(S, 0.25), "terminal": None, "interest": np.ones(S), "initial_theta": np.ones(D),
}  # fmt: skip
_SIMULATED = {
    "reset": begin, "step": move, "behavior": coin, "target": coin, "features": beside_one,
    "discount": 0.8,
}  # fmt: skip
_SPEC_WORDS = ("fourier:2", "tiles:2x3x3x3", "polynomial:2", "tabular", "auto")

# By the name of a parameter: values, or recipes that make one.
GOOD: dict[str, list[Any]] = {
    "X": [PHI, np.array([0, 1, 1])], "y": [REWARD, None], "next_X": [NEXT], "phi": [PHI, csr_array(PHI)],
    "next_phi": [NEXT], "next_phi_2": [PHI], "reward": [REWARD, 1.0], "discount": [0.9],
    "discount_2": [0.9], "rho": [1.0, np.ones(N)], "rho_2": [1.0], "start": [None, [1, 0, 0, 1, 0, 0]],
    "state": [PLACES], "next_state": [PLACES], "next_state_2": [PLACES],
    "target_prob": [np.full(N, 0.5)], "behavior_prob": [np.full(N, 0.5)], "interest": [np.ones(N)],
    "table": [np.eye(S, D)], "parts": [[batch.written(), batch.written()]], "size": [2],
    "n": [5], "seed": [0, (1, 2)], "scheme": ["sequential", "iid"], "double": [False, True],
    "policy": [np.full((S, A), 0.5)], "step_size": [0.1, "auto"], "second_step_size": [0.1, None],
    "trace": [0.0, 0.5], "initial_theta": [None, np.zeros(D)], "emphasis": [None],
    "omega": ["sample", "state"], "decay": [0.5, None], "transitions": [batch, sparse_batch, table_batch],
    "path": ["saved.npz"], "learners": [[learner.written(), learner.written("TDC")]],
    "batch": [batch, table_batch], "every": [2, None], "workers": [1], "metrics": [None],
    "problem": [problem, walk], "learner": [learner], "model": [finite_model], "theta": [np.zeros(D)], "Phi": [np.eye(S, D)],
    "traces": [(0.0, 0.5)], "form": ["target", "behavior", "sampled"], "other": [solved],
    "logs": [log_file, frame], "features": ["tabular", None], "methods": [None, "lstd"], "target": [None],
    "confidence": [0.95], "lanes": [20], "thresholds": [None], "columns": [None, {"reward": "reward"}],
    "source": [log_source], "chunks": [log_source], "chunk": [log_rows], "rows": [8192],
    "subject": [learner], "kind": ["learner"], "spec": [spec], "out": ["out"], "store": [store_folder],
    "names": [["cost"]], "profile": ["quick"], "figures": [["2"]], "ids": [[]],
    "progress": [None], "env": [environment], "dataset": ["none/none-v0"], "value": [REWARD],
    "weight": [None, np.ones(N)], "R": [np.eye(D)], "center": [np.zeros(D)], "constant": [0.0],
    "truth": [1.0], "states": [np.arange(3)], "probabilities": [None], "action": [PLACES % 2],
    "n_actions": [2], "next_target_probs": [np.full((N, 2), 0.5)], "folder": ["runs"], "t": [3.0],
    "module": ["json"], "extra": ["logs"], "algorithm": ["lstd"], "sample_weight": [None],
    "amount": [5], "episodes": [3], "steps": [None], "horizon": [None, 10], "interval": [0.95],
    "name": ["walk"], "count": [2], "dask": [None], "how": ["final"], "env_id": ["FrozenLake-v1"],
    "of": ["A"], "over": ["B", None], "requirement": ["B - A > 0.1", "value > 0"],
    "policies": [{"A": "target_prob"}], "passes": [1], "bins": [3], "order": [2], "degree": [2],
    "tilings": [2], "groups": [[0, 1, 1]], "alpha": [0.5], "c": [0.1], "p": [0.5], "data": [b"x"],
    "inputs": [np.array([0, 1])], "key": [behavior_keys], "shard_id": ["walk-0"], "experiment": [None], "where": [None], "max_rows": [1000], "folds": [2],
}  # fmt: skip

# By "Owner.parameter", where the same name means something else there.
OWN: dict[str, list[Any]] = {
    **{f"Problem.{key}": [value] for key, value in _PROBLEM.items()},
    **{f"{owner}.{key}": [value] for key, value in _SIMULATED.items()
       for owner in ("simulated", "SimulatedProblem")},
    "learn_one.phi": [PHI[0]], "learn_one.next_phi": [NEXT[0]], "learn_one.reward": [1.0],
    "learn_one.discount": [0.9], "learn_one.rho": [1.0], "learn_one.start": [False],
    "rollouts.policy": [None], "rollouts.target": [None], "load.path": [model_file],
    "load_model.path": [evaluation_file], "check_solver.subject": [solver],
    "check_domain.subject": [problem], "check_source.subject": [log_source], "parse.spec": [*_SPEC_WORDS],
    "load_spec.source": [SPEC], "scores.table": [result_table], "summary.table": [result_table],
    "oblique_projection.X": [np.eye(S, D)], "amplification.X": [np.eye(S, D)],
    "oblique_fixed_point.X": [np.eye(S, D)], "retargeted.rho": [np.ones(N)], "seen.batch": [batch],
    "rows.which": ["phi"], "discounted_matrix.policy": [np.full((S, A), 0.5)],
    "Results.path": ["reproduction"], "build.folder": ["reproduction"], "write_logs.path": ["logs.parquet"],
    "predict.rows": [np.arange(3)], "action_values.rows": [np.arange(3)], "Store.path": [store_folder],
    "held_out.value": [REWARD], "fit.state": [PLACES], "batches.features": ["tabular"],
    "transitions.features": ["tabular"], "mountain_car.features": [None],
    "energy_storage.features": [None], "four_rooms.target": [0, 7], "FourRoomsLanes.target": [0],
    "boyan_chain.features": [4], "collision.features": [6], "garnet.features": [8], "garnet.states": [9],
    "random_mdp.features": [5], "random_mdp.states": [9], "boyan_chain.states": [14],
    "SOTD.start": ["zero"], "from_gymnasium.behavior": ["uniform"], "from_gymnasium.target": ["optimal"],
    "checks_of.kind": ["learner"], "profile.name": [None], "paper_spec.name": ["mountain_car"],
    "sensitivity.store": [store_folder], "study.store": [store_folder],
    "fit_behavior_model.source": [log_source], "register.name": ["fuzzed"],
}  # fmt: skip

# -- odd values ------------------------------------------------------------------------------------

ODD: list[Any] = [
    None, True, False, "", "a", "1", "\0", "é" * 300, "../x", b"a", -1, 0, 1, 2, 1.5, -0.5, nan, inf, -inf, 1e300,
    5e-324, 10**30, 2**31, 2**62, 2**63, -(2**63), 1j, [], (), {}, [1, 2], [[1, 2], [3]], ["a"], [None],
    {"a": 1}, {1: 2}, {"theta": None}, [[[]]], np.float64(nan), np.float32(0.5), np.int8(3), np.bool_(True),
    np.array(1.0), np.array(3), np.array("a"), np.array(None), np.zeros(0), np.zeros((0, D)), np.zeros((N, 0)),
    np.zeros((2, 3, 4)), np.array([0.1, 0.2]), np.array([1, 2], dtype=object), np.array(["a", "b"]),
    np.ones(N, dtype=np.float16), np.ones((N, D), dtype=complex), np.array([nan] * N),
    np.array(["2020-01-01"], dtype="datetime64[D]"), np.full((N, D), 1e308), np.eye(D, dtype=bool),
    np.arange(N, dtype=np.uint64) + np.uint64(2**63),
    Decimal("0.5"), Fraction(1, 2), dt.date(2020, 1, 1), Path("no/such/folder/file"), Path(),
    range(3), range(2**40),
    "\ud800", "a\nb", "nan", "x" * 5000, b"\xff\xfe", 10**400, -(10**400), Decimal("sNaN"), Decimal("Infinity"),
    np.array([1.0, 2.0], dtype=">f8"), np.ones(N, dtype=np.longdouble), np.array([1, 2], dtype="m8[s]"),
    np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]), np.array([None, nan, "a"], dtype=object), np.array([b"a"]),
    np.ones((N, D))[::-1], np.ones((D, N)).T, np.float64("inf"), np.int64(-(2**63)), np.datetime64("NaT"),
    {"a": {"b": [1, None]}}, {None: 1}, {"reward": 1, "state": ["a"]}, [{"a": 1}], (1, "a", None), slice(0, 2), ..., NotImplemented,
]  # fmt: skip


_CONSUMED = """
object()|object|nothing|len|int|np|iter(range(3))|{1, 2}|csr_array((2, 3))|csr_array(np.eye(3))
csr_array([[nan, inf]])|csr_matrix(np.eye(3))|coo_array(np.eye(3))|memoryview(b'ab')|lambda: 1
np.ma.masked_array([1.0, 2.0], [0, 1])|np.random.default_rng(0)
emphasis.Omega()|features.Fourier(2)|open(os.devnull)|pa.array([1, None])|pl.Series(['a', None])
pd.Series([1.0, None])|pd.DataFrame({'a': [1, 2]})
""".strip().replace("\n", "|").split("|")  # fmt: skip


def fresh_odd(draw: random.Random) -> Made:
    """A fresh value of a kind that is consumed or changed by use."""
    makers: list[Any] = [batch, problem, learner, solver, frame]
    if draw.random() < 0.2:
        return draw.choice(makers).written()  # type: ignore[no-any-return]
    text = draw.choice(_CONSUMED)
    return Made(text, eval(text))  # noqa: S307


def bent(value: Any, draw: random.Random) -> Any:
    """A good value with one thing wrong."""
    if isinstance(value, csr_array):
        other = bent(value.toarray(), draw)
        rows = isinstance(other, np.ndarray) and other.ndim == 2 and other.dtype.kind in "fiub"
        return csr_array(other) if rows and other.dtype.itemsize > 2 else other
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (int, float)):
        value = np.array(value)
    if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "fiub":
        return _bent_array(value, draw)
    if isinstance(value, str):
        return draw.choice(
            [
                value.upper(),
                value + " ",
                value[:-1],
                value.encode("utf-8", "replace"),
                [value],
                value * 99,
            ]
        )
    if isinstance(value, (int, float)) and abs(value) < 10**300:
        return draw.choice(
            [-value, value * 10**9, str(value), [value], np.array(value), value + 0.5]
        )
    return draw.choice([[value], (value,), {"a": value}])


def _bent_array(array: Any, draw: random.Random) -> Any:
    how = draw.randrange(11) if array.ndim else draw.choice([1, 2, 4, 6, 7, 9])
    if how == 0:
        return array[:-1]
    if how == 1:
        return array[None]
    if how == 2:
        return array.reshape(-1)
    if how == 3:
        return array[:0]
    if how == 4:
        return array.astype(draw.choice(["f4", "f2", "c16", "O", "U8", "i1", "?", "u8"]))
    if how == 5:
        return -array if array.dtype.kind in "fi" else array[::-1]
    if how == 6:
        return array * 0
    if how == 7:
        return array.tolist()
    if how == 8:
        return array.T if array.ndim > 1 else np.append(array, array)
    if how == 9:
        return array.astype(float) * draw.choice([1e200, 1e308, 1e-320, 1e9])
    changed = array.astype(float)
    changed.reshape(-1)[draw.randrange(array.size)] = draw.choice([nan, inf, -inf, 1e308, -1, 0.5])
    return changed


# -- writing ---------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """The value itself, out of its recipe."""
    if isinstance(value, Made):
        return value.value
    if isinstance(value, (list, tuple)) and any(isinstance(one, Made) for one in value):
        return type(value)(plain(one) for one in value)
    return value


def written(value: Any) -> str:
    """The value as Python source."""
    if isinstance(value, Made):
        return value.text
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r}, dtype={value.dtype.str!r}).reshape({value.shape})"
    if isinstance(value, (list, tuple)) and any(isinstance(one, Made) for one in value):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, csr_array):
        return f"csr_array({written(value.toarray())})"
    if isinstance(value, np.generic):
        return f"np.{type(value).__name__}({value.item()!r})"
    if callable(value):
        return str(getattr(value, "__name__", value))
    return repr(value).replace("PosixPath", "Path").replace("datetime.date", "dt.date")
