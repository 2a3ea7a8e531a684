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
    finally:
        # An interrupt in code that is made from a text, such as a named tuple's, makes `python -m` end
        # by the signal, even if it was handled, unless other such code has run since.
        exec("")  # noqa: S102


if __name__ == "__main__":
    sys.exit(start())
