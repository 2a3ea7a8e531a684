"""Arrow, imported when it is first used: naming a log does not need it yet."""

from __future__ import annotations

from typing import Any

from o2td.errors import import_extra

__all__ = ["pa", "pc", "pq"]


class _Late:
    """A module of the extra `logs`; if it is missing, its first use says how to install it."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_extra(self._module, "logs"), name)


pa: Any = _Late("pyarrow")
pc: Any = _Late("pyarrow.compute")
pq: Any = _Late("pyarrow.parquet")
