"""Which settings a picture or a table shows: the best of each method, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from o2td.errors import LateModule

if TYPE_CHECKING:
    import polars as pl

polars = LateModule("polars", "experiments")

CROWDED = 8  # lines that one panel can show


def shares(count: int) -> Iterator[tuple[int, int]]:
    """Ranges of about equal length, each at most as long as a panel can show.

    >>> list(shares(13))
    [(0, 7), (7, 13)]
    """
    pictures = -(-count // CROWDED)
    size = -(-count // pictures)
    return ((first, min(first + size, count)) for first in range(0, count, size))


def several(table: pl.DataFrame) -> bool:
    """Whether a method of a case was run with more than one setting."""
    keys = ["domain", "scheme", "algorithm"]
    count = table.group_by(keys).agg(polars.col("parameters").n_unique())
    return bool((count["parameters"] > 1).any())


def ends(table: pl.DataFrame) -> pl.DataFrame:
    """The first metric at the last step of every setting."""
    first = table.filter(metric=table["metric"][0]).sort("step", maintain_order=True)
    keys = ["domain", "scheme", "algorithm", "parameters"]
    last: pl.DataFrame = first.group_by(keys, maintain_order=True).last()
    return last


def best(table: pl.DataFrame) -> pl.DataFrame:
    """Every method at the setting with the fewest diverged runs, then the least last error."""
    keys = ["domain", "scheme", "algorithm"]
    ranked = ends(table).sort("diverged_share", "mean", maintain_order=True)
    best = ranked.group_by(keys, maintain_order=True).first().select(*keys, "parameters")
    kept: pl.DataFrame = table.join(best, on=[*keys, "parameters"], how="semi")
    return kept


def ranked(table: pl.DataFrame) -> pl.DataFrame:
    """Sorted by final error, the least first."""
    order = ends(table).sort("diverged_share", "mean", maintain_order=True)
    place = {name: k for k, name in enumerate(order["algorithm"].to_list())}
    ranks = polars.col("algorithm").replace_strict(place, return_dtype=polars.Int64)
    ranked: pl.DataFrame = table.sort(ranks, maintain_order=True)
    return ranked


def without(table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The rows of all methods except these."""
    rest: pl.DataFrame = table.filter(~polars.col("algorithm").is_in(list(names)))
    return rest
