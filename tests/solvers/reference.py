"""Plain, slow solvers written from the equations, row by row, apart from the package's own code."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from o2td import Problem, Transitions


def garnet(seed, states=12, actions=3, d=4, discount=0.9, terminal=False, features=None):
    """A small random off-policy problem; with `terminal` the last state ends episodes."""
    rng = np.random.default_rng(seed)
    P = rng.random((states, actions, states)) ** 4
    P /= P.sum(axis=2, keepdims=True)
    b, pi = (rng.random((states, actions)) + 0.3 for _ in range(2))
    b, pi = (x / x.sum(axis=1, keepdims=True) for x in (b, pi))
    phi = rng.normal(size=(states, d)) if features is None else features
    gamma = discount * (0.6 + 0.4 * rng.random(states))
    reward = 3.0 * rng.normal(size=(states, 1, 1)) + rng.normal(size=(states, actions, states))
    end = [states - 1] if terminal else None
    return Problem(P, reward, gamma, b, pi, phi, terminal=end, interest=rng.random(states) + 0.2)


def layouts(batch: Transitions) -> dict[str, Transitions]:
    """A batch of table rows in every layout."""
    vectors = {
        name: getattr(batch, name)
        for name in ("rho", "start", "state", "next_state", "interest", "discount_2", "rho_2")
    }
    second = batch.next_phi_2
    # Rows that must not be read hold what would be noticed.
    later = np.where(batch.discount[:, None] > 0.0, batch.next_phi, np.nan)
    dense = Transitions(
        batch.phi, batch.reward, later, batch.discount, next_phi_2=second, **vectors
    )
    sparse = Transitions(
        csr_array(batch.phi),
        batch.reward,
        csr_array(later),
        batch.discount,
        next_phi_2=None if second is None else csr_array(second),
        **vectors,
    )
    table = Transitions.from_table(
        csr_array(batch.table),
        batch.state,
        batch.reward,
        batch.next_state,
        batch.discount,
        rho=batch.rho,
        start=batch.start,
        interest=batch.interest,
        next_state_2=batch.next_state_2,
        discount_2=batch.discount_2,
        rho_2=batch.rho_2,
    )
    return {"dense": dense, "csr": sparse, "table": batch, "csr table": table}


def rows(batch):
    """One dictionary a row, successors of ended rows as zeros."""
    phi, later = batch.phi, batch.next_phi
    for t in range(batch.n):
        yield {
            "phi": phi[t],
            "next_phi": later[t] if batch.discount[t] > 0 else np.zeros(batch.d),
            "r": batch.reward[t],
            "gamma": batch.discount[t],
            "rho": batch.rho[t],
            "start": batch.start[t] or t == 0,
            "i": 1.0 if batch.interest is None else batch.interest[t],
            "s": None if batch.state is None else int(batch.state[t]),
            "next_s": None if batch.next_state is None else int(batch.next_state[t]),
        }


def lstd(batch, trace=0.0, ridge=0.0, emphatic=False, decay=None):
    d = batch.d
    A, b = ridge * np.eye(d), np.zeros(d)
    z, F, gamma, rho = np.zeros(d), 0.0, 0.0, 0.0
    for row in rows(batch):
        if row["start"]:
            gamma = 0.0
        factor = gamma if decay is None or gamma == 0.0 else decay
        F = row["i"] + factor * rho * F
        M = trace * row["i"] + (1 - trace) * F if emphatic else 1.0
        z = row["rho"] * (gamma * trace * z + M * row["phi"])
        A = A + np.outer(z, row["phi"] - row["gamma"] * row["next_phi"])
        b = b + z * row["r"]
        gamma, rho = row["gamma"], row["rho"]
    return np.linalg.lstsq(A, b, rcond=None)[0]


def lstd_target(batch, trace=0.0):
    A, b = np.zeros((batch.d, batch.d)), np.zeros(batch.d)
    e, gamma, rho = np.zeros(batch.d), 0.0, 0.0
    for row in rows(batch):
        if row["start"]:
            gamma = 0.0
        e = trace * rho * gamma * e + row["phi"]
        A += np.outer(e, row["phi"] - row["rho"] * row["gamma"] * row["next_phi"])
        b += row["rho"] * e * row["r"]
        gamma, rho = row["gamma"], row["rho"]
    return np.linalg.solve(A, b)


def differential_lstd(batch, trace, ridge):
    d = batch.d
    A, b = np.diag(np.append(np.full(d, ridge), 0.0)), np.zeros(d + 1)
    z, gamma = np.zeros(d), 0.0
    for row in rows(batch):
        if row["start"]:
            gamma = 0.0
        z = row["rho"] * (trace * gamma * z + row["phi"])
        left = np.append(z, row["rho"])
        A = A + np.outer(left, np.append(row["phi"] - row["gamma"] * row["next_phi"], 1.0))
        b = b + left * row["r"]
        gamma = row["gamma"]
    found = np.linalg.solve(A, b)
    return found[:-1], found[-1]


def aggregated(batch, weighting="normalized"):
    """`Delta`, `R`, `Phi`, `xi` by state, states with no ratio left out."""
    groups = {}
    for row in rows(batch):
        groups.setdefault(row["s"], []).append(row)
    delta, reward, phi, xi = [], [], [], []
    for s in sorted(groups):
        group = groups[s]
        rho = sum(row["rho"] for row in group)
        if rho == 0.0:
            continue
        by = rho if weighting == "normalized" else len(group)
        difference = [row["rho"] * (row["phi"] - row["gamma"] * row["next_phi"]) for row in group]
        delta.append(sum(difference) / by)
        reward.append(sum(row["rho"] * row["r"] for row in group) / by)
        phi.append(group[0]["phi"])
        xi.append(len(group) / batch.n)
    return tuple(np.array(x) for x in (delta, reward, phi, xi))


def sotd(batch, weighting="normalized", start="zero", ridge=0.0):
    D, R, phi, xi = aggregated(batch, weighting)
    C = phi.T @ (xi[:, None] * phi)
    X0 = xi[:, None] * phi if start == "td" else np.zeros_like(phi)
    if ridge:
        X = X0 + np.linalg.solve(D @ D.T + ridge * np.eye(len(D)), D @ (C - D.T @ X0))
    else:
        X = X0 + np.linalg.pinv(D.T) @ (C - D.T @ X0)
    return np.linalg.lstsq(X.T @ D, X.T @ R, rcond=None)[0]


def diagonal_sotd(batch, weighting="normalized", nonnegative=False):
    from scipy.optimize import lsq_linear

    D, R, phi, xi = aggregated(batch, weighting)
    columns = np.array([np.outer(D[s], xi[s] * phi[s]).ravel() for s in range(len(D))]).T
    target = (phi.T @ (xi[:, None] * phi)).ravel()
    if nonnegative:
        omega = lsq_linear(columns, target, (0.0, np.inf), tol=1e-15, method="bvls").x
    else:
        omega = 1.0 + np.linalg.pinv(columns) @ (target - columns.sum(axis=1))
    X = (omega * xi)[:, None] * phi
    return np.linalg.solve(X.T @ D, X.T @ R), omega


def bellman_residual(batch, weighted=True, weighting="normalized"):
    D, R, _, xi = aggregated(batch, weighting)
    root = np.sqrt(xi if weighted else np.ones(len(R)))
    return np.linalg.lstsq(root[:, None] * D, root * R, rcond=None)[0]


def bellman_residual_rows(batch, double=False):
    A, b = np.zeros((batch.d, batch.d)), np.zeros(batch.d)
    for t, row in enumerate(rows(batch)):
        right = row["phi"] - row["gamma"] * row["next_phi"]
        left = row["rho"] * right
        if double:
            step = batch.discount_2[t] * batch.next_phi_2[t] if batch.discount_2[t] > 0 else 0.0
            left = row["rho"] * batch.rho_2[t] * (row["phi"] - step)
        A += np.outer(left, right)
        b += left * row["r"]
    return np.linalg.solve(A, b)


def trajectories(batch):
    parts, part = [], []
    for row in rows(batch):
        if row["start"] and part:
            parts.append((part, False))
            part = []
        part.append(row)
        if row["gamma"] == 0.0:
            parts.append((part, True))
            part = []
    return parts + ([(part, False)] if part else [])


def monte_carlo(batch, ratios="per-decision", weighted=True, truncated="keep"):
    A, b = np.zeros((batch.d, batch.d)), np.zeros(batch.d)
    for part, ended in trajectories(batch):
        if not ended and truncated == "drop":
            continue
        for t in range(len(part)):
            y, w, product, discount, G = 0.0, 0.0, 1.0, 1.0, 0.0
            for k, row in enumerate(part[t:]):
                product *= row["rho"]
                y += discount * product * row["r"]
                G += discount * row["r"]
                last = t + k == len(part) - 1
                w += discount * product * (1.0 if last else 1.0 - row["gamma"])
                discount *= row["gamma"]
            if ratios == "trajectory":
                y, w = product * G, product
            A += (w if weighted else 1.0) * np.outer(part[t]["phi"], part[t]["phi"])
            b += y * part[t]["phi"]
    return np.linalg.lstsq(A, b, rcond=None)[0]


def plugin_optimal(batch, weighting="normalized"):
    _, R, phi, xi = aggregated(batch, weighting)
    mass = {}
    for row in rows(batch):
        one = row["rho"] if weighting == "normalized" else 1.0
        mass[row["s"]] = mass.get(row["s"], 0.0) + one
    ratios = {row["s"] for row in rows(batch) if row["rho"] > 0}
    names = sorted(ratios)
    where = {s: k for k, s in enumerate(names)}
    theta = lstd(batch)
    L, right, strange = np.eye(len(names)), R.copy(), set()
    for row in rows(batch):
        if row["gamma"] == 0.0 or row["rho"] == 0.0:
            continue
        share = row["rho"] * row["gamma"] / mass[row["s"]]
        if row["next_s"] in where:
            L[where[row["s"]], where[row["next_s"]]] -= share
        else:
            right[where[row["s"]]] += share * (row["next_phi"] @ theta)
            strange.add(row["next_s"])
    V = np.linalg.solve(L, right)
    root = np.sqrt(xi)
    return np.linalg.lstsq(root[:, None] * phi, root * V, rcond=None)[0], len(strange)


def averager(batch, sweeps=3000):
    theta = np.zeros(batch.d)
    phi, later = batch.phi, batch.next_phi
    mass = phi.T @ batch.rho
    for _ in range(sweeps):
        target = batch.rho * (batch.reward + batch.discount * (later @ theta))
        theta = (phi.T @ target) / np.where(mass > 0, mass, 1.0)
    return theta
