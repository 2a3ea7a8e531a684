"""What all feature maps share: parameters, fitted state, names, files.

A feature map is a scikit-learn style transformer that needs no scikit-learn: the constructor only
stores, `fit` learns, `transform` maps rows of observations to rows `phi(x)`. With scikit-learn
installed, `sklearn.base.clone` and `sklearn.pipeline.Pipeline` accept it as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from o2td.arguments import listed, shown, whole
from o2td.arrays import Floats, Ints, as_array
from o2td.errors import FormatError, InputError
from o2td.parameters import Parameterized
from o2td.registry import FEATURES

STATE_VERSION = 1
MAX_DENSE = 1_000_000  # features of a dense row
MAX_SPARSE = 2**31 - 1  # columns that 32-bit CSR indices can name


class Transformer(Parameterized):
    """Base class of feature maps; a plug-in may derive from it or copy its methods.

    A subclass sets `feature` (its name in the registry and in files) and `spec` (how it is written
    on the command line), and implements `fit`, `transform`, `_learned` and `_restore`.
    """

    feature: ClassVar[str]
    spec: ClassVar[str]
    n_features_in_: int
    n_features_out_: int
    feature_names_in_: npt.NDArray[np.object_]

    def _forget(self) -> None:
        """Drop what `fit` learned, and only that: scikit-learn keeps notes on the object too."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    # fitting ----------------------------------------------------------------------------------

    def fit(self, X: npt.ArrayLike | None = None, y: object = None) -> Self:
        """Learn from the rows of `X` whatever the parameters leave open."""
        raise self._unwritten("fit")

    def transform(self, X: npt.ArrayLike) -> Any:
        """Map the rows of `X` to features."""
        raise self._unwritten("transform")

    def _unwritten(self, method: str) -> InputError:
        return InputError(
            f"{type(self).__name__} does not say how to {method}; take a map such as Fourier, or"
            f" define {method}"
        )

    def fit_transform(self, X: npt.ArrayLike, y: object = None) -> Any:
        """`fit(X)`, then `transform(X)`."""
        return self.fit(X).transform(X)

    def table(self, X: npt.ArrayLike) -> Any:
        """Return the feature matrix of a finite problem whose states are the rows of `X`.

        Row s is `phi(s)`. A map that is not fitted yet is fitted on `X` first.
        """
        return self.transform(X) if self.__sklearn_is_fitted__() else self.fit_transform(X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_out_")

    def _ready(self) -> None:
        """Make sure that the map is fitted."""
        if not self.__sklearn_is_fitted__():
            raise InputError(f"{type(self).__name__} is not fitted; call fit first")

    # names ------------------------------------------------------------------------------------

    def get_feature_names_out(
        self, input_features: Sequence[str] | None = None
    ) -> npt.NDArray[np.object_]:
        """Return a name for each column of `transform`'s result."""
        self._ready()
        names = np.empty(self.n_features_out_, dtype=object)
        names[:] = self._names(self._input_names(input_features))
        return names

    def _names(self, inputs: list[str]) -> list[str]:
        return [f"{self.feature}{f}" for f in range(self.n_features_out_)]

    def _input_names(self, given: Any = None) -> list[str]:
        if given is not None:
            names = [str(name) for name in listed("input_features", given, "names")]
            if len(names) != self.n_features_in_:
                raise InputError(
                    f"input_features: {len(names)} names for {self.n_features_in_} columns"
                )
            return names
        if hasattr(self, "feature_names_in_"):
            return list(self.feature_names_in_)
        return [f"x{j}" for j in range(self.n_features_in_)]

    def _remember_names(self, X: npt.ArrayLike) -> None:
        """Store the column names of a data frame, and reject a frame with another order."""
        names = column_names(X)
        if names is None:
            return
        if not hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif list(self.feature_names_in_) != names:
            raise InputError(
                f"X: its columns are {names}, {type(self).__name__} was fitted on "
                f"{list(self.feature_names_in_)}; select them in that order"
            )

    # scikit-learn and files -------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float64"]),
            input_tags=InputTags(),
        )

    def _learned(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What `fit` learned: JSON values and arrays, enough for `_restore`."""
        raise NotImplementedError

    def _restore(self, values: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Return `{"header": JSON values, "arrays": NumPy arrays}`, enough to rebuild the map."""
        params: dict[str, Any] = {}
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, value in self.get_params().items():
            plain = self._plain(name, value)
            if isinstance(plain, np.ndarray):
                arrays[f"params.{name}"] = plain
                plain = {"array": f"params.{name}"}
            params[name] = plain
        header: dict[str, Any] = {
            "feature": self.feature,
            "version": STATE_VERSION,
            "params": params,
            "fitted": None,
        }
        if self.__sklearn_is_fitted__():
            values, learned = self._learned()
            if hasattr(self, "feature_names_in_"):
                values = {**values, "columns": list(self.feature_names_in_)}
            header["fitted"] = values
            arrays |= {f"fitted.{name}": array for name, array in learned.items()}
        return {"header": header, "arrays": arrays}

    def _plain(self, name: str, value: Any) -> Any:
        """A parameter as a JSON value or a numeric array."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise InputError(f"{name}: {value!r} cannot be saved; pass numbers")
        return array

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild a map from `state_dict()`'s result, whatever its class.

        The class is found by its registered name, never by an import path.
        """
        if not isinstance(state, Mapping):
            raise FormatError(f"feature map: the stored state is damaged ({shown(state)})")
        try:
            header, arrays = state["header"], state["arrays"]
            name, version, fitted = header["feature"], header["version"], header["fitted"]
            params = {
                key: arrays[value["array"]] if isinstance(value, dict) else value
                for key, value in header["params"].items()
            }
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise FormatError(f"feature map: the stored state is damaged ({error!r})") from error
        if not isinstance(version, int) or version > STATE_VERSION:
            raise FormatError(
                f"feature map: stored in format {version!r}, this o2td reads up to "
                f"{STATE_VERSION}; update o2td"
            )
        kind = FEATURES[name] if isinstance(name, str) and name in FEATURES else None
        if not (isinstance(kind, type) and issubclass(kind, cls)):
            raise FormatError(f"feature map: {name!r} is not a {cls.__name__} known here")
        try:
            made = kind(**params)
            if fitted is not None:
                columns = fitted.get("columns")
                learned = {k[7:]: v for k, v in arrays.items() if k.startswith("fitted.")}
                made._restore(fitted, learned)
                if columns is not None:
                    made.feature_names_in_ = np.array([str(c) for c in columns], dtype=object)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"feature map: the stored state is damaged ({error})") from error
        return made


