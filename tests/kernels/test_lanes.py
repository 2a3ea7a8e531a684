"""Blocks of rows end where records are taken."""

from __future__ import annotations

import pytest

from o2td.kernels.lanes import CACHED_ROWS, block_end


@pytest.mark.parametrize("every", [1, 7, CACHED_ROWS, 100, 1000])
@pytest.mark.parametrize("first", [0, 3, 64])
def test_blocks_of_rows_end_at_records(every, first):
    n, ends, low = 3 * CACHED_ROWS + 5, [], 0
    while low < n:
        high = block_end(low, n, first, every)
        assert low < high <= low + CACHED_ROWS
        ends.append(high)
        low = high
    records = {t for t in range(1, n) if (first + t) % every == 0}
    assert low == n
    assert records <= set(ends)
    for a, b in zip([0, *sorted(records)], [*sorted(records), n], strict=True):
        assert sum(a < end <= b for end in ends) == -(-(b - a) // CACHED_ROWS)


def test_rows_without_records_are_one_block():
    assert block_end(5, 1000, 17, 0) == 1000
