"""The ways to open a log: `open_logs` for files and objects, `minari`, and `rollouts` to make one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from o2td.arguments import shown, switch, whole
from o2td.errors import InputError, import_extra
from o2td.sources.coding import is_text
from o2td.sources.columns import Columns
from o2td.sources.logs import LogSource
from o2td.sources.mapping import about_target, as_bandit, find_columns, named_actions
from o2td.sources.parts import Part, PathLike, parts_of
from o2td.sources.policies import action_order
from o2td.sources.ratio import RatioRule
from o2td.sources.schema import drop_unreadable, with_codings
from o2td.sources.values import OwnValues


def open_logs(
    logs: Any,
    columns: Columns | Mapping[str, Any] | PathLike | None = None,
    discount: float | None = None,
    *,
    target: Any = None,
    behavior: Any = None,
    sort: bool = False,
    densities: bool = False,
    actions: Sequence[Any] | None = None,
    value_model: Any = None,
) -> LogSource:
    """Open a log as a stream of transitions; only the headers are read at first.

    Parameters
    ----------
    logs
        A path, folder or glob, or several: parquet, CSV, NDJSON, Arrow, .npz or HDF5 files, or
        ``minari:NAME``. Or a pandas, polars (also lazy) or pyarrow frame or dataset, a dict of
        arrays, or a Minari dataset.
    columns
        Roles and their columns: a mapping, a `Columns`, or the path of a TOML file. Other roles are
        found by their default name or a common synonym.
    discount
        Gamma of every transition that does not terminate. A log without it and without columns for
        episodes, steps or ends is read as one of single decisions (a bandit log).
    target
        The policy to evaluate: a callable from a batch of observations (or states) to (n, A)
        probabilities, an object with `predict_proba`, a PyTorch module, an (S, A) array, or
        "behavior" for the policy that made the log. None means that the log's columns define it.
    behavior
        The policy that made the log, in the same forms, or a `BehaviorModel`. None means the log's
        columns or, without them, a model estimated from the log.
    sort
        Sort the rows by episode and step first, in a temporary file.
    densities
        Whether actions are continuous and the probabilities are densities, which may exceed 1.
    actions
        The log's names of the actions, in the order of the policy's probabilities. None means as in
        the policy's `classes_` or the columns of its probabilities, else in sorted order.
    value_model
        A value function of your own, for doubly robust estimates: a callable from a batch of
        observations (or states) to V (n,) or Q (n, A), an object with `predict`, a PyTorch module, or
        an array by state. Columns can give it instead, see `Columns.v` and `Columns.q`.

    Examples
    --------
    >>> import pandas as pd
    >>> from o2td import sources
    >>> log = pd.DataFrame(
    ...     {"episode": [0, 0, 1], "state": [0, 1, 0], "reward": [0.0, 1.0, 2.0],
    ...      "terminated": [False, True, False], "rho": [1.0, 2.0, 0.5]})
    >>> source = sources.open_logs(log, discount=0.9)
    >>> [chunk.reward.tolist() for chunk in source.chunks()]
    [[0.0, 1.0]]
    >>> source.info.dropped
    {'no final observation': 1}
    """
    chosen = Columns.make(columns)
    parts = parts_of(logs, chosen)
    more = {"actions": actions, "value_model": value_model}
    return opened(parts, chosen, discount, target, behavior, sort, densities, **more)


def opened(
    parts: list[Part],
    chosen: Columns,
    discount: float | None,
    target: Any,
    behavior: Any,
    sort: bool = False,
    densities: bool = False,
    actions: Sequence[Any] | None = None,
    only: Sequence[str] | None = None,
    value_model: Any = None,
) -> LogSource:
    """Open parts; `only` lists the roles that may define the target, None means all found."""
    sort, densities = switch("sort", sort), switch("densities", densities)
    first, name = parts[0].schema(), parts[0].label
    found = find_columns(_unique(first.names, name), chosen, name, parts[0].groups)
    mapped = drop_unreadable(found, first, chosen)
    theirs = None if only is None else {role: mapped.roles[role] for role in only}
    mapped = about_target(mapped, theirs)
    if discount is None:
        mapped = as_bandit(mapped)
    order, action = action_order(target, behavior, actions), mapped.one("action")
    if action is not None and is_text(first.field(action).type):
        mapped, named = named_actions(mapped, first.names, parts[0].groups, chosen)
        mapped = about_target(mapped, theirs)
        order = order or named
        if (
            chosen.action is None
            and not RatioRule(mapped, target, behavior, densities, log=name).discrete
        ):
            del mapped.roles["action"]  # names that nothing asks for
    elif order == list(range(len(order or ()))):
        order = None  # numbered as it should be
    mapped, codings = with_codings(parts, mapped, order)
    for part in parts:
        part.codings = codings
    names = codings[action].values if action in codings else None
    values = OwnValues.of(mapped, value_model)
    ratio = RatioRule(
        mapped, target, behavior, densities, names, name, values, ordered=order is not None
    )
    return LogSource(parts, ratio, discount, sort)


def _unique(names: list[str], where: str) -> list[str]:
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{where}: two columns are called {twice}; rename one")
    return names


def minari(dataset: Any, *, discount: float, target: Any = None, behavior: Any = None) -> LogSource:
    """Open a local Minari dataset, with its episodes in order; nothing is downloaded.

    Parameters
    ----------
    dataset
        A `minari.MinariDataset`, or the id of one that is stored on this machine.
    discount
        Gamma.
    target
        The policy to evaluate: a callable on observations (or states), or an (S, A) array. None
        means the policy that made the dataset.
    behavior
        The policy that made the dataset, in the same form, or a `BehaviorModel`. Minari does not
        record it, so it is estimated if `target` is given and this is None.
    """
    from o2td.sources.formats.minari import Minari

    form = Minari(dataset)
    if not form.discrete and target is not None:
        raise InputError(
            f"{form.label}: actions are {form.actions}; a target policy needs discrete actions"
        )
    chosen = "behavior" if target is None else target
    return opened([Part(form)], Columns(), discount, chosen, behavior)


def rollouts(
    env: Any,
    policy: Any,
    *,
    discount: float,
    episodes: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    target: Any = None,
) -> LogSource:
    """Roll-outs of a behaviour policy, as a source that plays them again on each pass.

    Parameters
    ----------
    env
        A Gymnasium environment, a vector environment, or an id such as "CartPole-v1". Observations
        that are tuples or dicts of numbers become one row each, their parts side by side.
    policy
        The behaviour, a callable from a batch of observations (or states) to (n, A) probabilities,
        or an (S, A) array. With continuous actions: a callable `policy(observations, rng)` that
        returns actions and their log-densities.
    episodes, steps
        How much to play; give one of the two. Sub-environments share it evenly, so that short
        episodes are not preferred; episodes cut by `steps` are truncated.
    seed
        Seed of environments and actions; each pass starts from it again.
    target
        The policy to evaluate, in the same form; with continuous actions a callable
        `target(observations, actions)` that returns log-densities. None means the behaviour itself.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import sources
    >>> even = lambda x: np.full((len(x), 2), 0.5)
    >>> source = sources.rollouts("CartPole-v1", even, discount=0.99, episodes=3)
    >>> source.scan().episodes
    3
    """
    from o2td.sources.formats.gymnasium import Gymnasium, Play

    gymnasium = import_extra("gymnasium", "gymnasium")
    if isinstance(env, str):
        try:
            env = gymnasium.make(env)
        except (gymnasium.error.Error, ImportError, ValueError) as error:
            raise InputError(f"env: Gymnasium cannot make {shown(env)} ({error})") from None
    kinds = (gymnasium.Env, gymnasium.vector.VectorEnv)
    if not isinstance(env, kinds):
        raise InputError(f"env must be an environment of Gymnasium or its id, got {shown(env)}")
    if (episodes is None) == (steps is None):
        raise InputError("rollouts: pass episodes or steps, one of the two")
    name, given = ("steps", steps) if episodes is None else ("episodes", episodes)
    amount, seed = whole(f"rollouts: {name}", given, 1), whole("seed", seed, 0, 2**31 - 1)
    form = Gymnasium(Play(env, policy, amount, steps is not None, seed, target))
    if form.discrete:
        chosen = "behavior" if target is None else target
        return opened([Part(form)], Columns(), discount, chosen, None)
    return opened([Part(form)], Columns(), discount, None, None, densities=True)
