"""Small parts of learners by themselves: step sizes, names of weightings, memory."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import TD, Transitions
from o2td.emphasis import FollowOn, Omega, Uniform, as_emphasis, grown, ratio
from o2td.errors import InputError
from o2td.kernels.lanes import CACHED_ROWS, block_end
from o2td.learners import MEMBERS, PowerDecay
from o2td.learners.step_sizes import Gauge, Measured, as_step_size, rule_of


def filled(value, first=0, size=(1.0, 1.0, 1.0), square=(1.0, 1.0, 1.0)):
    out = np.full(len(size), np.nan)
    measured = Measured(np.array(size), np.array(size), np.array(square))
    rule_of(value).fill(Gauge(first, {}, lambda: measured), out)
    return out.tolist()


def test_step_sizes_of_rows():
    assert filled(0.25) == [0.25, 0.25, 0.25]
    assert filled("auto", 0, (0.0, 4.0, 0.0), (0.0, 0.0, 0.0))[:2] == [0.0, 0.25]
    assert filled(PowerDecay(2.0, 1.0), 3) == [2.0 / 4, 2.0 / 5, 2.0 / 6]


@pytest.mark.parametrize(
    ("given", "taken"),
    [(1, 1.0), (0, 0.0), ("auto", "auto"), ({"c": 2, "p": 0.5}, PowerDecay(2.0, 0.5))],
)
def test_step_sizes_are_taken(given, taken):
    assert as_step_size("step_size", given) == taken


@pytest.mark.parametrize(
    "given",
    [True, "0.1", "Auto", None, -0.1, np.nan, np.inf, {"c": 1.0}, {"c": 1.0, "p": 1.0, "q": 1.0}],
)
def test_step_sizes_are_refused(given):
    with pytest.raises(InputError, match="a_name must be a number >= 0"):
        as_step_size("a_name", given)


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


class Named:
    """Something that is no text, but would be written as the name of a weighting."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


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


def test_features_that_do_not_fit_into_memory_are_refused(monkeypatch):
    """As the allocation of a learner's vectors fails; nothing of them is left."""
    real = np.zeros

    def full(shape, *arguments, **options):
        if np.prod(shape) >= 1000:
            raise MemoryError
        return real(shape, *arguments, **options)

    learner = TD(0.1)
    rows = Transitions(np.ones((2, 1000)), 1.0, np.ones((2, 1000)), 0.9)
    monkeypatch.setattr(np, "zeros", full)
    with pytest.raises(InputError, match="1000 features do not fit into memory"):
        learner.partial_fit(rows)
    monkeypatch.undo()
    assert learner.status.kind == "new"
    assert learner.theta.size == 0
    assert learner.partial_fit(rows).status.kind == "ok"


@pytest.mark.parametrize("every", [1, 7, CACHED_ROWS, 100, 1000])
@pytest.mark.parametrize("first", [0, 3, 64])
def test_blocks_of_rows_end_at_records(every, first):
    n, ends, low = 3 * CACHED_ROWS + 5, [], 0
    while low < n:
        high = block_end(low, n, first, every)
        assert low < high <= low + CACHED_ROWS
        ends.append(high)
        low = high
    records = {t for t in range(1, n) if (first + t) % every == 0}
    assert low == n
    assert records <= set(ends)
    for a, b in zip([0, *sorted(records)], [*sorted(records), n], strict=True):
        assert sum(a < end <= b for end in ends) == -(-(b - a) // CACHED_ROWS)


def test_rows_without_records_are_one_block():
    assert block_end(5, 1000, 17, 0) == 1000


@pytest.mark.parametrize("kind", MEMBERS, ids=lambda kind: kind.__name__)
def test_dir_of_a_learner_shows_what_a_user_calls(kind):
    learner = kind()
    calls = {"fit", "partial_fit", "learn_one", "predict", "theta", "last_theta", "steps", "status"}
    calls |= {"parameters", "get_params", "set_params", "clone", "reset", "save", "load"}
    calls |= {"mean_dynamics"}
    shown = {name for name in dir(learner) if not name.startswith("_")}
    assert calls | set(kind.parameters()) <= shown
    assert len(shown - calls - set(kind.parameters())) <= 4
    assert shown.isdisjoint({"family", "vectors", "trace_decay", "undefined", *kind.undefined})
