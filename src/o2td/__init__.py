"""Value prediction for one policy from the data of another, with linear features."""

from __future__ import annotations

__version__ = "0.1.0"
