"""A model of the behaviour, for logs that do not record the probabilities of their actions.

With observations, `b(a|x) = softmax_a(W z(x))`, multinomial logistic regression on the
standardised observations with squares and products, penalised by `ridge/2 ||W||^2`. With states,
the frequencies of the actions in each state, smoothed by one count at the log's overall
frequencies (the same model with one weight per state and action). Calibrated on held-out episodes:
the logarithms of the probabilities are divided by the temperature that makes their actions most
likely. And clipped: n rows cannot resolve probabilities below 1/n, so no action that was taken gets
less.

With at least ten rows per weight, one model of all rows gives the probabilities. An estimate with
probabilities fitted to its own rows varies less than one with the true ones: first-order, what the
model's scores explain is taken out of each episode's influence. So intervals that take the model for
the truth are too wide, not too narrow, where it fits. With fewer rows per weight that model would
find its own actions too likely, and the probability of an episode's actions comes from a model that
never saw that episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from o2td.arguments import number, shown, whole
from o2td.arrays import Floats, Ints, as_array, as_numbers, check_finite
from o2td.errors import InputError
from o2td.sources.places import Keys, mix
from o2td.sources.policies import softmax

if TYPE_CHECKING:
    from o2td.sources.source import Source

_ELEMENTS = 5_000_000  # entries of the regression's matrix at most
_MAX_PRODUCTS = 12  # observation variables up to which products enter
_BINS = 10
_KEYS = 1 << 16  # keys of episodes held at most
_FLOOR = 1e-6  # of an action that was taken, however many rows there are
_HOTTEST = 20.0  # temperature at most; 1/20 at least
_MAX_ACTIONS = 1000
_PER_WEIGHT = 10  # rows per weight from which one model of all rows gives the probabilities


@dataclass(frozen=True)
class Calibration:
    """Predicted against observed frequency of actions, on episodes that the model never saw."""

    predicted: Floats
    observed: Floats
    count: Ints
    log_loss: float
    marginal_log_loss: float  # of a model that knows only how often each action occurs

    def __str__(self) -> str:
        lines = ["predicted  observed      rows"]
        for row in zip(self.predicted, self.observed, self.count, strict=True):
            lines.append("{:9.3f} {:9.3f} {:9d}".format(*row))
        lines.append(f"log loss {self.log_loss:.4f} (without inputs {self.marginal_log_loss:.4f})")
        return "\n".join(lines)


@dataclass(frozen=True)
class BehaviorModel:
    """Estimated probabilities of the logged actions, with one model per fold of episodes.

    Made by `fit_behavior_model` (see its example); `print(model.calibration)` shows how reliable it
    is.

    Parameters
    ----------
    n_actions : int
        Number of actions.
    keys
        Hashes of the log's episodes, sorted.
    models : tuple
        One model of all rows or, with few rows per weight, one per fold, fitted without it.
    calibration : Calibration
        How well held-out actions are predicted.
    temperature : float
        Divisor of the logarithms of the models' probabilities.
    floor : float
        Smallest probability of an action that was taken.
    """

    n_actions: int
    keys: Keys  # of episodes (of many, a sample), sorted; the fold is the rank modulo the folds
    models: tuple[Any, ...]
    calibration: Calibration
    temperature: float = 1.0
    floor: float = _FLOOR

    def fold_of(self, key: Keys) -> Ints:
        """The fold of each row's episode; episodes of another log have fold 0."""
        key = as_array("key", key)
        if key.dtype != np.uint64 or key.ndim != 1:
            raise InputError(
                "key must be the hashes of the rows' episodes, such as the `keys` of this model, got"
                f" {shown(key)}"
            )
        return np.searchsorted(self.keys, key) % len(self.models)

    def probabilities(self, inputs: npt.NDArray[Any], key: Keys) -> Floats:
        """(n, A) probabilities of all actions."""
        inputs, fold = self._inputs(inputs), self.fold_of(key)
        _check_length("key", fold, len(inputs))
        result = np.empty((len(inputs), self.n_actions))
        for k, model in enumerate(self.models):
            rows = fold == k
            if rows.any():
                result[rows] = model.predict(inputs[rows])
        return result if self.temperature == 1.0 else _tempered(result, self.temperature)

    def taken(self, inputs: npt.NDArray[Any], action: npt.NDArray[Any], key: Keys) -> Floats:
        """Probability of the action taken in each row, at least `floor`."""
        action = as_array("action", action)
        if action.ndim != 1 or action.dtype.kind not in "iu":
            raise InputError(
                f"action must list the number of each row's action, got {shown(action)}"
            )
        _check_length("action", action, len(self._inputs(inputs)))
        if len(action) and (action.min() < 0 or action.max() >= self.n_actions):
            raise InputError(
                f"action: {action.max()} was not in the log that the behaviour model was fitted on"
                f" (0 to {self.n_actions - 1}); fit it on this log"
            )
        matrix = self.probabilities(inputs, key)
        return np.maximum(matrix[np.arange(len(action)), action.astype(np.int64)], self.floor)

    def _inputs(self, inputs: Any) -> npt.NDArray[Any]:
        """Observations or states like those that it was fitted on."""
        model = self.models[0]
        if isinstance(model, _Frequencies):
            states = as_array("inputs", inputs)
            if states.ndim != 1 or states.dtype.kind not in "iu" or states.min(initial=0) < 0:
                raise InputError(
                    f"inputs must list the state of each row, from 0, got {shown(states)}"
                )
            return states
        rows = as_numbers("inputs", inputs)
        if rows.ndim != 2 or rows.shape[1] != len(model.mean):
            raise InputError(
                f"inputs must have {len(model.mean)} observation variables in each row, got shape"
                f" {rows.shape}"
            )
        check_finite("inputs", rows)
        return rows


