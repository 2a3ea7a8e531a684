"""Feature maps `phi(x)` for linear value functions `v(x) = theta . phi(x)`.

They are transformers in the style of scikit-learn but do not need it. Continuous observations are
scaled by known bounds or by those of the data.

>>> from o2td import features
>>> phi = features.Fourier(order=3, bounds=[(-1.2, 0.6), (-0.07, 0.07)])
>>> phi.transform([[-0.5, 0.0]]).shape
(1, 16)

Names are registered in `o2td.registry.FEATURES`; other packages add theirs by an entry point.
"""

from __future__ import annotations

from o2td.features.base import Transformer
from o2td.features.fourier import Fourier
from o2td.features.parse import available, parse
from o2td.features.polynomial import Polynomial
from o2td.features.radial import Radial
from o2td.features.scaling import Scaling
from o2td.features.tabular import Aggregation, GridAggregation, Tabular
from o2td.features.tiles import Tiles
from o2td.registry import FEATURES

__all__ = [
    "Aggregation",
    "Fourier",
    "GridAggregation",
    "Polynomial",
    "Radial",
    "Scaling",
    "Tabular",
    "Tiles",
    "Transformer",
    "available",
    "from_state_dict",
    "parse",
]

for _kind in (Aggregation, Fourier, GridAggregation, Polynomial, Radial, Scaling, Tabular, Tiles):
    FEATURES.register(_kind.feature, _kind)

from_state_dict = Transformer.from_state_dict
