"""A fitted value function, `v(x) = theta . phi(x)`, and its file, which includes the feature map.

Action values are kept as they are, `q(x, a) = theta_a . phi(x)`; a policy's probabilities turn them
into a value, `v(x) = sum_a pi(a|x) q(x, a)`. The file is one of `o2td.archive`: no pickle, digest
checked, and a feature map is found by its registered name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td import archive, features
from o2td.arguments import instance
from o2td.arrays import Floats, as_array, as_numbers
from o2td.errors import FormatError, InputError
from o2td.evaluation.basis import apply, check_width
from o2td.sources import Source
from o2td.sources.coding import Coding

_KIND = "value model"
_BLOCK = 1 << 22  # features kept at a time


@dataclass(frozen=True, eq=False)
class ValueModel:
    """Values of observations or states, as `o2td evaluate --out` leaves them in `model.npz`.

    Parameters
    ----------
    theta
        (d,) weights of the features, or (A, d) for action values.
    features
        A fitted feature map of `o2td.features` or of another package that has registered it; a
        callable or an (S, d) table predicts too, but cannot be saved.
    inputs
        The log's columns that the features read, in order.
    states
        Whether the features read a state number per row instead of observations.
    method
        How the weights were estimated.
    discount
        Gamma of the log, None if a column gave it.
    codings
        How columns of the log that are not numbers were coded, by name.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td.features import Tabular
    >>> basis = Tabular(2).fit()
    >>> model = ValueModel(np.array([0.5, 2.0]), basis, ("state",), True, "LSTD", 0.9)
    >>> model.predict([1, 0, 1])
    array([2. , 0.5, 2. ])
    """

    theta: Floats
    features: Any
    inputs: tuple[str, ...]
    states: bool
    method: str
    discount: float | None = None
    codings: Mapping[str, Coding] = field(default_factory=dict)

    @classmethod
    def of(cls, theta: Any, features: Any, method: str, source: Source) -> ValueModel:
        """A model from a fit to a source, with the columns that it reads."""
        instance("source", source, Source, "the source of the fit")
        observed = source.mapped.many("observation")
        names = observed or source.mapped.many("state")
        weights = as_numbers("theta", theta)
        read = {
            column: coding
            for column, coding in source.codings.items()
            if not set(coding.names).isdisjoint(names)
        }
        return cls(weights, features, names, not observed, method, source.discount, read)

    @property
    def of_actions(self) -> bool:
        """Whether the weights are those of action values."""
        return self.theta.ndim == 2

    def predict(self, rows: Any, probabilities: Any = None) -> Floats:
        """Values (n,) of rows of observations or of states.

        Parameters
        ----------
        rows
            (n, k) observations, or (n,) states.
        probabilities
            (n, A), the target's probabilities in each row; only action values need them.
        """
        table = _points(rows)
        if not self.of_actions:
            return self._product(table, self.theta[:, None])[:, 0]
        if probabilities is None:
            raise InputError(
                f"model: {self.method} gives action values; pass the policy's probabilities of"
                f" {len(self.theta)} actions in each row, or use action_values"
            )
        weight = as_numbers("probabilities", probabilities)
        if weight.shape != (len(table), len(self.theta)):
            raise InputError(
                f"probabilities: shape {weight.shape}, expected {(len(table), len(self.theta))}"
            )
        values: Floats = (self.action_values(table) * weight).sum(axis=1)
        return values

    def table(self, rows: Any, probabilities: Any = None) -> dict[str, Any]:
        """Columns of inputs and of predictions, by name.

        Predictions are in `value`, and for action values in one column per action (`value_0` …);
        without the policy's probabilities such a model gives no `value`. The names are longer if
        inputs already have them.

        >>> from o2td.features import Tabular
        >>> model = ValueModel(np.array([0.5, 2.0]), Tabular(2).fit(), ("value",), True, "LSTD")
        >>> {name: column.tolist() for name, column in model.table([1, 0]).items()}
        {'value': [1, 0], 'predicted_value': [2.0, 0.5]}
        """
        inputs = _points(rows)
        each = inputs[:, None] if inputs.ndim == 1 else inputs
        if not self.inputs:  # decisions without a context
            each = each[:, :0]
        if each.shape[1] != len(self.inputs):
            raise InputError(
                f"rows: {each.shape[1]} columns, the model takes {len(self.inputs)}:"
                f" {', '.join(self.inputs)}"
            )
        found: dict[str, Any] = {name: each[:, j] for j, name in enumerate(self.inputs)}
        name = "value"
        while any(one == name or one.startswith(f"{name}_") for one in self.inputs):
            name = f"predicted_{name}"
        if not self.of_actions:
            return {**found, name: self.predict(inputs)}
        if probabilities is not None:
            found[name] = self.predict(inputs, probabilities)
        values = self.action_values(inputs)
        return found | {f"{name}_{a}": values[:, a] for a in range(values.shape[1])}

    def action_values(self, rows: Any) -> Floats:
        """Action values (n, A) of rows of observations or of states."""
        if not self.of_actions:
            raise InputError(f"model: {self.method} has values of states, not of actions")
        return self._product(_points(rows), self.theta.T)

    def _product(self, rows: npt.NDArray[Any], weights: Floats) -> Floats:
        """`phi(rows) weights`, computed in batches of rows."""
        out = np.empty((len(rows), weights.shape[1]))
        size = max(1, _BLOCK // max(1, len(weights)))
        for low in range(0, len(rows), size):
            phi = apply(self.features, rows[low : low + size])
            check_width(phi, len(weights))
            out[low : low + size] = phi @ weights
        return out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to `path`, complete or not at all.

        >>> import numpy as np, tempfile
        >>> from o2td.features import Fourier
        >>> phi = Fourier(3, bounds=[(0, 1)]).fit()
        >>> model = ValueModel(np.ones(4), phi, ("obs_0",), False, "LSTD")
        >>> file = tempfile.mkdtemp() + "/model.npz"
        >>> model.save(file)
        >>> bool(load_model(file).predict([[0.3]]) == model.predict([[0.3]]))
        True
        """
        if not hasattr(self.features, "state_dict"):
            raise InputError(
                f"features: {type(self.features).__name__} has no state_dict, so the model cannot"
                " be written; use a feature map of o2td.features"
            )
        state = self.features.state_dict()
        header = {
            "method": self.method,
            "inputs": list(self.inputs),
            "states": self.states,
            "discount": self.discount,
            "features": state["header"],
        }
        if self.codings:
            codings = {name: [one.kind, list(one.values)] for name, one in self.codings.items()}
            header["codings"] = codings
        arrays = {f"features.{name}": array for name, array in state["arrays"].items()}
        archive.save(path, _KIND, header, {"theta": self.theta, **arrays})


