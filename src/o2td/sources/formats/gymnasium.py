"""Roll-outs of Gymnasium environments, single or vector, played again at each reading.

A vector environment resets by itself: in the step after an episode's end (NEXT_STEP, where the row
of that step is the reset and is left out) or in the same step (SAME_STEP, where the final
observation is in the info). Either way a row keeps its true final observation, and sub-environment
i with seed s gives what a single environment with seed s + i gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from o2td.errors import InputError, import_extra
from o2td.sources.formats.episodes import Episode, EpisodeFormat
from o2td.sources.policies import probabilities_of


@dataclass(frozen=True)
class Play:
    """What to play: `amount` episodes, or steps with `by_steps`, by which policy."""

    env: Any
    policy: Any
    amount: int
    by_steps: bool
    seed: int
    target: Any


class Gymnasium(EpisodeFormat):
    """Episodes of an environment under a policy."""

    name = "gymnasium"
    threads = False  # an environment may belong to the thread that made it

    @classmethod
    def takes(cls, value: Any) -> bool:
        """What `rollouts` makes."""
        return isinstance(value, Play)

    def __init__(self, place: Play) -> None:
        vector = import_extra("gymnasium.vector", "gymnasium")
        env = place.env
        self._vector = isinstance(env, vector.VectorEnv)
        self._env, self._policy, self._seed = env, place.policy, place.seed
        self._amount, self._by_steps, self._target = place.amount, place.by_steps, place.target
        self._space = env.single_action_space if self._vector else env.action_space
        space = env.single_observation_space if self._vector else env.observation_space
        super().__init__(place, space, self._space)
        if not self.discrete and type(self._space).__name__ != "Box":
            raise InputError(
                f"{self.label}: actions are {self._space}; only Discrete and Box are known"
            )

    @property
    def label(self) -> str:
        """The environment's id."""
        spec = getattr(self._env, "spec", None)
        return str(getattr(spec, "id", None) or type(self._env).__name__)

    def more(self) -> tuple[str, ...]:
        """Probabilities of the actions, or two log-densities of continuous ones."""
        return ("behavior_prob",) if self.discrete else ("behavior_logprob", "target_logprob")

    # -- acting ------------------------------------------------------------------------------------

    def _act(self, inputs: Any, live: Any, rngs: list[Any]) -> tuple[Any, Any]:
        """Actions of the live rows (others act 0), and the columns of `more`."""
        if self.discrete:
            chance = probabilities_of(self._policy, inputs, "policy")
            if chance.shape[1] != int(self._space.n):
                raise InputError(
                    f"policy: {chance.shape[1]} probabilities, the environment has"
                    f" {int(self._space.n)} actions"
                )
            draws = np.array(
                [rng.random() if on else 0.0 for rng, on in zip(rngs, live, strict=True)]
            )
            edges = np.cumsum(chance, axis=1)
            # Draws are at most 1 - 2**-53, so none rounds onto the last edge.
            action = (draws[:, None] * edges[:, -1:] >= edges).sum(axis=1)
            return action, chance[np.arange(len(action)), action][:, None]
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
        return action, np.column_stack([behavior, target])

    def _sent(self, action: Any) -> Any:
        if self.discrete:
            return action + int(self._space.start)
        return action.astype(self._space.dtype)

    # -- playing -----------------------------------------------------------------------------------

    def episodes(self) -> Iterator[Episode]:
        """Whole episodes, in the order in which they end."""
        return self._play_vector() if self._vector else self._play_single()

    def _play_single(self) -> Iterator[Episode]:
        rngs = [_actions_rng(self._seed)]
        observation, _ = self._env.reset(seed=self._seed)
        book = _Book(self._amount, self._by_steps, self)
        while book.left > 0:
            inputs = self.encode(observation)
            action, chances = self._act(inputs, [True], rngs)
            observation, reward, terminated, truncated, _ = self._env.step(self._sent(action)[0])
            row = (inputs[0], self.encode(observation)[0], action[0], float(reward))
            episode = book.add(row, bool(terminated), bool(truncated), chances[0])
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
        books = [_Book(amount, self._by_steps, self) for amount in share]
        observation, _ = env.reset(seed=seeds)
        resetting = np.zeros(count, dtype=np.bool_)
        while any(book.left > 0 for book in books):
            inputs = self.encode(observation)
            live = [book.left > 0 and not wait for book, wait in zip(books, resetting, strict=True)]
            action, chances = self._act(inputs, live, rngs)
            observation, reward, terminated, truncated, info = env.step(self._sent(action))
            ended = np.asarray(terminated) | np.asarray(truncated)
            after = self.encode(observation)
            if mode == "SAME_STEP" and ended.any():
                for i in np.flatnonzero(ended):
                    after[i] = self.encode(info["final_obs"][i])[0]
            for i in np.flatnonzero(live):
                row = (inputs[i], after[i], action[i], float(reward[i]))
                episode = books[i].add(row, bool(terminated[i]), bool(truncated[i]), chances[i])
                if episode is not None:
                    yield episode
            if mode == "NEXT_STEP":
                resetting = ended & ~resetting
            elif mode == "DISABLED" and ended.any():
                observation, _ = env.reset(options={"reset_mask": ended})


class _Book:
    """The rows of the current episode, and how much is left to play."""

    def __init__(self, amount: int, by_steps: bool, of: Gymnasium) -> None:
        self.left, self.by_steps, self._of = amount, by_steps, of
        self._rows: list[tuple[Any, ...]] = []

    def add(
        self, row: tuple[Any, ...], terminated: bool, truncated: bool, chances: Any
    ) -> Episode | None:
        """Add a row; return the episode if it ends here."""
        if self.by_steps:
            self.left -= 1
            truncated = truncated or (self.left == 0 and not terminated)
        self._rows.append((*row, terminated, truncated, *chances))
        if not (terminated or truncated):
            return None
        if not self.by_steps:
            self.left -= 1
        columns = [np.array(column) for column in zip(*self._rows, strict=True)]
        self._rows = []
        inputs, after, action, reward, ends, cuts, *more = columns
        episode = self._of.encode.columns(inputs, after)
        episode["action"] = action if action.ndim == 1 else action.reshape(len(action), -1)
        episode |= {"reward": reward, "terminated": ends, "truncated": cuts}
        return episode | dict(zip(self._of.more(), more, strict=True))


def _actions_rng(seed: int) -> np.random.Generator:
    """The random stream for actions, separate from the environment's own."""
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
