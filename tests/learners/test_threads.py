"""One learner in several threads, and after a fork: it works or refuses by name, never a mixture."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import o2td
from o2td import domains
from o2td.errors import InputError

ROWS = domains.random_mdp(states=20, features=15).sample(150_000, seed=0)
NAMES = ["TD", "ETD", "TDRC", "GTD2MP", "O2TD"]


def again(learner: Any) -> Any:
    return pickle.loads(pickle.dumps(learner))  # noqa: S301


def made(name: str) -> Any:
    return o2td.registry.LEARNERS[name](step_size=1e-3)


def meanwhile(
    learner: Any, act: Callable[[], Any], rows: o2td.Transitions = ROWS, turns: int = 30
) -> tuple[int, int, list[Any]]:
    """Do something again and again while another thread learns: what each did, and refusals."""
    done, refused = [0, 0], []
    begun = threading.Event()

    def often() -> None:
        for _ in range(turns):
            try:
                learner.partial_fit(rows)
                done[0] += 1
            except InputError as error:
                refused.append(error)
            begun.set()

    other = threading.Thread(target=often)
    other.start()
    begun.wait()
    while other.is_alive():
        try:
            act()
            done[1] += 1
        except InputError as error:
            refused.append(error)
    other.join()
    return done[0], done[1], refused


def blocks(first: int, rows: int) -> o2td.Transitions:
    """Rows that touch three features of their own: whole batches of such kinds may come in any order."""
    rng = np.random.default_rng(first)
    phi = np.zeros((rows, 6))
    phi[:, first : first + 3] = rng.normal(size=(rows, 3))
    start = np.arange(rows) == 0
    return o2td.Transitions(phi, rng.normal(size=rows), phi[::-1], 0.9, start=start)


@pytest.mark.parametrize("name", ["TD", "ETD", "TDRC", "GTD2MP"])
def test_two_threads_never_leave_a_mixture(name: str) -> None:
    """With traces, rows of one batch between those of another would carry its features into both."""
    kind = o2td.registry.LEARNERS[name]
    large, small = blocks(0, 100_000), blocks(3, 50)
    learner = kind(step_size=1e-4, trace=0.9)
    learner.partial_fit(large)
    many, few, refused = meanwhile(learner, lambda: learner.partial_fit(small), large)
    assert refused
    assert "learning in another thread" in str(refused[0])
    assert name in str(refused[0])
    alone = kind(step_size=1e-4, trace=0.9)
    for _ in range(1 + many):
        alone.partial_fit(large)
    for _ in range(few):
        alone.partial_fit(small)
    np.testing.assert_array_equal(learner.theta, alone.theta)


@pytest.mark.parametrize("act", ["predict", "theta", "save", "learn_one", "reset", "fit"])
def test_what_is_half_learned_is_not_shown_or_changed(act: str, tmp_path: Any) -> None:
    learner = made("TD").partial_fit(ROWS[:1])
    phi = np.array(ROWS.phi[0])
    acts: dict[str, Callable[[], Any]] = {
        "predict": lambda: learner.predict(phi),
        "theta": lambda: learner.theta,
        "save": lambda: learner.save(tmp_path / "learner.npz"),
        "learn_one": lambda: learner.learn_one(phi, 0.0, phi, 0.9),
        "reset": lambda: learner.reset(),
        "fit": lambda: learner.fit(ROWS[:1]),
    }
    assert meanwhile(learner, acts[act])[2]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_refused_while_a_batch_is_learned(name: str) -> None:
    learner, phi = made(name).partial_fit(ROWS[:10]), np.array(ROWS.phi[0])
    learner.learn_one(phi, 1.0, phi, 0.9)
    before = learner.theta
    learner._hold()  # as another thread would
    with pytest.raises(InputError, match="another thread"):
        learner.learn_one(phi, 1.0, phi, 0.9)
    learner._release()
    np.testing.assert_array_equal(learner.theta, before)
    assert learner.learn_one(phi, 1.0, phi, 0.9).steps == 12


@pytest.mark.parametrize("name", ["TD", "GTD2"])
def test_a_step_does_nothing_to_a_state_that_has_moved(name: str) -> None:
    """A thread may have looked up both just before another moved the state."""
    phi = np.array(blocks(0, 1).phi[0])
    sparse = o2td.Transitions(csr_array([phi]), [1.0], csr_array([phi]), 0.9)

    def packed_anew(learner: Any) -> None:
        learner.step_size = 0.5
        learner.learn_one(phi, 1.0, phi, 0.9)

    for move in (packed_anew, lambda learner: learner.partial_fit(sparse)):
        learner = made(name).partial_fit(blocks(0, 5)).learn_one(phi, 1.0, phi, 0.9)
        step, packed = learner._step, learner._packed
        assert step(packed, phi, phi, 1.0, 0.9, 1.0, 0) == 1
        move(learner)
        assert step(packed, phi, phi, 1.0, 0.9, 1.0, 0) == 0


@pytest.fixture
def eager() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", ["TD", "GTD2"])
def test_no_row_of_two_threads_is_lost(name: str) -> None:
    """Also where setting a parameter or learning from CSR rows moves the state in between."""
    few, phi = blocks(3, 20), np.array(blocks(0, 1).phi[0])
    sparse = o2td.Transitions(
        csr_array(few.phi), few.reward, csr_array(few.next_phi), 0.9, start=few.start
    )
    acts: dict[str, Callable[[Any], Any]] = {
        "row": lambda learner: learner.learn_one(phi, 1.0, phi, 0.9, start=True),
        "few": lambda learner: learner.partial_fit(few),
        "sparse": lambda learner: learner.partial_fit(sparse),
        "set": lambda learner: setattr(learner, "step_size", 1e-3),
    }
    for compiled in acts.values():
        compiled(made(name).partial_fit(few))
    learner, done = made(name).partial_fit(few), ["few"]

    def several(*names: str) -> None:
        for name in names:
            try:
                acts[name](learner)
                done.append(name)
            except InputError:
                pass

    other = threading.Thread(target=lambda: several(*500 * (*8 * ("row",), "set")))
    other.start()
    while other.is_alive():
        several("few", "row", "row", "sparse", "row")
    other.join()
    assert done.count("row") > 1000
    alone = made(name)
    for act in done:
        acts[act](alone)
    assert learner.steps == alone.steps
    np.testing.assert_allclose(learner.theta, alone.theta, rtol=1e-12)


class Late:
    """Features that take long to convert: meanwhile another thread does something."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    def __array__(self, *_: Any, **__: Any) -> Any:
        self.act()
        return np.array(ROWS.phi[:3])


