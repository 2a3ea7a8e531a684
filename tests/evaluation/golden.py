"""Logs of all kinds and what `evaluate` says about them, kept to compare with after a change.

    python -m tests.evaluation.golden          # compare with golden.json, say what differs
    python -m tests.evaluation.golden --write  # keep what the code says now

Logs are drawn from fixed seeds and are small. Values, intervals, verdicts, reasons, diagnostics and
predictions of the model are kept to twelve digits.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from o2td import evaluation
from o2td.features import Aggregation, Fourier, Polynomial
from tests.evaluation.episodes import SmallChunks

FILE = Path(__file__).with_name("golden.json")
EVERY: Any = "all"  # methods= for all that fit the log
DIGITS = 12
NOISE = 1e9  # numbers from here on are rounding errors over a singular system
WITHIN = {"features_tiles": 1e-7}  # nearly singular; others 1e-9
LEARNERS = ("arctd", "o2td", "etd", "tdrc")
LATER = ("arctd", "lstd_auto")  # estimators that came after these answers were kept
SKIPPED = ("agreement", "overlap", "thresholds", "unverified_files", "notes", "passes")
SKIPPED += ("largest_weights", "population")

Made = tuple[Any, dict[str, Any]]  # logs and the arguments of evaluate
CASES: dict[str, Callable[[], Made]] = {}


def case(make: Callable[[], Made]) -> Callable[[], Made]:
    """Register a log under the name of the function that makes it."""
    CASES[make.__name__] = make
    return make


# -- worlds ----------------------------------------------------------------------------------------


def table(
    seed: int,
    episodes: int = 80,
    states: int = 6,
    actions: int = 2,
    ending: float = 0.15,
    steps: int = 25,
    sharp: float = 0.5,
    **shape: Any,
) -> pd.DataFrame:
    """Episodes of a random table with all columns that a log may have."""
    rng = np.random.default_rng([seed, 2026])
    P = rng.dirichlet(np.full(states, 0.5), size=(states, actions))
    R = rng.normal(size=(states, actions))
    behavior = shape.get("behavior", rng.dirichlet(np.full(actions, 4.0), size=states))
    target = shape.get("target", rng.dirichlet(np.full(actions, 1.0 / sharp), size=states))
    place = rng.random((states, 2))
    rows: list[dict[str, Any]] = []
    for e in range(episodes):
        s = int(rng.integers(states))
        for t in range(steps):
            a = int(rng.choice(actions, p=behavior[s]))
            after = int(rng.choice(states, p=P[s, a]))
            ends = bool(rng.random() < ending)
            row: dict[str, Any] = {"episode": e, "step": t, "state": s, "next_state": after}
            row |= {"obs_0": place[s, 0], "obs_1": place[s, 1]}
            row |= {"next_obs_0": place[after, 0], "next_obs_1": place[after, 1]}
            row |= {"action": a, "reward": R[s, a] + 0.2 * rng.normal()}
            row |= {"terminated": ends, "truncated": not ends and t == steps - 1}
            row |= {"behavior_prob": behavior[s, a], "target_prob": target[s, a]}
            row |= {f"target_prob_{k}": target[s, k] for k in range(actions)}
            row |= {f"next_target_prob_{k}": target[after, k] for k in range(actions)}
            rows.append(row)
            s = after
            if ends:
                break
    return pd.DataFrame(rows)


def line(seed: int, episodes: int = 60, steps: int = 20, columns: int = 1) -> pd.DataFrame:
    """Points that drift, pushed left or right; the reward is the first coordinate."""
    rng = np.random.default_rng([seed, 2027])
    rows: list[dict[str, Any]] = []
    for e in range(episodes):
        x = rng.normal(size=columns)
        for t in range(steps):
            right = 1.0 / (1.0 + np.exp(-0.5 * x[0]))
            a = int(rng.random() < right)
            after = 0.85 * x + (0.3 if a else -0.3) + 0.15 * rng.normal(size=columns)
            ends = bool(rng.random() < 0.06)
            row: dict[str, Any] = {"episode": e, "step": t, "action": a, "reward": x[0]}
            row |= {f"obs_{k}": x[k] for k in range(columns)}
            row |= {f"next_obs_{k}": after[k] for k in range(columns)}
            row |= {"terminated": ends, "truncated": not ends and t == steps - 1}
            row |= {"behavior_prob": right if a else 1.0 - right}
            row |= {"target_prob_0": 0.35, "target_prob_1": 0.65}
            row |= {"next_target_prob_0": 0.35, "next_target_prob_1": 0.65}
            rows.append(row)
            x = after
            if ends:
                break
    return pd.DataFrame(rows)


STATES = ["episode", "step", "state", "next_state", "reward", "terminated", "truncated"]
RATIO = [*STATES, "behavior_prob", "target_prob"]
SEEN = ["episode", "step", "obs_0", "obs_1", "next_obs_0", "next_obs_1", "action", "reward"]
SEEN += ["terminated", "truncated", "behavior_prob", "target_prob"]
EACH = ["action", "behavior_prob", "target_prob_0", "target_prob_1"]
NEXT = ["next_target_prob_0", "next_target_prob_1"]


# -- states ----------------------------------------------------------------------------------------


@case
def states_with_probabilities() -> Made:
    return table(1)[RATIO], {"discount": 0.9}


@case
def states_with_ratios() -> Made:
    log = table(2)
    log["rho"] = log.target_prob / log.behavior_prob
    return log[[*STATES, "rho"]], {"discount": 0.95}


@case
def states_with_log_probabilities() -> Made:
    log = table(3)
    log["behavior_logprob"], log["target_logprob"] = (
        np.log(log.behavior_prob),
        np.log(log.target_prob),
    )
    return log[[*STATES, "action", "behavior_logprob", "target_logprob"]], {"discount": 0.9}


@case
def states_with_per_action_probabilities() -> Made:
    return table(4)[[*STATES, *EACH, *NEXT]], {"discount": 0.9}


@case
def states_without_next_probabilities() -> Made:
    return table(5, steps=8)[[*STATES, *EACH]], {"discount": 0.9}


@case
def states_without_next_states() -> Made:
    log = table(6, ending=0.05, steps=8)
    return log[[name for name in RATIO if name != "next_state"]], {"discount": 0.9}


@case
def states_and_observations() -> Made:
    return table(7)[[*SEEN, "state", "next_state"]], {"discount": 0.9}


@case
def states_truncated_often() -> Made:
    return table(8, ending=0.02, steps=6)[RATIO], {"discount": 0.95}


@case
def states_unfinished() -> Made:
    log = table(9, ending=0.3, steps=5)
    keep = [name for name in RATIO if name not in ("next_state", "truncated")]
    return log[keep], {"discount": 0.9}


@case
def states_undiscounted() -> Made:
    return table(10)[RATIO], {"discount": 1.0}


@case
def states_endless() -> Made:
    return table(11, ending=0.0, steps=8)[RATIO], {"discount": 1.0}


@case
def states_with_discount_column() -> Made:
    log = table(12)
    log["discount"] = np.where(log.step % 2 == 0, 0.9, 0.8)
    return log[[*RATIO, "discount"]], {"columns": {"discount": "discount"}}


@case
def states_on_policy() -> Made:
    return table(13)[STATES], {"discount": 0.9, "target": "behavior"}


@case
def states_without_overlap() -> Made:
    never = {"behavior": np.tile([1.0, 0.0], (6, 1)), "target": np.tile([0.0, 1.0], (6, 1))}
    return table(14, **never)[[*STATES, *EACH, *NEXT]], {"discount": 0.9}


@case
def states_with_little_overlap() -> Made:
    rare = {"behavior": np.tile([0.97, 0.03], (6, 1)), "target": np.tile([0.05, 0.95], (6, 1))}
    return table(15, **rare)[[*STATES, *EACH, *NEXT]], {"discount": 0.9}


@case
def states_with_wrong_ratios() -> Made:
    log = table(16)
    log["rho"] = 1.7 * log.target_prob / log.behavior_prob
    return log[[*STATES, "rho"]], {"discount": 0.9}


@case
def states_few_episodes() -> Made:
    return table(17, episodes=7)[RATIO], {"discount": 0.9}


@case
def states_some_episodes() -> Made:
    return table(18, episodes=25)[RATIO], {"discount": 0.9}


@case
def states_one_episode() -> Made:
    return table(19, episodes=1, ending=0.0, steps=60)[RATIO], {"discount": 0.9}


@case
def states_constant_rewards() -> Made:
    return table(20).assign(reward=1.0)[RATIO], {"discount": 0.9}


@case
def states_no_rewards() -> Made:
    return table(21).assign(reward=0.0)[RATIO], {"discount": 0.9}


@case
def states_one_reward() -> Made:
    log = table(22)
    log["reward"] = (log.index == 40).astype(float)
    return log[RATIO], {"discount": 0.9}


@case
def one_step_episodes() -> Made:
    return table(23, episodes=300, steps=1, ending=1.0)[RATIO], {"discount": 0.9}


@case
def one_step_and_cut() -> Made:
    """Half of the episodes have only a row that is left out: starts that nothing follows."""
    log = table(24, episodes=120, steps=3, ending=0.3)
    lone = log.episode.isin(range(40)) & (log.step > 0)
    log = log[~lone].copy()
    log.loc[log.episode < 40, "terminated"] = False
    keep = [name for name in RATIO if name not in ("next_state", "truncated")]
    return log[keep], {"discount": 0.9}


@case
def states_many() -> Made:
    """More states than a dense solve takes, and states that nothing leaves."""
    return table(25, episodes=60, states=170, steps=8)[RATIO], {"discount": 0.9}


@case
def states_in_a_policy() -> Made:
    policy = np.tile([0.2, 0.8], (6, 1))
    log = table(26)[[*STATES, "action", "behavior_prob"]]
    return log, {"discount": 0.9, "target": policy}


@case
def states_of_unknown_behavior() -> Made:
    log = table(27)[[*STATES, "action", "target_prob_0", "target_prob_1", *NEXT]]
    return log, {"discount": 0.9}


@case
def states_in_small_pieces() -> Made:
    log = table(28, episodes=40, ending=0.01, steps=30)[RATIO]
    return SmallChunks(log, 0.9, 7, 11), {}


@case
def states_out_of_order() -> Made:
    log = table(29)[RATIO]
    return log.sample(frac=1.0, random_state=1), {"discount": 0.9, "sort": True}


@case
def ratios_that_explode() -> Made:
    log = table(30, ending=0.0, steps=60, episodes=30)
    log["rho"] = np.where(log.step % 2 == 0, 40.0, 0.5)
    return log[[*STATES, "rho"]], {"discount": 0.99}


# -- features, traces, settings --------------------------------------------------------------------


@case
def features_aggregated() -> Made:
    groups = Aggregation(np.array([0, 0, 1, 1, 2, 2]))
    return table(31)[[*STATES, *EACH, *NEXT]], {"discount": 0.9, "features": groups}


@case
def features_of_a_table() -> Made:
    rng = np.random.default_rng(5)
    given = {"features": rng.normal(size=(6, 3)), "trace": 0.5}
    return table(32)[[*STATES, *EACH, *NEXT]], {"discount": 0.9, **given}


@case
def features_tabular_in_text() -> Made:
    return table(33)[RATIO], {"discount": 0.9, "features": "tabular"}


@case
def features_fourier() -> Made:
    return line(34), {"discount": 0.9, "features": "fourier:3"}


@case
def features_fourier_with_trace() -> Made:
    return line(35), {"discount": 0.9, "features": Fourier(2), "trace": 0.7}


@case
def features_tiles() -> Made:
    return line(36, columns=2), {"discount": 0.9, "features": "tiles:3x3"}


@case
def features_in_cells() -> Made:
    return line(37), {"discount": 0.9, "features": "aggregate:6"}


@case
def features_of_a_callable() -> Made:
    def given(x: Any) -> Any:
        return np.column_stack([np.ones(len(x)), x, x**2])

    return line(38), {"discount": 0.9, "features": given}


@case
def features_of_a_polynomial() -> Made:
    return line(39, columns=2), {"discount": 0.9, "features": Polynomial(2)}


@case
def features_chosen() -> Made:
    return line(40), {"discount": 0.9}


@case
def features_chosen_for_a_map() -> Made:
    return table(41, episodes=60)[SEEN], {"discount": 0.9}


@case
def features_chosen_for_few_rows() -> Made:
    return line(42, episodes=15), {"discount": 0.9}


@case
def observed_of_unknown_behavior() -> Made:
    log = line(43).drop(columns=["behavior_prob"])
    return log, {"discount": 0.9, "features": "fourier:2", "methods": ["lstd", "lstdq", "wpdis"]}


@case
def continuous_actions() -> Made:
    log = line(44)
    rng = np.random.default_rng(44)
    log["action"] = rng.normal(size=len(log))
    log["behavior_prob"] = np.exp(-0.5 * log.action**2) / np.sqrt(2.0 * np.pi)
    log["target_prob"] = np.exp(-0.5 * (log.action - 0.1) ** 2) / np.sqrt(2.0 * np.pi)
    drop = ["target_prob_0", "target_prob_1", *NEXT]
    given = {"features": "fourier:2", "densities": True}
    return log.drop(columns=drop), {"discount": 0.9, **given}


@case
def settings_of_the_interval() -> Made:
    given = {"confidence": 0.8, "seed": 7, "lanes": 50}
    return table(45)[RATIO], {"discount": 0.9, **given}


@case
def settings_without_lanes() -> Made:
    return table(46)[RATIO], {"discount": 0.9, "lanes": 0}


@case
def settings_of_thresholds() -> Made:
    strict = evaluation.Thresholds(episodes_caution=500, ess_none=70.0)
    return table(47)[RATIO], {"discount": 0.9, "thresholds": strict}


@case
def methods_histories_only() -> Made:
    return table(48)[RATIO], {"discount": 0.9, "methods": "is,wis,pdis,wpdis,dr,wdr"}


@case
def methods_action_values_only() -> Made:
    return table(49)[[*STATES, *EACH, *NEXT]], {"discount": 0.9, "methods": ["lstdq"]}


@case
def methods_that_cannot_be() -> Made:
    log = line(50).rename(columns={"target_prob_1": "target_prob"})
    log["target_prob"] = np.where(log.action == 1, 0.65, 0.35)
    return log.drop(columns=["target_prob_0", *NEXT]), {
        "discount": 0.9,
        "features": "fourier:2",
        "methods": ["plugin", "lstdq", "lsetd", "sotd"],
    }


@case
def methods_learners_only() -> Made:
    return table(51)[RATIO], {"discount": 0.9, "methods": ["o2td", "tdrc", "etd", "sotd"]}


def _file(suffix: str) -> Made:
    log = table(52)[RATIO]
    folder = Path(tempfile.mkdtemp(prefix="golden"))
    path = folder / f"log.{suffix}"
    if suffix == "csv":
        log.to_csv(path, index=False)
    elif suffix == "ndjson":
        log.to_json(path, orient="records", lines=True, double_precision=15)
    elif suffix == "parquet":
        log.to_parquet(path)
    else:
        log.to_feather(path)
    return str(path), {"discount": 0.9}


@case
def file_csv() -> Made:
    return _file("csv")


@case
def file_ndjson() -> Made:
    return _file("ndjson")


@case
def file_parquet() -> Made:
    return _file("parquet")


@case
def file_arrow() -> Made:
    return _file("arrow")


@case
def frame_polars() -> Made:
    import polars as pl

    return pl.from_pandas(table(53)[RATIO]), {"discount": 0.9}


# -- what is kept ----------------------------------------------------------------------------------


def answer_of(name: str) -> evaluation.Evaluation:
    logs, options = CASES[name]()
    options.setdefault("methods", EVERY)
    return evaluation.evaluate(logs, **options)


def account(name: str) -> dict[str, Any]:
    """What is kept of the answer to one log."""
    answer = answer_of(name)
    found = answer.diagnostics
    kept = {
        "verdict": answer.verdict,
        "reasons": answer.reasons,
        "estimates": [_row(one) for one in answer.estimates if one.method not in LATER],
        "diagnostics": _without(found, *SKIPPED),
        "agreement": [row for row in found["agreement"] if row["method"] not in LEARNERS + LATER],
        "features": _without(answer.features, "candidates"),
        "model": _predictions(answer.model),
    }
    rounded: dict[str, Any] = short(kept)
    return rounded


def _row(estimate: evaluation.Estimate) -> dict[str, Any]:
    """What is kept of an estimate; of a learner only that there is one: its steps are not ours."""
    if estimate.method in LEARNERS:
        return {"method": estimate.method}
    return _without(estimate.as_dict(), "reason", "title", "kind")


def _without(found: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key not in names}


def _predictions(model: Any) -> list[float]:
    if model is None:
        return []
    inputs: Any = np.arange(2) if model.states else np.full((2, len(model.inputs)), 0.25)
    if model.states and not hasattr(model.features, "shape"):
        inputs = inputs[: model.features.n_features_out_]
    given = model.action_values(inputs) if model.of_actions else model.predict(inputs)
    flat: list[float] = np.ravel(given).tolist()
    return flat


def short(value: Any) -> Any:
    """The same with numbers to twelve digits."""
    if isinstance(value, dict):
        return {str(key): short(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [short(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return value


def compared(name: str, now: Any) -> Iterator[str]:
    """Where the answer to a log differs from the one that was kept."""
    return differences(kept()[name], now, name, WITHIN.get(name, 1e-9))


def differences(old: Any, new: Any, where: str = "", within: float = 1e-9) -> Iterator[str]:
    """Where two accounts differ, in words."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in new or key not in old:
                yield f"{where}.{key}: only {'before' if key in old else 'now'}"
            else:
                yield from differences(old[key], new[key], f"{where}.{key}", within)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, (one, two) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, two, f"{where}[{k}]", within)
    elif not alike(old, new, within):
        yield f"{where}: {old!r} before, {new!r} now"