def column_names(X: npt.ArrayLike) -> list[str] | None:
    """The column names of a data frame, None for anything else."""
    columns = getattr(X, "columns", None)
    if columns is None or callable(columns):
        return None
    names = list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def as_matrix(X: npt.ArrayLike) -> npt.NDArray[Any]:
    """`X` as a two-dimensional numeric array, not copied if it is one already."""
    if hasattr(X, "toarray") and not hasattr(X, "columns"):
        raise InputError("X: sparse observations are not supported; pass X.toarray()")
    try:
        array = as_array("X", X)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"X: not a table of numbers ({error}); pass an (n, k) array") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"X: has dtype {array.dtype}; pass real numbers")
    if array.ndim != 2:
        raise InputError(
            f"X: has {array.ndim} dimension(s), two are needed; "
            "use x[:, None] for one column, x[None, :] for one row"
        )
    if array.shape[1] == 0:
        raise InputError("X: has no columns; pass at least one observation variable")
    return array


def as_states(X: npt.ArrayLike, n_states: int | None) -> Ints:
    """Integer states from an (n,) or (n, 1) array, checked against `0 <= state < n_states`."""
    array = as_array("state", X)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "iufb":
        raise InputError(
            f"state: shape {array.shape} of {array.dtype}; pass one integer per row, (n,) or (n, 1)"
        )
    if array.dtype.kind == "f":
        _refuse_first(~(np.isfinite(array) & (np.floor(array) == array)), array, "not an integer")
    top = np.iinfo(np.int64).max if n_states is None else n_states - 1
    if array.size and (array.min() < 0 or array.max() > top):
        known = "states are 0, 1, …" if n_states is None else f"the states known are 0 to {top}"
        _refuse_first((array < 0) | (array > top), array, f"out of range: {known}")
    return array.astype(np.int64, copy=False)


def _refuse_first(bad: npt.NDArray[np.bool_], array: npt.NDArray[Any], why: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"state: row {row} is {array[row]}, {why}")


def numbers_in(name: str, value: Any) -> Floats:
    """`value` as an array of real numbers; strings and booleans are rejected."""
    array = as_array(name, value)
    if array.dtype.kind not in "iuf":
        raise InputError(f"{name}: {shown(value)} are not numbers; pass real numbers")
    return array.astype(np.float64)


def product_within(sides: Sequence[int] | Ints, limit: int) -> int | None:
    """The product of `sides`, or None if it exceeds `limit` (however many sides there are)."""
    total = 1
    for side in sides:
        total *= int(side)
        if total > limit:
            return None
    return total


def bins_of(value: Any, k: int) -> Ints:
    """Number of bins of each of `k` variables, from one number or one per variable."""
    many = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
    given = listed("bins", value, "whole numbers") if many else [value] * k
    counts = [whole("bins", b, 1, most=1 << 62) for b in given]
    if len(counts) != k:
        raise InputError(f"bins: {len(counts)} given for {k} variables; pass one number or {k}")
    return np.array(counts, dtype=np.int64)


def one_hot(column: Ints, d: int) -> Any:
    """The CSR array whose row t has a single one, in column `column[t]`."""
    from scipy.sparse import csr_array

    n = len(column)
    indptr = np.arange(n + 1, dtype=np.int32 if n < MAX_SPARSE else np.int64)
    return csr_array((np.ones(n), column.astype(indptr.dtype), indptr), shape=(n, d))
