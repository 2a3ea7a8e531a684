"""``python -m o2td`` is the same as ``o2td``."""

from __future__ import annotations

import sys

__all__ = ["start"]

_INTERRUPTED = 130


def start() -> int:
    """Run the command line; an interrupt while it is still being imported is one, too."""
    try:
        from o2td.cli.main import main

        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(start())
