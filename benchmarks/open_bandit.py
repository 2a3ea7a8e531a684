"""A log from outside, of a policy we never ran: what `evaluate` says about a fashion shop.

    python -m benchmarks.open_bandit --keep

The Open Bandit Dataset (Saito, Aihara, Matsutani and Narita, arXiv:2008.07146, CC BY 4.0) has clicks
on items that ZOZOTOWN recommended, by two policies at the same time: uniformly at random, and by
Bernoulli Thompson sampling. So the log of one policy gives an estimate of the other's value, and the
other's own log the answer, up to the error of its mean. The package `obp` contains 10,000 rows of each
policy in each of three campaigns; pip downloads it into `build/open_bandit`, and none of its code runs.
The probabilities of Thompson sampling come from the prior that the package states, by simulation.

No threshold was set on these logs. Reading them revealed two faults, which were fixed before these
answers: a test of probabilities was wrong where a policy changes while it logs, and logs without a
context were refused.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from o2td import evaluation

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "data" / "open_bandit.json"
FOLDER = ROOT / "build" / "open_bandit"
PACKAGE = "obp==0.4.1"
CAMPAIGNS = ("men", "women", "all")
DRAWS, AT_ONCE = 200_000, 20_000
COLUMNS = {
    "reward": "click",
    "action": "item_id",
    "state": "position",
    "behavior_prob": "propensity_score",
    "target_prob": "target",
}


def wheel() -> zipfile.ZipFile:
    """The package, downloaded once."""
    if not list(FOLDER.glob("obp-*.whl")):
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
        subprocess.run([*pip, "--no-deps", "--dest", str(FOLDER), PACKAGE], check=True)
    return zipfile.ZipFile(next(FOLDER.glob("obp-*.whl")))


def log_of(package: zipfile.ZipFile, policy: str, campaign: str) -> pl.DataFrame:
    path = f"obp/dataset/obd/{policy}/{campaign}/{campaign}.csv"
    return pl.read_csv(package.read(path)).select(
        "item_id", "position", "click", "propensity_score"
    )


def thompson(package: zipfile.ZipFile, campaign: str) -> Any:
    """(items, 3): the probability that Thompson sampling shows an item at a position."""
    prior = yaml.safe_load(package.read("obp/policy/conf/prior_bts.yaml"))[campaign]
    rng = np.random.default_rng(0)
    count = np.zeros((len(prior["alpha"]), 3))
    for _ in range(DRAWS // AT_ONCE):
        drawn = rng.beta(prior["alpha"], prior["beta"], size=(AT_ONCE, len(count)))
        top = np.argsort(-drawn, axis=1)[:, :3]
        for place in range(3):
            count[:, place] += np.bincount(top[:, place], minlength=len(count))
    return count / DRAWS


def ask(package: zipfile.ZipFile, campaign: str, logged: str, target: str) -> dict[str, Any]:
    """One answer beside the truth."""
    log, truth = (log_of(package, policy, campaign) for policy in (logged, target))
    chances = thompson(package, campaign)
    if target == "random":
        chances = np.full_like(chances, 1.0 / len(chances))
    shown = chances[log["item_id"].to_numpy(), log["position"].to_numpy() - 1]
    answer = evaluation.evaluate(log.with_columns(pl.Series("target", shown)), columns=COLUMNS)
    best, clicks = answer.recommended, truth["click"].to_numpy()
    mean, error = float(clicks.mean()), float(clicks.std() / np.sqrt(len(clicks)))
    return {
        "campaign": campaign,
        "logged": logged,
        "target": target,
        "rows": log.height,
        "truth": mean,
        "error": error,
        "method": best.method,
        "value": best.value,
        "low": best.low,
        "high": best.high,
        "verdict": answer.verdict,
        "covers": bool(best.low - 1.96 * error <= mean <= best.high + 1.96 * error),
        "inside": bool(best.low <= mean <= best.high),
        "reasons": list(best.reasons),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", action="store_true", help=f"write {KEPT.relative_to(ROOT)}")
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with wheel() as package:
        answers = [
            ask(package, campaign, *pair)
            for campaign in CAMPAIGNS
            for pair in (("bts", "random"), ("random", "bts"))
        ]
    for answer in answers:
        print(json.dumps(answer))
    if given.keep:
        KEPT.write_text(json.dumps({"package": PACKAGE, "answers": answers}, indent=1) + "\n")


if __name__ == "__main__":
    main()
