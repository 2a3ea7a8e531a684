"""Words and coverage on logs that people try first: Blackjack, Taxi, Acrobot, a shop of 80 articles.

    python -m benchmarks.first_logs --rows first.ndjson --keep

All with the default options of `evaluate`. Games are Gymnasium's own; truths are exact, but for
Acrobot's, the mean of 3,000 roll-outs. In each, both policies follow a simple rule except for a share of
random actions. `--rows` keeps every answer in a file, from which another run continues, and `--keep`
writes the summary to `docs/data/first_logs.json`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd

from benchmarks.honesty.environments import environment
from o2td import evaluation, sources

KEPT = Path(__file__).resolve().parents[1] / "docs" / "data" / "first_logs.json"
Rule = tuple[int, float]  # hit below this sum, and the share of random actions
TABLES: tuple[tuple[Rule, Rule], ...] = (
    ((20, 0.5), (18, 0.05)),
    ((17, 1.0), (17, 0.1)),
    ((16, 0.3), (12, 0.1)),
)

# -- Blackjack -------------------------------------------------------------------------------------

CARDS = [*((card, 1 / 13) for card in range(1, 10)), (10, 4 / 13)]


def hits(total: int, rule: Rule) -> float:
    """The probability of another card."""
    return (1 - rule[1]) * (total < rule[0]) + rule[1] / 2


@cache
def dealt(hard: int, ace: bool) -> dict[int, float]:
    """The dealer's final sums, 0 for a bust, with their probabilities."""
    best = hard + 10 * (ace and hard <= 11)
    if hard > 21 or best >= 17:
        return {best if hard <= 21 else 0: 1.0}
    found: dict[int, float] = {}
    for card, chance in CARDS:
        for final, share in dealt(hard + card, ace or card == 1).items():
            found[final] = found.get(final, 0.0) + chance * share
    return found


@cache
def worth(hard: int, ace: bool, shown: int, rule: Rule) -> float:
    """The value of a hand against the dealer's card."""
    if hard > 21:
        return -1.0
    total = hard + 10 * (ace and hard <= 11)
    stick = sum(
        chance * share * np.sign(total - final)
        for card, chance in CARDS
        for final, share in dealt(shown + card, 1 in (shown, card)).items()
    )
    more = sum(p * worth(hard + card, ace or card == 1, shown, rule) for card, p in CARDS)
    chance = hits(total, rule)
    return float(chance * more + (1 - chance) * stick)


def blackjack(pair: int, episodes: int, seed: int) -> tuple[pd.DataFrame, float]:
    """A log with one state per hand and dealer's card, and the truth."""
    logged, wanted = TABLES[pair]
    env, rng, rows = gymnasium.make("Blackjack-v1"), np.random.default_rng([seed, 1]), []
    env.reset(seed=seed)
    for episode in range(episodes):
        (seen, _), ends, step = env.reset(), False, 0
        while not ends:
            chance, target = hits(seen[0], logged), hits(seen[0], wanted)
            action = int(rng.random() < chance)
            state = seen[0] * 22 + seen[1] * 2 + seen[2]
            seen, reward, ends, _, _ = env.step(action)
            taken = chance if action else 1 - chance
            rows.append((episode, step, state, action, reward, ends, taken, 1 - target, target))
            step += 1
    names = ["episode", "step", "state", "action", "reward", "terminated", "behavior_prob"]
    truth = sum(
        p * q * r * worth(a + b, 1 in (a, b), c, wanted)
        for a, p in CARDS
        for b, q in CARDS
        for c, r in CARDS
    )
    return pd.DataFrame(rows, columns=[*names, "target_prob_0", "target_prob_1"]), truth


# -- the others ------------------------------------------------------------------------------------


def taxi(known: bool, seed: int) -> tuple[pd.DataFrame, float]:
    """1,000 rides, with or without the probabilities of the actions taken."""
    task = environment("Taxi", 0.5, 0.1)
    log = task.sample(1000, np.random.default_rng([seed, 15])).drop(
        columns=["clock", "target_prob"]
    )
    return log if known else log.drop(columns="behavior_prob"), task.value()


def swing(epsilon: float) -> Callable[[Any], Any]:
    """Torque against the first joint's velocity."""

    def policy(observed: Any) -> Any:
        chance = np.full((len(observed), 3), epsilon / 3)
        chance[np.arange(len(chance)), np.where(np.asarray(observed)[:, 4] < 0, 2, 0)] += (
            1 - epsilon
        )
        return chance

    return policy


