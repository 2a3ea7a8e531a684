"""What a log's account says about how it was read."""

from __future__ import annotations

import numpy as np
import pytest

from o2td import sources
from tests.sources.small_logs import log_of, opened

ESTIMATED = "the behaviour's probabilities are estimated"
SINGLE = "each row is one decision"


def remarks(source):
    source.scan()
    return source.info.remarks


def test_a_plain_log_needs_no_remark():
    assert remarks(opened(log_of())) == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda log: log.drop(columns="step"), "no column for step: rows are taken to be in order"),
        (
            lambda log: log.drop(columns="episode").assign(truncated=False),
            "episodes end where terminated or truncated is true",
        ),
        (lambda log: log.assign(obs_0=0.5), "to use column state instead, name it as state"),
        (lambda log: log.drop(columns="behavior_prob"), ESTIMATED),
    ],
)
def test_each_guess_is_said(change, said):
    (found,) = remarks(opened(change(log_of())))
    assert said in found


def test_a_value_model_is_said_to_be_unchecked():
    source = opened(log_of(), target=np.full((3, 2), 0.5), value_model=np.zeros(3))
    (found,) = remarks(source)
    assert "is corrected by dr and wdr" in found
    assert "needs no cross-fitting if the model never saw this log" in found


def test_single_decisions_are_said_to_be_that():
    log = log_of()[["state", "action", "reward", "behavior_prob", "target_prob"]]
    (found,) = remarks(sources.open_logs(log))
    assert SINGLE in found
    alone, same = remarks(sources.open_logs(log.drop(columns="state")))
    assert SINGLE in alone
    assert "all decisions count as made in one state" in same
