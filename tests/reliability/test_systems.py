"""LAPACK's matrix types at seven sizes, as transitions, through every solver of a linear system."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td import Transitions
from o2td.linear_algebra import EPS, MESSAGES, solve
from o2td.registry import SOLVERS

SIZES = (1, 2, 3, 5, 10, 16, 50)
TYPES = (
    "identity", "diagonal", "upper", "lower", "random", "first column zero", "last column zero",
    "half of the columns zero", "condition sqrt(0.1/eps)", "condition 0.1/eps", "near underflow",
    "near overflow",
)  # fmt: skip
SCALE = {"near underflow": np.finfo(np.float64).tiny / EPS, "near overflow": 1e306}


def with_condition(rng: Any, n: int, condition: float) -> Any:
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    return U @ np.diag(condition ** (-np.arange(n) / max(n - 1, 1))) @ V


def matrix(kind: str, n: int) -> Any:
    """The type without its scale, which enters by the ratio."""
    rng = np.random.default_rng(n)
    A = with_condition(rng, n, 2.0)
    if kind == "identity":
        return np.eye(n)
    if kind == "diagonal":
        return np.diag(rng.random(n) + 0.5)
    if kind in ("upper", "lower"):
        return (np.triu if kind == "upper" else np.tril)(A) + np.eye(n)
    if kind.startswith("condition"):
        return with_condition(rng, n, np.sqrt(0.1 / EPS) if "sqrt" in kind else 0.1 / EPS)
    zero = {"first column zero": [0], "last column zero": [-1]}.get(kind)
    if kind == "half of the columns zero":
        zero = list(range(n // 2, n))
    if zero is not None:
        A[:, zero] = 0.0
    return A


def as_differences(A: Any, scale: float) -> Transitions:
    """Rows with `phi = e_i`, `phi - phi' = A_i`, ratio `scale`: LSTD's matrix is `scale A`."""
    n = len(A)
    reward = A @ (np.random.default_rng(n).normal(size=n) / n)
    state = np.arange(n)
    return Transitions(
        np.eye(n), reward, np.eye(n) - A, discount=1.0, rho=scale, start=np.ones(n, bool),
        state=state, next_state=state, next_phi_2=np.eye(n) - A, rho_2=np.ones(n),
    )  # fmt: skip


def as_features(A: Any, scale: float) -> Transitions:
    """Rows with `phi = A_i` that terminate: a regression on A's rows."""
    n = len(A)
    reward = A @ (np.random.default_rng(n).normal(size=n) / n)
    state = np.arange(n)
    return Transitions(
        A, reward, A, discount=0.0, rho=scale, start=np.ones(n, bool), state=state,
        next_state=state,
    )  # fmt: skip


def target_lstd() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return o2td.LSTD(rho_on="target")


BY_DIFFERENCES: dict[str, Callable[[], Any]] = {
    "LSTD": o2td.LSTD,
    "LSTD traced": lambda: o2td.LSTD(trace=0.5),
    "LSTD target": target_lstd,
    "LSETD": o2td.LSETD,
    "LSTDQ": o2td.LSTDQ,
    "BellmanResidual double": lambda: o2td.BellmanResidual(sampling="double"),
    "BellmanResidual single": lambda: o2td.BellmanResidual(sampling="single"),
    "BellmanResidual aggregated": lambda: o2td.BellmanResidual(sampling="aggregated"),
    "SOTD": o2td.SOTD,
    "DiagonalSOTD": o2td.DiagonalSOTD,
}
BY_FEATURES: dict[str, Callable[[], Any]] = {
    "MonteCarlo": o2td.MonteCarlo,
    "PluginOptimal": o2td.PluginOptimal,
    "SOTD": o2td.SOTD,
    "LSTD": o2td.LSTD,
}
CASES = [(name, make, as_differences) for name, make in BY_DIFFERENCES.items()]
CASES += [(f"{name} of features", make, as_features) for name, make in BY_FEATURES.items()]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("name", "make", "rows"), CASES, ids=[case[0] for case in CASES])
def test_every_solver_on_every_type(name: str, make: Any, rows: Any, kind: str) -> None:
    for n in SIZES:
        A = matrix(kind, n)
        answer = make().fit(rows(A, SCALE.get(kind, 1.0))).solution
        assert answer.status in MESSAGES
        assert np.isfinite(answer.theta).all() or answer.status == "overflow", n
        # The weights of DiagonalSOTD make a singular system inconsistent: no theta has residual 0.
        if answer.status != "minimum norm" or name != "DiagonalSOTD":
            assert answer.residual < 30 * EPS, (n, answer)
        if kind.endswith("zero"):
            rank = int(A.any(axis=0).sum())
            assert answer.status == ("minimum norm" if rank else "no data"), (n, answer.status)
            assert np.abs(answer.theta[~A.any(axis=0)]).max(initial=0.0) < 1e-9
        elif kind == "condition 0.1/eps" and n > 1:
            assert answer.status != "ok", n
        elif not kind.startswith("condition"):
            assert answer.status == "ok", (n, answer)


