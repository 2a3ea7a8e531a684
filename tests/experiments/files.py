"""Files of a store, made by hand: the one place that knows how keys and columns become bytes."""

from __future__ import annotations

from typing import Any

from o2td.experiments.files import COLUMNS, FORMAT, Labels, canonical, decode, digest, encode

__all__ = ["COLUMNS", "FORMAT", "Labels", "canonical", "decode", "digest", "encode", "forged"]


def forged(key: Any, columns: dict[str, Any]) -> tuple[str, bytes]:
    """The name and the bytes of a file with this key, whose digests are right."""
    text = canonical(key)
    return digest(text), encode(text, columns)
