"""The interactive page computes what `o2td.exact` computes, and follows pointer, keys and finger."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import o2td
from o2td import domains, exact, interactive
from o2td.cli import main
from o2td.errors import InputError
from o2td.paper.studies import diverging_cycle, three_states
from tests.browser import SCHEMES, WIDTHS, chromium, stumbles

LEARNERS = {
    "td": lambda trace: o2td.TD(0.1, trace=trace),
    "etd": lambda trace: o2td.ETD(0.1, trace=trace),
    "rg": lambda trace: o2td.ResidualGradient(0.1, double=True),
    **{
        f"o2td-{reading}": lambda trace, reading=reading: o2td.O2TD(0.1, omega=reading, trace=trace)
        for reading in ("printed", "sample", "state", "moments")
    },
}
DIRECTIONS = {
    "best": "best",
    "td": "TD({:g})",
    "etd": "ETD({:g})",
    "rg": "residual gradient",
    "o2td-state": "O2TD({:g}), state",
    "o2td-moments": "O2TD({:g}), moments",
}


def fifty() -> list[o2td.Problem]:
    """The small domains, and random problems of many sizes."""
    rng = np.random.default_rng(7)
    found = [domains.collision(seed=0), domains.boyan_chain(), domains.baird(), diverging_cycle()]
    found += [domains.random_walk(form=form) for form in ("dependent", "tabular")]
    while len(found) < 50:
        states = int(rng.integers(3, 25))
        sizes = {"states": states, "features": int(rng.integers(2, max(3, min(states, 9))))}
        discount = float(rng.uniform(0.3, 0.99))
        found.append(domains.garnet(**sizes, discount=discount, seed=(31, len(found))))
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interactive.write(tmp_path_factory.mktemp("page") / "page.html", fifty())


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def opened(browser: Any, path: Path, **settings: Any) -> Any:
    page = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **settings})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.goto(path.as_uri())
    page.errors = errors
    return page


def rebuilt(given: dict[str, Any]) -> o2td.Problem:
    """The problem that the page says it shows, from its transitions."""
    n, m = given["states"], given["actions"]
    P, reward, discount = np.zeros((3, n, m, n))
    for row in given["pairs"]:
        at = row["s"], row["a"], row["t"]
        P[at], reward[at], discount[at] = row["p"], row["r"], row["g"]
    ends = np.flatnonzero(given["terminal"])
    P[ends, :, 0] = 1.0
    names = ("behavior", "target")
    policies = {name: np.array(given[name]) for name in names}
    for s, row in enumerate(policies["behavior"]):  # terminal rows may be anything
        policies["behavior"][s] = row if row.sum() else 1.0 / m
    return o2td.Problem(
        *(P, reward, discount),
        **policies,
        features=np.array(given["phi"]),
        start=given["start"],
        terminal=ends,
        interest=given["interest"],
        initial_theta=given["initial_theta"],
    )


def table(page: Any) -> dict[str, dict[str, str]]:
    """The numbers that the table of methods holds, by method and column, in full."""
    script = """() => Object.fromEntries([...document.querySelectorAll("#methods tbody tr")].map(
      (row) => [row.dataset.key, Object.fromEntries([...row.querySelectorAll("td[data-what]")].map(
        (cell) => [cell.dataset.what, cell.dataset.value ?? null]))]))"""
    found: dict[str, dict[str, str]] = page.evaluate(script)
    return found


def differences(page: Any) -> list[str]:
    """Where the page and `o2td.exact` differ by more than 1e-9 of a number's size."""
    found: list[str] = []
    problem = rebuilt(page.evaluate("() => o2td.problem()"))
    settings = page.evaluate("() => o2td.settings()")
    results = page.evaluate(
        "() => (({V, xi, best, methods}) => ({V, xi, best, methods}))(o2td.results())"
    )
    shown, trace = table(page), settings["trace"]
    directions = exact.directions(problem, trace)

    def check(what: str, ours: Any, theirs: Any) -> None:
        ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
        size = max(1.0, float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)))
        if not np.allclose(ours, theirs, rtol=0.0, atol=1e-9 * size, equal_nan=True):
            found.append(f"{problem.name} at trace {trace}: {what}, {ours} is not {theirs}")

    check("V", results["V"], exact.value(problem))
    check("xi", results["xi"], exact.state_distribution(problem))
    Phi = np.asarray(problem.features)
    for row in results["methods"]:
        key, cells = row["key"], shown[row["key"]]
        if key in LEARNERS:
            learner = LEARNERS[key](trace)
            point = exact.fixed_point(problem, learner)
            check(f"{key}, theta", row["theta"], point.theta)
            check(f"{key}, RMSE", number(cells["rmse"]), point.rmse)
            check(f"{key}, ratio", number(cells["ratio"]), point.suboptimality)
            check(f"{key}, largest step", number(cells["maxStep"]), point.max_step_size)
            check(f"{key}, eigenvalues", *matched(row["eigen"], point.eigenvalues))
            check(f"{key}, path", row["path"], path_of(problem, learner, settings["alpha"], row))
            if (cells["stable"] == "true") != point.stable:
                found.append(f"{problem.name}: {key}, stable {cells['stable']}")
        else:
            theta = (
                exact.best_approximation(problem)
                if key == "best"
                else o2td.SOTD().limit(exact.model(problem))
            )
            check(f"{key}, values", Phi @ row["theta"], Phi @ theta)
            check(f"{key}, RMSE", number(cells["rmse"]), exact.rmse(problem, theta))
            check(f"{key}, ratio", number(cells["ratio"]), exact.suboptimality(problem, theta))
        if key in DIRECTIONS:
            worst = exact.amplification(problem, directions[DIRECTIONS[key].format(trace)])
            check(f"{key}, amplification", number(cells["amplification"]), worst)
        elif cells["amplification"] is not None:
            found.append(f"{key} has an amplification")
    return found


