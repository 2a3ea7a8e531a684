"""Every learner once more, slow and plain, written from the equations and not from the code.

`run(name, rows, **parameters)` walks over `rows`, a list of dicts, with the names of the notation.
"""

from __future__ import annotations

import numpy as np


def omega(reading, row, memory):
    dphi = row["phi"] - row["gamma"] * row["next_phi"]
    along, square = dphi @ row["phi"], dphi @ dphi
    rho = row["rho"]
    if reading == "sample":
        return along / square if square else 0.0
    if reading == "printed":
        return along / (rho * square) if square and rho else 0.0
    if reading == "regression":
        return regressed(row, rho * along, rho * square, memory)
    s = row["state"]
    if reading == "state":
        visits = memory.setdefault(s, [])
        visits.append(rho * dphi)
        mean = np.mean(visits, axis=0)
        return mean @ row["phi"] / (mean @ mean) if mean @ mean else 0.0
    sums = memory.setdefault(s, [0.0, 0.0])
    sums[0] += rho * along
    sums[1] += rho * square
    return sums[0] / sums[1] if sums[1] else 0.0


def regressed(row, along, square, memory, rate=0.05, floor=0.05):
    """Both moments by least mean squares on phi, the lower one not below a share of its mean."""
    phi = row["phi"]
    seen = memory.setdefault("seen", [])
    seen.append((phi @ phi, square))
    largest, mean = max(norm for norm, _ in seen), np.mean([x for _, x in seen])
    x, y = memory.get("weights", (np.zeros_like(phi), np.zeros_like(phi)))
    if largest:
        x = x + rate / largest * (along - phi @ x) * phi
        y = y + rate / largest * (square - phi @ y) * phi
    memory["weights"] = x, y
    below = max(phi @ y, floor * mean)
    return phi @ x / below if below else 0.0


def emphasis_of(kind, row, before, memory, lam):
    if kind == "uniform":
        return 1.0
    if kind.startswith("follow"):
        beta = memory.get("beta")
        decay = before["gamma"] if beta is None else beta
        carried = 0.0
        if not row["start"] and before["gamma"] != 0.0:
            carried = decay * before["rho"] * memory["F"]
        memory["F"] = row["interest"] + carried
        return lam * row["interest"] + (1 - lam) * memory["F"]
    return omega(kind.split(":")[1], row, memory)


def weighted(rows, alpha, lam=0.0, kind="uniform", coefficient=None, memory=None, clip_update=None):
    """z = c gamma lambda z + M phi; theta += alpha rho delta z."""
    d = len(rows[0]["phi"])
    theta, z, memory = np.zeros(d), np.zeros(d), {} if memory is None else memory
    seen = []
    before = {"gamma": 0.0, "rho": 0.0, "pi": 0.0, "b": 1.0}
    for t, row in enumerate(rows):
        passed = lam * before["rho"] if coefficient is None else coefficient(before)
        gamma_t = 0.0 if row["start"] or t == 0 else before["gamma"]
        z = passed * gamma_t * z + emphasis_of(kind, row, before, memory, lam) * row["phi"]
        delta = row["reward"] + row["gamma"] * row["next_phi"] @ theta - row["phi"] @ theta
        rho = row["rho"] if clip_update is None else min(clip_update, row["rho"])
        seen.append(sizes(row, row["rho"] * z))
        theta = theta + step(alpha, seen) * rho * delta * z
        before = row
    return theta


def sizes(row, z):
    """`|rho z| |dphi|` and `|phi|^2`, from z with the ratio in it."""
    dphi = row["phi"] - row["gamma"] * row["next_phi"]
    return np.linalg.norm(z) * np.linalg.norm(dphi), row["phi"] @ row["phi"]


def step(alpha, seen, second=False):
    """The step size of the last row seen; `second` says whether there is a w."""
    if alpha == "auto":
        return auto(np.array(seen), second)
    return alpha(len(seen)) if callable(alpha) else alpha


def auto(seen, second):
    """2 over root mean square size and mean square, falling from 1,000 rows on, below 1 / own."""
    usual = np.sqrt(np.mean(seen[:, 0] ** 2)) + np.mean(seen[:, 1])
    own = seen[-1].sum() if second else seen[-1, 0]
    fall = np.sqrt(1 + (len(seen) - 1) / 1000)
    bound = 1 / own if own else np.inf
    return min(2 / (usual * fall), bound) if usual else 0.0


def gradient(name, rows, alpha, second, **options):
    return gradient_pair(name, rows, alpha, second, **options)[0]


def gradient_pair(name, rows, alpha, second, lam=0.0, kind="uniform", kappa=0.0, memory=None):
    """theta and w of the table of gradient-TD members; mirror-prox by taking the step twice."""
    d = len(rows[0]["phi"])
    theta, w, z, zb = (np.zeros(d) for _ in range(4))
    memory = {} if memory is None else memory
    before, seen = {"gamma": 0.0, "rho": 0.0}, []
    for t, row in enumerate(rows):
        phi, rho = row["phi"], row["rho"]
        gamma_t = 0.0 if row["start"] or t == 0 else before["gamma"]
        m = emphasis_of(kind, row, before, memory, lam)
        z = rho * (gamma_t * lam * z + m * phi)
        zb = gamma_t * lam * zb + phi
        dphi = phi - row["gamma"] * row["next_phi"]

        def directions(theta, w, row=row, z=z, zb=zb, phi=phi, dphi=dphi):
            delta = row["reward"] - dphi @ theta
            correction = row["gamma"] * (1 - lam) * (z @ w) * row["next_phi"]
            tdc = delta * z - correction
            to_w = delta * z - (phi @ w) * phi
            return {
                "GTD": ((z @ w) * dphi, delta * z - w),
                "GTD2": ((z @ w) * dphi, to_w),
                "GTD2 expanded": ((phi @ w) * phi - correction, to_w),
                "TDC": (tdc, to_w),
                "TDRC": (tdc, to_w - kappa * w),
                "HTD": (delta * z + ((z - zb) @ w) * dphi, delta * z - (zb @ w) * dphi),
            }[name.removesuffix("MP")]

        seen.append(sizes(row, z))
        first, then = step(alpha, seen, True), step(second, seen, True)
        a, c = directions(theta, w)
        if name.endswith("MP"):
            a, c = directions(theta + first * a, w + then * c)
        theta, w = theta + first * a, w + then * c
        before = row
    return theta, w


def residual(rows, alpha, double=False):
    theta = np.zeros(len(rows[0]["phi"]))
    for row in rows:
        delta = row["reward"] + row["gamma"] * row["next_phi"] @ theta - row["phi"] @ theta
        if double:
            direction = row["phi"] - row["gamma_2"] * row["next_phi_2"]
            theta = theta + alpha * row["rho"] * row["rho_2"] * delta * direction
        else:
            direction = row["phi"] - row["gamma"] * row["next_phi"]
            theta = theta + alpha * row["rho"] * delta * direction
    return theta
