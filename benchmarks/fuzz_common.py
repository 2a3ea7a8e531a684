"""What the fuzzers share: instrumented imports, a corpus on disk, and the loop."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

try:
    import atheris
except ImportError:
    sys.exit("fuzzing needs atheris: pip install atheris")


def _compiled() -> Iterator[str]:
    source = Path(__file__).resolve().parents[1] / "src"
    for file in sorted(source.rglob("*.py")):
        if file.parent.name == "kernels" or "njit" in file.read_text("utf-8"):
            yield ".".join(file.relative_to(source).with_suffix("").parts)


@contextlib.contextmanager
def seeds(*packages: str) -> Iterator[Any]:
    """Imports of these packages in this block report their branches to the fuzzer.

    Not those of modules with compiled code: the compiler cannot read instrumented code.
    """
    with atheris.instrument_imports(include=list(packages), exclude=list(_compiled())):
        yield atheris


def fuzz(
    atheris: Any,
    read: Callable[[bytes], None],
    corpus: list[bytes],
    arguments: list[str],
    most: int,
) -> None:
    """Run until `-max_total_time` (default 600 s) or the first uncaught error, kept as crash-*."""
    name = Path(arguments[0]).stem
    folder = Path("build") / "fuzz" / name
    folder.mkdir(parents=True, exist_ok=True)
    for data in corpus:
        (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    options = [a for a in arguments[1:] if a.startswith("-")]
    if not any(a.startswith("-max_total_time") for a in options):
        options.append("-max_total_time=600")
    prefix = f"-artifact_prefix={folder.parent}/{name}-"
    limits = [f"-max_len={most}", "-timeout=10", "-rss_limit_mb=2048", prefix]
    atheris.Setup([arguments[0], *limits, *options, str(folder)], read)
    atheris.Fuzz()
