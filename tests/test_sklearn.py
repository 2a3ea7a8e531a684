"""`ValueRegressor` with real scikit-learn: its own checks, pipelines, routing, searches."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import o2td
from o2td.errors import InputError

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate  # noqa: E402
from sklearn.pipeline import Pipeline, make_pipeline  # noqa: E402
from sklearn.preprocessing import PolynomialFeatures, StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from o2td.sklearn import ValueRegressor  # noqa: E402

ESTIMATORS = [
    ValueRegressor(),
    ValueRegressor("TD"),
    ValueRegressor(o2td.GTD2(trace=0.5), passes=2),
    ValueRegressor("MonteCarlo"),
    ValueRegressor("dantzigtd", {"epsilon": 0.05}),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_agrees(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    """Observations of a noisy line, 30 trajectories of 20 steps; the last row of each terminates."""
    rng = np.random.default_rng(5)
    X = np.clip(np.cumsum(rng.normal(size=(30, 21, 2)) * 0.3, axis=1), -2.0, 2.0)
    y = X[:, 1:, 0] + 0.1 * rng.normal(size=(30, 20))
    discount = np.full((30, 20), 0.8)
    discount[:, -1] = 0.0
    return {
        "X": X[:, :-1].reshape(600, 2),
        "y": y.ravel(),
        "next_X": X[:, 1:].reshape(600, 2),
        "discount": discount.ravel(),
        "rho": rng.choice([0.5, 1.0, 1.5], size=600),
        "start": np.tile(np.arange(20) == 0, 30),
        "group": np.repeat(np.arange(30), 20),
    }


def plain(rows: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: rows[name] for name in names}


def test_it_is_the_algorithm_itself(rows: dict[str, Any]) -> None:
    given = plain(rows, "next_X", "discount", "rho", "start")
    batch = o2td.Transitions(
        rows["X"], rows["y"], rows["next_X"], rows["discount"], rho=rows["rho"], start=rows["start"]
    )
    for algorithm in (o2td.LSTD(trace=0.5), o2td.TD(trace=0.5, step_size=0.01)):
        model = ValueRegressor(algorithm).fit(rows["X"], rows["y"], **given)
        assert np.array_equal(model.theta_, algorithm.clone().fit(batch).theta)
        assert np.array_equal(model.coef_, model.theta_)
        assert np.array_equal(model.predict(rows["X"]), rows["X"] @ model.theta_)
    assert algorithm.status.kind == "new"


def test_passes_go_over_the_rows_again(rows: dict[str, Any]) -> None:
    batch = o2td.Transitions(rows["X"], rows["y"], rows["next_X"], 0.5)
    learner = o2td.TD(step_size=0.01).partial_fit(batch).partial_fit(batch)
    model = ValueRegressor(o2td.TD(step_size=0.01), passes=2)
    model.fit(rows["X"], rows["y"], next_X=rows["next_X"], discount=0.5)
    assert np.array_equal(model.theta_, learner.theta)


def test_without_successors_it_is_regression(rows: dict[str, Any]) -> None:
    model = ValueRegressor().fit(rows["X"], rows["y"])
    expected = LinearRegression(fit_intercept=False).fit(rows["X"], rows["y"])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10)
    score = expected.score(rows["X"], rows["y"])
    assert model.score(rows["X"], rows["y"]) == pytest.approx(score, abs=1e-12)


def test_registered_names_and_parameters(rows: dict[str, Any]) -> None:
    given = plain(rows, "next_X", "discount")
    by_name = ValueRegressor("lstd", {"trace": 0.5}).fit(rows["X"], rows["y"], **given)
    by_instance = ValueRegressor(o2td.LSTD(trace=0.5)).fit(rows["X"], rows["y"], **given)
    assert np.array_equal(by_name.theta_, by_instance.theta_)
    assert by_name.algorithm_.solution.status == "ok"


def test_states_reach_methods_that_need_them(rows: dict[str, Any]) -> None:
    given = plain(rows, "next_X", "discount")
    state = np.digitize(rows["X"][:, 0], [-1.0, 0.0, 1.0])
    assert ValueRegressor("sotd").fit(rows["X"], rows["y"], state=state, **given).theta_.shape == (
        2,
    )
    with pytest.raises(InputError, match="state"):
        ValueRegressor("sotd").fit(rows["X"], rows["y"], **given)


def test_discount_of_the_constructor(rows: dict[str, Any]) -> None:
    X, y, next_X = rows["X"], rows["y"], rows["next_X"]
    own = ValueRegressor(discount=0.3).fit(X, y, next_X=next_X)
    assert np.array_equal(
        own.theta_, ValueRegressor().fit(X, y, next_X=next_X, discount=0.3).theta_
    )
    default = ValueRegressor().fit(X, y, next_X=next_X)
    other = ValueRegressor(discount=0.99).fit(X, y, next_X=next_X)
    assert np.array_equal(default.theta_, other.theta_)


def test_terminal_successors_may_be_nan_and_layouts_may_differ(rows: dict[str, Any]) -> None:
    from scipy.sparse import csr_array

    given = plain(rows, "next_X", "discount")
    expected = ValueRegressor().fit(rows["X"], rows["y"], **given).theta_
    holes = rows["next_X"].copy()
    holes[rows["discount"] == 0.0] = np.nan
    model = ValueRegressor().fit(rows["X"], rows["y"], next_X=holes, discount=rows["discount"])
    np.testing.assert_allclose(model.theta_, expected, rtol=1e-12)
    for X, next_X in (
        (csr_array(rows["X"]), rows["next_X"]),
        (rows["X"], csr_array(rows["next_X"])),
        (csr_array(rows["X"]), csr_array(rows["next_X"])),
    ):
        model = ValueRegressor().fit(X, rows["y"], next_X=next_X, discount=rows["discount"])
        np.testing.assert_allclose(model.theta_, expected, rtol=1e-10)
        np.testing.assert_allclose(model.predict(X), rows["X"] @ expected, rtol=1e-10)


def test_feature_names(rows: dict[str, Any]) -> None:
    pandas = pytest.importorskip("pandas")
    X, next_X = (pandas.DataFrame(rows[name], columns=["a", "b"]) for name in ("X", "next_X"))
    model = ValueRegressor().fit(X, rows["y"], next_X=next_X, discount=0.5)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"a": "c"}))
    with pytest.raises(ValueError, match="feature names"):
        ValueRegressor().fit(X, rows["y"], next_X=next_X[["b", "a"]], discount=0.5)


@pytest.mark.usefixtures("routing")
def test_a_pipeline_transforms_successors_too(rows: dict[str, Any]) -> None:
    model = ValueRegressor().set_fit_request(next_X=True, discount=True, rho=True, start=True)
    steps = [("scale", StandardScaler()), ("poly", PolynomialFeatures(2)), ("value", model)]
    pipeline = Pipeline(steps, transform_input=["next_X"])
    given = plain(rows, "next_X", "discount", "rho", "start")
    pipeline.fit(rows["X"], rows["y"], **given)
    features = make_pipeline(StandardScaler(), PolynomialFeatures(2)).fit(rows["X"])
    phi, next_phi = features.transform(rows["X"]), features.transform(rows["next_X"])
    batch = o2td.Transitions(
        phi, rows["y"], next_phi, rows["discount"], rho=rows["rho"], start=rows["start"]
    )
    np.testing.assert_allclose(pipeline[-1].theta_, o2td.LSTD().fit(batch).theta, rtol=1e-9)
    np.testing.assert_allclose(pipeline.predict(rows["X"]), phi @ pipeline[-1].theta_, rtol=1e-9)


@pytest.mark.usefixtures("routing")
def test_cross_validation_splits_all_that_belongs_to_rows(rows: dict[str, Any]) -> None:
    model = ValueRegressor("lstd", {"trace": 0.5})
    model.set_fit_request(next_X=True, discount=True, start=True)
    pipeline = Pipeline([("scale", StandardScaler()), ("value", model)], transform_input=["next_X"])
    folds = list(GroupKFold(5).split(rows["X"], groups=rows["group"]))
    given = plain(rows, "next_X", "discount", "start")
    result = cross_validate(
        pipeline, rows["X"], rows["y"], cv=folds, params=given, return_estimator=True
    )
    train = folds[0][0]
    alone = clone(pipeline).fit(
        rows["X"][train], rows["y"][train], **{k: v[train] for k, v in given.items()}
    )
    assert np.array_equal(result["estimator"][0][-1].theta_, alone[-1].theta_)
    assert np.isfinite(result["test_score"]).all()


@pytest.mark.usefixtures("routing")
def test_grid_search_over_names_and_nested_parameters(rows: dict[str, Any]) -> None:
    given = plain(rows, "next_X", "discount")
    model = ValueRegressor(o2td.LSTD()).set_fit_request(next_X=True, discount=True)
    grid = {"algorithm__trace": [0.0, 0.9], "algorithm__ridge": [0.0, 10.0]}
    search = GridSearchCV(model, grid, cv=3).fit(rows["X"], rows["y"], **given)
    assert len(search.cv_results_["params"]) == 4
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert search.best_estimator_.algorithm_.trace == search.best_params_["algorithm__trace"]
    names = {"algorithm": ["lstd", "td", o2td.TDC()]}
    other = GridSearchCV(model, names, cv=3).fit(rows["X"], rows["y"], **given)
    assert np.isfinite(other.predict(rows["X"])).all()


@pytest.mark.parametrize("name", sorted([*o2td.registry.LEARNERS, *o2td.registry.SOLVERS]))
def test_every_registered_algorithm_serves(name: str) -> None:
    rng = np.random.default_rng(1)
    X, next_X = rng.dirichlet(np.ones(3), size=(2, 60))
    model = ValueRegressor(name).fit(
        X,
        rng.normal(size=60),
        next_X=next_X,
        discount=0.5,
        state=rng.integers(4, size=60),
        next_state=rng.integers(4, size=60),
        target_prob=np.full(60, 0.5),
        behavior_prob=np.full(60, 0.4),
    )
    assert model.predict(X).shape == (60,)
    assert np.isfinite(model.theta_).all()


@pytest.mark.parametrize(
    ("model", "given", "match"),
    [
        (ValueRegressor("lsdt"), {}, "no 'lsdt'"),
        (ValueRegressor("lstd", {"no_such": 1}), {}, "no_such"),
        (ValueRegressor(o2td.LSTD(), {"trace": 0.5}), {}, "instance"),
        (ValueRegressor(3), {}, "algorithm is 3"),
        (ValueRegressor(passes=0), {}, "passes"),
        (ValueRegressor(), {"discount": 0.5}, "next_X"),
        (ValueRegressor(), {"next_X": np.ones((4, 3)), "discount": 2.0}, "discount"),
        (ValueRegressor(), {"next_X": np.full((4, 3), np.nan), "discount": 0.5}, "next_phi"),
    ],
)
def test_mistakes_get_a_sentence(model: Any, given: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        model.fit(np.ones((4, 3)), np.ones(4), **given)


def test_another_number_of_features_is_refused() -> None:
    with pytest.raises(ValueError, match="2 features"):
        ValueRegressor().fit(np.ones((4, 3)), np.ones(4), next_X=np.ones((4, 2)), discount=0.5)


def test_without_scikit_learn_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import o2td\n"
        "try:\n    o2td.sklearn\n"
        "except o2td.errors.MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "o2td[sklearn]"' in done.stdout


@pytest.mark.parametrize("given", [False, True])
def test_no_trace_leads_from_one_pass_into_the_next(given: bool) -> None:
    rng = np.random.default_rng(0)
    X, following, reward = rng.normal(size=(20, 3)), rng.normal(size=(20, 3)), rng.normal(size=20)
    start = np.arange(20) == 7
    twice = ValueRegressor(o2td.TD(0.05, trace=0.9), discount=0.9, passes=2)
    twice.fit(X, reward, next_X=following, start=start if given else None)
    assert start.sum() == 1
    marks = (start & given) | (np.arange(20) == 0)
    rows = o2td.Transitions(X, reward, following, 0.9, start=marks)
    expected = o2td.TD(0.05, trace=0.9).partial_fit(o2td.Transitions.concatenate([rows, rows]))
    np.testing.assert_allclose(twice.theta_, expected.theta, rtol=1e-12)
