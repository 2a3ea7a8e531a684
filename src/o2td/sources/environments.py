"""Roll-outs of Gymnasium environments, single or vector, as a source.

A vector environment resets by itself: in the step after an episode's end (NEXT_STEP, where the row
of that step is the reset and is left out) or in the same step (SAME_STEP, where the final
observation is in the info). Either way a row keeps its true final observation, and sub-environment
i with seed s gives what a single environment with seed s + i gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from o2td.errors import InputError, import_extra
from o2td.sources.columns import Mapped
from o2td.sources.episodes import Encoder, Episode, EpisodeSource, mapping
from o2td.sources.ratio import Ratio, evaluate

__all__ = ["RolloutSource", "rollouts"]


def rollouts(
    env: Any,
    policy: Any,
    *,
    discount: float,
    episodes: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    target: Any = None,
) -> RolloutSource:
    """Roll-outs of a behaviour policy, as a source that plays them anew at each pass.

    Parameters
    ----------
    env
        A Gymnasium environment, a vector environment, or an id such as "CartPole-v1".
    policy
        The behaviour, a callable from a batch of observations (or states) to (n, A) probabilities,
        or an (S, A) array. With continuous actions: a callable `policy(observations, rng)` that
        returns actions and their log-densities.
    episodes, steps
        How much to play, one of the two. Sub-environments share it evenly, so that short episodes
        are not preferred; episodes that `steps` cuts are truncated.
    seed
        Of environments and actions; each pass starts from it again.
    target
        The policy to evaluate, in the same form; with continuous actions a callable
        `target(observations, actions)` that returns log-densities. None: the behaviour itself.

    Examples
    --------
    >>> import numpy as np
    >>> from o2td import sources
    >>> even = lambda x: np.full((len(x), 2), 0.5)
    >>> source = sources.rollouts("CartPole-v1", even, discount=0.99, episodes=3)
    >>> source.scan().episodes
    3
    """
    gymnasium = import_extra("gymnasium", "gymnasium")
    if isinstance(env, str):
        env = gymnasium.make(env)
    if (episodes is None) == (steps is None):
        raise InputError("rollouts: pass episodes or steps, one of the two")
    amount = int(episodes if episodes is not None else steps or 0)
    if amount < 1:
        raise InputError(f"rollouts: {amount} episodes or steps; pass at least 1")
    return RolloutSource(env, policy, discount, amount, steps is not None, seed, target)


class RolloutSource(EpisodeSource):
    """Episodes of an environment under a policy; made by `rollouts`."""

    def __init__(
        self,
        env: Any,
        policy: Any,
        discount: float,
        amount: int,
        by_steps: bool,
        seed: int,
        target: Any,
    ) -> None:
        vector = import_extra("gymnasium.vector", "gymnasium")
        self._vector = isinstance(env, vector.VectorEnv)
        self._env, self._policy, self._seed = env, policy, seed
        self._amount, self._by_steps = amount, by_steps
        space = env.single_observation_space if self._vector else env.observation_space
        self._space = env.single_action_space if self._vector else env.action_space
        name = str(getattr(getattr(env, "spec", None), "id", None) or type(env).__name__)
        self._encode = Encoder(space, name)
        self._discrete = type(self._space).__name__ == "Discrete"
        self._target = target
        if not self._discrete and type(self._space).__name__ != "Box":
            raise InputError(f"{name}: actions are {self._space}; only Discrete and Box are known")
        super().__init__(name, Ratio(*self._ratio_arguments()), discount)

    def _ratio_arguments(self) -> tuple[Mapped, Any, Any, bool]:
        if self._discrete:
            mapped = mapping(self._encode, behavior_prob="behavior_prob")
            return mapped, "behavior" if self._target is None else self._target, None, False
        mapped = mapping(
            self._encode, behavior_logprob="behavior_logprob", target_logprob="target_logprob"
        )
        return mapped, None, None, True

    # -- acting ------------------------------------------------------------------------------------

    def _act(self, inputs: Any, live: Any, rngs: list[Any]) -> tuple[Any, Any, Any]:
        """Actions of the live rows (others act 0), and their log- or plain probabilities."""
        if self._discrete:
            chance = evaluate(self._policy, inputs, "policy")
            if chance.shape[1] != int(self._space.n):
                raise InputError(
                    f"policy: {chance.shape[1]} probabilities, the environment has"
                    f" {int(self._space.n)} actions"
                )
            draws = np.array(
                [rng.random() if on else 0.0 for rng, on in zip(rngs, live, strict=True)]
            )
            edges = np.cumsum(chance, axis=1)
            action = (draws[:, None] * edges[:, -1:] >= edges).sum(axis=1)
            # A draw that rounds onto the last edge belongs to the last action that can be taken.
            action = np.minimum(
                action, chance.shape[1] - 1 - np.argmax(chance[:, ::-1] > 0, axis=1)
            )
            return action, chance[np.arange(len(action)), action], None
        shape = self._space.shape
        action = np.zeros((len(inputs), *shape))
        behavior = np.zeros(len(inputs))
        for i in np.flatnonzero(live):
            one, log = self._policy(inputs[i : i + 1], rngs[i])
            action[i], behavior[i] = np.asarray(one).reshape(shape), np.asarray(log).reshape(())
        flat = action.reshape(len(action), -1)
        target = behavior
        if self._target is not None:
            target = np.asarray(self._target(inputs, flat), dtype=np.float64).reshape(-1)
        return action, behavior, target

    def _sent(self, action: Any) -> Any:
        if self._discrete:
            return action + int(self._space.start)
        return action.astype(self._space.dtype)

    # -- playing -----------------------------------------------------------------------------------

    def _episodes(self) -> Iterator[Episode]:
        return self._play_vector() if self._vector else self._play_single()

    def _play_single(self) -> Iterator[Episode]:
        rngs = [_actions_rng(self._seed)]
        observation, _ = self._env.reset(seed=self._seed)
        book = _Book(self._amount, self._by_steps)
        while book.left > 0:
            inputs = self._encode([observation])
            action, behavior, target = self._act(inputs, [True], rngs)
            observation, reward, terminated, truncated, _ = self._env.step(self._sent(action)[0])
            row = (inputs[0], self._encode([observation])[0], action[0], float(reward))
            chances = (behavior[0], None if target is None else target[0])
            episode = book.add(row, bool(terminated), bool(truncated), chances)
            if episode is not None:
                yield episode
                if book.left > 0:
                    observation, _ = self._env.reset()

    def _play_vector(self) -> Iterator[Episode]:
        count, env = self._env.num_envs, self._env
        mode = _mode(env)
        seeds = [self._seed + i for i in range(count)]
        rngs = [_actions_rng(seed) for seed in seeds]
        share = [self._amount // count + (i < self._amount % count) for i in range(count)]
        books = [_Book(amount, self._by_steps) for amount in share]
        observation, _ = env.reset(seed=seeds)
        resetting = np.zeros(count, dtype=np.bool_)
        while any(book.left > 0 for book in books):
            inputs = self._encode(observation)
            live = [book.left > 0 and not wait for book, wait in zip(books, resetting, strict=True)]
            action, behavior, target = self._act(inputs, live, rngs)
            observation, reward, terminated, truncated, info = env.step(self._sent(action))
            ended = np.asarray(terminated) | np.asarray(truncated)
            after = self._encode(observation)
            if mode == "SAME_STEP" and ended.any():
                for i in np.flatnonzero(ended):
                    after[i] = self._encode([info["final_obs"][i]])[0]
            for i in np.flatnonzero(live):
                row = (inputs[i], after[i], action[i], float(reward[i]))
                chances = (behavior[i], None if target is None else target[i])
                episode = books[i].add(row, bool(terminated[i]), bool(truncated[i]), chances)
                if episode is not None:
                    yield episode
            if mode == "NEXT_STEP":
                resetting = ended & ~resetting
            elif mode == "DISABLED" and ended.any():
                observation, _ = env.reset(options={"reset_mask": ended})


class _Book:
    """The rows of the episode under way, and how much is left to play."""

    def __init__(self, amount: int, by_steps: bool) -> None:
        self.left, self.by_steps = amount, by_steps
        self._rows: list[tuple[Any, ...]] = []

    def add(
        self, row: tuple[Any, ...], terminated: bool, truncated: bool, chances: tuple[Any, Any]
    ) -> Episode | None:
        """Note a row; return the episode if it ends here."""
        if self.by_steps:
            self.left -= 1
            truncated = truncated or (self.left == 0 and not terminated)
        self._rows.append((*row, terminated, truncated, *chances))
        if not (terminated or truncated):
            return None
        if not self.by_steps:
            self.left -= 1
        inputs, after, action, reward, ends, cuts, behavior, target = (
            np.array(column) for column in zip(*self._rows, strict=True)
        )
        known = self._rows[0][-1] is not None
        self._rows = []
        action = action if action.ndim == 1 else action.reshape(len(action), -1)
        densities = target if known else None
        return Episode(inputs, after, action, reward, ends, cuts, behavior, densities)


def _actions_rng(seed: int) -> np.random.Generator:
    """The stream that draws actions, apart from the environment's own."""
    return np.random.default_rng([seed, 1])


def _mode(env: Any) -> str:
    mode = env.metadata.get("autoreset_mode")
    name = getattr(mode, "name", None)
    if name not in ("NEXT_STEP", "SAME_STEP", "DISABLED"):
        raise InputError(
            f"{type(env).__name__}: its metadata does not say how it resets; set"
            ' metadata["autoreset_mode"] to NEXT_STEP, SAME_STEP or DISABLED'
        )
    return str(name)
