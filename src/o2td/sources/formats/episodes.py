"""What formats share that produce whole episodes: roll-outs of environments, sets of episodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from o2td.errors import InputError
from o2td.sources.arrow import pa
from o2td.sources.format import Format

Episode = dict[str, npt.NDArray[Any]]  # the columns of its rows; matrices for obs and action


class EpisodeFormat(Format):
    """Episodes of a Gymnasium space of observations and one of actions, one after the other."""

    def __init__(self, place: Any, observations: Any, actions: Any) -> None:
        super().__init__(place)
        self.encode = Encoder(observations, self.label)
        self.discrete = type(actions).__name__ == "Discrete"
        self._parts = int(np.prod(actions.shape)) if actions.shape is not None else 1

    @abstractmethod
    def episodes(self) -> Iterator[Episode]:
        """Each episode's rows: the encoder's columns, action, reward, terminated, truncated."""

    def more(self) -> tuple[str, ...]:
        """Further columns of numbers."""
        return ()

    def schema(self) -> Any:
        """The default names of the columns."""
        fields = {"episode": pa.int64(), "step": pa.int64()}
        if self.encode.discrete:
            fields |= {"state": pa.int64(), "next_state": pa.int64()}
        else:
            names = [
                f"{name}_{j}" for name in ("obs", "next_obs") for j in range(self.encode.width)
            ]
            fields |= dict.fromkeys(names, pa.float64())
        if self.discrete:
            fields["action"] = pa.int64()
        else:
            fields |= {f"action_{j}": pa.float64() for j in range(self._parts)}
        fields |= {"reward": pa.float64(), "terminated": pa.bool_(), "truncated": pa.bool_()}
        return pa.schema(list((fields | dict.fromkeys(self.more(), pa.float64())).items()))

    def batches(self, columns: Mapping[str, str], rows: int) -> Iterator[Any]:
        """Whole episodes, in batches of at least `rows` rows if there are that many."""
        waiting: list[Episode] = []
        held = number = 0
        for episode in self.episodes():
            count = len(episode["reward"])
            if not count:
                continue
            labels = {"episode": np.full(count, number), "step": np.arange(count)}
            waiting.append(labels | episode)
            number += 1
            held += count
            if held >= rows:
                yield self._batch(waiting, columns)
                held, waiting = 0, []
        if waiting:
            yield self._batch(waiting, columns)

    def _batch(self, episodes: list[Episode], columns: Mapping[str, str]) -> Any:
        flat: Episode = {}
        for name in episodes[0]:
            values = np.concatenate([episode[name] for episode in episodes])
            if values.ndim == 1:
                flat[name] = values
            else:
                flat |= {f"{name}_{j}": column for j, column in enumerate(values.T)}
        schema = pa.schema([self.schema().field(name) for name in columns])
        arrays = [pa.array(flat[name], type=schema.field(name).type) for name in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


class Encoder:
    """Observations of a Gymnasium space as states or rows of float64.

    The parts of a Tuple or Dict stand side by side, in the order of its space.
    """

    def __init__(self, space: Any, name: str) -> None:
        self.discrete = type(space).__name__ == "Discrete"
        self.first = int(space.start) if self.discrete else 0
        self._parts = list(_parts(space, (), name))
        self.width = sum(width for _, width in self._parts)

    def __call__(self, given: Any) -> npt.NDArray[Any]:
        """An observation or a batch of them, always copied: environments may reuse their buffers."""
        if self.discrete:
            return np.array(given, dtype=np.int64).reshape(-1) - self.first
        return np.concatenate(
            [_part(given, path).reshape(-1, width) for path, width in self._parts], axis=1
        )

    def columns(self, inputs: npt.NDArray[Any], after: npt.NDArray[Any]) -> Episode:
        """The inputs and the next inputs, by column name."""
        name = "state" if self.discrete else "obs"
        return {name: inputs, f"next_{name}": after}


def _parts(space: Any, path: tuple[Any, ...], name: str) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Where each array of numbers lies in an observation, and how many numbers it has."""
    kind = type(space).__name__
    if kind in ("Tuple", "Dict"):
        inner = space.spaces
        for key in inner if kind == "Dict" else range(len(inner)):
            yield from _parts(inner[key], (*path, key), name)
    elif kind in ("Discrete", "Box", "MultiDiscrete", "MultiBinary"):
        yield path, int(np.prod(space.shape))
    else:
        raise InputError(
            f"{name}: observations are {kind}; wrap the environment in"
            " gymnasium.wrappers.TransformObservation, with an array of numbers as the result"
        )


def _part(given: Any, path: tuple[Any, ...]) -> npt.NDArray[Any]:
    for key in path:
        given = given[key]
    return np.asarray(given, dtype=np.float64)
