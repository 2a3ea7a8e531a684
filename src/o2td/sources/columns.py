"""The roles of a log's columns, and their usual names.

Names are compared in lower case with ``-``, ``.``, ``/`` and spaces read as ``_``; an exact match
wins over a normalised one. The default name of a role wins; among synonyms exactly one may be
present, otherwise the user has to choose.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from o2td.arguments import some_path
from o2td.errors import InputError

# role -> its names, the default first; a trailing * stands for 0, 1, … (or 1, 2, …)
SYNONYMS: dict[str, tuple[str, ...]] = {
    "episode": (
        *("episode", "episode_id", "episode_index", "ep", "ep_id", "traj", "traj_id"),
        *("trajectory", "trajectory_id", "session", "session_id", "eps_id"),
    ),
    "user": ("user", "user_id", "cluster", "cluster_id"),
    "start": ("start", "is_first", "is_start", "episode_start", "episode_starts", "first"),
    "step": (
        *("step", "t", "timestep", "time_step", "step_index", "step_id", "step_number"),
        *("frame_index",),
    ),
    "time": ("time", "timestamp", "ts", "datetime"),
    "observation": (
        *("obs_*", "observation_*", "o_*", "x_*", "feature_*", "state_*", "observations_*"),
        *("observation_state_*", "context_*", "features_*"),
    ),
    "state": ("state", "s", "state_id", "state_index", "observation", "obs", "observations"),
    "action": (
        *("action", "a", "act", "action_id", "action_index", "actions", "action_*", "a_*"),
        *("act_*", "actions_*"),
    ),
    "reward": ("reward", "r", "rew", "rewards", "next_reward"),
    "terminated": (
        *("terminated", "terminal", "terminals", "is_terminal", "termination", "terminateds"),
        *("terminations",),
    ),
    "truncated": (
        *("truncated", "truncation", "timeout", "timeouts", "time_limit", "is_truncated"),
        *("truncateds", "truncations"),
    ),
    "done": ("done", "dones", "is_done", "is_last", "next_done"),
    "next_observation": (
        *("next_obs_*", "next_observation_*", "next_o_*", "next_x_*", "next_feature_*"),
        *("next_state_*", "new_obs_*", "next_observations_*"),
    ),
    "next_state": (
        *("next_state", "next_s", "s_next", "s_prime", "next_observation", "next_obs", "new_obs"),
        *("next_observations",),
    ),
    "rho": ("rho", "ratio", "importance_ratio", "importance_weight", "is_ratio"),
    "behavior_prob": (
        *("behavior_prob", "behaviour_prob", "propensity", "pscore", "propensity_score"),
        *("logging_prob", "behavior_probability", "behaviour_probability", "action_prob"),
    ),
    "target_prob": (
        *("target_prob", "target_probability", "evaluation_prob", "eval_prob", "pi"),
        *("evaluation_probability",),
    ),
    "behavior_logprob": (
        *("behavior_logprob", "behaviour_logprob", "behavior_log_prob", "behaviour_log_prob"),
        *("logprob", "log_prob", "action_logprob", "action_log_prob", "logging_logprob"),
        *("action_logp", "infos_action_log_probs", "action_log_probs"),
    ),
    "target_logprob": (
        *("target_logprob", "target_log_prob", "evaluation_logprob", "eval_logprob"),
    ),
    "target_probs": ("target_prob_*", "target_probs_*", "evaluation_prob_*", "eval_prob_*", "pi_*"),
    "behavior_probs": (
        *("behavior_prob_*", "behavior_probs_*", "behaviour_prob_*", "behaviour_probs_*"),
        *("logging_prob_*", "propensity_*", "propensities_*", "action_probs_*"),
    ),
    "next_target_probs": (
        *("next_target_prob_*", "next_target_probs_*", "next_evaluation_prob_*"),
        *("next_eval_prob_*", "next_pi_*"),
    ),
    "discount": ("discount", "gamma"),
    # Values of the user's own are used only where they are named.
    "v": (),
    "q": (),
    "next_v": (),
}
LISTS = (
    *("observation", "next_observation", "target_probs", "behavior_probs", "next_target_probs"),
    *("q",),
)
OF_TARGET = ("rho", "target_prob", "target_logprob", "target_probs", "next_target_probs")
FLAGS = ("terminated", "truncated")
_NEVER = ("never", "false")


class Columns(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The columns of a log by role; a role that is None is looked up by its usual names.

    `observation`, `next_observation`, `target_probs`, `behavior_probs`, `next_target_probs` (and
    `action`, where it has several components) are lists of columns, a pattern such as ``"x_*"`` for
    numbered ones, or a column of lists or structs.
    ``terminated=False`` (or ``"never"``) says that no episode of this log ever ends,
    ``truncated=False`` that none is truncated. `discount`, `v`, `q` and `next_v` are used only if they
    are named here.

    Parameters
    ----------
    episode : str
        Name of the trajectory.
    user : str
        Whose episode it is (a user, a device, a site), if episodes of one user are alike: intervals
        then resample users. The column of episodes itself says that each is independent.
    start : str
        A flag on the first row of a trajectory, if trajectories have no names.
    step : str
        Place in the trajectory, counted.
    time : str
        The same as a time.
    observation
        What the policy saw, as numbers.
    state : str
        The same as one integer.
    action : str or list
        What it did.
    reward : str
        What it got for that step.
    terminated : str or bool
        Whether the episode ended.
    truncated : str or bool
        Whether only its record ended.
    done : str
        Either of these, if the log does not distinguish them.
    next_observation
        What it saw afterwards; else the next row's observation.
    next_state : str
        The same as one integer.
    rho : str
        The ratio of probabilities itself.
    behavior_prob : str
        Probability of the action under the behaviour.
    target_prob : str
        Probability of the action under the target.
    behavior_logprob : str
        Logarithm of `behavior_prob`.
    target_logprob : str
        Logarithm of `target_prob`.
    target_probs
        The target's probabilities of all actions.
    behavior_probs
        The behaviour's probabilities of all actions.
    next_target_probs
        The target's in the next state.
    discount : str
        gamma of each row.
    v : str
        The value of what the policy saw, by a model of yours.
    q
        The same for each action.
    next_v : str
        The value of what it saw afterwards; else the next row's.

    Examples
    --------
    >>> Columns(reward="profit", observation=["price", "charge"]).reward
    'profit'
    """

    episode: str | None = None
    user: str | None = None
    start: str | None = None
    step: str | None = None
    time: str | None = None
    observation: str | list[str] | None = None
    state: str | None = None
    action: str | list[str] | None = None
    reward: str | None = None
    terminated: str | bool | None = None
    truncated: str | bool | None = None
    done: str | None = None
    next_observation: str | list[str] | None = None
    next_state: str | None = None
    rho: str | None = None
    behavior_prob: str | None = None
    target_prob: str | None = None
    behavior_logprob: str | None = None
    target_logprob: str | None = None
    target_probs: str | list[str] | None = None
    behavior_probs: str | list[str] | None = None
    next_target_probs: str | list[str] | None = None
    discount: str | None = None
    v: str | None = None
    q: str | list[str] | None = None
    next_v: str | None = None

    @classmethod
    def make(cls, value: Columns | Mapping[str, Any] | str | os.PathLike[str] | None) -> Columns:
        """From a struct, a mapping or the path of a TOML file; unknown keys are refused.

        >>> Columns.make({"rewrad": "x"})
        Traceback (most recent call last):
        o2td.errors.InputError: columns: Object contains unknown field `rewrad`; ...
        """
        if value is None:
            return cls()
        if isinstance(value, Columns):
            return value
        origin = "columns"
        try:
            if isinstance(value, (str, os.PathLike)):
                origin = str(value)
                value = msgspec.toml.decode(some_path("columns", value).read_bytes())
            return msgspec.convert(value, cls)
        except OSError as error:
            raise InputError(f"{origin}: cannot be read ({error.strerror})") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            roles = ", ".join(SYNONYMS)
            raise InputError(f"{origin}: {error}; the roles are {roles}") from None


def says_never(value: Any) -> bool:
    """Whether a flag is declared to be false in every row.

    >>> [says_never(value) for value in (False, "false", "Never", "ended", None)]
    [True, True, True, False, False]
    """
    return value is False or (isinstance(value, str) and value.strip().lower() in _NEVER)