def number(text: str) -> float:
    return math.inf if text == "Infinity" else float(text)


def matched(ours: list[list[float]], theirs: Any) -> tuple[Any, Any]:
    """Eigenvalues side by side, each with the nearest one of the other list."""
    left = np.array([complex(*z) for z in ours])
    order = []
    for z in theirs:
        k = int(np.argmin(np.where(np.isin(np.arange(len(left)), order), np.inf, np.abs(left - z))))
        order.append(k)
    both = left[order], np.asarray(theirs)
    return tuple(np.concatenate([z.real, z.imag]) for z in both)  # type: ignore[return-value]


def path_of(problem: o2td.Problem, learner: Any, alpha: float, row: dict[str, Any]) -> Any:
    """Expected errors from mean dynamics, step by step."""
    mean = learner.mean_dynamics(exact.model(problem))
    theta = np.zeros(problem.d) if problem.initial_theta is None else problem.initial_theta
    path = [np.asarray(theta)]
    for _ in range(len(row["path"]) - 1):
        path.append(path[-1] + alpha * (mean.b - mean.A @ path[-1]))
    return exact.rmse(problem, np.column_stack(path))


@pytest.mark.browser
def test_its_numbers_are_those_of_exact_on_fifty_problems(browser: Any, path: Path) -> None:
    page = opened(browser, path)
    found: list[str] = []
    for k in range(50):
        page.select_option("#problem", str(k))
        slide(page, "#trace", (0.0, 0.3, 0.9, 1.0)[k % 4])
        found += differences(page)
    assert found == []
    assert page.errors == []


def slide(page: Any, slider: str, value: float) -> None:
    script = "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); }"
    page.eval_on_selector(slider, script, value)


def at(page: Any, name: str) -> tuple[float, float]:
    box = page.locator(f'[data-handle="{name}"] .ring').bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.browser
def test_a_pointer_drags_v_and_features(browser: Any, tmp_path: Path) -> None:
    page = opened(browser, interactive.write(tmp_path / "three.html", [three_states()]))
    for name in ("V", "phi0", "phi1"):
        before = page.evaluate("() => [o2td.results().V, o2td.problem().phi]")
        x, y = at(page, name)
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 40, y - 25, steps=5)
        page.mouse.up()
        after = page.evaluate("() => [o2td.results().V, o2td.problem().phi]")
        moved = [not np.allclose(a, b, atol=1e-3) for a, b in zip(before, after, strict=True)]
        assert moved == ([True, False] if name == "V" else [False, True]), name
        assert differences(page) == []
    picture = "() => document.getElementById('stage').innerHTML"
    before = page.evaluate(picture)
    page.mouse.move(*at(page, "V"))
    page.mouse.move(300, 620)
    page.mouse.down()
    page.mouse.move(380, 600, steps=3)
    page.mouse.up()
    assert page.evaluate(picture) != before  # the view has turned
    link = page.url
    again = opened(browser, tmp_path / "three.html")
    again.goto(link)
    again.reload()
    assert again.evaluate("() => o2td.results().V") == page.evaluate("() => o2td.results().V")
    assert page.errors == again.errors == []


