"""Values as a JSON document can hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["finite", "literal"]


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