def _check_length(name: str, values: npt.NDArray[Any], rows: int) -> None:
    if len(values) != rows:
        raise InputError(f"{name} has {len(values)} rows, inputs has {rows}; pass the same rows")


@dataclass(frozen=True)
class _Softmax:
    mean: Floats
    scale: Floats
    weights: Floats  # (p, A)

    def predict(self, inputs: npt.NDArray[Any]) -> Floats:
        return softmax(_basis((inputs - self.mean) / self.scale) @ self.weights)


@dataclass(frozen=True)
class _Frequencies:
    table: Floats  # (S, A)
    overall: Floats  # (A,), for states that were never seen

    def predict(self, inputs: npt.NDArray[Any]) -> Floats:
        inside = inputs < len(self.table)
        found = self.table[np.where(inside, inputs, 0)]
        return np.where(inside[:, None], found, self.overall)


def fit_behavior_model(
    source: Source, folds: int = 5, ridge: float = 1.0, max_rows: int = 200_000
) -> BehaviorModel:
    """Estimate `b(a|x)` from a log with discrete actions, calibrated on held-out episodes.

    Parameters
    ----------
    source
        A log with a column of integer actions.
    folds
        Number of folds of episodes. As many models, each fitted without one of them, are what the
        calibration is measured with; they give the probabilities where rows are few.
    ridge
        Penalty on the squared weights of the regression.
    max_rows
        Largest number of rows to fit; a longer log is sampled evenly, by hashing.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from o2td import sources
    >>> rng = np.random.default_rng(0)
    >>> episode = np.repeat(np.arange(200), 5)
    >>> log = pd.DataFrame({"episode": episode, "obs_0": rng.normal(size=1000)})
    >>> log["action"] = (rng.random(1000) < 1 / (1 + np.exp(-log.obs_0))).astype(int)
    >>> log["reward"], log["terminated"], log["target_prob"] = 0.0, False, 0.5
    >>> source = sources.open_logs(log, discount=0.9)
    >>> model = sources.fit_behavior_model(source)
    >>> model.probabilities(np.array([[0.0]]), model.keys[:1]).round(1)
    array([[0.5, 0.5]])
    """
    folds, max_rows = whole("folds", folds, 1), whole("max_rows", max_rows, 1)
    ridge = number("ridge", ridge, above=0.0)
    if not hasattr(source, "unweighted_chunks"):
        raise InputError(f"source must be one that open_logs gives, got {shown(source)}")
    sample = _sample(source, max_rows)
    n_actions = int(sample.action.max()) + 1
    if n_actions > _MAX_ACTIONS:
        raise InputError(
            f"action: numbered up to {n_actions - 1}; the behaviour can be estimated for at most"
            f" {_MAX_ACTIONS} actions: add a column behavior_prob"
        )
    folds = min(folds, len(sample.keys))
    fold = np.searchsorted(sample.keys, sample.key) % folds
    models = []
    for k in range(folds):
        train = fold != k if folds > 1 else fold == k
        models.append(_fit(sample.inputs[train], sample.action[train], n_actions, ridge))
    blank = Calibration(*(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64), 0.0, 0.0))
    model = BehaviorModel(n_actions, sample.keys, tuple(models), blank)
    predicted = model.probabilities(sample.inputs, sample.key)
    temperature = _temperature(predicted, sample.action) if folds > 1 else 1.0
    floor = max(_FLOOR, 1.0 / len(sample.action))
    calibration = _calibrate(_tempered(predicted, temperature), sample.action, floor)
    if len(sample.action) >= _PER_WEIGHT * _weights(sample.inputs, n_actions):
        models, temperature = [_fit(sample.inputs, sample.action, n_actions, ridge)], 1.0
    return BehaviorModel(n_actions, sample.keys, tuple(models), calibration, temperature, floor)