def alike(old: Any, new: Any, within: float) -> bool:
    """Whether two numbers or sentences are the same, but for what rounding alone decides.

    Numbers from `NOISE` on, of one sign, are alike: singular equations end in them, and how large
    they are depends on the processor's order of adding up.
    """
    if old == new:
        return True
    if isinstance(old, str) and isinstance(new, str):
        return without_noise(old) == without_noise(new)
    if isinstance(old, bool) or isinstance(new, bool):
        return False
    if not (isinstance(old, (int, float)) and isinstance(new, (int, float))):
        return False
    if min(abs(old), abs(new)) >= NOISE and (old > 0) == (new > 0):
        return True
    if isinstance(old, float) or isinstance(new, float):
        return isclose(old, new, rel_tol=within, abs_tol=within)
    return False


def without_noise(text: str) -> str:
    """A sentence with one word for all numbers from `NOISE` on, without alignment.

    >>> without_noise("lstd   -0  ±4.03e+15    3.1")
    'lstd -0 ±huge 3.1'
    """
    least = len(f"{NOISE:.0f}") - 1
    huge = re.sub(r"\d[\d.]*e\+(\d+)", lambda m: "huge" if int(m[1]) >= least else m[0], text)
    return " ".join(huge.split())


def kept() -> dict[str, Any]:
    """The accounts in the file."""
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return found


def write(accounts: dict[str, Any]) -> None:
    lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in accounts.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def main(arguments: list[str]) -> int:
    names = [name for name in arguments if not name.startswith("-")] or list(CASES)
    now = {name: account(name) for name in names}
    if "--write" in arguments:
        write({**(kept() if FILE.exists() else {}), **now})
        return 0
    found = [line for name in names for line in compared(name, now[name])]
    print("\n".join(found) or f"{len(names)} logs: nothing differs")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