def exact_error(A: Any, theta: Any, b: Any) -> float:
    """The backward error by numbers of more digits and a wider range than the solvers have."""
    A, theta, b = (np.asarray(x, dtype=np.longdouble) for x in (A, theta, b))
    left = np.abs(b - A @ theta).max()
    size = np.abs(A).sum(axis=1).max() * np.abs(theta).max() + np.abs(b).max()
    return float(left / size) if size else 0.0


PLAIN = ("LSTD", "LSTD target", "LSETD", "LSTDQ", "BellmanResidual single")


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", PLAIN)
def test_the_reported_residual_is_the_true_one(name: str, kind: str) -> None:
    """Not the solver's own account: the system is known, and its residual is taken anew."""
    for n in SIZES:
        A = matrix(kind, n)
        batch = as_differences(A, SCALE.get(kind, 1.0))
        theta = BY_DIFFERENCES[name]().fit(batch).theta
        system, right = A, batch.reward
        if name == "LSTD target":  # phi - rho gamma phi' is what it weights
            system, right = np.eye(n) - batch.rho[:, None] * (np.eye(n) - A), batch.rho * right
        elif name == "BellmanResidual single":
            system, right = A.T @ A, A.T @ right
        assert exact_error(system, theta, right) < 30 * EPS, n


@pytest.mark.parametrize("kind", TYPES)
def test_sparse_systems(kind: str) -> None:
    for n in SIZES:
        A = matrix(kind, n) * SCALE.get(kind, 1.0)
        b = A @ (np.random.default_rng(n).normal(size=n) / n)
        answer = solve(csr_array(A), b)
        assert exact_error(A, answer.theta, b) < 30 * EPS, (n, answer)
        if kind.endswith("zero"):
            assert answer.status == ("minimum norm" if A.any() else "no data"), n
            assert not answer.theta[~A.any(axis=0)].any()
        elif kind == "condition 0.1/eps" and n > 1:
            assert answer.status in ("ill-conditioned", "minimum norm"), n
        else:
            assert answer.status == "ok", (n, answer)


AVERAGED = {
    "identity": 0.0, "diagonal": 0.0, "upper": 0.9, "lower": 0.9, "random": 0.9,
    "first column zero": 0.9, "last column zero": 0.9, "half of the columns zero": 0.9,
    "condition sqrt(0.1/eps)": 1.0 - np.sqrt(10 * EPS), "condition 0.1/eps": 1.0 - 10 * EPS,
    "near underflow": 0.9, "near overflow": 0.9,
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
def test_averager(kind: str) -> None:
    """Its features are shares, so its matrices are `diag(rho) (I - gamma P)` of each type's shape."""
    for n in SIZES:
        rng = np.random.default_rng(n)
        P = rng.random((n, n)) + 0.1
        P = {"upper": np.triu, "lower": np.tril}.get(kind, np.asarray)(P)
        P /= P.sum(axis=1, keepdims=True)
        rho = np.full(n, SCALE.get(kind, 1.0))
        if kind == "diagonal":
            rho = rng.random(n) + 0.5
        never = {"first column zero": slice(0, 1), "last column zero": slice(n - 1, n)}.get(kind)
        if kind == "half of the columns zero":
            never = slice(n // 2, n)
        if never is not None:
            rho[never] = 0.0
        system = np.eye(n) - AVERAGED[kind] * P
        reward = system @ rng.normal(size=n)
        answer = (
            o2td.Averager()
            .fit(Transitions(np.eye(n), reward, P, discount=AVERAGED[kind], rho=rho))
            .solution
        )
        full = rho[:, None] * system + np.diag(np.where(rho > 0.0, 0.0, 1.0))
        assert exact_error(full, answer.theta, rho * reward) < 30 * EPS, n
        assert answer.counts.get("features never touched", 0) == int((rho == 0.0).sum())
        assert (answer.status == "ok") == (kind != "condition 0.1/eps" or n == 1), (n, answer)


def test_no_solver_is_forgotten() -> None:
    """A linear program is no linear system: DantzigTD answers to the tolerance of its program.

    DifferentialLSTD has one unknown more than features, the average reward, which no matrix of
    these types has; its own tests hold it to a reference.
    """
    seen = {name.partition(" ")[0] for name in [*BY_DIFFERENCES, *BY_FEATURES]}
    assert seen | {"Averager", "DantzigTD", "DifferentialLSTD"} >= set(SOLVERS.names())
