"""What every feature map promises: parameters, scikit-learn, files, names, errors, specs."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from o2td import features
from o2td.errors import FormatError, InputError
from o2td.features import (
    Aggregation,
    Fourier,
    GridAggregation,
    Polynomial,
    Radial,
    Scaling,
    Tabular,
    Tiles,
    Transformer,
    available,
    from_state_dict,
    parse,
)
from o2td.registry import FEATURES

BOX = [(0.0, 2.0), (-1.0, 1.0)]
MAPS = [
    Scaling(),
    Scaling(bounds=BOX, clip=False),
    Fourier(3),
    Fourier(4, bounds=np.array(BOX), scale="coefficient"),
    Fourier(2, coupled=False),
    Tiles(4, 3),
    Tiles(4, (3, 2), bounds=BOX, hashed=40, seed=3, bias=True),
    Tiles(4, 3, sparse=False),
    Radial(3),
    Radial(width=(0.2, 0.3), centers=[[0.0, 0.0], [1.0, 0.5]], normalize=True),
    Polynomial(2),
    GridAggregation((3, 4)),
    Tabular(),
    Tabular(9),
    Aggregation([0, 1, 1, 2]),
    Aggregation({0: 1, 3: 0}),
]
each_map = pytest.mark.parametrize("made", MAPS, ids=repr)
each_bounded = pytest.mark.parametrize("made", [m for m in MAPS if hasattr(m, "bounds")], ids=repr)


def rows_for(made, n=30, seed=0):
    rng = np.random.default_rng(seed)
    if hasattr(made, "bounds"):
        return rng.uniform([0, -1], [2, 1], size=(n, 2))
    return rng.choice([0, 3], size=n)


def dense(phi):
    return phi if isinstance(phi, np.ndarray) else phi.toarray()


def copy_of(made):
    return type(made)(**made.get_params())


@each_map
def test_fit_then_transform_is_fit_transform_and_changes_nothing(made):
    X = rows_for(made)
    one, other = copy_of(made), copy_of(made)
    phi = dense(one.fit(X).transform(X))
    assert one.fit(X) is one
    assert np.array_equal(phi, dense(other.fit_transform(X)))
    assert np.array_equal(phi, dense(one.transform(X)))
    assert phi.shape == (30, one.n_features_out_)
    assert np.array_equal(dense(copy_of(made).table(X)), phi)
    names = one.get_feature_names_out()
    assert len(names) == len(set(names)) == one.n_features_out_


@each_map
def test_stored_state_gives_the_same_map(made):
    X = rows_for(made)
    made = copy_of(made).fit(X)
    state = made.state_dict()
    header = json.loads(json.dumps(state["header"]))
    assert all(a.dtype.kind in "fiub" for a in state["arrays"].values())
    again = from_state_dict({"header": header, "arrays": state["arrays"]})
    assert type(again) is type(made)
    other = rows_for(made, seed=1)
    assert np.array_equal(dense(again.transform(other)), dense(made.transform(other)))
    assert again.state_dict()["header"] == state["header"]


@each_map
def test_an_unfitted_map_can_be_stored_too(made):
    X = rows_for(made)
    again = Transformer.from_state_dict(copy_of(made).state_dict())
    assert np.array_equal(dense(again.fit_transform(X)), dense(copy_of(made).fit_transform(X)))


@each_map
def test_scikit_learn_clones_it_and_runs_it_in_a_pipeline(made):
    base = pytest.importorskip("sklearn.base")
    linear_model = pytest.importorskip("sklearn.linear_model")
    pipeline = pytest.importorskip("sklearn.pipeline")
    X = rows_for(made).reshape(30, -1)
    y = X[:, 0] ** 2
    made = base.clone(copy_of(made).fit(X))
    assert not hasattr(made, "n_features_out_")
    line = pipeline.make_pipeline(made, linear_model.Ridge()).fit(X, y)
    reference = linear_model.Ridge().fit(copy_of(made).fit_transform(X), y)
    np.testing.assert_allclose(
        line.predict(X), reference.predict(copy_of(made).fit_transform(X)), rtol=1e-12
    )
    assert len(line[:-1].get_feature_names_out()) == line[0].n_features_out_
    assert "Ridge" in line._repr_html_()


def test_grid_search_reaches_the_parameters():
    selection = pytest.importorskip("sklearn.model_selection")
    linear_model = pytest.importorskip("sklearn.linear_model")
    pipeline = pytest.importorskip("sklearn.pipeline")
    X = rows_for(Fourier(1), n=80)
    y = np.cos(np.pi * 3 * X[:, 0] / 2)
    line = pipeline.Pipeline([("phi", Fourier(1, bounds=BOX)), ("fit", linear_model.Ridge(1e-6))])
    search = selection.GridSearchCV(line, {"phi__order": [1, 3]}).fit(X, y)
    assert search.best_params_ == {"phi__order": 3}


def test_needs_neither_scikit_learn_nor_the_compiler_to_be_named():
    code = (
        "import sys; from o2td.features import parse; m = parse('tiles:8x8');"
        "print([p for p in ('sklearn', 'numba', 'scipy') if p in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_parameters_are_stored_as_given_and_changing_them_forgets_the_fit():
    made = Fourier(3, bounds=BOX)
    assert made.get_params() == {
        "order": 3, "bounds": BOX, "scale": None, "coupled": True, "clip": True,
    }  # fmt: skip
    assert made.bounds is BOX
    assert made.fit().n_features_out_ == 16
    assert made.set_params(order=1).transform([[0.0, 0.0]]).shape == (1, 4)
    assert repr(made) == f"Fourier(order=1, bounds={BOX})"
    with pytest.raises(InputError, match="Fourier has no parameter 'degree'; it has order, bounds"):
        made.set_params(degree=2)


def test_columns_of_a_data_frame_are_remembered():
    class Frame(np.ndarray):
        columns: list[str]

    def frame(*columns):
        made = np.zeros((3, 2)).view(Frame)
        made[1:] = 1.0
        made.columns = list(columns)
        return made

    made = Polynomial(1).fit(frame("angle", "speed"))
    assert list(made.get_feature_names_out()) == ["1", "angle", "speed"]
    with pytest.raises(InputError, match="select them in that order"):
        made.transform(frame("speed", "angle"))
    again = from_state_dict(made.state_dict())
    assert list(again.feature_names_in_) == ["angle", "speed"]
    assert list(again.get_feature_names_out(["a", "b"])) == ["1", "a", "b"]
    with pytest.raises(InputError, match="1 names for 2 columns"):
        made.get_feature_names_out(["a"])


def test_polars_and_pandas_frames_are_taken():
    polars = pytest.importorskip("polars")
    made = Polynomial(1, bounds=[(0, 2)]).fit(polars.DataFrame({"angle": [0.0, 1.0]}))
    assert made.transform(polars.DataFrame({"angle": [2]})).tolist() == [[1, 1]]
    with pytest.raises(InputError, match=r"column 0 \(angle\), row 1: nan is not finite"):
        made.transform(polars.DataFrame({"angle": [0.5, None]}))


def test_the_names_say_what_a_feature_is():
    made = Fourier(2, bounds=BOX)
    assert made.get_feature_names_out()[5] == "cos(pi (x0 + 2 x1))"
    assert Tiles(1, 1, bounds=BOX, bias=True).get_feature_names_out()[-1] == "1"


# errors


@each_bounded
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_by_column_and_row(made, bad):
    X = rows_for(made, n=5000)
    made = copy_of(made).fit(X)
    X[4321, 1] = X[4400, 0] = bad
    with pytest.raises(InputError, match=f"column 1, row 4321: {bad} is not finite"):
        made.transform(X)
    if made.bounds is None:
        with pytest.raises(InputError, match="column 1, row 4321"):
            copy_of(made).fit(X)


@each_bounded
def test_shapes_that_cannot_be_mapped_are_refused(made):
    made = copy_of(made).fit(rows_for(made))
    for X, message in [
        (np.zeros(2), r"1 dimension\(s\), two are needed"),
        (np.zeros((3, 3)), "has 3 columns, .* was made for 2"),
        (np.zeros((3, 0)), "no columns"),
        ([["a", "b"]], "pass real numbers"),
        (np.zeros((3, 2), complex), "pass real numbers"),
        ([[1.0, None]], "column 1, row 0: nan is not finite"),
        ([[1.0, "a"]], "pass real numbers"),
        ([[1.0, 2.0], [3.0]], "not a table of numbers"),
        (Tabular(2).table(), "sparse observations"),
    ]:
        with pytest.raises(InputError, match=message):
            made.transform(X)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([(0, np.inf)], "bounds of column 0: .* not finite; pass finite ones, or bounds=None"),
        ([(0, 1), (np.nan, 1)], "bounds of column 1"),
        (SimpleNamespace(low=np.float32([-3.4028235e38]), high=np.float32([1])), "not finite"),
        ([(1, 0)], "low 1 is above high 0"),
        ([(-1e38, 1e38), "x"], "one .* pair a column"),
        ([0, 1], "one .* pair a column"),
        ([], "one .* pair a column"),
    ],
)
def test_bounds_that_cannot_be_used_are_refused(bounds, message):
    with pytest.raises(InputError, match=message):
        Fourier(1, bounds=bounds).fit()


def test_a_gymnasium_box_gives_the_bounds():
    gymnasium = pytest.importorskip("gymnasium")
    box = gymnasium.spaces.Box(np.float32([-1, 0]), np.float32([1, 4]))
    assert Scaling(bounds=box).transform([[0.0, 1.0]]).tolist() == [[0.5, 0.25]]
    stored = from_state_dict(Scaling(bounds=box).state_dict())
    assert stored.transform([[0.0, 1.0]]).tolist() == [[0.5, 0.25]]
    with pytest.raises(InputError, match="bounds=None to learn"):
        Scaling(bounds=gymnasium.make("CartPole-v1").observation_space).fit()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (Fourier(9, bounds=[(0, 1)] * 7), r"makes 10\^7 features, more than 1,000,000"),
        (Fourier(3, bounds=[(0, 1)] * 2000), r"makes 4\^2000 features"),
        (Fourier(10**6, bounds=BOX, coupled=False), "makes 2000001 features"),
        (Fourier(-1, bounds=BOX), "order must be a whole number of at least 0, got -1"),
        (Fourier(True, bounds=BOX), "order must be a whole number .* got True"),
        (Fourier(1, bounds=BOX, scale="norm"), 'pass None or "coefficient"'),
        (Polynomial(10**9, bounds=[(0, 1)] * 1000), "makes more than 1,000,000 features"),
        (Radial(10**6, bounds=BOX), "pass 1 to 1,000,000 centres"),
        (Radial(bounds=BOX), "either bins= .* or centers="),
        (Radial(2, bounds=BOX, centers=[[0, 0]]), "either bins= .* or centers="),
        (Radial(bounds=BOX, centers=[[0, 0]]), "width: needed"),
        (Radial(width=1, bounds=BOX, centers=[[0, 0, 0]]), r"centers: shape \(1, 3\)"),
        (Radial(width=1, bounds=BOX, centers=[[0, np.nan]]), "centers: row 0"),
        (Radial(2, width=0, bounds=BOX), "width: 0 is not positive"),
        (Radial(2, width=(1, 2, 3), bounds=BOX), "width: .* pass one number or 2"),
        (GridAggregation(10**5, bounds=BOX), "pass fewer bins"),
        (Scaling(), "knows no bounds; call fit with rows, or pass bounds="),
        (Tabular(), "not fitted; call fit first"),
        (Tabular(0), "n_states must be a whole number from 1 .* got 0"),
        (Aggregation([]), "one group per state"),
        (Aggregation([0, -2]), "one group per state"),
        (Aggregation([0.5]), "array of integers"),
    ],
)
def test_parameters_that_make_no_map_are_refused(made, message):
    with pytest.raises(InputError, match=message):
        made.fit()


def test_states_that_are_none_are_refused_by_row():
    for X, message in [
        ([0, 3], "row 1 is 3, out of range: the states known are 0 to 2"),
        ([0, -1], "row 1 is -1, out of range"),
        ([0.0, 1.5], "row 1 is 1.5, not an integer"),
        ([0.0, np.nan], "row 1 is nan, not an integer"),
        ([[0, 1]], "one integer per row"),
        (["a"], "one integer per row"),
    ]:
        with pytest.raises(InputError, match=message):
            Tabular(3).transform(X)
    with pytest.raises(InputError, match="too large for one feature per state"):
        Tabular().fit([2**40])


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(InputError, match="no rows to learn bounds from"):
        Fourier(1).fit(np.empty((0, 2)))
    with pytest.raises(InputError, match="no rows to learn the states from"):
        Tabular().fit([])
    with pytest.raises(InputError, match="too wide a range"):
        Fourier(1).fit([[-1.7e308], [1.7e308]])


def test_features_that_overflow_are_refused():
    made = Polynomial(3, bounds=[(0, 1)], clip=False)
    with pytest.raises(InputError, match="the features of row 1 overflow"):
        made.transform([[0.5], [1e200]])
    with pytest.raises(InputError, match=r"row 0: 1e.308 overflows when it is scaled"):
        Scaling(bounds=[(0, 0.1)], clip=False).transform([[1e308]])
    with pytest.raises(InputError, match=r"column 0, row 1: 1.5 is out of bounds"):
        GridAggregation(2, bounds=[(0, 1)], clip=False).transform([[0.5], [1.5]])


# files


def damaged_states():
    good = Fourier(2, bounds=BOX).fit().state_dict()
    header, arrays = good["header"], good["arrays"]

    def with_header(**changes):
        return {"header": {**header, **changes}, "arrays": arrays}

    return [
        ({}, "damaged"),
        ({"header": None, "arrays": {}}, "damaged"),
        (with_header(version=99), "update o2td"),
        (with_header(version="1"), "update o2td"),
        (with_header(feature="os.system"), "not a Transformer known here"),
        (with_header(feature=["fourier"]), "not a Transformer known here"),
        (with_header(params={"order": 2, "shell": 1}), "damaged"),
        (with_header(params={**header["params"], "order": 10**9}), "damaged .*order"),
        (with_header(params={**header["params"], "bounds": {"array": "gone"}}), "damaged"),
        (with_header(fitted=3), "damaged"),
        ({"header": header, "arrays": {**arrays, "fitted.low": np.array([np.nan, 0])}}, "damaged"),
        ({"header": header, "arrays": {**arrays, "fitted.high": np.array([0.0])}}, "damaged"),
        ({"header": header, "arrays": {"params.bounds": arrays["params.bounds"]}}, "damaged"),
    ]


@pytest.mark.parametrize(("state", "message"), damaged_states())
def test_a_damaged_or_hostile_state_is_refused(state, message):
    with pytest.raises(FormatError, match=message):
        from_state_dict(state)


def test_a_state_of_another_class_is_refused():
    with pytest.raises(FormatError, match="'tabular' is not a Fourier"):
        Fourier.from_state_dict(Tabular(3).state_dict())


# specs


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("fourier:3", Fourier(3)),
        ("Fourier:5, scale=coefficient", Fourier(5, scale="coefficient")),
        ("fourier:5,coupled=false", Fourier(5, coupled=False)),
        ("tiles:8x10", Tiles(8, 10)),
        ("tiles:8x10x4,hashed=4096,bias=true", Tiles(8, (10, 4), hashed=4096, bias=True)),
        ("tabular", Tabular()),
        ("tabular:16", Tabular(16)),
        ("radial:5", Radial(5)),
        ("radial:5x3,width=0.5,normalize=True", Radial((5, 3), width=0.5, normalize=True)),
        ("polynomial:2", Polynomial(2)),
        ("aggregate:10", GridAggregation(10)),
        ("aggregate:10x5", GridAggregation((10, 5))),
        ("scaling", Scaling()),
    ],
)  # fmt: skip
def test_specs_name_maps(spec, expected):
    made = parse(spec)
    assert type(made) is type(expected)
    assert made.get_params() == expected.get_params()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "choose from aggregate:BINS, fourier:ORDER"),
        ("wavelet:2", "no 'wavelet'; choose from .*tiles:TILINGSxBINS"),
        ("fourier", "missing a required argument: 'order'.*write fourier:ORDER"),
        ("fourier:3x3", "too many numbers.*; write fourier:ORDER"),
        ("fourier:3,degree=2", "'degree'.*options are order, bounds"),
        ("fourier:3,clip", "not OPTION=VALUE"),
        ("tiles:8", "TILINGSxBINS"),
        ("tiles:8x", "a number is missing"),
        ("aggregate", "aggregate:BINS"),
        ("groups:3", "only Python can pass"),
        (3, "not a text"),
    ],
)
def test_specs_that_cannot_be_read_say_what_can(spec, message):
    with pytest.raises(InputError, match=message):
        parse(spec)


def test_wrong_values_of_a_spec_are_refused_when_fitted():
    with pytest.raises(InputError, match=r"order must be a whole number .* got 'abc'"):
        parse("fourier:abc").fit([[0.0], [1.0]])


def test_maps_of_other_packages_are_found():
    class Cubes(Scaling):
        feature = "cubes-of-test"
        spec = "cubes-of-test:POWER"

        def __init__(self, power: int = 3, bounds=None, clip=True) -> None:
            super().__init__(bounds, clip)
            self.power = power

        def _map(self, u, out):
            np.power(u, self.power, out=out)

    FEATURES.register(Cubes.feature, Cubes)
    try:
        made = parse("cubes_of_test:2").fit([[0.0], [2.0]])
        assert made.transform([[1.0]]).tolist() == [[0.25]]
        assert from_state_dict(made.state_dict()).transform([[1.0]]).tolist() == [[0.25]]
        assert Cubes.spec in available()
    finally:
        del FEATURES._members[Cubes.feature]


def test_all_public_names_are_there():
    assert set(features.__all__) <= set(dir(features))
    assert {"fourier", "tiles", "radial", "polynomial", "tabular", "aggregate"} <= set(FEATURES)
