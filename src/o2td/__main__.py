"""``python -m o2td`` is the same as ``o2td``."""

from __future__ import annotations

import sys

from o2td.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
