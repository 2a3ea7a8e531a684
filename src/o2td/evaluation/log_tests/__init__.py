"""Tests of a log, one a file; `o2td.registry.LOG_TESTS` has them by name."""

from __future__ import annotations
