"""Specs: what is read, and what is refused in one sentence that names the key."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from o2td.errors import InputError
from o2td.experiments import load_spec, plan
from o2td.experiments.spec import MAX_FILE_BYTES

BASE = """
name = "walk"
steps = 100
runs = 2
metrics = ["rmse"]
domain.name = "random_walk"
algorithms = [{ name = "TD", grid = { step_size = [0.01, 0.1] } }]
"""
TUNING = "[tuning]\nseed = 1\ngrid = { step_size = [0.1] }\n"


def test_defaults_and_derived_settings() -> None:
    spec = load_spec(BASE)
    assert (spec.seed, spec.schemes, spec.interval) == (0, ["sequential"], 1)
    assert load_spec(BASE.replace("steps = 100", "steps = 5000")).interval == 50
    assert load_spec(BASE + "every = 30").interval == 30


def test_a_file_and_its_text_are_the_same_spec(tmp_path: Path) -> None:
    file = tmp_path / "walk.toml"
    file.write_text(BASE)
    assert load_spec(file) == load_spec(str(file)) == load_spec(BASE)


# what is wrong -> (text, what the sentence must hold)
REFUSED = {
    "unknown key": (BASE + "runz = 3", "runz: unknown key, did you mean 'runs'?"),
    "unknown key far from any": (BASE + "zzz = 3", "zzz: unknown key, choose from name"),
    "unknown key in a table": (BASE + "domain.nam = 3", "domain.nam: unknown key"),
    "unknown key in a list": (
        BASE.replace('{ name = "TD"', '{ nmae = 1, name = "TD"'),
        "algorithms[0].nmae: unknown key, did you mean 'name'?",
    ),
    "unknown key in a profile": (BASE + "profiles.full.rns = 1", ".rns: unknown key"),
    "missing key": (BASE.replace("runs = 2\n", ""), "runs: missing"),
    "text for a number": (BASE.replace("runs = 2", "runs = '2'"), "runs: expected int, got str"),
    "fraction for a count": (BASE.replace("runs = 2", "runs = 2.5"), "runs: expected int"),
    "switch for a count": (BASE.replace("runs = 2", "runs = true"), "runs: expected int"),
    "number for a name": (BASE.replace('"walk"', "3"), "name: expected str, got int"),
    "no runs": (BASE.replace("runs = 2", "runs = 0"), "runs: expected int >= 1"),
    "negative seed": (BASE + "seed = -1", "seed: expected int >= 0"),
    "10^12 runs": (BASE.replace("runs = 2", "runs = 1000000000000"), "runs: expected int <= "),
    "10^9 steps": (BASE.replace("steps = 100", "steps = 1000000000"), "steps: expected int <= "),
    "too much in all": (
        BASE.replace("runs = 2", "runs = 1000000").replace("steps = 100", "steps = 10000000")
        + "algorithms_ = 0".replace("algorithms_ = 0", "domain.grid.x = [1, 2, 3, 4, 5, 6]"),
        "runs: 1,000,000 runs × 10,000,000 steps × 12 settings",
    ),
    "too much stored": (
        BASE.replace("runs = 2", "runs = 1000000").replace("steps = 100", "steps = 10000")
        + "every = 1",
        "every: 2e+10 values would be stored",
    ),
    "empty grid": (BASE.replace("[0.01, 0.1]", "[]"), "algorithms[0].grid.step_size: empty"),
    "value twice": (BASE.replace("[0.01, 0.1]", "[0.1, 0.1]"), "step_size[1]: 0.1 is listed twice"),
    "grid too large": (
        BASE.replace(
            "grid = { step_size = [0.01, 0.1] }",
            "grid = {" + ",".join(f"a{k} = [1, 2, 3, 4, 5, 6, 7, 8, 9]" for k in range(20)) + "}",
        ),
        "algorithms: more than 10^12 settings",
    ),
    "cases too many": (
        BASE + "\n".join(f"domain.grid.a{k} = [1, 2, 3, 4]" for k in range(50)),
        "domain.grid: more than 10^12 cases",
    ),
    "fixed and listed": (
        BASE.replace("{ name", "{ parameters = { step_size = 1.0 }, name"),
        "grid.step_size: also under parameters",
    ),
    "same label": (
        BASE.replace('[{ name = "TD"', '[{ name = "TD" }, { name = "TD"'),
        "algorithms[1].label: 'TD' is used twice",
    ),
    "unknown metric": (BASE.replace("rmse", "rmsee"), "metrics[0]: no 'rmsee', did you mean"),
    "no metrics": (BASE.replace('["rmse"]', "[]"), "metrics: expected array of length >= 1"),
    "unknown scheme": (BASE + "scheme = 'sequental'", "scheme: no 'sequental', did you mean"),
    "every beyond steps": (BASE + "every = 101", "every: 101 is more than the 100 steps"),
    "sizes not increasing": (BASE + "sizes = [20, 10]", "sizes: give increasing"),
    "sizes beyond steps": (BASE + "sizes = [200]", "sizes: give increasing"),
    "not a number": (BASE + "domain.parameters.x = nan", "domain.parameters.x: nan is not"),
    "infinite": (BASE + "domain.parameters.x = -inf", "-inf is not a finite number"),
    "a date": (BASE + "domain.parameters.x = 2020-01-01", "got a date"),
    "a huge number": (BASE + f"domain.parameters.x = {10**300}", "does not fit in 64 bits"),
    "a number of 5000 digits": (BASE + "domain.parameters.x = " + "9" * 5000, "not TOML"),
    "a path": (BASE + "domain.parameters.x = '/etc/passwd'", "is not a plain word"),
    "a path outside": (BASE + "domain.parameters.x = '..'", "is not a plain word"),
    "a name that is a path": (BASE.replace('"walk"', '"../walk"'), "name: expected a plain name"),
    "a module of a domain": (BASE + "domain.parameters.x = 'os:system'", "is not a plain word"),
    "code": (
        BASE.replace("[0.01, 0.1]", "[\"__import__('os').system('touch canary')\"]"),
        "is not a plain word",
    ),
    "an import path": (
        BASE.replace('"TD"', '"os.system"'),
        "algorithms[0].name: no 'os.system', o2td algorithms lists all",
    ),
    "nested table": (BASE + "domain.parameters.x.y = 1", "domain.parameters.x: a table here is"),
    "nested list": (BASE + "domain.parameters.x = [[1]]", "x[0]: expected a number"),
    "seed in parameters": (BASE + "domain.parameters.seed = 1", "write it as domain.seed"),
    "bad parameter name": (BASE + "domain.parameters.'a b' = 1", "is not the name of a parameter"),
    "tuning on the shown seeds": (BASE + TUNING.replace("= 1", "= 0"), "tuning.seed: equal to"),
    "tuning without grid": (
        BASE + TUNING.replace("{ step_size = [0.1] }", "{}"),
        "tuning.grid: empty",
    ),
    "tuning by an unknown metric": (
        BASE + TUNING + "metric = 'rmspbe'",
        "tuning.metric: no 'rmspbe'",
    ),
    "not TOML": (BASE + "= 3", "not TOML"),
    "half a file": (BASE[: len(BASE) // 2], ""),
    "empty": ("\n", "name: missing"),
    "a null byte": (BASE + "\0", "not TOML"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_a_wrong_spec_is_refused_by_name(wrong: str, tmp_path: Path) -> None:
    text, sentence = REFUSED[wrong]
    file = tmp_path / "my.toml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        plan(load_spec(file))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


HOSTILE = {
    "brackets": BASE.replace("[0.01, 0.1]", "[" * 15000),
    "closed brackets": BASE.replace("[0.01, 0.1]", "[" * 8000 + "]" * 8000),
    "tables": BASE + "x = " + "{a=" * 5000,
    "dotted key": "a" + ".a" * 15000 + " = 1\n",
    "dotted parameter": BASE + "domain.parameters" + ".a" * 15000 + " = 1",
    "quoted dots": BASE + "domain.parameters" + '."="' * 6000 + " = 1",
    "dotted inline": BASE + "domain.parameters = {a" + ".a" * 15000 + " = 1}",
    "table header": BASE + "[a" + ".a" * 15000 + "]",
    "long line": BASE + "title = '" + "x" * 30000 + "'",
    "large": BASE + "#" * (MAX_FILE_BYTES + 1),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_shapes_are_refused_at_once(kind: str) -> None:
    began = time.perf_counter()
    with pytest.raises(InputError):
        load_spec(HOSTILE[kind])
    assert time.perf_counter() - began < 1.0


def test_not_text(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_bytes(b"\xff\xfe" + BASE.encode())
    with pytest.raises(InputError, match="UTF-8"):
        load_spec(file)


LIMITED = """
import re, sys, time
from o2td.experiments import load_spec
from o2td.errors import InputError
began = time.perf_counter()
try:
    load_spec(sys.argv[1])
except InputError as error:
    print(error)
used = re.search(r"VmHWM:\\s*([0-9]+)", open("/proc/self/status").read()).group(1)
print(time.perf_counter() - began, used, sorted(m for m in sys.modules if m in ("numba", "polars")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("text", [REFUSED["10^12 runs"][0], REFUSED["code"][0]])
def test_a_hostile_spec_costs_nothing(text: str, tmp_path: Path) -> None:
    """Within a second and 100 MB, without importing an algorithm; nothing in it ran."""
    file = tmp_path / "my.toml"
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(file)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    *_, figures = done.stdout.strip().splitlines()
    seconds, kilobytes, imported = figures.split(" ", 2)
    assert float(seconds) < 1.0
    assert int(kilobytes) < 100_000
    assert imported == "[]"
    assert not (tmp_path / "canary").exists()
