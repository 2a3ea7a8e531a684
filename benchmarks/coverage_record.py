"""Condense the studies' JSON lines into one small record, `docs/data/coverage.json`.

    python -m benchmarks.coverage_record lines.jsonl … > docs/data/coverage.json

Later lines of a study replace earlier ones. Times and lists of single data sets are left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_LEFT_OUT = ("study", "seconds", "seconds a set", "trusted and missed")


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return value


def record(lines: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in lines:
        study = json.loads(line)
        kept = {name: rounded(v) for name, v in study.items() if name not in _LEFT_OUT}
        found[study["study"]] = kept
    return dict(sorted(found.items()))


if __name__ == "__main__":
    text = "\n".join(Path(name).read_text() for name in sys.argv[1:])
    print(json.dumps(record([line for line in text.splitlines() if line.strip()]), indent=1))
