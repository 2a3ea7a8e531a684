"""The formats of logs that o2td reads itself, one in each file."""

from __future__ import annotations

from o2td.registry import FORMATS
from o2td.sources.formats.arrow import Arrow
from o2td.sources.formats.csv import Csv
from o2td.sources.formats.frames import ArrowTable, PandasFrame, PolarsFrame
from o2td.sources.formats.gymnasium import Gymnasium
from o2td.sources.formats.minari import Minari
from o2td.sources.formats.ndjson import NdJson
from o2td.sources.formats.parquet import Parquet

OWN = (Parquet, Csv, NdJson, Arrow, PandasFrame, PolarsFrame, ArrowTable, Minari, Gymnasium)

for own in OWN:
    FORMATS.register(own.name, own)
