"""Every number that a learner takes: accepted and kept at its bounds and inside, refused beyond."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import o2td
from o2td import learners
from o2td.errors import InputError

SMALL = 1e-3
NOT_NEGATIVE = (0.0, SMALL, 0.5, 1.0, 7.5), (-SMALL, np.nan, np.inf, "1")
POSITIVE = (SMALL, 0.5, 1.0, 7.5), (0.0, -SMALL, np.nan, np.inf, "1")
UNIT = (0.0, SMALL, 0.5, 1.0), (-SMALL, 1.0 + SMALL, np.nan)


def count(least, most):
    return (least, least + 1, most), (least - 1, most + 1, least + 0.5)


CASES = {
    (o2td.TD, "l1"): NOT_NEGATIVE,
    (o2td.TD, "radius"): POSITIVE,
    (o2td.TD, "trace"): UNIT,
    (o2td.GTD2, "l1"): NOT_NEGATIVE,
    (o2td.GTD2, "radius"): POSITIVE,
    (o2td.TDRC, "regularizer"): NOT_NEGATIVE,
    (o2td.VTrace, "clip"): POSITIVE,
    (o2td.ABTD, "psi_0"): POSITIVE,
    (o2td.DifferentialTD, "rate"): POSITIVE,
    (o2td.WISTD, "usage"): POSITIVE,
    (o2td.WISTD, "recency"): UNIT,
    (o2td.ATD, "rank"): count(1, 8),
    (o2td.PERETD, "period"): count(1, 100_000),
    (o2td.TruncatedETD, "length"): count(0, 100_000),
    (learners.TIDBD, "initial"): POSITIVE,
    (learners.TIDBD, "rate"): NOT_NEGATIVE,
    (learners.AlphaBound, "initial"): POSITIVE,
    (learners.SwiftBound, "size"): POSITIVE,
    (partial(learners.SwiftBound, 0.5), "eta"): POSITIVE,
}


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_numbers_at_their_bounds(kind, name):
    good, bad = CASES[kind, name]
    for one in good:
        assert getattr(kind(**{name: one}), name) == one
    for one in bad:
        with pytest.raises(InputError):
            kind(**{name: one})
