"""The first call of a compiled loop may compile it, so no deadline for one example."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")