def _weights(inputs: npt.NDArray[Any], n_actions: int) -> int:
    """Number of free weights of a model of these inputs."""
    own = len(np.unique(inputs)) if inputs.ndim == 1 else _width(inputs.shape[1])
    return own * (n_actions - 1)


@dataclass
class _Sample:
    inputs: npt.NDArray[Any]
    action: Ints
    key: Keys
    keys: Keys


def _sample(source: Source, max_rows: int) -> _Sample:
    """An even sample of the rows: those whose hashed number is below a sinking threshold."""
    parts: list[tuple[Any, ...]] = []
    keys: Keys = np.zeros(0, dtype=np.uint64)
    share = 1.0  # of the episodes whose keys are held
    threshold, number, held, limit = 1.0, 0, 0, max_rows
    for chunk in source.unweighted_chunks():
        if chunk.action is None or chunk.action.ndim != 1:
            raise InputError("logs: a behaviour model needs one column of whole actions")
        if chunk.observation is not None:
            limit = min(max_rows, _ELEMENTS // _width(chunk.observation.shape[1]))
        draw = mix(np.arange(number, number + len(chunk))) / 2.0**64
        number += len(chunk)
        keys = _among(np.concatenate([keys, chunk.key[chunk.start]]), share)
        while len(keys) > _KEYS:
            share /= 2.0
            keys = _among(keys, share)
        low = draw < threshold
        parts.append((draw[low], chunk.input[low], chunk.action[low], chunk.key[low]))
        held += int(low.sum())
        while held > 4 * limit:
            threshold /= 2.0
            parts = [tuple(a[p[0] < threshold] for a in p) for p in parts]
            held = sum(len(part[0]) for part in parts)
    if not held:
        raise InputError("logs: no transitions to estimate the behaviour from")
    draw, inputs, action, key = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    best = np.sort(np.argsort(draw, kind="stable")[:limit])
    action = action[best].astype(np.int64)
    if action.min() < 0:
        raise InputError(f"action: {action.min()} is negative; number the actions from 0")
    return _Sample(inputs[best], action, key[best], np.unique(keys))


def _among(keys: Keys, share: float) -> Keys:
    """About this share of the keys, the same ones in any order."""
    return keys[mix(keys) / 2.0**64 < share]


def _width(k: int) -> int:
    return 1 + 2 * k + (k * (k - 1) // 2 if k <= _MAX_PRODUCTS else 0)


def _basis(z: Floats) -> Floats:
    """1, the variables, their squares and (of up to 12 variables) products."""
    z = np.clip(z, -10.0, 10.0)
    parts = [np.ones((len(z), 1)), z, z * z]
    k = z.shape[1]
    if k <= _MAX_PRODUCTS:
        parts += [z[:, i : i + 1] * z[:, i + 1 :] for i in range(k - 1)]
    return np.hstack(parts)


def _fit(inputs: npt.NDArray[Any], action: Ints, n_actions: int, ridge: float) -> Any:
    counts = np.bincount(action, minlength=n_actions)
    overall = (counts + 1.0) / (len(action) + n_actions)
    if inputs.ndim == 1:
        n_states = int(inputs.max()) + 1 if len(inputs) else 1
        joint = np.bincount(inputs * n_actions + action, minlength=n_states * n_actions)
        table = joint.reshape(n_states, n_actions) + overall
        return _Frequencies(table / table.sum(axis=1, keepdims=True), overall)
    return _fit_softmax(inputs, action, n_actions, ridge)


def _fit_softmax(inputs: Floats, action: Ints, n_actions: int, ridge: float) -> _Softmax:
    """Minimise `-sum_t log b(a_t|x_t) + ridge/2 ||W||^2` (intercepts free) by L-BFGS."""
    from scipy.optimize import minimize

    mean = inputs.mean(axis=0)
    spread = inputs.std(axis=0)
    scale = np.where(spread > 0.0, spread, 1.0)
    Z = _basis((inputs - mean) / scale)
    n, p = Z.shape
    penalty = np.full((p, 1), ridge / n)
    penalty[0] = 1e-8  # keeps the intercepts of actions never taken finite
    rows = np.arange(n)

    def loss(flat: Floats) -> tuple[float, Floats]:
        W = flat.reshape(p, n_actions)
        P = softmax(Z @ W)
        value = -np.log(np.maximum(P[rows, action], 1e-300)).mean()
        P[rows, action] -= 1.0
        gradient = Z.T @ P / n + penalty * W
        return float(value + 0.5 * (penalty * W * W).sum()), gradient.ravel()

    found = minimize(
        *(loss, np.zeros(p * n_actions)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-10, "gtol": 1e-6},
    )
    return _Softmax(mean, scale, found.x.reshape(p, n_actions))


def _tempered(chances: Floats, temperature: float) -> Floats:
    return softmax(np.log(np.maximum(chances, 1e-300)) / temperature)


def _temperature(predicted: Floats, action: Ints) -> float:
    """The temperature under which held-out actions are most likely."""
    from scipy.optimize import minimize_scalar

    rows = np.arange(len(action))

    def loss(log: float) -> float:
        taken = _tempered(predicted, float(np.exp(log)))[rows, action]
        return float(-np.log(np.maximum(taken, 1e-300)).mean())

    most = float(np.log(_HOTTEST))
    found = minimize_scalar(loss, bounds=(-most, most), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(found.x)) if found.fun < loss(0.0) else 1.0


def _calibrate(predicted: Floats, action: Ints, floor: float) -> Calibration:
    """Bins of equal width over all actions' predicted probabilities; empty bins are left out."""
    n, A = predicted.shape
    hit = np.zeros((n, A))
    hit[np.arange(n), action] = 1.0
    place = np.minimum((predicted * _BINS).astype(np.int64), _BINS - 1).ravel()
    count = np.bincount(place, minlength=_BINS)
    full = count > 0
    mean = np.bincount(place, predicted.ravel(), _BINS)[full] / count[full]
    observed = np.bincount(place, hit.ravel(), _BINS)[full] / count[full]
    share = np.bincount(action, minlength=A) / n
    loss = -np.log(np.maximum(predicted[np.arange(n), action], floor)).mean()
    marginal = -np.log(share[action]).mean()
    return Calibration(mean, observed, count[full], float(loss), float(marginal))
