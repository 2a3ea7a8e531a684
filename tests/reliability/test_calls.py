"""Everything public, called with bad and odd values: a part of what `make fuzz` does for ten minutes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def fuzzed(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.fuzz_calls", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.slow
def test_no_odd_value_ends_in_a_raw_error() -> None:
    done = fuzzed("--seconds", "60", "--seed", "11")
    assert done.returncode == 0, done.stdout
    assert "0 ended in another error than one of o2td's" in done.stdout


def test_a_raw_error_is_found_and_shown_as_a_call(tmp_path: Path) -> None:
    """The fuzzer itself, on a function that lets one through."""
    import random

    from benchmarks import fuzz_calls
    from benchmarks.fuzz_targets import Target, signature

    def careless(n: int) -> str:
        return f"{n + 1}"

    found = signature(careless)
    assert found is not None
    target = Target("careless", "careless", "careless", lambda: careless, found)
    calls = [fuzz_calls.drawn(target, random.Random(k)) for k in range(60)]  # noqa: S311
    failures = [(call.text(), fuzz_calls.failure(call)) for call in calls]
    raw = [(text, one) for text, one in failures if one is not None]
    assert raw
    assert all(text.startswith("careless(n=") for text, _ in raw)
    assert any("TypeError" in one["error"] for _, one in raw)


def test_it_finds_what_is_public() -> None:
    from benchmarks.fuzz_targets import targets

    texts = {one.text for one in targets()}
    for name in ("o2td.TD", "o2td.Transitions", "o2td.exact.analyze", "o2td.evaluation.evaluate"):
        assert name in texts
    assert "learned('TDRC').learn_one" in texts
    assert "solved('LSTD').merge" in texts
    assert len(texts) > 500


def test_absurd_sizes_are_refused_before_memory_is_asked_for(tmp_path: Path) -> None:
    import benchmarks.fuzz_recipes as recipes
    from o2td import evaluation
    from o2td.errors import InputError

    with pytest.raises(InputError, match=r"lanes: 2147483648; .* at most 100,000"):
        evaluation.evaluate(recipes.frame(), discount=0.9, lanes=2**31)
