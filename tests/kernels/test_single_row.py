"""One row on a packed state, all of its numbers against the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2td.kernels import single_row as one

Array = np.ndarray[Any, Any]
D = 3


def row(rng: np.random.Generator, discount: float, rho: float) -> tuple[Any, ...]:
    phi, later = rng.normal(size=(2, D))
    return phi, later if discount else np.full(D, 1e200), 0.7, discount, rho


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("discount", [0.0, 0.9])
@pytest.mark.parametrize("trace", [0.0, 0.6])
@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize(("follows", "beta"), [(False, -1.0), (True, -1.0), (True, 0.3)])
@pytest.mark.parametrize("before", [0.0, 0.8])
def test_a_weighted_step(
    start: int,
    discount: float,
    trace: float,
    inner: bool,
    follows: bool,
    beta: float,
    before: float,
) -> None:
    rng = np.random.default_rng(1)
    packed = rng.random(one.HEAD + 2 * D)
    packed[one.BUSY] = 0.0
    packed[[one.LAMBDA, one.INNER, one.FOLLOWS, one.BETA]] = trace, inner, follows, beta
    packed[one.FOLLOWED + 1] = before
    packed[one.BOUND] = 2.5
    expected, (phi, later, reward, _, rho) = packed.copy(), row(rng, discount, 1.4)
    theta, z = packed[one.HEAD : one.HEAD + D], packed[one.HEAD + D :]
    after = discount * later if discount else np.zeros(D)
    m, followed = 1.0, 1.0
    if inner:
        apart = phi - (discount * later if discount else 0.0)
        m = apart @ phi / (apart @ apart)
    if follows:
        arrives = 0.0 if start or not before else (beta if beta >= 0.0 else before)
        followed = 1.0 + arrives * packed[one.FOLLOWED]
        m = trace + (1.0 - trace) * followed
        expected[one.FOLLOWED : one.FOLLOWED + 2] = rho * followed, discount
    decay = 0.0 if start else packed[one.DECAY]
    delta = reward + after @ theta - phi @ theta
    new = (decay * z if trace else 0.0) + m * phi
    expected[one.HEAD : one.HEAD + D] += packed[one.ALPHA] * rho * delta * new
    if trace:
        expected[one.HEAD + D :] = new
        expected[one.DECAY] = trace * rho * discount
        expected[one.BOUND] = decay * 2.5 + abs(m)
    expected[one.STEPS] += 1.0
    given = (phi, later if discount else np.full(D, 1e200), reward, discount, rho, start)
    assert one.one_weighted(packed, *given) == 1
    np.testing.assert_allclose(packed, expected, rtol=1e-12)


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("discount", [0.0, 0.9])
@pytest.mark.parametrize("trace", [0.0, 0.6])
@pytest.mark.parametrize("mirror", [False, True])
def test_a_gradient_step(start: int, discount: float, trace: float, mirror: bool) -> None:
    rng = np.random.default_rng(2)
    packed = rng.random(one.HEAD + 4 * D)
    packed[one.BUSY] = 0.0
    packed[[one.LAMBDA, one.MIRROR, one.BOUND]] = trace, mirror, 2.5
    member = rng.normal(size=10)
    if mirror:
        member[[4, 5, 8]] = 0.0
    packed[one.MEMBER : one.MEMBER + 10] = member
    expected, (phi, later, reward, _, rho) = packed.copy(), row(rng, discount, 1.4)
    after = discount * later if discount else np.zeros(D)
    theta, w, z, zb = packed[one.HEAD :].reshape(4, D)
    into = 0.0 if start else trace * packed[one.DISCOUNT]
    z, zb = rho * (into * z + phi), into * zb + phi

    def moves(theta: Array, w: Array) -> tuple[Array, Array]:
        delta, wphi, wz, wb = reward + (after - phi) @ theta, phi @ w, z @ w, zb @ w
        up = member[0] * delta * z + (member[1] * wphi + member[2] * wz + member[4] * wb) * phi
        up = up - (member[3] * wz + member[5] * wb) * after
        side = member[6] * delta * z + member[7] * wphi * phi + member[8] * wb * (phi - after)
        return packed[one.ALPHA] * up, packed[one.SECOND] * (side - member[9] * w)

    up, side = moves(theta, w)
    if mirror:
        up, side = moves(theta + up, w + side)
    expected[one.HEAD :] = np.concatenate([theta + up, w + side, z, zb])
    expected[one.DISCOUNT] = discount
    expected[one.STEPS] += 1.0
    if trace:
        expected[one.BOUND] = rho * (into * 2.5 + 1.0)
    given = (phi, later if discount else np.full(D, 1e200), reward, discount, rho, start)
    assert one.one_gradient(packed, *given) == 1
    np.testing.assert_allclose(packed, expected, rtol=1e-11)


LARGE = {  # what alone is too large, and for which of the two
    "error": ({"reward": 1e151}, "both"),
    "step": ({"alpha": 1e160}, "both"),
    "square of phi": ({"phi": 1e76}, "both"),
    "square of the successor": ({"later": 1e76}, "both"),
    "trace": ({"bound": 1e151}, "both"),
    "ratio": ({"rho": 1e150}, "both"),
    "second step": ({"second": 1e160}, "gradient"),
    "w along z": ({"w": 1e151}, "gradient"),
    "weight": ({"followed": 1e151}, "weighted"),
}


CASES = [
    (part, kind)
    for part, (_, who) in LARGE.items()
    for kind in ("weighted", "gradient")
    if who in ("both", kind)
]


@pytest.mark.parametrize(("part", "kind"), CASES)
def test_what_is_too_large_is_refused_and_changes_nothing(part: str, kind: str) -> None:
    given, _ = LARGE[part]
    vectors = 2 if kind == "weighted" else 4
    packed = np.zeros(one.HEAD + vectors * D)
    packed[[one.LAMBDA, one.DECAY, one.DISCOUNT]] = 0.5, 0.5, 0.5
    packed[one.BOUND] = given.get("bound", 1.0)
    packed[one.ALPHA] = given.get("alpha", 1e-250 if "followed" in given else 0.1)
    packed[one.SECOND] = given.get("second", 0.1)
    if "followed" in given:
        packed[[one.FOLLOWS, one.FOLLOWED, one.FOLLOWED + 1, one.BETA]] = 1.0, 1e151, 0.9, -1.0
    if kind == "gradient":
        packed[one.MEMBER : one.MEMBER + 10] = 0.0 if "w" in given else 1.0
        packed[one.HEAD + D : one.HEAD + 2 * D] = given.get("w", 0.0)
    phi, later = np.zeros((2, D))
    phi[0], later[1] = given.get("phi", 1.0), given.get("later", 0.5)
    before, step = packed.copy(), getattr(one, f"one_{kind}")
    row = (phi, later, given.get("reward", 1.0), 0.9, given.get("rho", 1.0), 0)
    assert step(packed, *row) == 0
    np.testing.assert_array_equal(packed, before)
    packed[one.HEAD :] = 0.0
    packed[[one.BOUND, one.FOLLOWED]], packed[[one.ALPHA, one.SECOND]] = 1.0, 0.1
    assert step(packed, np.ones(D), np.ones(D), 1.0, 0.9, 1.0, 0) == 1
