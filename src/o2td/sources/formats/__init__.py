"""The formats of logs that o2td reads itself, one per file."""

from __future__ import annotations

from o2td.registry import FORMATS
from o2td.sources.formats.arrays import DictOfArrays, Hdf5, Npz
from o2td.sources.formats.arrow import Arrow
from o2td.sources.formats.csv import Csv
from o2td.sources.formats.frames import ArrowTable, PandasFrame, PolarsFrame
from o2td.sources.formats.gymnasium import Gymnasium
from o2td.sources.formats.minari import Minari
from o2td.sources.formats.ndjson import NdJson
from o2td.sources.formats.parquet import Parquet

_FILES = (Parquet, Csv, NdJson, Arrow, Npz, Hdf5)
_OBJECTS = (PandasFrame, PolarsFrame, ArrowTable, DictOfArrays, Minari, Gymnasium)
OWN = (*_FILES, *_OBJECTS)

for own in OWN:
    FORMATS.register(own.name, own)
