"""Quantiles and worst shares of weighted returns, by plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2td.evaluation import returns
from o2td.evaluation.returns import EpisodeReturns, ReturnDistribution


def sample_of(seed: int, count: int = 400) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    key = rng.integers(0, 2**64, count, dtype=np.uint64)
    return key, rng.normal(size=count).round(1), rng.choice([0.0, 0.5, 1.0, 2.0], count)


def distribution(seed: int, count: int = 400, lanes: int = 0, **given: Any) -> ReturnDistribution:
    sample = EpisodeReturns()
    sample.add(*sample_of(seed, count))
    return ReturnDistribution(sample, given.get("doubts", []), 0.95, 0, lanes)


def plain_quantile(value: Any, weight: Any, level: float) -> float:
    total, place = 0.0, float("nan")
    for one, share in sorted(zip(value, weight / weight.sum(), strict=True)):
        total, place = total + share, one
        if total >= level - 1e-12:
            break
    return place


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_quantile_is_the_first_return_at_which_the_weights_reach_its_level(
    seed: int, level: float
) -> None:
    """Its interval ends where the weights reach the level, a standard error of F to either side."""
    _, plain, weight = sample_of(seed)
    found = distribution(seed).quantile(level)
    assert found.value == plain_quantile(plain, weight, level)
    assert found.logged == pytest.approx(np.quantile(plain, level))
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high
    each = weight * ((plain <= found.value) - level) / weight.mean()
    error = np.sqrt(np.square(each - each.mean()).sum() / len(each) / (len(each) - 1))
    for end, sign in ((found.low, -1.0), (found.high, 1.0)):
        reached = weight[plain <= end].sum() / weight.sum()
        before = weight[plain < end].sum() / weight.sum()
        assert before - 0.6 * error <= level + sign * 2.0 * error <= reached + 0.6 * error


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_the_worst_share_is_a_mean_over_it_with_part_of_the_return_at_its_edge(
    share: float,
) -> None:
    _, plain, weight = sample_of(2)
    left, total = share * weight.sum(), 0.0
    for one, own in sorted(zip(plain, weight, strict=True)):
        taken = min(own, left)
        total, left = total + taken * one, left - taken
    found = distribution(2).cvar(share)
    assert found.value == pytest.approx(total / (share * weight.sum()), rel=1e-9)
    assert found.logged == pytest.approx(np.sort(plain)[: int(share * 400)].mean(), rel=1e-9)
    drawn = distribution(2, lanes=200).cvar(share)
    assert drawn.value == found.value
    assert drawn.low < drawn.value < drawn.high
    half = (found.high - found.low) / 2.0
    assert (drawn.high - drawn.low) / 2.0 == pytest.approx(half, rel=0.35)
    assert found.high - found.value == pytest.approx(half, rel=1e-9)


def test_lanes_are_redrawn_from_a_few_episodes_and_moved_along_the_influence_of_many(monkeypatch):
    few = distribution(3, lanes=300).cvar(0.2)
    monkeypatch.setattr(returns, "_REDRAWN", 399)
    many = distribution(3, lanes=300).cvar(0.2)
    assert many.value == few.value
    assert (many.low, many.high) != (few.low, few.high)
    assert (many.low, many.high) == pytest.approx((few.low, few.high), abs=0.05)
    monkeypatch.setattr(returns, "_REDRAWN", 400)
    again = distribution(3, lanes=300).cvar(0.2)
    assert (again.low, again.high) == (few.low, few.high)


@pytest.mark.parametrize(
    ("count", "verdict", "said"),
    [(39, "cannot answer", "about 9.8 effective episodes lie beyond it: too few"),
     (40, "caution", "about 10 effective episodes lie beyond it"),
     (119, "caution", "about 30 effective episodes lie beyond it"), (120, "trust", "")],
)  # fmt: skip
def test_few_episodes_beyond_a_quantile_tell_little_or_nothing(
    count: int, verdict: str, said: str
) -> None:
    rng = np.random.default_rng(0)
    sample = EpisodeReturns()
    sample.add(
        rng.integers(0, 2**64, count, dtype=np.uint64), np.arange(count) * 1.0, np.ones(count)
    )
    whole = ReturnDistribution(sample, [], 0.95, 0, 0)
    for found in (whole.quantile(0.25), whole.quantile(0.75), whole.cvar(0.25)):
        assert found.verdict == verdict
        assert found.reasons == ([said] if said else [])
        assert (found.value is None) == (verdict == "cannot answer")
        assert found.logged is not None


def test_doubts_come_first_and_weights_of_nothing_answer_nothing() -> None:
    found = distribution(0, doubts=[("caution", "so it is")]).quantile(0.5)
    assert (found.verdict, found.reasons) == ("caution", ["so it is"])
    sample = EpisodeReturns()
    sample.add(np.arange(3, dtype=np.uint64), np.ones(3), np.zeros(3))
    none = ReturnDistribution(sample, [], 0.95, 0, 0).cvar(0.5)
    assert (none.value, none.verdict, none.logged) == (None, "cannot answer", 1.0)
    assert none.reasons == ["about 0.0 effective episodes lie beyond it: too few"]


def test_of_many_episodes_a_share_is_kept_by_their_keys_however_they_come(monkeypatch) -> None:
    key, plain, weight = sample_of(5, 1000)
    monkeypatch.setattr(returns, "_MOST", 300)

    def added(*parts: slice) -> EpisodeReturns:
        found = EpisodeReturns()
        for part in parts:
            found.add(key[part], plain[part], weight[part])
        return found

    whole = added(slice(None))
    assert whole.threshold == 0.25
    assert 150 < whole.count <= 300
    mixed = [(int(k) * 0xD1342543DE82EF95) % 2**64 for k in key]
    mine = np.array(mixed, dtype=np.float64) < 0.25 * 2.0**64
    assert whole.count == mine.sum()
    np.testing.assert_array_equal(whole.joined()[0], key[mine])
    np.testing.assert_array_equal(whole.joined()[1], plain[mine])
    np.testing.assert_array_equal(whole.joined()[2], weight[mine])
    pieces = added(*(slice(low, low + 90) for low in range(0, 1000, 90)))
    first, rest = added(slice(0, 120)), added(slice(120, None))
    first.merge(rest)
    small = added(slice(0, 120))
    rest = added(slice(120, None))
    rest.merge(small)
    for other in (pieces, first, rest):
        assert (other.threshold, other.count) == (0.25, whole.count)
        assert set(other.joined()[0]) == set(whole.joined()[0])
    exactly = EpisodeReturns()
    exactly.add(key[:300], plain[:300], weight[:300])
    assert (exactly.threshold, exactly.count) == (1.0, 300)
