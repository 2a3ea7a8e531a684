"""Reads and writes of compiled loops: the right element, and the promise that the compiler gets."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numba import njit

from o2td import load_store

GETTERS = {
    "rows": load_store.get_row,
    "theta": load_store.get_theta,
    "w": load_store.get_w,
    "z": load_store.get_z,
}
PUTTERS = {"theta": load_store.put_theta, "w": load_store.put_w, "z": load_store.put_z}
OTHERS = {name: set(GETTERS) - {name} for name in GETTERS}


def regions(llvm: str, listed: str) -> set[str]:
    """Names of the regions in a list of scopes, `!7 = !{!3, !5}`."""
    nodes = dict(re.findall(r"^(!\d+) = (?:distinct )?!\{(.*)\}$", llvm, re.MULTILINE))
    scopes = [nodes[one] for one in re.findall(r"!\d+", nodes[listed])]
    for scope in scopes:
        domain = nodes[scope.split(", ")[1]]
        assert domain == '!"o2td"'
    return {re.findall(r'!"o2td (\w+)"', scope)[0] for scope in scopes}


def promises(llvm: str, access: str) -> set[tuple[str, frozenset[str]]]:
    """Own region and excluded regions of all loads or stores that carry a promise."""
    found = set()
    for line in llvm.splitlines():
        if re.match(rf"\s*(%\S+ = )?{access} ", line) and "noalias" in line:
            own = regions(llvm, re.findall(r"!alias\.scope (!\d+)", line)[0])
            others = regions(llvm, re.findall(r"!noalias (!\d+)", line)[0])
            assert len(own) == 1
            found.add((own.pop(), frozenset(others)))
    return found


@pytest.mark.parametrize(("source", "target"), [("rows", "theta"), ("theta", "w"), ("w", "z")])
def test_a_compiled_access_is_that_of_python_and_keeps_to_its_region(source, target):
    get, put = GETTERS[source], PUTTERS[target]

    @njit
    def shifted(given, out):
        for j in range(len(out) - 1):
            put(out, j, 2.0 * get(given, j + 1))

    given = np.array([3.0, -1.5, 7.0, 0.25])
    compiled, plain = np.full(4, 9.0), np.full(4, 9.0)
    shifted(given, compiled)
    shifted.py_func(given, plain)
    np.testing.assert_array_equal(compiled, plain)
    np.testing.assert_array_equal(compiled, [-3.0, 14.0, 0.5, 9.0])
    llvm = shifted.inspect_llvm(shifted.signatures[0])
    assert promises(llvm, "load") == {(source, frozenset(OTHERS[source]))}
    assert promises(llvm, "store") == {(target, frozenset(OTHERS[target]))}


def test_whole_numbers_can_be_read_too():
    @njit
    def total(given):
        found = 0
        for j in range(len(given)):
            found += load_store.get_z(given, j)
        return found

    given = np.array([4, -2, 40])
    assert total(given) == 42
    llvm = total.inspect_llvm(total.signatures[0])
    assert promises(llvm, "load") == {("z", frozenset(OTHERS["z"]))}


def test_a_rolled_loop_stays_a_loop():
    @njit
    def total(n, given):
        found = 0.0
        for j in range(n):
            load_store.rolled()
            found += given[j]
        return found

    assert total(3, np.array([1.0, 2.0, 4.0])) == 7.0
    llvm = total.inspect_llvm(total.signatures[0])
    assert len(re.findall(r'call void asm sideeffect "", ""\(\)', llvm)) == 1
    assert load_store.rolled() is None


def test_a_posted_number_is_seen_after_what_was_written_before_it():
    @njit
    def written(out, count):
        out[0] = 2.5
        load_store.post(count, 0, count[0] + 1)

    @njit
    def read(out, count):
        return load_store.posted(count, 0), out[0]

    out, count = np.zeros(1), np.zeros(1, dtype=np.int64)
    written(out, count)
    assert read(out, count) == read.py_func(out, count) == (1, 2.5)
    written.py_func(out, count)
    assert read(out, count) == (2, 2.5)
    assert re.search(r"store atomic i64 .* release", written.inspect_llvm(written.signatures[0]))
    assert re.search(r"load atomic i64.* acquire", read.inspect_llvm(read.signatures[0]))


def test_peek_reads_the_same_number_in_python_and_compiled():
    numbers = np.arange(5.0) + 0.25
    compiled = njit(lambda address, index: load_store.peek(address, index))
    for index in range(5):
        assert load_store.peek(numbers.ctypes.data, index) == numbers[index]
        assert compiled(numbers.ctypes.data, index) == numbers[index]
