"""Every registered domain and feature map, every parameter, wrong values of every kind.

The table is made from the signatures, so a new domain or map is held to it without an edit: each
value is refused in one sentence that names the parameter, or it makes something that works.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from o2td import Problem, domains, features
from o2td.errors import InputError, O2TDError
from o2td.registry import DOMAINS, FEATURES
from o2td.simulated import SimulatedProblem

WRONG: dict[str, Any] = {
    "None": None,
    "True": True,
    "a word": "a",
    "no word": "",
    "a digit": "1",
    "bytes": b"a",
    "minus one": -1,
    "zero": 0,
    "a fraction": 1.5,
    "nan": float("nan"),
    "nan of numpy": np.float64("nan"),
    "infinity": float("inf"),
    "minus infinity": -float("inf"),
    "huge": 1e300,
    "huge and whole": 10**30,
    "tiny": 5e-324,
    "complex": 1j,
    "empty": [],
    "two": [1, 2],
    "ragged": [[1, 2], [3]],
    "array": np.array([0.1, 0.2]),
    "table": {},
    "set": {1, 2},
    "object": object(),
}
# What maps need to be made at all.
NEEDED: dict[str, Any] = {"bins": 3, "order": 2, "degree": 2, "tilings": 2, "groups": [0, 1, 1]}
STATES, ROWS = np.array([0, 1, 1]), np.random.default_rng(0).random((6, 2))


def make_domain(factory: Callable[..., Any], options: dict[str, Any]) -> None:
    batch = factory(**options).sample(20, seed=1)
    for column in (batch.phi, batch.reward, batch.discount, batch.rho):
        assert np.isfinite(column.data if hasattr(column, "tocsr") else column).all()


def make_features(factory: Callable[..., Any], options: dict[str, Any]) -> None:
    given = {p.name: NEEDED[p.name] for p in _parameters(factory) if p.name in NEEDED}
    made = factory(**(given | options))
    rows = STATES if issubclass(factory, (features.Tabular, features.Aggregation)) else ROWS
    phi = made.fit(rows).transform(rows)
    assert phi.shape[0] == len(rows)
    assert np.isfinite(phi.data if hasattr(phi, "tocsr") else phi).all()


def refusal(call: Callable[[], Any], what: str) -> str | None:
    """The sentence that refuses it, None if it works; any other error is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            call()
        except O2TDError as error:
            return str(error)
        except Exception as error:
            raise AssertionError(f"{what}: {error!r}") from error
    return None


