"""Values as a document holds them, and numbers as its readers see them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["finite", "fixed", "literal", "places"]

_LARGE = 1e9  # numbers from here on have an exponent


def finite(value: Any) -> Any:
    """The same with plain Python numbers, and None for what is not finite.

    >>> import numpy as np
    >>> finite({"a": np.float64("nan"), "b": [np.int64(1), 0.5]})
    {'a': None, 'b': [1, 0.5]}
    """
    import numpy as np  # late: commands show their help without it

    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, np.ndarray):
        return [finite(item) for item in value.tolist()]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value


def literal(value: Any) -> Any:
    """A default as a reader would type it: a plain value, or the text that stands for it.

    >>> literal(0.1), literal((1, 2))
    (0.1, '(1, 2)')
    """
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def places(row: Mapping[str, Any]) -> int:
    """Decimals that show an interval's width to three digits.

    >>> places({"low": 2.589, "high": 2.967}), places({"low": -20.0, "high": 30.0})
    (3, 1)
    """
    low, high = row["low"], row["high"]
    if low is None or high is None or not high > low:
        return 4
    return min(max(2 - math.floor(math.log10(high - low)), 0), 9)


def fixed(value: Any, decimals: int) -> str:
    """A number with a fixed number of decimals.

    >>> fixed(0.03583, 4), fixed(None, 2), fixed(1e12, 2)
    ('0.0358', '–', '1e+12')
    """
    if value is None:
        return "–"
    return f"{value:.{decimals}f}" if abs(value) < _LARGE else f"{value:.3g}"
