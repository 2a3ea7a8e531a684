"""Each learner against the slow, plain reference: 1e-10 relative after 1,000 steps, every layout."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import sweep
from o2td.emphasis import FollowOn, Omega
from o2td.learners import (
    ABTD,
    ETD,
    GTD,
    GTD2,
    GTD2MP,
    HTD,
    O2TD,
    TD,
    TDC,
    TDCMP,
    TDRC,
    PowerDecay,
    ResidualGradient,
    TreeBackup,
    VTrace,
)

from . import reference
from .conftest import LAYOUTS, as_dicts, random_rows

A, W = 0.05, 0.08


def nu_pi(zeta, psi_0, psi_max):
    psi = 2 * zeta * psi_0 + max(0.0, 2 * zeta - 1) * (psi_max - 2 * psi_0)
    return lambda row: min(psi, 1 / max(row["pi"], row["b"])) * row["pi"]


def weighted(alpha=A, **options):
    return lambda rows: reference.weighted(rows, alpha, **options)


def gradient(name, **options):
    return lambda rows: reference.gradient(name, rows, A, W, **options)


CASES = {
    "TD": (TD(A), weighted()),
    "TD 0.9": (TD(A, trace=0.9), weighted(lam=0.9)),
    "TD auto": (TD("auto"), weighted(alpha="auto")),
    "TD decay": (TD(PowerDecay(0.3, 0.6)), weighted(alpha=lambda t: 0.3 * t**-0.6)),
    "VTrace 0.9": (VTrace(A, trace=0.9), weighted(coefficient=lambda r: 0.9 * min(1.0, r["rho"]))),
    "VTrace clipped": (
        VTrace(A, trace=0.9, clip=0.7, clip_update=True),
        weighted(coefficient=lambda r: 0.9 * min(0.7, r["rho"]), clip_update=0.7),
    ),
    "TreeBackup 0.9": (TreeBackup(A, trace=0.9), weighted(coefficient=lambda r: 0.9 * r["pi"])),
    "ABTD 0.3": (ABTD(A, zeta=0.3), weighted(coefficient=nu_pi(0.3, 1.0, 2.0))),
    "ABTD 0.9": (
        ABTD(A, zeta=0.9, psi_0=0.8, psi_max=3.0),
        weighted(coefficient=nu_pi(0.9, 0.8, 3.0)),
    ),
    "ETD": (ETD(A / 5), weighted(alpha=A / 5, kind="follow")),
    "ETD 0.8": (ETD(A / 5, trace=0.8), weighted(alpha=A / 5, lam=0.8, kind="follow")),
    "ETD beta": (
        ETD(A / 5, trace=0.4, decay=0.3),
        weighted(alpha=A / 5, lam=0.4, kind="follow", memory={"beta": 0.3}),
    ),
    **{
        f"O2TD {reading} {lam}": (
            O2TD(A, omega=reading, trace=lam),
            weighted(lam=lam, kind=f"omega:{reading}"),
        )
        for reading in ("sample", "printed", "state", "moments")
        for lam in (0.0, 0.7)
    },
    "RG": (ResidualGradient(A, double=False), lambda rows: reference.residual(rows, A)),
    "RG double": (ResidualGradient(A), lambda rows: reference.residual(rows, A, double=True)),
    "GTD": (GTD(A, second_step_size=W), gradient("GTD")),
    "GTD 0.6": (GTD(A, second_step_size=W, trace=0.6), gradient("GTD", lam=0.6)),
    "GTD2": (GTD2(A, second_step_size=W), gradient("GTD2")),
    "GTD2 0.6": (
        GTD2(A, second_step_size=W, trace=0.6, form="sampled"),
        gradient("GTD2", lam=0.6),
    ),
    "GTD2 expanded": (
        GTD2(A, second_step_size=W, trace=0.6, form="expanded"),
        gradient("GTD2 expanded", lam=0.6),
    ),
    "GTD2 omega": (
        GTD2(A, second_step_size=W, trace=0.5, emphasis=Omega("sample")),
        gradient("GTD2", lam=0.5, kind="omega:sample"),
    ),
    "GTD2 state": (
        GTD2(A, second_step_size=W, emphasis=Omega("state")),
        gradient("GTD2", kind="omega:state"),
    ),
    "GTD2 follow": (
        GTD2(A, second_step_size=W, trace=0.5, emphasis=FollowOn()),
        gradient("GTD2", lam=0.5, kind="follow"),
    ),
    "TDC": (TDC(A, second_step_size=W), gradient("TDC")),
    "TDC 0.6": (TDC(A, second_step_size=W, trace=0.6), gradient("TDC", lam=0.6)),
    "TDRC": (TDRC(A, second_step_size=W), gradient("TDRC", kappa=1.0)),
    "TDRC 0.6": (
        TDRC(A, second_step_size=W, trace=0.6, regularizer=0.3),
        gradient("TDRC", lam=0.6, kappa=0.3),
    ),
    "HTD": (HTD(A, second_step_size=W), gradient("HTD")),
    "HTD 0.6": (HTD(A, second_step_size=W, trace=0.6), gradient("HTD", lam=0.6)),
    "GTD2MP": (GTD2MP(A, second_step_size=W), gradient("GTD2MP")),
    "GTD2MP 0.6": (GTD2MP(A, second_step_size=W, trace=0.6), gradient("GTD2MP", lam=0.6)),
    "GTD2MP omega": (
        GTD2MP(A, second_step_size=W, emphasis=Omega("moments")),
        gradient("GTD2MP", kind="omega:moments"),
    ),
    "TDCMP": (TDCMP(A, second_step_size=W), gradient("TDCMP")),
    "TDCMP 0.6": (TDCMP(A, second_step_size=W, trace=0.6), gradient("TDCMP", lam=0.6)),
}


@pytest.mark.parametrize("case", CASES)
def test_reference(case, stream):
    learner, plain = CASES[case]
    expected = plain(as_dicts(*stream))
    assert np.isfinite(expected).all()
    assert np.abs(expected).max() > 1e-3
    for layout, build in LAYOUTS.items():
        theta = learner.clone().partial_fit(build(*stream)).theta
        error = np.linalg.norm(theta - expected) / np.linalg.norm(expected)
        assert error < 1e-10, (layout, error)


TRACED = [
    member(step_size=A, trace=1.0) for member in (TD, ETD, O2TD, GTD, GTD2, TDC, TDRC, HTD, GTD2MP)
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("learner", TRACED, ids=lambda x: type(x).__name__)
def test_a_trace_that_overflows_is_divergence(learner, layout):
    """The trace grows by 1e60 a row; nothing is learned, so that only its own size can tell."""
    table, batch = random_rows(12, sparse=False, double=False)
    batch |= {"reward": np.zeros(12), "discount": np.ones(12), "start": np.zeros(12, dtype=bool)}
    batch |= {"target_prob": np.ones(12), "behavior_prob": np.full(12, 1e-60)}
    batch["state"] = 1 + batch["state"] % 11
    stream = LAYOUTS[layout](table, batch)
    whole = learner.clone().partial_fit(stream)
    assert whole.status.kind == "diverged"
    assert 1 <= whole.status.step <= 5
    np.testing.assert_array_equal(whole.theta, 0.0)
    assert (sweep([learner] * 12, stream).diverged == whole.status.step).all()
    rows = learner.clone()
    for t in range(12):
        rows.partial_fit(stream[t : t + 1])
    assert rows.status.step == whole.status.step