@pytest.mark.browser
def test_everything_is_reached_by_keys(browser: Any, path: Path) -> None:
    page = opened(browser, path)
    for name, keys in (("V", "ArrowUp"), ("phi0", "ArrowRight"), ("phi1", "PageUp")):
        page.focus(f'[data-handle="{name}"]')
        before = page.evaluate("() => JSON.stringify(o2td.problem())")
        page.keyboard.press(keys)
        page.keyboard.press(f"Shift+{keys}")
        assert page.evaluate("() => document.activeElement.dataset.handle") == name
        assert page.evaluate("() => JSON.stringify(o2td.problem())") != before
    for slider in ("#trace", "#gamma", "#mix", "#alpha", "#policy input.behavior"):
        page.focus(slider)
        page.keyboard.press("ArrowLeft" if slider == "#gamma" else "ArrowRight")
    page.focus('button[data-key="o2td-state"]')
    page.keyboard.press("Enter")
    assert "O²TD state" in page.inner_text("#caption")
    settings = page.evaluate("() => o2td.settings()")
    assert settings["trace"] == 0.01
    assert settings["chosen"] == "o2td-state"
    assert differences(page) == []
    focusable = page.locator("a, button, input, select, summary, [tabindex]").evaluate_all(
        "all => all.filter((e) => e.checkVisibility() && !(e.getAttribute('aria-label') ||"
        " e.textContent.trim() || e.closest('label')?.textContent.trim())).length"
    )
    assert focusable == 0  # each says what it is
    assert page.errors == []


@pytest.mark.browser
def test_a_finger_drags_v_on_a_phone(browser: Any, path: Path) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.goto(path.as_uri())
    page.locator("#stage").scroll_into_view_if_needed()
    before = page.evaluate("() => o2td.results().V")
    x, y = at(page, "V")
    touch = context.new_cdp_session(page)
    for kind, dx in (("touchStart", 0), ("touchMove", 15), ("touchMove", 30), ("touchEnd", None)):
        points = [] if dx is None else [{"x": x + dx, "y": y - dx}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert not np.allclose(page.evaluate("() => o2td.results().V"), before, atol=1e-3)
    assert differences(page) == []
    context.close()


@pytest.mark.browser
def test_it_reads_well_at_every_width_in_light_and_dark(browser: Any, path: Path) -> None:
    found = [s for w in WIDTHS for scheme in SCHEMES for s in stumbles(browser, path, w, scheme)]
    assert found == []


@pytest.mark.browser
def test_what_is_unstable_turns_red(browser: Any, tmp_path: Path) -> None:
    page = opened(browser, interactive.write(tmp_path / "cycle.html", [diverging_cycle()]))
    red = page.locator("#methods tr.unstable").evaluate_all("all => all.map((e) => e.dataset.key)")
    assert red == ["o2td-printed", "o2td-sample", "o2td-state", "o2td-moments"]
    assert page.locator("#spectrum .bad").count() == 4  # one of two eigenvalues each
    assert page.locator("#methods tr.unstable span.bad").count() == 4


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "collision.html"
    assert main(["analyze", "collision", "--interactive", str(made)]) == 0
    assert f"page: {made}" in capsys.readouterr().out
    text = made.read_text("utf-8")
    assert "<title>collision: every method is an oblique projection</title>" in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


def test_what_is_too_large_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at most 30 states, and garnet has 40"):
        interactive.write(tmp_path / "x.html", [domains.garnet(states=40)])
    assert not (tmp_path / "x.html").exists()


def test_a_name_cannot_leave_its_place() -> None:
    problem = domains.baird()
    problem.name = "</script><script>alert(1)</script><!--"
    text = interactive.page([problem], title="<b>&")
    assert "<script>alert" not in text
    assert "<title>&lt;b&gt;&amp;</title>" in text
