from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

import o2td
from o2td import TD, domains, sampling
from o2td.errors import InputError
from o2td.sampling import (
    Sampler,
    alias_tables,
    draw_states,
    raw_numbers,
    seed_sequence,
    streams,
)

Floats = npt.NDArray[np.float64]


def shares(rng: np.random.Generator, *shape: int) -> Floats:
    weight = rng.random(shape) ** 3
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def test_alias_tables_hold_their_distributions() -> None:
    rng = np.random.default_rng(0)
    sizes = [1, 2, 7, 0, 300]
    ptr = np.cumsum([0, *sizes])
    chance = np.concatenate([shares(rng, size) for size in sizes if size])
    chance[1] = 0.0
    tables = alias_tables(ptr, chance)
    for low, high in pairwise(ptr):
        size = high - low
        held = tables.threshold[low:high].copy()
        np.add.at(held, tables.alias[low:high], 1.0 - tables.threshold[low:high])
        wanted = chance[low:high] / chance[low:high].sum() if size else chance[low:high]
        np.testing.assert_allclose(held / max(size, 1), wanted, atol=1e-14)


def pairs_of(n: int, m: int, size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Every (s, a) leads to states 0 … size-1."""
    row = np.repeat(np.arange(n * m), size)
    return row, np.tile(np.arange(size, dtype=np.int32), n * m)


@pytest.mark.parametrize(("n", "m", "size"), [(6, 3, 4), (20, 2, 20), (600, 2, 512), (600, 1, 513)])
def test_short_thresholds_decide_as_the_full_ones(n: int, m: int, size: int) -> None:
    """The same rows, to the bit, as alias tables in double precision."""
    rng = np.random.default_rng(n)
    behavior, chance = shares(rng, n, m), shares(rng, n * m, size).ravel()
    row, following = pairs_of(n, m, size)
    sampler = Sampler(behavior, row, following, chance, np.eye(n)[0], np.zeros(n, dtype=np.bool_))
    state = rng.integers(0, n, 200_000)
    drawn = sampler.steps_from(state, streams(3, 1)[0])

    raw = raw_numbers(streams(3, 1)[0], 2 * len(state))
    u = ((raw >> np.uint64(11)) * 2.0**-53).reshape(-1, 2)
    rows = pick(alias_tables(np.arange(0, n * m + 1, m), behavior.ravel()), state, u[:, 0])
    ptr = np.arange(0, n * m * size + 1, size)
    pair = pick(alias_tables(ptr, chance), rows, u[:, 1])
    np.testing.assert_array_equal(drawn.row, rows)
    np.testing.assert_array_equal(drawn.pair, pair)
    np.testing.assert_array_equal(drawn.next_state, following[pair])


def pick(tables: object, k: npt.NDArray[np.int64], u: Floats) -> npt.NDArray[np.int64]:
    ptr, threshold, alias = tables  # type: ignore[misc]
    scaled = u * (ptr[k + 1] - ptr[k])
    j = scaled.astype(np.int64)
    full = scaled - j < threshold[ptr[k] + j]
    return np.asarray(ptr[k] + np.where(full, j, alias[ptr[k] + j]))


def test_a_million_successors() -> None:
    n = 2**20 + 8
    row = np.r_[np.zeros(n, dtype=np.int64), np.arange(1, n)]
    following = np.r_[np.arange(n), np.zeros(n - 1)].astype(np.int32)
    chance = np.r_[np.full(n, 1.0 / n), np.ones(n - 1)]
    nowhere = np.zeros(n, dtype=np.bool_)
    sampler = Sampler(np.ones((n, 1)), row, following, chance, np.eye(1, n)[0], nowhere)
    drawn = sampler.walk(20_000, *streams(0, 2))
    left = drawn.state == 0
    assert (drawn.next_state[~left] == 0).all()
    assert drawn.next_state[left].max() > 2**20 - 2000
    # Uniform: its mean has standard deviation n / sqrt(12 k), five of them are allowed.
    k = left.sum()
    assert abs(drawn.next_state[left].mean() - n / 2) < 5 * n / np.sqrt(12 * k)


def test_states_of_zero_probability_are_never_drawn() -> None:
    drawn = draw_states(np.array([0.0, 0.5, 0.0, 0.5, 0.0]), 20_000, streams(1, 1)[0])
    assert set(drawn.tolist()) == {1, 3}


def test_seeds() -> None:
    assert (
        seed_sequence(3).entropy == seed_sequence([3]).entropy == seed_sequence(np.int32(3)).entropy
    )
    names = (0, 1, (0, 0), (0, 1), (1, 0), (0, 0, 0), 2**40)
    firsts = [int(raw_numbers(streams(name, 1)[0], 1)[0]) for name in names]
    assert len(set(firsts)) == len(names)
    given = np.random.SeedSequence(7)
    again = [int(raw_numbers(bits, 1)[0]) for bits in streams(given, 2)]
    assert again == [int(raw_numbers(bits, 1)[0]) for bits in streams(given, 2)]
    for wrong in (-1, (1, -2), "x", 1.5, None):
        with pytest.raises(InputError, match="seed must be"):
            streams(wrong, 1)  # type: ignore[arg-type]


def test_rows_are_the_same_on_every_machine() -> None:
    """Written down once; a change here breaks every recorded experiment."""
    batch = domains.garnet(seed=0).sample(12, seed=0)
    assert batch.state is not None
    assert batch.state.tolist() == [26, 14, 0, 17, 21, 21, 21, 21, 4, 10, 7, 0]


@pytest.mark.slow
def test_sampling_400_states_costs_no_more_than_a_pass_of_td() -> None:
    """Of the same million rows, d = 201; a third is left for the noise of a shared machine."""
    problem, n = domains.random_mdp(), 1_000_000
    batch = problem.sample(n)
    TD(step_size=1e-4).partial_fit(batch[:1000])
    sampling, learning = [], []
    for seed in range(7):
        begun = time.process_time()
        problem.sample(n, seed)
        middle = time.process_time()
        TD(step_size=1e-4).partial_fit(batch)
        sampling.append(middle - begun)
        learning.append(time.process_time() - middle)
    assert min(sampling) <= 4 / 3 * min(learning)


@pytest.mark.parametrize("scheme", ["sequential", "iid"])
@pytest.mark.parametrize("make", [domains.garnet, domains.random_walk, domains.collision])
def test_few_rows_that_nothing_is_compiled_for_are_the_same(
    make: Callable[..., o2td.Problem], scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make().sample(10_000, scheme=scheme)  # compiled from now on
    drawn = []
    for plain in (False, True):
        if plain:
            for name in ("_build", "_walk", "_steps", "_draw_many"):
                function = getattr(sampling, name).__wrapped__
                monkeypatch.setattr(sampling, name, lambda _, *given, f=function: f(*given))
        drawn.append(make().sample(500, seed=3, scheme=scheme, double=True))
    for name in ("phi", "reward", "next_phi", "discount", "rho", "start", "next_phi_2", "rho_2"):
        np.testing.assert_array_equal(getattr(drawn[0], name), getattr(drawn[1], name))