def load_model(path: str | os.PathLike[str]) -> ValueModel:
    """Load a model that `o2td evaluate --out` or `ValueModel.save` wrote.

    >>> import tempfile, numpy as np
    >>> from o2td.features import Tabular
    >>> folder = tempfile.TemporaryDirectory()
    >>> basis = Tabular(2).fit()
    >>> model = ValueModel(np.array([0.5, 2.0]), basis, ("state",), True, "LSTD", 0.9)
    >>> model.save(folder.name + "/model.npz")
    >>> load_model(folder.name + "/model.npz").predict([1])
    array([2.])
    >>> folder.cleanup()
    """
    header, arrays = archive.load(path, _KIND)
    try:
        own = {name[9:]: a for name, a in arrays.items() if name.startswith("features.")}
        phi = features.from_state_dict({"header": header["features"], "arrays": own})
        theta, inputs = arrays["theta"], header["inputs"]
        discount = None if header["discount"] is None else float(header["discount"])
        named = isinstance(inputs, list) and all(isinstance(name, str) for name in inputs)
        fits = theta.ndim in (1, 2) and theta.shape[-1] == phi.n_features_out_
        if not (named and inputs and fits and np.isfinite(theta).all()):
            raise ValueError("its parts do not fit together")
        states, method = header["states"] is True, str(header["method"])
        codings = {
            name: Coding(name, str(kind), tuple(values))
            for name, (kind, values) in header.get("codings", {}).items()
        }
        return ValueModel(theta, phi, tuple(inputs), states, method, discount, codings)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise FormatError(
            f"{os.fspath(path)}: does not hold a value model ({error}); restore it from a copy"
        ) from None


def _points(rows: Any) -> npt.NDArray[Any]:
    """Rows of observations (n, k), or states (n,)."""
    given = as_array("rows", rows)
    if given.ndim not in (1, 2):
        raise InputError(
            f"rows must be (n, k) observations or (n,) states, got shape {given.shape}"
        )
    return given
