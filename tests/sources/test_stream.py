"""Transitions of random logs of all shapes, in chunks of all sizes, against a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from o2td import sources

COLUMNS = ("reward", "action", "step", "episode", "terminated", "truncated", "discount", "rho")


def log_of(seed: int, seen: str, given: bool, bare: bool) -> pd.DataFrame:
    """Episodes of one to six rows that end in every way, some with a row of a final observation."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for episode in range(12):
        length = int(rng.integers(1, 7))
        ends = rng.choice(["terminated", "truncated", ""])
        for _ in range(length):
            chance = rng.uniform(0.1, 0.9)
            row: dict[str, Any] = {"episode": episode, "action": float(rng.integers(2))}
            row |= {"reward": rng.normal(), "behavior_prob": 0.5}
            row |= {"target_prob_0": chance, "target_prob_1": 1.0 - chance}
            row |= {"terminated": False, "truncated": False, "x": float(rng.integers(9))}
            row["y"] = float(rng.integers(9)) if given and rng.random() < 0.6 else np.nan
            known = given and rng.random() < 0.5
            later = rng.uniform(0.1, 0.9)
            row["next_target_prob_0"] = later if known else np.nan
            row["next_target_prob_1"] = 1.0 - later if known else np.nan
            rows.append(row)
        if ends:
            rows[-1][ends] = True
        if bare and rng.random() < 0.5:
            last = dict(rows[-1]) | {"x": float(rng.integers(9)), "y": np.nan}
            last |= {"action": np.nan, "reward": np.nan, "behavior_prob": np.nan}
            if rng.random() < 0.5:  # the flag stands here instead
                rows[-1]["terminated"] = rows[-1]["truncated"] = False
            rows.append(last)
    log = pd.DataFrame(rows)
    here, ahead = ("state", "next_state") if seen == "state" else ("obs_0", "next_obs_0")
    log = log.rename(columns={"x": here, "y": ahead})
    if not given:
        log = log.drop(columns=[ahead, "next_target_prob_0", "next_target_prob_1"])
    return log


def plain(
    log: pd.DataFrame, seen: str, horizon: int | None
) -> tuple[list[dict[str, Any]], list[Any]]:
    """Each kept row as a dictionary, and the starts of episodes without any."""
    here, ahead = ("state", "next_state") if seen == "state" else ("obs_0", "next_obs_0")
    found: list[dict[str, Any]] = []
    lone: list[Any] = []
    number = -1
    for _, rows in log.groupby("episode"):
        made = []
        listed = rows.to_dict("records")
        steps = [row for row in listed if not np.isnan(row["reward"])]
        final = listed[-1] if len(listed) > len(steps) else None
        for t, row in enumerate(steps):
            last = t == len(steps) - 1
            terminated, truncated = row["terminated"], row["truncated"]
            if last and final is not None:
                terminated |= final["terminated"]
                truncated |= final["truncated"]
            follows = steps[t + 1] if not last else final
            own = row.get(ahead, np.nan)
            known = not np.isnan(own)
            if last and final is None and not known and horizon == t + 1:
                terminated, truncated = True, False
            if not (known or follows is not None or terminated):
                continue
            after = own if known else (row if follows is None else follows)[here]
            if terminated:
                after = -1 if seen == "state" else row[here]
            now = np.array([row["target_prob_0"], row["target_prob_1"]])
            later = np.array([row.get(f"next_target_prob_{k}", np.nan) for k in range(2)])
            if np.isnan(later).any():
                later = np.full(2, np.nan)
                if follows is not None:
                    later = np.array([follows["target_prob_0"], follows["target_prob_1"]])
            made.append(
                {
                    "reward": row["reward"],
                    "action": int(row["action"]),
                    "step": len(made),
                    "terminated": terminated,
                    "truncated": truncated,
                    "discount": 0.0 if terminated else 0.9,
                    "rho": now[int(row["action"])] / 0.5,
                    "here": row[here],
                    "after": after,
                    "now": now,
                    "later": np.zeros(2) if terminated else later,
                }
            )
        if made:
            number += 1
            found += [row | {"episode": number} for row in made]
        else:
            lone.append((len(found), steps[0][here]))
    return found, lone


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize("seen", ["state", "obs"])
@pytest.mark.parametrize(
    ("given", "bare", "horizon"),
    [
        (False, False, None), (True, False, None), (False, True, None), (True, True, None),
        (True, False, 3), (False, True, 2),
    ],
)  # fmt: skip
def test_rows_and_their_successors(
    rows: int, seen: str, given: bool, bare: bool, horizon: int | None
) -> None:
    log = log_of(rows + 10 * given + 20 * bare, seen, given, bare)
    if not bare:
        log = log.astype({"action": int})
    source = sources.open_logs(log, discount=0.9)
    with source.until(horizon):
        chunks = list(source.chunks(rows))
    wanted, lone = plain(log, seen, horizon)

    def joined(name: str) -> Any:
        return np.concatenate([getattr(chunk, name) for chunk in chunks])

    for name in COLUMNS:
        np.testing.assert_allclose(joined(name), [row[name] for row in wanted], err_msg=name)
    pair = ("state", "next_state") if seen == "state" else ("observation", "next_observation")
    for name, key in zip(pair, ("here", "after"), strict=True):
        np.testing.assert_array_equal(joined(name).ravel(), [row[key] for row in wanted], name)
    np.testing.assert_array_equal(joined("start"), [row["step"] == 0 for row in wanted])
    np.testing.assert_array_equal(joined("target_probs"), [row["now"] for row in wanted])
    np.testing.assert_array_equal(joined("next_target_probs"), [row["later"] for row in wanted])
    assert source.info.transitions == len(wanted)
    assert source.info.episodes == len({row["episode"] for row in wanted})
    steps = int(log.reward.notna().sum())
    assert source.info.dropped.get("no final observation", 0) == steps - len(wanted)
    empty = "episodes of which no transition remains"
    assert source.info.notes.get(empty, 0) == len(lone)
    held, low = [], 0
    for chunk in chunks:
        if chunk.lone is not None:
            held += list(zip(chunk.lone.before + low, chunk.lone.input.ravel(), strict=True))
        low += len(chunk)
    assert [(int(at), float(x)) for at, x in held] == [(at, float(x)) for at, x in lone]
    unknown = sum(bool(np.isnan(row["later"]).any()) for row in wanted)
    said = "next_target_prob unknown in the last row of an episode"
    assert source.info.notes.get(said, 0) == unknown
