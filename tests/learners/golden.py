"""What learners learned before a redesign, to be compared with after it.

`python tests/learners/golden.py` writes `golden.npz` and `saved/` anew from the learners as they are:
only for a change that is meant to change results.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import o2td
from o2td import PowerDecay, Transitions
from o2td.emphasis import FollowOn, Omega

HERE = Path(__file__).parent
FILE = HERE / "golden.npz"
SAVED = HERE / "saved"
LAYOUTS = ("dense", "table", "csr")
ROWS, STATES, D = 300, 11, 7
TRACE = 0.8

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "TD": [
        {},
        {"trace": TRACE},
        {"trace": TRACE, "emphasis": FollowOn(0.5)},
        {"trace": TRACE, "emphasis": Omega("moments")},
    ],
    "VTrace": [{"trace": TRACE}, {"trace": TRACE, "clip": 0.9, "clip_update": True}],
    "TreeBackup": [{"trace": TRACE}],
    "ABTD": [{"zeta": 0.3}, {"zeta": 0.8}],
    "ETD": [{}, {"trace": TRACE}, {"trace": TRACE, "decay": 0.4}],
    "O2TD": [
        {},
        {"trace": TRACE},
        {"omega": "printed"},
        {"omega": "state", "trace": TRACE},
        {"omega": "moments"},
    ],
    "ResidualGradient": [{}, {"double": True}, {"double": False}],
    "GTD": [{}, {"trace": TRACE}],
    "GTD2": [
        {},
        {"trace": TRACE, "form": "sampled"},
        {"trace": TRACE, "form": "expanded"},
        {"emphasis": FollowOn(), "trace": TRACE, "form": "sampled"},
        {"emphasis": Omega("sample"), "form": "sampled"},
    ],
    "TDC": [{}, {"trace": TRACE}],
    "TDRC": [{}, {"trace": TRACE}, {"regularizer": 0.3, "second_step_size": 0.1}],
    "HTD": [{}, {"trace": TRACE}, {"trace": TRACE, "second_step_size": 0.02}],
    "GTD2MP": [{}, {"trace": TRACE}, {"trace": TRACE, "emphasis": Omega("state")}],
    "TDCMP": [{}, {"trace": TRACE}],
}
STEP_SIZES: dict[str, Any] = {"number": 0.03, "decay": PowerDecay(0.2, 0.6)}


def rows(layout: str) -> Transitions:
    """Several trajectories with terminations, truncations and ratios of zero."""
    rng = np.random.default_rng(2016)
    table = np.round(2.0 * rng.random((STATES, D)) - 1.0, 3) * (rng.random((STATES, D)) < 0.7)
    table[:, 0] = 0.5
    n = ROWS
    following, restart = rng.integers(STATES, size=n), rng.integers(STATES, size=n)
    discount = np.array([0.0, 0.5, 0.9, 0.9, 0.9, 0.95])[rng.integers(6, size=n)]
    start = np.append(True, (rng.random(n) < 0.05)[1:] | (discount[:-1] == 0.0))
    state = np.where(start, restart, np.roll(following, 1))
    behavior = np.array([0.25, 0.5, 0.8])[rng.integers(3, size=n)]
    rho = np.array([0.0, 0.5, 1.0, 1.0, 1.2])[rng.integers(5, size=n)]
    fields: dict[str, Any] = {
        "reward": np.round(2.0 * rng.random(n) - 1.0, 3),
        "discount": discount,
        "start": start,
        "target_prob": behavior * rho,
        "behavior_prob": behavior,
        "interest": np.array([0.5, 1.0, 2.0])[rng.integers(3, size=n)],
        "state": state,
        "next_state": following,
        "discount_2": np.full(n, 0.9),
        "rho_2": np.array([0.5, 1.0, 1.5])[rng.integers(3, size=n)],
    }
    second = rng.integers(STATES, size=n)
    if layout == "table":
        return Transitions.from_table(table, next_state_2=second, **fields)
    made = csr_array if layout == "csr" else np.ascontiguousarray
    looked_up = {"phi": state, "next_phi": following, "next_phi_2": second}
    features: dict[str, Any] = {name: made(table[index]) for name, index in looked_up.items()}
    return Transitions(**features, **fields)


def learners(name: str) -> Iterator[tuple[str, Any]]:
    """Every setting of a learner with every kind of step size, by a name of its own."""
    for setting in SETTINGS[name]:
        for kind, size in STEP_SIZES.items():
            told = ",".join(f"{key}={value}" for key, value in setting.items())
            yield f"{name}({told}) {kind}", getattr(o2td, name)(step_size=size, **setting)


def weights(learner: Any) -> np.ndarray:
    """Theta, then w where there is one."""
    return np.concatenate([learner.theta, getattr(learner, "w", np.empty(0))])


def learned_one_by_one(learner: Any, batch: Transitions) -> np.ndarray:
    """By `learn_one`, every field of a row given."""
    names = ("target_prob", "behavior_prob", "interest", "state")
    names += ("next_phi_2", "discount_2", "rho_2")
    for t in range(batch.n):
        own = {name: getattr(batch, name)[t] for name in names}
        learner.learn_one(
            batch.phi[t], batch.reward[t], batch.next_phi[t], batch.discount[t],
            start=bool(batch.start[t]), **own,
        )  # fmt: skip
    return weights(learner)


def plain(batch: Transitions) -> Transitions:
    """Without interest: what the quick path of `learn_one` may take."""
    return Transitions(
        batch.phi, batch.reward, batch.next_phi, batch.discount, batch.rho, batch.start
    )


def learned_plainly(learner: Any, batch: Transitions) -> np.ndarray:
    """By `learn_one` with features, reward, discount, ratio and start alone."""
    for t in range(batch.n):
        learner.learn_one(
            batch.phi[t].copy(), float(batch.reward[t]), batch.next_phi[t].copy(),
            float(batch.discount[t]), float(batch.rho[t]), bool(batch.start[t]),
        )  # fmt: skip
    return weights(learner)


def fitted(name: str, layout: str) -> Iterator[tuple[str, np.ndarray]]:
    """What every setting of a learner learns by `partial_fit`."""
    batch = rows(layout)
    for told, learner in learners(name):
        yield f"{told} {layout}", weights(learner.partial_fit(batch))


def followed(name: str) -> Iterator[tuple[str, np.ndarray]]:
    """What every setting of a learner learns by `learn_one`."""
    batch = rows("dense")
    for told, learner in learners(name):
        yield f"{told} one", learned_one_by_one(learner.clone(), batch)
        if not learner.needs and "state" not in told and "double=True" not in told:
            yield f"{told} plain", learned_plainly(learner, plain(batch))


def swept(name: str, layout: str) -> Iterator[tuple[str, np.ndarray]]:
    """What all settings of a learner learn side by side."""
    named = dict(learners(name))
    found = o2td.sweep(list(named.values()), rows(layout)).learners
    for told, learner in zip(named, found, strict=True):
        yield f"{told} swept {layout}", weights(learner)


def results() -> Iterator[tuple[str, np.ndarray]]:
    """All of it."""
    for name in SETTINGS:
        yield from followed(name)
        for layout in LAYOUTS:
            yield from fitted(name, layout)
            yield from swept(name, layout)


def to_save() -> Iterator[tuple[str, Any]]:
    """Learners for files, each stopped in the middle of a trajectory."""
    for name, settings in SETTINGS.items():
        yield name, getattr(o2td, name)(step_size=0.03, **settings[-1])
    yield "decaying", o2td.TDRC(step_size=PowerDecay(0.2, 0.6), trace=TRACE)
    yield "started", o2td.TD(step_size=0.03, initial_theta=np.linspace(-1.0, 1.0, D))
    yield "diverged", o2td.TD(step_size=1e30)


def resumed(path: Path) -> np.ndarray:
    """What a saved learner has learned after the second half of the rows."""
    learner: Any = o2td.Learner.load(path)
    half = rows("csr" if path.stem in ("GTD", "ETD") else "dense")[ROWS // 2 :]
    return weights(learner.partial_fit(half))


def main() -> None:
    """Write the files."""
    found = dict(results())
    SAVED.mkdir(exist_ok=True)
    for name, learner in to_save():
        half = rows("csr" if name in ("GTD", "ETD") else "dense")[: ROWS // 2]
        learner.partial_fit(half).save(SAVED / f"{name}.npz")
        found[f"resumed {name}"] = resumed(SAVED / f"{name}.npz")
    np.savez_compressed(FILE, names=np.array(list(found)), values=_padded(found.values()))


def _padded(values: Any) -> np.ndarray:
    table = np.full((len(values), 2 * D), np.nan)
    for row, value in zip(table, values, strict=True):
        row[: len(value)] = value
    return table


if __name__ == "__main__":
    main()
