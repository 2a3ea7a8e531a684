"""Weightings by name, their memory, and ratios of what may be nothing."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import Transitions, domains, exact
from o2td.emphasis import FollowOn, Omega, Uniform, as_emphasis, grown, ratio
from o2td.errors import InputError


class Named:
    """Something that is no text, but would be written as the name of a weighting."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("uniform", Uniform()),
        ("follow-on", FollowOn()),
        ("follow_on", FollowOn()),
        ("follow-on:0.5", FollowOn(0.5)),
        ("omega", Omega("sample")),
        ("omega:", Omega("sample")),
        ("omega:state", Omega("state")),
        (Omega("printed"), Omega("printed")),
    ],
    ids=repr,
)
def test_weightings_by_name(name, taken):
    assert as_emphasis(name) == taken
    assert hash(as_emphasis(name)) == hash(taken)
    assert as_emphasis(name) != FollowOn(0.25)


@pytest.mark.parametrize(
    "name",
    ["", "uniform:x", "plain", "omega-state", 3, None]
    + [Named(name) for name in ("uniform", "follow-on", "omega")],
    ids=str,
)
def test_other_names_of_weightings_are_refused(name):
    with pytest.raises(InputError, match="emphasis must be"):
        as_emphasis(name)


def test_memory_grows_and_keeps_what_it_holds():
    memory = {}
    first = grown(memory, "sums", (2, 3))
    first += 1.0
    assert grown(memory, "sums", (2, 3)) is first
    assert grown(memory, "sums", (1, 3)) is first
    np.testing.assert_array_equal(
        grown(memory, "sums", (4, 3)), [[1.0] * 3, [1.0] * 3, [0.0] * 3, [0.0] * 3]
    )


def test_a_ratio_is_nothing_where_nothing_is_below():
    found = ratio(np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 0.0, -1.0, 0.5]))
    np.testing.assert_array_equal(found, [0.5, 0.0, 0.0, 8.0])


def parts(phi, later, discount):
    """`dphi`, `dphi.phi` and `|dphi|^2` of each row."""
    dphi = phi - discount[:, None] * np.where(discount[:, None] > 0.0, later, 0.0)
    return dphi, np.sum(dphi * phi, axis=1), np.sum(dphi * dphi, axis=1)


def over(above, below):
    return above / below if below > 0.0 else 0.0


@pytest.mark.parametrize("reading", ["sample", "printed", "state", "moments"])
def test_omegas_of_rows_are_their_definitions_block_by_block(reading):
    batch = domains.garnet(states=6, features=3, seed=1).sample(60, seed=0)
    rho = np.where(np.arange(60) % 7 == 2, 0.0, batch.rho)
    given = {"rho": rho, "start": batch.start}
    ends = (batch.state, batch.reward, batch.next_state, batch.discount)
    rows = Transitions.from_table(batch.table, *ends, **given)
    omega, memory, found = Omega(reading), {}, np.full(60, np.nan)
    for low, high in ((0, 4), (4, 33), (33, 60)):
        omega.check(rows[low:high], memory)
        omega.weigh(rows[low:high], memory, 0.0, found[low:high])
    dphi, along, square = parts(rows.phi, rows.next_phi, rows.discount)
    for t in range(60):
        same = [k for k in range(t + 1) if rows.state[k] == rows.state[t]]
        mean = np.mean([rho[k] * dphi[k] for k in same], axis=0)
        expected = {
            "sample": 1.0,
            "printed": over(1.0, rho[t]),
            "state": over(mean @ rows.phi[t], mean @ mean),
            "moments": over(rho[same] @ along[same], rho[same] @ square[same]),
        }
        assert found[t] == pytest.approx(expected[reading], rel=1e-9, abs=1e-12)
    assert {name: array.shape for name, array in memory.items()} == omega.shapes(memory, 3)


def test_moments_without_states_are_regressed_and_do_not_change_their_kind():
    batch = domains.garnet(states=6, features=3, seed=1).sample(60, seed=0)
    plain = Transitions(batch.phi, batch.reward, batch.next_phi, batch.discount, rho=batch.rho)
    omega, memory, found = Omega("moments", step_size=0.3, floor=0.5), {}, np.empty(60)
    for low, high in ((0, 25), (25, 60)):
        omega.weigh((plain if low == 0 else batch)[low:high], memory, 0.0, found[low:high])
    _, along, square = parts(batch.phi, batch.next_phi, batch.discount)
    x, y, largest, mean = np.zeros(3), np.zeros(3), 0.0, 0.0
    for t in range(60):
        phi, r = batch.phi[t], batch.rho[t]
        largest, mean = max(largest, phi @ phi), mean + (r * square[t] - mean) / (t + 1)
        x = x + 0.3 / largest * (r * along[t] - phi @ x) * phi
        y = y + 0.3 / largest * (r * square[t] - phi @ y) * phi
        assert found[t] == pytest.approx(over(phi @ x, max(phi @ y, 0.5 * mean)), rel=1e-9)
    assert {name: array.shape for name, array in memory.items()} == omega.shapes(memory, 3)
    states = {}
    omega.weigh(batch, states, 0.0, found)
    with pytest.raises(InputError, match="began with states; this batch has none"):
        omega.check(plain, states)
    omega.check(batch, states)
    with pytest.raises(InputError, match="aggregates by state and the transitions carry none"):
        Omega("state").check(plain, {})


@pytest.mark.parametrize("reading", ["sample", "printed", "state", "moments"])
def test_omegas_of_a_model_are_means_over_its_transitions(reading):
    model = exact.model(domains.garnet(states=6, features=3, seed=2))
    phi, p = np.asarray(model.phi), model.probability
    dphi, along, square = parts(phi[model.state], phi[model.next_state], model.discount)
    expected = np.zeros(len(p))
    for t in range(len(p)):
        same = np.flatnonzero(model.state == model.state[t])
        weight = p[same] * model.rho[same] / p[same].sum()
        mean = weight @ dphi[same]
        expected[t] = {
            "sample": over(along[t], square[t]),
            "printed": over(over(along[t], square[t]), model.rho[t]),
            "state": over(mean @ phi[model.state[t]], mean @ mean),
            "moments": over(weight @ along[same], weight @ square[same]),
        }[reading]
    found = Omega(reading).expected(model, 0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    total = Uniform().expected(model, 0.5)
    np.testing.assert_allclose(total, np.broadcast_to(1.0, np.shape(total)))


@pytest.mark.parametrize("name", ["step_size", "floor"])
def test_numbers_of_the_regression_are_shares(name):
    assert getattr(Omega("moments", **{name: 1.0}), name) == 1.0
    assert getattr(Omega("moments", **{name: np.float64(1e-9)}), name) == 1e-9
    for value in (0.0, 1.0 + 1e-9, -0.1, np.nan, "0.5", None):
        with pytest.raises(InputError, match=r"omega's step_size and floor must be in \(0, 1\]"):
            Omega("moments", **{name: value})
