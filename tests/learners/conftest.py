from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from o2td import Transitions


def random_rows(n=1000, d=7, states=12, seed=0, sparse=True, double=True):
    """An off-policy stream with terminations, truncations, zero ratios and zero features."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(states, d)) / np.sqrt(d)
    if sparse:
        table *= rng.random((states, d)) < 0.6
    table[0] = 0.0
    pi, b = rng.random(n) * 0.9 + 0.05, rng.random(n) * 0.7 + 0.3
    pi[rng.random(n) < 0.1] = 0.0
    discount = np.where(rng.random(n) < 0.1, 0.0, rng.choice([0.5, 0.9, 0.95], n))
    start = rng.random(n) < 0.08
    start[1:] |= discount[:-1] == 0.0
    batch = {
        "state": rng.integers(states, size=n),
        "reward": rng.normal(size=n),
        "next_state": rng.integers(states, size=n),
        "discount": discount,
        "start": start,
        "target_prob": pi,
        "behavior_prob": b,
        "interest": rng.random(n) + 0.5,
    }
    if double:
        batch |= {
            "next_state_2": rng.integers(states, size=n),
            "discount_2": rng.choice([0.0, 0.9], n),
            "rho_2": rng.random(n) * 2,
        }
    return table, batch


def as_table(table, batch, sparse=False):
    return Transitions.from_table(csr_array(table) if sparse else table, **batch)


def as_rows(table, batch, sparse=False):
    given = {k: v for k, v in batch.items() if k != "next_state_2"}
    phi, next_phi = table[batch["state"]], table[batch["next_state"]]
    convert = csr_array if sparse else np.ascontiguousarray
    second = {}
    if "next_state_2" in batch:
        second["next_phi_2"] = convert(table[batch["next_state_2"]])
    return Transitions(phi=convert(phi), next_phi=convert(next_phi), **given, **second)


def as_dicts(table, batch):
    rows = []
    for t in range(len(batch["reward"])):
        row = {
            "phi": table[batch["state"][t]],
            "next_phi": table[batch["next_state"][t]],
            "reward": batch["reward"][t],
            "gamma": batch["discount"][t],
            "start": bool(batch["start"][t]),
            "pi": batch["target_prob"][t],
            "b": batch["behavior_prob"][t],
            "rho": batch["target_prob"][t] / batch["behavior_prob"][t],
            "interest": batch["interest"][t],
            "state": int(batch["state"][t]),
        }
        if "next_state_2" in batch:
            row |= {
                "next_phi_2": table[batch["next_state_2"][t]],
                "gamma_2": batch["discount_2"][t],
                "rho_2": batch["rho_2"][t],
            }
        rows.append(row)
    return rows


LAYOUTS = {
    "dense": lambda t, b: as_rows(t, b),
    "csr": lambda t, b: as_rows(t, b, sparse=True),
    "table": lambda t, b: as_table(t, b),
    "csr table": lambda t, b: as_table(t, b, sparse=True),
}


@pytest.fixture(scope="session")
def stream():
    return random_rows()
