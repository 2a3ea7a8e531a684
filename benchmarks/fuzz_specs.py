"""Fuzz the reader of experiments: any text gives a spec or one typed error, within a second.

make fuzz                      all three fuzzers, ten minutes each
python -m benchmarks.fuzz_specs -max_total_time=60 CORPUS
"""

from __future__ import annotations

import sys

from benchmarks.fuzz_common import fuzz, seeds

with seeds("o2td.experiments", "tomllib") as atheris:
    from o2td.errors import O2TDError
    from o2td.experiments.planning import plan
    from o2td.experiments.spec import load_spec
    from o2td.paper import specs


def corpus() -> list[bytes]:
    from importlib.resources import files

    folder = files("o2td.paper") / "specs"
    return [(folder / f"{name}.toml").read_bytes() for name in specs()]


def read(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    if "\n" not in text:
        text += "\n"  # a single line would be taken for a path
    try:
        spec = load_spec(text)
        if spec.runs <= 10_000:
            plan(spec)
    except O2TDError:
        pass


if __name__ == "__main__":
    fuzz(atheris, read, corpus(), sys.argv, most=16_000)
