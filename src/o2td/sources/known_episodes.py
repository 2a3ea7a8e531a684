"""Episodes read so far, in little memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class KnownEpisodes:
    """The episodes read so far, to detect one that comes back.

    Runs of consecutive numbers are kept by their ends, however many episodes they hold; hashes of
    names take 8 bytes each.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Any, Any]] = []  # sorted first and last ones

    def add(self, names: npt.NDArray[Any]) -> int | None:
        """Add numbers or hashes; return the position of the first that was already known."""
        order = np.argsort(names, kind="stable")
        fresh = names[order]
        bad = np.zeros(len(names), dtype=np.bool_)
        bad[order[1:]] = fresh[1:] == fresh[:-1]
        for first, last in self._runs:
            place = np.maximum(np.searchsorted(first, names, side="right") - 1, 0)
            bad |= (first[place] <= names) & (names <= last[place])
        if bad.any():
            return int(np.argmax(bad))
        if len(fresh):
            self._runs.append(_joined(fresh, fresh))
        # Arrays of similar size are merged, so that there are only logarithmically many.
        while len(self._runs) > 1 and len(self._runs[-2][0]) <= 2 * len(self._runs[-1][0]):
            one, two = self._runs.pop(), self._runs.pop()
            single = one[0] is one[1] and two[0] is two[1]
            # Runs do not overlap, so firsts and lasts can be sorted separately.
            first = np.sort(np.concatenate([one[0], two[0]]))
            last = first if single else np.sort(np.concatenate([one[1], two[1]]))
            self._runs.append(_joined(first, last))
        return None


def _joined(first: npt.NDArray[Any], last: npt.NDArray[Any]) -> tuple[Any, Any]:
    """Join runs that follow each other; for single numbers both arguments are one array."""
    apart = first[1:] != last[:-1] + first.dtype.type(1)
    if apart.all():
        return first, last
    return first[np.append(True, apart)], last[np.append(apart, True)]
