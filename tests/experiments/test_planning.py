"""Names that only the registry knows, and settings made of a spec."""

from __future__ import annotations

import pytest

from o2td.errors import InputError
from o2td.experiments import Spec, load_spec, plan
from o2td.experiments.planning import cases, cells

BASE = """
name = "walk"
steps = 100
runs = 2
metrics = ["rmse"]
domain.name = "random_walk"
algorithms = [{ name = "TD", grid = { step_size = [0.01, 0.1] } }]
"""


def test_unknown_names_suggest_the_nearest() -> None:
    for old, new, sentence in (
        ('"random_walk"', '"random_wlak"', "domain.name: no 'random_wlak', did you mean 'random_w"),
        ('"TD"', '"TDD"', "algorithms[0].name: no 'TDD', did you mean"),
        ("step_size", "stepsize", "algorithms[0]: no parameter 'stepsize', did you mean 'step_s"),
    ):
        with pytest.raises(InputError) as caught:
            plan(load_spec(BASE.replace(old, new)))
        assert sentence in str(caught.value)
    with pytest.raises(InputError, match=r"domain: no parameter 'stats', did you mean"):
        cases(load_spec(BASE.replace("random_walk", "garnet") + "domain.parameters.stats = 3"))
    with pytest.raises(InputError, match=r"domain\.seed: random_walk is not random"):
        cases(load_spec(BASE + "domain.seed = 3"))
    with pytest.raises(InputError, match=r"features: the domain random_walk has its own"):
        cases(load_spec(BASE + "features.name = 'fourier'"))


def test_names_are_found_whatever_their_case() -> None:
    cell = cells(load_spec(BASE.replace('"TD"', '"td"')))[0]
    assert (cell.kind, cell.name, cell.label) == ("learner", "TD", "TD")


def test_a_ratio_becomes_a_number() -> None:
    text = BASE.replace('name = "TD"', 'name = "GTD2", parameters = { second_step_size = R }')
    spec = load_spec(text.replace("R", "{ ratio = 4.0 }"))
    assert [c.parameters["second_step_size"] for c in cells(spec)] == [0.04, 0.4]
    auto = spec.algorithms[0].parameters | {"step_size": "auto"}
    with pytest.raises(InputError, match="a ratio needs a step_size that is a number"):
        cells(_with_parameters(spec, auto))


def _with_parameters(spec: Spec, parameters: dict[str, object]) -> Spec:
    import msgspec

    entry = msgspec.structs.replace(spec.algorithms[0], parameters=parameters, grid={})
    return msgspec.structs.replace(spec, algorithms=[entry])