def _parameters(factory: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    for parameter in inspect.signature(factory).parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            yield parameter


TABLE = [
    pytest.param(make, registry[name], parameter.name, id=f"{name}-{parameter.name}")
    for registry, make in ((DOMAINS, make_domain), (FEATURES, make_features))
    for name in registry.names()
    for parameter in _parameters(registry[name])
]


@pytest.mark.parametrize(("make", "factory", "name"), TABLE)
def test_wrong_values_are_refused_by_name_or_harmless(
    make: Callable[..., None], factory: Callable[..., Any], name: str
) -> None:
    found = {
        kind: refusal(partial(make, factory, {name: value}), f"{name} = {kind}")
        for kind, value in WRONG.items()
    }
    refused = {kind: text for kind, text in found.items() if text is not None}
    # One end of two that must agree may be named by the other: epsilons, thresholds.
    assert [t for t in refused.values() if name.partition("_")[0] not in t or "\n" in t] == []
    assert len(refused) > len(WRONG) // 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: features.Radial(centers="a", width=0.1).fit(ROWS), "centers: 'a' are not numbers"),
        (lambda: features.Radial(3, width="1").fit(ROWS), "width: '1' are not numbers"),
        (lambda: features.parse("fourier:3x3"), "too many numbers.; write fourier:ORDER"),
        (lambda: features.parse("polynomial:2x2"), "too many numbers.; write polynomial:DEGREE"),
        (
            lambda: features.Tiles(2, 3, seed="a").fit(ROWS),
            "seed must be a whole number .* got 'a'",
        ),
        (lambda: features.Scaling(clip="no").fit(ROWS), "clip must be True or False, got 'no'"),
        (lambda: domains.collision(features=2, ones=3), "ones is 3, but a state has only 2 feat"),
        (lambda: domains.garnet(peak=65), "peak must be a whole number from 0 to 64, got 65"),
        (lambda: domains.garnet(on_policy="no"), "on_policy must be True or False"),
        (lambda: domains.garnet(seed="1"), "seed must be a non-negative integer"),
        (lambda: domains.garnet(seed=[0.5]), "seed must be a non-negative integer"),
        (lambda: domains.garnet(states=10**9), "states, actions and branching: a table of 12,0"),
        (lambda: domains.random_mdp(states=10**5), "states and actions: a table of 100,000,000,0"),
        (
            lambda: domains.four_rooms(target=1.0),
            "target must be a whole number from 0 to 7, got 1",
        ),
        (
            lambda: domains.mountain_car(epsilon_behavior="a"),
            "epsilon_behavior must be a number in",
        ),
        (lambda: domains.mountain_car(features="fourier:3"), "features must be a transformer"),
        (lambda: domains.energy_storage(buy_below=float("nan")), "buy_below must be a number"),
        (lambda: domains.from_gymnasium(3), "env_id must be the name of a Gymnasium env"),
        (
            lambda: domains.from_gymnasium(discount=float("nan")),
            r"discount must be a number in \[0",
        ),
        (lambda: domains.from_gymnasium(map_name="x"), "Gymnasium cannot make 'FrozenLake-v1'"),
        (lambda: domains.four_rooms_lanes(5).batch(8), "target must be a whole number from 0 to 7"),
    ],
)
def test_sentences(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


@pytest.mark.parametrize("peak", [6, 12, 40, 64])
@pytest.mark.parametrize("actions", [1, 4])
def test_a_garnet_of_any_peak_has_policies(peak: int, actions: int) -> None:
    """Powers that fade away in all actions at once are still shares of one."""
    problem = domains.garnet(peak=peak, actions=actions, seed=3)
    np.testing.assert_allclose(problem.target.sum(axis=1), 1.0)
    mild = domains.garnet(peak=0, actions=actions, seed=3)
    np.testing.assert_array_equal(problem.target.argmax(axis=1), mild.target.argmax(axis=1))
    if peak >= 40:
        assert (problem.target.max(axis=1) > 0.999).all()
        assert np.isfinite(problem.sample(100, seed=0).rho).all()


def test_a_huge_threshold_never_trades() -> None:
    problem = domains.energy_storage(buy_below=-(10**400), sell_above=10**400, epsilon_behavior=0)
    rows = problem.rollout(50, seed=0)
    assert (rows.action == 1).all()


# -- the constructors themselves -------------------------------------------------------------------

FINITE = {
    "transition": np.full((2, 2, 2), 0.5),
    "reward": np.ones((2, 2)),
    "discount": 0.9,
    "behavior": np.full((2, 2), 0.5),
    "target": np.full((2, 2), 0.5),
    "features": np.eye(2),
}
SIMULATED = {
    "reset": lambda rng: np.array([rng.random()]),
    "step": lambda x, action, rng: (0.5 * x, float(x[0]), False),
    "behavior": lambda x: np.array([0.5, 0.5]),
    "target": lambda x: np.array([0.0, 1.0]),
    "features": lambda X: np.hstack([X, np.ones_like(X)]),
    "discount": 0.8,
}


def _both() -> Iterator[Any]:
    for kind, given in ((Problem, FINITE), (SimulatedProblem, SIMULATED)):
        for parameter in _parameters(kind):
            yield pytest.param(kind, given, parameter.name, id=f"{kind.__name__}-{parameter.name}")


@pytest.mark.parametrize(("kind", "given", "name"), list(_both()))
def test_wrong_parts_of_a_problem(kind: Any, given: dict[str, Any], name: str) -> None:
    def use(value: Any) -> None:
        made = kind(**{**given, name: value})
        batch = made.sample(5, seed=0)
        assert "Problem(" in repr(made)
        assert np.isfinite(batch.phi).all()
        assert np.isfinite(batch.reward).all()

    for label, value in WRONG.items():
        assert name in (refusal(partial(use, value), label) or name), label


@pytest.mark.parametrize("part", ["reset", "step", "behavior", "target", "features"])
def test_wrong_answers_of_a_simulator(part: str) -> None:
    """What a function of the user's returns is looked at before it is used."""

    def use(value: Any) -> None:
        made = SimulatedProblem(**{**SIMULATED, part: lambda *_: value})
        made.rollout_value(made.observations(2, seed=0), runs=2, steps=3)
        made.sample(5, seed=0)

    named = (part, "phi") if part == "features" else (part,)
    for label, value in WRONG.items():
        text = refusal(partial(use, value), label)
        assert text is None or any(word in text for word in named), f"{label}: {text}"


@pytest.mark.parametrize("kind", ["finite", "simulated"])
@pytest.mark.parametrize("name", ["n", "seed", "scheme", "double"])
def test_wrong_arguments_of_sample(kind: str, name: str) -> None:
    made = Problem(**FINITE) if kind == "finite" else SimulatedProblem(**SIMULATED)
    for label, value in WRONG.items():
        text = refusal(partial(made.sample, **{"n": 5, name: value}), label)
        assert text is None or name in text, f"{label}: {text}"


def test_a_policy_that_is_none() -> None:
    problem = Problem(**FINITE)
    for value in WRONG.values():
        with pytest.raises(InputError, match="policy"):
            problem.transition_matrix(value)


def test_columns_that_a_roll_out_leaves_empty_are_not_taken_for_data() -> None:
    lazy = SimulatedProblem(**SIMULATED, rollout=lambda *_: None, returns=lambda *_: 0)
    with pytest.raises(O2TDError, match="reward is nan in row 0"):
        lazy.sample(5)
    with pytest.raises(O2TDError, match="does not fill all of out"):
        lazy.rollout_value([[1.0]])
