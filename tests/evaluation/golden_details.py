"""What `evaluate` and `compare` say beside their answers, kept to compare with after a change.

    python -m tests.evaluation.golden_details          # compare with golden_details.json
    python -m tests.evaluation.golden_details --write  # keep what the code says now

Of the logs of `golden.py`: every test of the log with its figure, differences, candidates of features,
returns, horizons, requirements and the printed page. Of the logs of `benchmarks.honesty`, with and
without defects: tests and estimates. Of two and three policies on one log: all of the comparison.
Numbers that come from learners are left out, and so are times and versions.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np

from benchmarks.honesty.cells import CELLS
from o2td import evaluation
from o2td.errors import InputError
from tests.evaluation import golden

FILE = Path(__file__).with_name("golden_details.json")
WITHIN = 1e-7  # figures are p-values and the like, in which rounding counts for more
SINGULAR = {"answer states_endless": 0.1}  # a probability of noise
REQUIRED = ("value > 0", "lift > 0", "value < logged", "quantile(0.5) >= -1", "cvar(0.2) < 0")
SLOW = ("states_many", "cart-pole")
SOLVED = "lstd,plugin,wis,dr"


def of_answer(name: str) -> dict[str, Any]:
    """Details of the answer to one of the golden logs."""
    answer = answer_of(name)
    found = answer.diagnostics
    return {
        "tests": tests_of(answer),
        "lift": answer.as_dict()["lift"],
        "logged": answer.logged,
        "overlap": found.get("overlap"),
        "largest": found["largest_weights"],
        "notes": found["notes"],
        "candidates": answer.features.get("candidates"),
        "returns": tried(lambda: [one.as_dict() for one in answer.returns((0.25, 0.5), 0.2)]),
        "horizon": answer.by_horizon().to_dict(as_series=False),
        "required": [tried(lambda one=one: str(answer.require(one))) for one in REQUIRED],
        "more": [tried(lambda of=of: answer.episodes_for(0.1, of)) for of in ("value", "lift")],
        "printed": printed(answer),
    }


@cache
def answer_of(name: str) -> evaluation.Evaluation:
    """The answer without what learners say."""
    answer = golden.answer_of(name)
    solved = [one for one in answer.estimates if one.method not in golden.LEARNERS + golden.LATER]
    return replace(answer, estimates=solved or answer.estimates[:1])


def of_cell(name: str) -> dict[str, Any]:
    """What tests of a log find, and what becomes of the estimates; numbers to eight digits."""
    log, discount, _ = CELLS[name].make(np.random.default_rng([zlib.crc32(name.encode()), 2027]))
    answer = evaluation.evaluate(log, discount)
    kept = ("method", "value", "low", "high", "approximation_error", "verdict", "reasons")
    estimates = [{key: one.as_dict()[key] for key in kept} for one in answer.estimates]
    lift = answer.as_dict()["lift"] or {}
    return {
        "verdict": answer.verdict,
        "reasons": answer.reasons,
        "estimates": rounded(without_learners(estimates)),
        "tests": rounded(tests_of(answer)),
        "lift": rounded({key: lift.get(key) for key in kept if key in lift}),
    }


def rounded(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {key: rounded(one) for key, one in found.items()}
    if isinstance(found, list):
        return [rounded(one) for one in found]
    return float(f"{found:.8g}") if isinstance(found, float) else found


def tests_of(answer: Any) -> list[dict[str, Any]]:
    """Every test with its figure, and with its words if they are a doubt."""
    found = [one.as_dict() for one in answer.tests]
    short = ("name", "figure", "verdict")
    return [{key: one[key] for key in short} if one["verdict"] == "trust" else one for one in found]


# -- comparisons -----------------------------------------------------------------------------------

COMPARED: dict[str, Callable[[], evaluation.Comparison]] = {}


def compared(make: Callable[[], evaluation.Comparison]) -> Callable[[], evaluation.Comparison]:
    COMPARED[make.__name__] = make
    return make


def table(seed: int, episodes: int = 80, **shape: Any) -> Any:
    """States and the probability of the action taken, and nothing of a target."""
    made = golden.table(seed, episodes, **shape)
    return made[[one for one in made if "obs" not in one and "target" not in one]]


def policies(*shares: float) -> dict[str, Any]:
    """Policies that take the first action with these chances, in every state."""
    return {f"first {one:.0%}": np.tile([one, 1.0 - one], (6, 1)) for one in shares}


@compared
def two_policies() -> evaluation.Comparison:
    log = table(71)
    return evaluation.compare(log, 0.9, policies(0.3, 0.6), methods=SOLVED)


@compared
def three_policies_with_one_as_the_baseline() -> evaluation.Comparison:
    three = policies(0.2, 0.5, 0.9)
    log = table(72, 120)
    return evaluation.compare(log, 0.9, three, baseline="first 50%", methods=SOLVED, lanes=100)


@compared
def policies_on_observations() -> evaluation.Comparison:
    log = golden.line(73)

    def rather(chance: float) -> Any:
        return lambda x: np.tile([1.0 - chance, chance], (len(x), 1))

    two = {"left": rather(0.35), "right": rather(0.7)}
    return evaluation.compare(log, 0.9, two, features="fourier:3", methods="lstd,wdr")


@compared
def policies_over_five_steps() -> evaluation.Comparison:
    log = table(74, ending=0.05)
    return evaluation.compare(log, 0.9, policies(0.4, 0.7), horizon=5, methods="lstd,wpdis")


@compared
def policies_that_few_episodes_cannot_tell() -> evaluation.Comparison:
    return evaluation.compare(table(75, 8), 0.9, policies(0.1, 0.95), lanes=50)


def of_comparison(name: str) -> dict[str, Any]:
    found = COMPARED[name]()
    account = {key: one for key, one in found.as_dict().items() if key != "audit"}
    account |= {"tests": None, "diagnostics": None, "evaluations": None}
    names = [one.name for one in found.policies]
    required = [f"{names[0]} > {names[-1]}", f"{names[0]} - logged > 0", f"{names[-1]} < 10"]
    return {
        **without_learners(account),
        "best": found.best,
        "conclusion": found.conclusion,
        "required": [tried(lambda one=one: str(found.require(one))) for one in required],
        "log": found.log_lines(),
        "frame": found.frame().to_dict(as_series=False),
        "printed": printed(found),
    }


def of_segments() -> dict[str, Any]:
    log = table(76, 150).assign(target_prob=0.5)
    answer = evaluation.evaluate(
        log, 0.9, methods="lstd,wis", segments=lambda s: np.where(s < 2, "low", "high")
    )
    return {"segments": answer.as_dict()["segments"], "printed": printed(answer)}


# -- what is kept ----------------------------------------------------------------------------------


def tried(ask: Callable[[], Any]) -> Any:
    """What was answered, or why not."""
    try:
        return ask()
    except InputError as error:
        return f"refused: {error}"


def printed(answer: Any) -> list[str]:
    """What is printed, without the line of version and date and the names of files."""
    lines = [line.rstrip() for line in str(answer).splitlines()]
    return [line for line in lines if "; o2td " not in line and gettempdir() not in line]


def without_learners(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {str(key): without_learners(one) for key, one in found.items()}
    if isinstance(found, (list, tuple)):
        kept = [
            one
            for one in found
            if not (
                isinstance(one, Mapping) and one.get("method") in golden.LEARNERS + golden.LATER
            )
        ]
        return [without_learners(one) for one in kept]
    return found


ACCOUNTS: dict[str, Callable[[], dict[str, Any]]] = {
    **{
        f"answer {name}": lambda name=name: of_answer(name)
        for name in golden.CASES
        if name not in SLOW
    },
    **{f"cell {name}": lambda name=name: of_cell(name) for name in CELLS if name not in SLOW},
    **{f"comparison {name}": lambda name=name: of_comparison(name) for name in COMPARED},
    "segments": of_segments,
}


def account(name: str) -> Any:
    return json.loads(json.dumps(golden.short(without_learners(ACCOUNTS[name]())), default=str))


def differences(name: str) -> list[str]:
    within = SINGULAR.get(name, WITHIN)
    return list(golden.differences(kept()[name], account(name), name, within))


@cache
def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return found


def main(arguments: list[str]) -> int:
    names = [name for name in arguments if not name.startswith("-")] or list(ACCOUNTS)
    if "--write" in arguments:
        now = {**(kept() if FILE.exists() else {}), **{name: account(name) for name in names}}
        lines = [
            f"{json.dumps(name)}: {json.dumps(now[name], ensure_ascii=False)}"
            for name in ACCOUNTS
            if name in now
        ]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
        return 0
    found = [line for name in names for line in differences(name)]
    print("\n".join(found) or f"{len(names)} accounts: nothing differs")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