@cache
def acrobot_value(runs: int = 3000) -> float:
    """Mean discounted return from roll-outs, none of which lasts longer than its limit."""
    env = gymnasium.make("Acrobot-v1", max_episode_steps=3000)
    log = sources.rollouts(
        env, swing(0.1), discount=0.99, episodes=runs, seed=777, target=swing(0.1)
    )
    return float(evaluation.evaluate(log, methods=["is"], lanes=0)["is"].value)


def acrobot(seed: int) -> tuple[Any, float]:
    """200 episodes with 30 % random torques, for a target with 10 %."""
    asked = {"discount": 0.99, "episodes": 200, "seed": 1000 * seed, "target": swing(0.1)}
    return sources.rollouts("Acrobot-v1", swing(0.3), **asked), acrobot_value()


def shop(seed: int, rows: int = 10_000, articles: int = 80) -> tuple[pd.DataFrame, float]:
    """Clicks on one of 80 articles, six kinds of visitors, logged propensities."""
    world = np.random.default_rng(7)
    clicks = np.clip(world.beta(1.2, 20, (6, articles)), 0, 1)
    logged = world.dirichlet(np.full(articles, 2.0), 6) * 0.8 + 0.2 / articles
    wanted = np.exp(25 * clicks)
    wanted = 0.8 * wanted / wanted.sum(axis=1, keepdims=True) + 0.2 * logged
    rng = np.random.default_rng([seed, 3])
    kind = rng.integers(6, size=rows)
    action = (rng.random(rows)[:, None] > np.cumsum(logged[kind], axis=1)).sum(axis=1)
    action = action.clip(0, articles - 1)
    log = {"state": kind, "action": action, "behavior_prob": logged[kind, action]}
    log["reward"] = (rng.random(rows) < clicks[kind, action]).astype(float)
    log["target_prob"] = wanted[kind, action]
    return pd.DataFrame(log), float((wanted * clicks).sum(axis=1).mean())


def cases() -> dict[str, list[tuple[int, Callable[[], tuple[Any, float]], float | None]]]:
    """By name: the seed of each answer, what makes log and truth, and the discount."""
    found: dict[str, list[Any]] = {}
    for games in (1000, 4000):
        found[f"Blackjack, {games:,} games"] = [
            (1000 * pair + seed, lambda p=pair, n=games, s=seed: blackjack(p, n, s), 1.0)
            for pair in range(len(TABLES))
            for seed in range(600, 624)
        ]
    for name, known in (("Taxi", True), ("Taxi, behaviour not logged", False)):
        found[name] = [(k, lambda k=k, w=known: taxi(w, k), 0.97) for k in range(400, 412)]
    found["Acrobot"] = [(k, lambda k=k: acrobot(k), None) for k in range(50, 60)]
    found["shop of 80 articles"] = [(k, lambda k=k: shop(k), None) for k in range(200, 220)]
    return found


def ask(name: str, seed: int, made: tuple[Any, float], discount: float | None) -> dict[str, Any]:
    """One answer with default options."""
    log, truth = made
    answer = evaluation.evaluate(log, discount=discount, seed=seed % 1000)
    best = answer.recommended
    return {
        "log": name,
        "seed": seed,
        "method": best.method,
        "verdict": answer.verdict,
        "error": None if best.value is None else best.value - truth,
        "covers": best.covers(truth, widened=True),
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Answers, *trusts*, and how many of each cover, by kind of log."""
    found: dict[str, Any] = {}
    for name in cases():
        mine = [row for row in rows if row["log"] == name]
        trusted = [row for row in mine if row["verdict"] == "trust"]
        found[name] = {
            "answers": len(mine),
            "covered": sum(row["covers"] for row in mine),
            "trust": len(trusted),
            "trust covered": sum(row["covers"] for row in trusted),
            "cannot answer": sum(row["verdict"] == "cannot answer" for row in mine),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--only", default="", help="a part of the name of what to run")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    lines = given.rows.read_text("utf-8").splitlines() if given.rows.exists() else []
    rows = [json.loads(line) for line in lines]
    done = {(row["log"], row["seed"]) for row in rows}
    for name, asked in cases().items():
        for seed, make, discount in asked:
            if (name, seed) in done or given.only not in name:
                continue
            rows.append(ask(name, seed, make(), discount))
            with given.rows.open("a", encoding="utf-8") as out:
                out.write(json.dumps(rows[-1]) + "\n")
    found = summary(rows)
    print(json.dumps(found, indent=1))
    if given.keep:
        KEPT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
