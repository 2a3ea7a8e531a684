"""Sources of every kind against every check, and sources with one fault each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from o2td import sources
from o2td.checks import BoundCheck, CheckError, all_checks, check_source, checks_of
from o2td.errors import InputError

NAMES = [check.name for check in checks_of("sources")]


def even(states: Any) -> Any:
    return np.full((len(states), 4), 0.25)


def eager(states: Any) -> Any:
    return np.tile([0.1, 0.4, 0.4, 0.1], (len(states), 1))


def played(steps: int = 150) -> sources.Source:
    """Roll-outs whose last episode is cut."""
    return sources.rollouts("FrozenLake-v1", even, discount=0.9, steps=steps, target=eager)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, sources.Source]:
    file = sources.write_logs(played(), Path(tmp_path_factory.mktemp("logs")) / "log.parquet")
    pandas = pytest.importorskip("pandas")
    log = pandas.read_parquet(file)
    log.to_csv(file.with_suffix(".csv"), index=False)
    return {
        "rollouts": played(),
        "parquet": sources.open_logs(file, discount=0.9),
        "csv": sources.open_logs(file.with_suffix(".csv"), discount=0.9),
        "frame": sources.open_logs(log, discount=0.9),
        "on-policy": sources.open_logs(file, discount=0.9, target="behavior"),
        "estimated": sources.open_logs(log.drop(columns="behavior_prob"), discount=0.9),
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["rollouts", "parquet", "csv", "frame", "on-policy", "estimated"])
def test_source(kinds: dict[str, sources.Source], kind: str, name: str) -> None:
    bound(kinds[kind], name)()


def bound(source: Any, name: str) -> BoundCheck:
    return next(check for check in all_checks("sources", source) if check.name == name)


class Faulty:
    """A source whose chunks are spoiled on their way out."""

    def __init__(self, spoil: Callable[[Any, int], Any]) -> None:
        self._source, self._spoil, self._pass = played(), spoil, 0
        self.discount = self._source.discount

    def chunks(self, rows: int = 65_536) -> Iterator[Any]:
        self._pass += 1
        for chunk in self._source.chunks(rows):
            yield self._spoil(chunk, self._pass)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def first(chunk: Any, values: Any, value: Any) -> Any:
    changed = np.array(values)
    changed[0] = value
    return changed


FAULTS: dict[str, Callable[[Any, int], Any]] = {
    "read_again": lambda c, k: replace(c, reward=c.reward + k),
    "chunk_sizes": lambda c, k: replace(c, rho=c.rho * (1.0 + len(c) / 1e3)),
    "numbered": lambda c, k: replace(c, step=c.step + 1),
    "starts": lambda c, k: replace(c, start=np.zeros_like(c.start)),
    "terminations": lambda c, k: replace(c, discount=np.full_like(c.discount, 0.9)),
    "ends": lambda c, k: replace(c, truncated=first(c, c.truncated, True)),
    "successors": lambda c, k: replace(c, next_state=np.roll(c.next_state, 1)),
    "nothing_after": lambda c, k: replace(c, next_state=np.maximum(c.next_state, 0)),
    "finite": lambda c, k: replace(c, reward=first(c, c.reward, np.nan)),
    "ratios": lambda c, k: replace(c, rho=np.minimum(c.rho, 1.0)),
    "account": lambda c, k: c.take(slice(0, max(1, len(c) - 1))),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_by_the_check_that_is_meant_for_it(name: str) -> None:
    check = bound(Faulty(FAULTS[name]), name)
    with pytest.raises(CheckError, match=f"expected that {check.promise[:20]}"):
        check()


class Whole(Faulty):
    """Everything in one chunk, whatever was asked for."""

    def chunks(self, rows: int = 65_536) -> Iterator[Any]:
        yield from self._source.chunks()


def test_chunks_that_are_too_large_are_found() -> None:
    source = Whole(lambda chunk, k: chunk)
    for name in ("bounded", "no_rows"):
        with pytest.raises(CheckError):
            bound(source, name)()


class Relabelled(Faulty):
    """Transitions whose starts are lost."""

    def transitions(self, features: Any, chunk: Any) -> Any:
        return self._source.transitions(features, replace(chunk, start=~chunk.start))


def test_transitions_that_differ_from_their_chunk_are_found() -> None:
    with pytest.raises(CheckError, match="start of transitions"):
        bound(Relabelled(lambda chunk, k: chunk), "as_transitions")()


def test_a_report_of_all_checks() -> None:
    report = check_source(played())
    assert set(report.passed) == set(NAMES)
    assert str(report) == f"LogSource: {len(NAMES)} passed, 0 not applicable"


def test_what_is_not_a_source_is_refused() -> None:
    with pytest.raises(InputError, match="check a source"):
        check_source([1, 2, 3])
    with pytest.raises(InputError, match="pass the sources"):
        all_checks("sources")


def test_a_behaviour_that_is_a_word_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    log = pandas.DataFrame({"episode": [0], "state": [0], "action": [0], "reward": [1.0]})
    with pytest.raises(InputError, match="behavior: 'estimate' is unknown; pass a policy"):
        sources.open_logs(log, discount=0.9, target=even, behavior="estimate")
