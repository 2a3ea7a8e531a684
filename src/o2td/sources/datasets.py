"""Minari datasets on this machine as a source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from o2td.errors import InputError, import_extra
from o2td.sources.episodes import Encoder, Episode, EpisodeSource, mapping
from o2td.sources.ratio import Ratio

__all__ = ["MinariSource", "minari"]


def minari(
    dataset: Any, *, discount: float, target: Any = None, behavior: Any = None
) -> MinariSource:
    """A local Minari dataset, its episodes in their order; nothing is downloaded.

    Parameters
    ----------
    dataset
        A `minari.MinariDataset`, or the id of one that is stored on this machine.
    discount
        Gamma.
    target
        The policy to evaluate: a callable on observations (or states), or an (S, A) array. None:
        the policy that made the dataset.
    behavior
        The policy that made the dataset, in the same form, or a `BehaviorModel`. Minari does not
        record it, so where `target` is given and this is None it is estimated.
    """
    package = import_extra("minari", "minari")
    if isinstance(dataset, str):
        try:
            dataset = package.load_dataset(dataset, download=False)
        except (FileNotFoundError, ValueError) as error:
            raise InputError(f"{dataset}: no such dataset on this machine ({error})") from None
    return MinariSource(dataset, discount, target, behavior)


class MinariSource(EpisodeSource):
    """The episodes of a Minari dataset; made by `minari`."""

    def __init__(self, dataset: Any, discount: float, target: Any, behavior: Any) -> None:
        name = str(dataset.spec.dataset_id)
        self._dataset = dataset
        self._encode = Encoder(dataset.observation_space, name)
        space = dataset.action_space
        self._first = int(space.start) if type(space).__name__ == "Discrete" else None
        if self._first is None and target is not None:
            raise InputError(f"{name}: actions are {space}; a target policy needs discrete actions")
        chosen = "behavior" if target is None else target
        super().__init__(name, Ratio(mapping(self._encode), chosen, behavior), discount)

    def _episodes(self) -> Iterator[Episode]:
        for episode in self._dataset.iterate_episodes():
            inputs = self._encode(episode.observations)
            count = len(episode.rewards)
            if len(inputs) != count + 1:
                raise InputError(
                    f"{self._name}: episode {episode.id} has {len(inputs)} observations for {count}"
                    " steps; it needs one more than steps"
                )
            if not np.isfinite(inputs).all() or not np.isfinite(episode.rewards).all():
                raise InputError(
                    f"{self._name}: episode {episode.id} holds a value that is not finite"
                )
            action: Any = np.asarray(episode.actions, dtype=np.float64).reshape(count, -1)
            if self._first is not None:
                action = action[:, 0].astype(np.int64) - self._first
            yield Episode(
                *(inputs[:-1], inputs[1:], action),
                np.asarray(episode.rewards, dtype=np.float64),
                np.asarray(episode.terminations, dtype=np.bool_),
                np.asarray(episode.truncations, dtype=np.bool_),
            )
