"""Pages made from hostile data, in a real browser: markup in names stays text, nothing of it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from o2td.cli import main
from o2td.evaluation import compare
from o2td.experiments import Store
from o2td.paper import build, reproduce
from tests.browser import chromium
from tests.experiments.files import Labels, forged

RUN = "window.canary=1"
HOSTILE = {
    "script": f"<script>{RUN}</script>",
    "closing": f"--></style></title></textarea></svg></script><script>{RUN}</script>",
    "image": f"<img src=x onerror={RUN}>",
    "quotes": f"\"'><svg onload={RUN}>",
    "attribute": f"x\" onmouseover=\"{RUN}\" style=\"position:fixed;inset:0\" autofocus onfocus=\"{RUN}",
    "link": f"<a href=javascript:{RUN}>x</a>",
    "entity": f"&lt;script&gt;&#60;script&#62;{RUN}",
    "markdown": f"`x`**y**[z](javascript:{RUN})$\\frac<script>{RUN}</script>$",
}  # fmt: skip


def ran(*paths: Path) -> list[list[str]]:
    """What a reader's browser did beyond showing the page: everything clicked and hovered over."""
    with chromium() as browser:
        return [_ran(browser.new_page(), path) for path in paths]


def _ran(page: Any, path: Path) -> list[str]:
    found: list[str] = []
    page.on("dialog", lambda dialog: (found.append("dialog"), dialog.dismiss()))
    page.on("request", lambda request: found.append(request.url))
    page.goto(path.as_uri(), wait_until="load")
    page.evaluate(
        """() => { document.querySelectorAll("details").forEach((e) => { e.open = true; });
        document.querySelectorAll("*").forEach((e) => {
          for (const name of ["mouseover", "focus", "load", "error"])
            e.dispatchEvent(new Event(name)); }); }"""
    )
    page.wait_for_timeout(100)
    found = [one for one in found if not one.startswith(("file:", "data:", "blob:"))]
    if page.evaluate("() => window.canary !== undefined"):
        found.append("a script of the data ran")
    odd = "script:not([src]), a[href^='javascript:'], [onload], [onerror], [onfocus]"
    found += page.evaluate(
        f"() => [...document.querySelectorAll({odd!r})].map((e) => e.outerHTML.slice(0, 90))"
    )
    return found


@pytest.mark.browser
def test_the_canary_sings_where_nothing_is_escaped(tmp_path: Path) -> None:
    """The check itself: each of the texts that carry their own trigger is noticed unescaped."""
    paths = []
    for name in ("script", "closing", "image", "quotes", "link"):
        paths.append(tmp_path / f"{name}.html")
        paths[-1].write_text(f"<!doctype html><body><p>{HOSTILE[name]}</p>")
    assert all(ran(*paths))


@pytest.mark.browser
def test_columns_and_files_of_a_log(tmp_path: Path) -> None:
    names = {
        role: f"{role} {text}"
        for role, text in zip(
            ("episode", "step", "reward", "terminated", "rho"), HOSTILE.values(), strict=False
        )
    }
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        names["episode"]: np.repeat(np.arange(60), 5),
        names["step"]: np.tile(np.arange(5), 60),
        names["reward"]: rng.normal(size=300),
        names["terminated"]: np.tile(np.arange(5) == 4, 60),
        names["rho"]: rng.uniform(0.5, 1.5, 300),
    }
    inputs = [HOSTILE["entity"], HOSTILE["markdown"], HOSTILE["attribute"]]
    columns |= {name: rng.uniform(size=300) for name in inputs}
    file = tmp_path / f"log {HOSTILE['image']}.parquet"
    pl.DataFrame(columns).write_parquet(file)
    lines = [f"{role} = {json.dumps(name)}" for role, name in names.items()]
    mapping = tmp_path / "columns.toml"
    mapping.write_text("\n".join([*lines, f"observation = {json.dumps(inputs)}"]))
    out = tmp_path / "answer"
    arguments = ["evaluate", str(file), "--discount", "0.9", "--methods", "lstd,dr"]
    arguments += ["--features", "fourier:1", "--columns", str(mapping), "--out", str(out)]
    assert main(arguments) == 0
    assert ran(out / "report.html") == [[]]


@pytest.mark.browser
def test_policies_and_categories_of_a_comparison(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    action = rng.integers(0, 2, 300)
    ways = [f"a {HOSTILE['quotes']}", f"b {HOSTILE['closing']}"]
    columns: dict[str, Any] = {
        "episode": np.repeat(np.arange(60), 5), "step": np.tile(np.arange(5), 60),
        "obs_0": np.array(list(HOSTILE.values()))[rng.integers(0, len(HOSTILE), 300)],
        "action": action, "reward": rng.normal(size=300) + action,
        "terminated": np.tile(np.arange(5) == 4, 60), "behavior_prob": np.full(300, 0.5),
        ways[0]: np.where(action, 0.6, 0.4), ways[1]: np.where(action, 0.4, 0.6),
    }  # fmt: skip
    named = {HOSTILE["image"] + HOSTILE["markdown"]: ways[0], HOSTILE["attribute"]: ways[1]}
    both = compare(pl.DataFrame(columns), 0.9, named, methods="lstd,wis")
    out = both.save(tmp_path / "answer")
    (out / "notebook.html").write_text(f"<!doctype html><body>{both._repr_html_()}")
    text = (out / "report.html").read_text()
    assert "window.canary" in text  # what is shown of it is text
    assert ran(out / "report.html", out / "notebook.html") == [[], []]


def poison(store: Store, name: str) -> None:
    """The same file with hostile words in place of an algorithm's name and parameters."""
    file = store.read(name)
    table, columns = file.frame(), {}
    first = str(table["algorithm"][0])
    for column in table.columns:
        values = table[column].cast(pl.String).to_list() if column in WORDS else None
        if values is None:
            columns[column] = table[column].to_arrow()
            continue
        if column in ("algorithm", "parameters", "domain"):
            text = HOSTILE["closing"] + HOSTILE["image"] + HOSTILE["markdown"]
            values = [
                one + text if one == first or column != "algorithm" else one for one in values
            ]
        words = list(dict.fromkeys(values))
        place = {word: k for k, word in enumerate(words)}
        columns[column] = Labels(np.array([place[one] for one in values], np.int32), words)
    store.write(*forged(file.key, columns))


WORDS = ("experiment", "domain", "scheme", "algorithm", "parameters", "metric")


@pytest.mark.browser
def test_names_and_records_of_experiments(tmp_path: Path) -> None:
    reproduce(["tab-boyan"], out=tmp_path, workers=1)
    store = Store(tmp_path)
    for name in sorted(store.ids()):
        poison(store, name)
    path = tmp_path / "reproduction.json"
    record = json.loads(path.read_text())
    text = "".join(HOSTILE.values())
    record["machine"] = text
    record["versions"] = {f"o2td{text}": text}
    for about in record["experiments"].values():
        about["title"] = text
        about["notes"] = dict.fromkeys([*about["notes"], text], text)
    path.write_text(json.dumps(record))
    page = build(tmp_path).path
    assert "window.canary" in page.read_text()
    assert ran(page) == [[]]
