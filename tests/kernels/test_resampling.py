"""Words that resampling draws."""

from __future__ import annotations

import numpy as np

from o2td.kernels.resampling import mixed


def test_words_are_those_of_splitmix64():
    """The generator's first numbers from seed 1234567, as published with it."""
    known = (6457827717110365317, 3203168211198807973, 9817491932198370423)
    for k, word in enumerate(known, 1):
        state = (1234567 + k * 0x9E3779B97F4A7C15) % 2**64
        assert int(mixed(np.uint64(state))) == word