def rows_arrive(learner: Any) -> None:
    learner.partial_fit(ROWS[:10])


def it_forgets(learner: Any) -> None:
    learner.reset()


def it_learns_others_instead(learner: Any) -> None:
    """As many rows as before, so that their number does not tell."""
    learner.fit(ROWS[500:600])


def it_forgets_and_one_row_arrives(learner: Any) -> None:
    learner.reset().learn_one(np.array(ROWS.phi[0]), 0.0, np.array(ROWS.phi[0]), 0.9)


@pytest.mark.parametrize("interval", [None, 0.9])
@pytest.mark.parametrize(
    "act", [rows_arrive, it_forgets, it_learns_others_instead, it_forgets_and_one_row_arrives]
)
def test_weights_that_change_while_they_are_read_predict_nothing(
    act: Callable[[Any], None], interval: float | None
) -> None:
    learner = o2td.TD(step_size=1e-3, average=True, replicates=4).partial_fit(ROWS[:100])
    with pytest.raises(InputError, match="learning in another thread") as refused:
        learner.predict(Late(lambda: act(learner)), interval)
    assert refused.value.__suppress_context__  # no KeyError of what was no longer there
    learner.partial_fit(ROWS[:100]).predict(ROWS.phi[:3], interval)


def test_intervals_of_two_threads_are_those_of_one() -> None:
    """While one thread learns, another is refused or gets the interval after a whole batch."""
    learner = o2td.TD(step_size=1e-3, trace=0.5, average=True, replicates=4)
    alone = copy.deepcopy(learner)
    rows, phi = ROWS[:2000], np.array(ROWS.phi[:200])
    expected = [np.array(alone.partial_fit(rows).predict(phi, 0.9)) for _ in range(31)]
    learner.partial_fit(rows)
    told: list[Any] = []
    meanwhile(learner, lambda: told.append(np.array(learner.predict(phi, 0.9))), rows)
    told.append(np.array(learner.predict(phi, 0.9)))
    for one in told:
        assert any(np.array_equal(one, other) for other in expected)


def test_a_learner_for_each_thread_learns_as_if_alone() -> None:
    learners = [made(name) for name in NAMES]
    threads = [threading.Thread(target=one.partial_fit, args=(ROWS,)) for one in learners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, one in zip(NAMES, learners, strict=True):
        np.testing.assert_array_equal(one.theta, made(name).partial_fit(ROWS).theta)


def test_an_error_and_a_copy_leave_it_free() -> None:
    learner = made("TD").partial_fit(ROWS[:10])
    with pytest.raises(InputError):
        learner.partial_fit(None)
    with pytest.raises(InputError):
        learner.learn_one([], 0.0, [], 0.9)
    for other in (copy.copy(learner), copy.deepcopy(learner), again(learner)):
        assert other._busy is not learner._busy
        np.testing.assert_array_equal(
            other.partial_fit(ROWS[:50]).theta, copy.deepcopy(learner).partial_fit(ROWS[:50]).theta
        )


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("busy", [False, True])
def test_after_a_fork_it_goes_on_or_refuses(busy: bool) -> None:
    learner = o2td.TD(step_size=1e-3, average=True, replicates=4).partial_fit(ROWS[:1000])
    wanted = copy.deepcopy(learner).partial_fit(ROWS[:1000]).predict(ROWS.phi[:3], 0.9)
    if busy:
        learner._hold()  # as another thread would in the middle of a row
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = learner.partial_fit(ROWS[:1000]).predict(ROWS.phi[:3], 0.9)
            answer = b"same" if np.array_equal(found, wanted) else b"other"
        except InputError:
            answer = b"refused"
        os.write(writer, answer)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 10) == (b"refused" if busy else b"same")
    os.close(reader)
    os.close(writer)
