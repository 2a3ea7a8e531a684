"""scikit-learn's interface: `X` features, `y` rewards, `next_X` features of the successors.

    theta solves  y + discount · next_X theta = X theta  in the sense of the chosen method

Without `next_X` no row has a successor, and it is plain linear regression of y on X. `next_X` and
the per-row arrays (`discount`, `rho`, `start`, `state`, ...) are metadata in scikit-learn's sense,
so pipelines transform `next_X` as they do `X`, and cross-validation splits all of them. Methods
with traces need whole trajectories: split by trajectory (`GroupKFold`) and pass `start`.

>>> import numpy as np
>>> from o2td.sklearn import ValueRegressor
>>> X = np.eye(2)
>>> value = ValueRegressor("lstd").fit(X, [0.0, 1.0], next_X=X[::-1], discount=0.5)
>>> value.coef_.round(3)
array([0.667, 1.333])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from o2td.arguments import whole
from o2td.arrays import FeatureRows, Floats, as_array
from o2td.errors import InputError, import_extra
from o2td.registry import LEARNERS, SOLVERS
from o2td.transitions import Transitions

import_extra("sklearn", extra="sklearn")

from sklearn.base import BaseEstimator, RegressorMixin  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["ValueRegressor"]

_DISCOUNT = 0.99  # if successors are given but no discount


class ValueRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Value prediction as a regressor: any learner or solver of o2td behind `fit` and `predict`.

    Parameters
    ----------
    algorithm : str, learner or solver
        A registered name such as "lstd" or "td" (including those of other packages), or an
        instance, which is cloned and never changed.
    parameters : dict, optional
        Parameters of the algorithm, such as `{"trace": 0.5}`; not allowed with an instance, which
        has its own.
    discount : float, optional
        The discount used if `fit` is given none; None means 0.99 if `next_X` is given.
    passes : int
        Number of passes of an online learner over the rows.

    Attributes
    ----------
    theta_, coef_ : (d,) array
        The weights.
    algorithm_ : learner or solver
        The fitted algorithm, with its `status` or `solution`.
    n_features_in_, feature_names_in_
        As usual in scikit-learn.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.pipeline import Pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = np.random.default_rng(0).normal(size=(51, 2))
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     value = ValueRegressor("lstd").set_fit_request(next_X=True, discount=True)
    ...     pipeline = Pipeline([("scale", StandardScaler()), ("value", value)],
    ...                         transform_input=["next_X"])
    ...     pipeline.fit(X[:-1], X[1:, 0], next_X=X[1:], discount=0.5).predict(X[:2]).shape
    (2,)
    """

    def __init__(
        self,
        algorithm: Any = "lstd",
        parameters: dict[str, Any] | None = None,
        discount: float | None = None,
        passes: int = 1,
    ) -> None:
        self.algorithm = algorithm
        self.parameters = parameters
        self.discount = discount
        self.passes = passes

    def fit(
        self,
        X: FeatureRows,
        y: npt.ArrayLike,
        next_X: FeatureRows | None = None,
        discount: npt.ArrayLike | None = None,
        rho: npt.ArrayLike | None = None,
        start: npt.ArrayLike | None = None,
        state: npt.ArrayLike | None = None,
        next_state: npt.ArrayLike | None = None,
        target_prob: npt.ArrayLike | None = None,
        behavior_prob: npt.ArrayLike | None = None,
        interest: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from rows (X, y, next_X); other arguments have one entry per row, or one for all.

        Parameters
        ----------
        X : (n, d) array or CSR
            Features, one row per state.
        y : (n,) array
            Rewards.
        next_X : (n, d) array or CSR, optional
            Features of the successors, ignored where the discount is 0. None means that no row has
            a successor, which makes this a regression.
        discount : float or (n,) array, optional
            0 where a trajectory terminates.
        rho, start, state, next_state, target_prob, behavior_prob, interest : optional
            As in `Transitions`.
        """
        algorithm = self._made()
        phi, reward = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True
        )
        following, discount = self._successors(phi, next_X, discount)
        starts = np.zeros(phi.shape[0], np.bool_) if start is None else as_array("start", start)
        if starts.ndim == 1:  # also in a second pass: no trace leads into it
            starts = starts.copy()
            starts[:1] = True
        rows = Transitions(
            phi,
            np.asarray(reward, dtype=np.float64),
            following,
            discount,
            rho=rho,
            start=starts,
            state=state,
            next_state=next_state,
            target_prob=target_prob,
            behavior_prob=behavior_prob,
            interest=interest,
        )
        algorithm.fit(rows)
        if hasattr(algorithm, "partial_fit"):
            for _ in range(self.passes - 1):
                algorithm.partial_fit(rows)
        self.algorithm_ = algorithm
        self.theta_: Floats = np.array(algorithm.theta)
        return self

    @property
    def coef_(self) -> Floats:
        """The weights, under the name that scikit-learn's linear models use."""
        check_is_fitted(self)
        return self.theta_

    def predict(self, X: FeatureRows) -> Floats:
        """`X theta`."""
        check_is_fitted(self)
        phi = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(phi @ self.theta_)

    def _successors(self, X: Any, next_X: Any, discount: Any) -> tuple[Any, Any]:
        """Features of the successors in the layout of X, and the discounts that belong to them."""
        if next_X is None:
            given = np.zeros(1) if discount is None else as_array("discount", discount)
            if given.dtype.kind not in "biuf" or np.any(given != 0.0):
                raise InputError("discount is given without successors: pass next_X, or discount=0")
            return X, 0.0
        if discount is None:
            discount = _DISCOUNT if self.discount is None else self.discount
        # Rows that terminate may hold anything, so only Transitions can judge their values.
        following = validate_data(
            self,
            next_X,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite=False,
            reset=False,
        )
        sparse = hasattr(X, "tocsr")
        if sparse and not hasattr(following, "tocsr"):
            from scipy.sparse import csr_array

            following = csr_array(following)
        elif not sparse and hasattr(following, "tocsr"):
            following = following.toarray()
        return following, discount

    def _made(self) -> Any:
        """A fresh algorithm from a name or an instance."""
        whole("passes", self.passes, 1)
        given = self.parameters or {}
        if not isinstance(self.algorithm, str):
            if not (hasattr(self.algorithm, "fit") and hasattr(self.algorithm, "clone")):
                raise InputError(
                    f"algorithm is {self.algorithm!r}; pass the name or an instance of a learner"
                    " or solver"
                )
            if given:
                raise InputError(
                    "parameters belong to an algorithm given by name, not to an instance"
                )
            return self.algorithm.clone()
        for registry in (SOLVERS, LEARNERS):
            if self.algorithm in registry:
                kind = registry[self.algorithm]
                try:
                    return kind(**given)
                except TypeError as error:
                    raise InputError(f"parameters of {self.algorithm}: {error}") from None
        names = [*SOLVERS.names(), *LEARNERS.names()]
        raise InputError(f"algorithm: no {self.algorithm!r}, choose from {', '.join(names)}")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Online learners see the rows a few times, and weights have no intercept.
        tags.regressor_tags.poor_score = True
        return tags
