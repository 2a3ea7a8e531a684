from __future__ import annotations

import doctest
import inspect
import pickle
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

from o2td import domains
from o2td.registry import DOMAINS

NAMES = (
    *("baird", "boyan_chain", "collision", "energy_storage", "four_rooms", "from_gymnasium"),
    *("garnet", "mountain_car", "random_mdp", "random_walk"),
)


def test_every_domain_is_registered() -> None:
    assert [name for name in DOMAINS.names() if hasattr(domains, name)] == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_domain_works_by_default(name: str) -> None:
    factory = DOMAINS[name]
    assert getattr(domains, name) is factory
    problem = factory()
    one, two = problem.sample(300, seed=1), factory().sample(300, seed=1)
    for column in ("phi", "next_phi", "reward", "discount", "rho", "start"):
        np.testing.assert_array_equal(getattr(one, column), getattr(two, column))
    assert one.d == problem.d
    assert np.isfinite(one.phi).all()
    if problem.initial_theta is not None:
        assert problem.initial_theta.shape == (problem.d,)
    shuffled = problem.sample(300, seed=1, scheme="iid")
    assert shuffled.start.all()
    assert problem.name.lower().replace("-v1", "") in repr(problem).lower()


@pytest.mark.parametrize("name", NAMES)
def test_every_domain_is_documented(name: str) -> None:
    factory = DOMAINS[name]
    text = inspect.getdoc(factory) or ""
    assert text.split("\n")[0].endswith((".", "?"))
    for parameter in inspect.signature(factory).parameters.values():
        assert parameter.name in text
    module = import_module(factory.__module__)
    found = [
        t for t in doctest.DocTestFinder().find(module) if t.name == f"{module.__name__}.{name}"
    ]
    assert found
    assert found[0].examples


@pytest.mark.parametrize("name", [n for n in NAMES if n != "from_gymnasium"])
def test_every_domain_can_be_sent_to_another_process(name: str) -> None:
    problem = DOMAINS[name]()
    there = pickle.loads(pickle.dumps(problem))  # noqa: S301
    np.testing.assert_array_equal(there.sample(50, 3).reward, problem.sample(50, 3).reward)


def test_a_submodule_imported_first_does_not_hide_its_function() -> None:
    code = (
        "import o2td.domains.baird; from o2td import domains;"
        "import o2td.domains.garnet; print(domains.baird().n_states, domains.garnet().n_states)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["7", "30"]
