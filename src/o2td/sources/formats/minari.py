"""Minari datasets on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from o2td.arguments import instance
from o2td.errors import InputError, import_extra
from o2td.sources.formats.episodes import Episode, EpisodeFormat


class Minari(EpisodeFormat):
    """A Minari dataset, the id of one on this machine, or its folder; nothing is downloaded."""

    name = "minari"
    scheme = "minari"

    @classmethod
    def takes(cls, value: Any) -> bool:
        """Recognise it by the type's name."""
        return type(value).__name__ == "MinariDataset"

    def __init__(self, place: Any) -> None:
        package = import_extra("minari", "minari")
        if isinstance(place, str):
            try:
                if Path(place).is_dir():
                    place = package.MinariDataset(Path(place) / "data")
                else:
                    place = package.load_dataset(place, download=False)
            except (OSError, ValueError) as error:
                raise InputError(f"{place}: no such dataset on this machine ({error})") from None
        kind = getattr(package, "MinariDataset", object)
        instance("dataset", place, kind, "a dataset of Minari, its id or its folder")
        super().__init__(place, place.observation_space, place.action_space)
        self.actions = place.action_space

    @property
    def label(self) -> str:
        """The dataset's id."""
        return str(self.place.spec.dataset_id)

    def episodes(self) -> Iterator[Episode]:
        """The episodes in their order."""
        for episode in self.place.iterate_episodes():
            inputs = self.encode(episode.observations)
            count = len(episode.rewards)
            if len(inputs) != count + 1:
                raise InputError(
                    f"{self.label}: episode {episode.id} has {len(inputs)} observations for {count}"
                    " steps; it needs one more than steps"
                )
            action: Any = np.asarray(episode.actions, dtype=np.float64).reshape(count, -1)
            if self.discrete:
                action = action[:, 0].astype(np.int64) - int(self.actions.start)
            yield self.encode.columns(inputs[:-1], inputs[1:]) | {
                "action": action,
                "reward": np.asarray(episode.rewards, dtype=np.float64),
                "terminated": np.asarray(episode.terminations, dtype=np.bool_),
                "truncated": np.asarray(episode.truncations, dtype=np.bool_),
            }
