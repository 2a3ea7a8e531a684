"""Sources whose episodes are made whole: roll-outs of environments and datasets of episodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.errors import InputError
from o2td.sources.blocks import Block, Floats, Where, mix
from o2td.sources.columns import Mapped
from o2td.sources.partition import cut
from o2td.sources.ratio import Ratio
from o2td.sources.source import Source


@dataclass
class Episode:
    """The rows of one episode; inputs are (T, k) observations or (T,) states."""

    inputs: npt.NDArray[Any]
    next_inputs: npt.NDArray[Any]
    action: npt.NDArray[Any]
    reward: Floats
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    behavior: Floats | None = None  # probability, or log-density of continuous actions
    target: Floats | None = None  # log-density of continuous actions


class EpisodeSource(Source):
    """A source that makes its episodes one after the other; a subclass implements `_episodes`."""

    def __init__(self, name: str, ratio: Ratio, discount: float | None) -> None:
        super().__init__(ratio, discount)
        self._name = name

    def _episodes(self) -> Iterator[Episode]:
        raise NotImplementedError

    def _files(self) -> tuple[str, ...]:
        return (self._name,)

    def _blocks(self, rows: int) -> Iterator[Block]:
        """Blocks of at most `rows` rows, of whole episodes where they fit."""
        waiting: list[Episode] = []
        held = first = number = 0
        for episode in self._episodes():
            if not len(episode.reward):
                continue
            waiting.append(episode)
            held += len(episode.reward)
            if held >= rows:
                yield from self._cut(waiting, first, number, rows)
                number += len(waiting)
                first, held, waiting = first + held, 0, []
        if waiting:
            yield from self._cut(waiting, first, number, rows)
        elif not number:
            raise InputError(f"{self._name}: has no rows")

    def _cut(self, episodes: list[Episode], first: int, number: int, rows: int) -> Iterator[Block]:
        block = self._block(episodes, first, number)
        for low in range(0, len(block), rows):
            yield cut(block, low, min(low + rows, len(block)))

    def _block(self, episodes: list[Episode], first: int, number: int) -> Block:
        lengths = [len(episode.reward) for episode in episodes]
        new = np.zeros(sum(lengths), dtype=np.bool_)
        new[np.cumsum([0, *lengths[:-1]])] = True

        def joined(name: str) -> Any:
            return np.concatenate([getattr(episode, name) for episode in episodes])

        block = Block(
            where=Where([self._name], 0, first),
            new=new,
            key=mix(np.arange(number, number + len(episodes))),
            reward=joined("reward"),
            terminated=joined("terminated"),
            truncated=joined("truncated"),
            action=joined("action"),
        )
        inputs, after = joined("inputs"), joined("next_inputs")
        if inputs.ndim == 1:
            block.state, block.next_state = inputs, after
        else:
            block.observation = np.concatenate([np.zeros((1, inputs.shape[1])), inputs])
            block.next_observation = after
        if episodes[0].behavior is not None:
            log = self.mapped.one("behavior_logprob") is not None
            setattr(block, "behavior_logprob" if log else "behavior_prob", joined("behavior"))
        if episodes[0].target is not None:
            block.target_logprob = joined("target")
        return block


class Encoder:
    """Observations of a Gymnasium space as states or rows of float64."""

    def __init__(self, space: Any, name: str) -> None:
        kind = type(space).__name__
        self.discrete = kind == "Discrete"
        if kind not in ("Discrete", "Box", "MultiDiscrete", "MultiBinary"):
            raise InputError(
                f"{name}: observations are {kind}; wrap the environment in"
                " gymnasium.wrappers.FlattenObservation"
            )
        self.first = int(space.start) if self.discrete else 0
        self.width = 1 if self.discrete else int(np.prod(space.shape))

    def __call__(self, batch: Any) -> npt.NDArray[Any]:
        """A batch of observations, always copied: environments may write over theirs."""
        if self.discrete:
            return np.array(batch, dtype=np.int64).reshape(-1) - self.first
        return np.array(batch, dtype=np.float64).reshape(-1, self.width)

    def roles(self) -> dict[str, str | tuple[str, ...]]:
        """The mapping that a log of such observations would have."""
        if self.discrete:
            return {"state": "state", "next_state": "next_state"}
        return {
            "observation": tuple(f"obs_{j}" for j in range(self.width)),
            "next_observation": tuple(f"next_obs_{j}" for j in range(self.width)),
        }


def mapping(encoder: Encoder, **more: str) -> Mapped:
    """The default column names of the rows that a source makes."""
    flags: dict[str, str | tuple[str, ...]] = {
        name: name for name in ("action", "reward", "terminated", "truncated")
    }
    return Mapped({"episode": "episode", "step": "step", **encoder.roles(), **flags, **more})
