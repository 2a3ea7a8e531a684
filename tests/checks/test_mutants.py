"""Learners and solvers with one fault each: the right check must find it, and say what it expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from o2td import LSTD, TD, Transitions
from o2td.checks import CheckError, all_checks
from o2td.solvers import BellmanResidual


def changed(batch: Transitions, **fields: Any) -> Transitions:
    """The batch with some fields replaced, unchecked."""
    other = batch[:]
    for name, value in fields.items():
        setattr(other, name, value)
    return other


class ForgetsToCut(TD):
    def _fill_rows(self, block: Transitions, out: Any) -> None:
        super()._fill_rows(changed(block, start=np.zeros(block.n, dtype=bool)), out)


class DecaysByNextDiscount(TD):
    def _fill_rows(self, block: Transitions, out: Any) -> None:
        super()._fill_rows(block, out)
        into = np.append(1.0, block.rho[:-1])
        out["decay"][:] = np.where(block.start, 0.0, self.trace * into * block.discount)


class RatioTwice(TD):
    def _fill_rows(self, block: Transitions, out: Any) -> None:
        super()._fill_rows(block, out)
        out["gain"] *= block.rho


class RatioForgotten(TD):
    def _fill_rows(self, block: Transitions, out: Any) -> None:
        super()._fill_rows(changed(block, rho=np.ones(block.n)), out)


class ChangesItsInput(TD):
    def partial_fit(self, transitions: Any) -> Any:
        super().partial_fit(transitions)
        owner = getattr(transitions, "reward", None)
        if owner is not None and owner.base is not None and owner.base.flags.writeable:
            owner.base *= 2.0
        return self


class KeepsNaN(TD):
    @property
    def theta(self) -> Any:
        theta = super().theta
        return theta if self._diverged[0] < 0 else np.full_like(theta, np.nan)


class ForgetsItsTrace(TD):
    @classmethod
    def load(cls, path: Any) -> Any:
        learner = super().load(path)
        learner._arrays["z"] = np.zeros_like(learner._arrays["z"])
        return learner


class CountsPredictions(TD):
    predictions = 0

    def predict(self, phi: Any) -> Any:
        self.predictions += 1
        return super().predict(phi)


class CountsBeforeChecking(TD):
    seen = 0

    def _check(self, batch: Any) -> bool:
        self.seen += 1
        return super()._check(batch)


class BeginsAtZero(TD):
    def _allocate(self, d: int) -> None:
        super()._allocate(d)
        self._arrays["theta"][:] = 0.0


class TruncationIsTermination(TD):
    def partial_fit(self, transitions: Any) -> Any:
        if isinstance(transitions, Transitions) and transitions.n:
            last = np.append(transitions.start[1:], False)
            ended = np.where(last, 0.0, transitions.discount)
            transitions = changed(transitions, discount=ended)
        return super().partial_fit(transitions)


class ReadsPastTheEnd(TD):
    def partial_fit(self, transitions: Any) -> Any:
        if isinstance(transitions, Transitions) and transitions.n:
            transitions = transitions.retargeted(discount=np.maximum(transitions.discount, 0.1))
        return super().partial_fit(transitions)


class Random(TD):
    noise = np.random.default_rng(0)

    def _fill_rows(self, block: Transitions, out: Any) -> None:
        super()._fill_rows(block, out)
        out["gain"] *= 1.0 + 0.01 * self.noise.random(block.n)


class FavoursItsFirstFeature(TD):
    def partial_fit(self, transitions: Any) -> Any:
        super().partial_fit(transitions)
        self._arrays["theta"][0, 0] *= 0.5
        return self


class WrongTheory(TD):
    def mean_dynamics(self, model: Any) -> Any:
        right = super().mean_dynamics(model)
        return type(right)(right.A * 1.1, right.b, right.d)


class CountsOnlyUpdates(TD):
    def partial_fit(self, transitions: Any) -> Any:
        if isinstance(transitions, Transitions) and not transitions.rho.any():
            return self
        return super().partial_fit(transitions)


class LearnsOneWithoutStarts(TD):
    def learn_one(self, *row: Any, **fields: Any) -> Any:
        return super().learn_one(*row, **{**fields, "start": False})


class RemembersEverything(TD):
    def partial_fit(self, transitions: Any) -> Any:
        super().partial_fit(transitions)
        self.past = [*getattr(self, "past", []), *transitions.reward.tolist()]
        return self


class RewardsExtra(TD):
    def partial_fit(self, transitions: Any) -> Any:
        if isinstance(transitions, Transitions):
            transitions = transitions.retargeted(reward=transitions.reward + 1e-3)
        return super().partial_fit(transitions)


class KnowsOneScale(TD):
    def _fill_rows(self, block: Transitions, out: Any) -> None:
        super()._fill_rows(block, out)
        if self.step_size == "auto":
            out["gain"][:] = 0.1 * block.rho


class MistakesTables(TD):
    def partial_fit(self, transitions: Any) -> Any:
        if isinstance(transitions, Transitions) and transitions.layout == "table":
            transitions = changed(transitions, next_state=np.maximum(transitions.state, 0))
        return super().partial_fit(transitions)


class KeepsListsOfTraces(TD):
    def __init__(self, step_size: Any = 0.05, trace: float = 0.8) -> None:
        super().__init__(step_size, trace=trace)

    def _forget_sparse(self) -> None:
        if "active" not in self._arrays:
            super()._forget_sparse()


class ForgetsBetweenCalls(TD):
    def partial_fit(self, transitions: Any) -> Any:
        super().partial_fit(transitions)
        if "z" in self._arrays:
            self._arrays["z"][:] = 0.0
        return self


class UsesRewardsOfOthers(TD):
    def _fill_rows(self, block: Transitions, out: Any) -> None:
        super()._fill_rows(block, out)
        out["gain"] += 1e-3 * (block.rho == 0.0)


LEARNERS = [
    (ForgetsToCut, "start_cuts"),
    (DecaysByNextDiscount, "termination_cuts"),
    (DecaysByNextDiscount, "trace_reaches_the_end"),
    (RatioTwice, "drift"),
    (RatioTwice, "rest_at_limit"),
    (RatioForgotten, "zero_ratio_ignores_reward"),
    (ChangesItsInput, "inputs_untouched"),
    (KeepsNaN, "divergence"),
    (KeepsNaN, "extremes"),
    (ForgetsItsTrace, "save_and_resume"),
    (CountsPredictions, "predict_pure"),
    (CountsBeforeChecking, "bad_input"),
    (CountsBeforeChecking, "empty_batch"),
    (BeginsAtZero, "initial_theta"),
    (TruncationIsTermination, "truncation_bootstraps"),
    (ReadsPastTheEnd, "termination_ignores_successors"),
    (Random, "reproducible"),
    (FavoursItsFirstFeature, "permuted_features"),
    (FavoursItsFirstFeature, "splits"),
    (WrongTheory, "drift"),
    (CountsOnlyUpdates, "zero_ratio_keeps_theta"),
    (LearnsOneWithoutStarts, "learn_one"),
    (RemembersEverything, "bounded_memory"),
    (RewardsExtra, "zero_rewards"),
    (RewardsExtra, "linear_in_rewards"),
    (KnowsOneScale, "scale_free"),
    (MistakesTables, "layouts"),
    (KeepsListsOfTraces, "layouts_in_turn"),
    (ForgetsBetweenCalls, "splits"),
    (UsesRewardsOfOthers, "zero_ratio_ignores_reward"),
]


class MergesBackwards(LSTD):
    def merge(self, other: Any) -> Any:
        if type(other) is type(self) and other is not self and other._sums is not None:
            mine, self._sums = self._sums, None
            self._append(other._sums)
            return self if mine is None else self._append(mine)
        return super().merge(other)


class KeepsOnlyTheLast(LSTD):
    def update(self, transitions: Any) -> Any:
        super().update(transitions)
        self._sums = self._collected(transitions)
        return self


class ClaimsTooMuch(LSTD):
    def _solve(self, sums: Any) -> Any:
        from dataclasses import replace

        return replace(super()._solve(sums), status="ok")


class PrefersALargeTheta(LSTD):
    def _solve(self, sums: Any) -> Any:
        from dataclasses import replace

        answer = super()._solve(sums)
        if answer.status != "minimum norm":
            return answer
        null = np.zeros_like(answer.theta)
        null[0], null[1] = 0.8, -0.6
        return replace(answer, theta=answer.theta + null)


class WrongLimit(LSTD):
    def limit(self, model: Any) -> Any:
        return 1.2 * super().limit(model)


class CountsRows(LSTD):
    def _solve(self, sums: Any) -> Any:
        from dataclasses import replace

        answer = super()._solve(sums)
        return replace(answer, theta=answer.theta * sums.rows / (sums.rows + 1.0))


class ChangesOnPredict(LSTD):
    def predict(self, phi: Any) -> Any:
        self.asked = True
        return super().predict(phi)


class EndsWhereCut(BellmanResidual):
    def _collect(self, batch: Any) -> Any:
        last = np.append(batch.start[1:], True)
        return super()._collect(changed(batch, discount=np.where(last, 0.0, batch.discount)))


class LosesItsPlace(LSTD):
    @classmethod
    def load(cls, path: Any) -> Any:
        solver = super().load(path)
        solver._sums.carry[:] = 0.0
        return solver


SOLVERS = [
    (MergesBackwards(trace=0.5), "merged"),
    (KeepsOnlyTheLast(), "chunks"),
    (ClaimsTooMuch(), "singular_features"),
    (PrefersALargeTheta(), "singular_features"),
    (WrongLimit(), "near_limit"),
    (CountsRows(), "duplicates"),
    (ChangesOnPredict(), "predict_pure"),
    (EndsWhereCut(), "truncation_is_no_end"),
    (LosesItsPlace(trace=0.5), "save_and_resume"),
]


def caught(kind: str, subject: Any, name: str) -> str:
    check = next(check for check in all_checks(kind, subject) if check.name == name)
    with pytest.raises(CheckError) as error:
        check()
    assert check.promise in str(error.value)
    assert type(subject).__name__ in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(("mutant", "name"), LEARNERS, ids=lambda x: getattr(x, "__name__", x))
def test_a_broken_learner_is_caught(mutant: type[TD], name: str) -> None:
    caught("learners", mutant(trace=0.7), name)


@pytest.mark.parametrize(("mutant", "name"), SOLVERS, ids=lambda x: getattr(x, "__name__", str(x)))
def test_a_broken_solver_is_caught(mutant: LSTD, name: str) -> None:
    caught("solvers", mutant, name)


def test_every_learner_check_is_known_by_name() -> None:
    names = {check.name for check in all_checks("learners", TD)}
    assert {name for _, name in LEARNERS} <= names
    assert len(names) >= 25


def test_each_kind_has_its_checks() -> None:
    counts = {kind: len({c.name for c in all_checks(kind)}) for kind in ("learners", "solvers")}
    assert sum(counts.values()) >= 50
