"""Open pages from the file system in a headless Chromium and say what a reader would stumble over."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
_FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]

# What is wider than the page and cannot be scrolled in a frame of its own.
_OVERFLOWING = """() => {
  const wide = document.documentElement.clientWidth + 1;
  const framed = (e) => {
    for (let p = e.parentElement; p; p = p.parentElement) {
      const flow = getComputedStyle(p).overflowX;
      if (flow === "auto" || flow === "scroll" || flow === "hidden" || flow === "clip") return true;
    }
    return false;
  };
  const out = [...document.querySelectorAll("main *, body > *")].filter(
    (e) => e.offsetParent && e.getBoundingClientRect().right > wide && !framed(e));
  const page = document.documentElement.scrollWidth > wide ? ["the page itself"] : [];
  return page.concat(out.slice(0, 3).map((e) => e.outerHTML.slice(0, 120)));
}"""

# Formulas that take no room, and images that did not load.
_UNRENDERED = """() => {
  const flat = [...document.querySelectorAll("math")].filter((e) => {
    const box = e.getBoundingClientRect();
    return e.checkVisibility() && (box.width < 3 || box.height < 6);
  });
  const broken = [...document.images].filter((e) => e.complete && e.naturalWidth === 0);
  return [...flat, ...broken].map((e) => e.outerHTML.slice(0, 120));
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; tests are skipped on machines that have none."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def stumbles(browser: Any, path: Path, width: int, scheme: str = "light") -> list[str]:
    """One sentence for each error, request to the network, overflow or formula without size."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    found: list[str] = []
    page.on("console", lambda m: found.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("request", lambda r: found.append(f"asked for {r.url}") if _outside(r.url) else None)
    page.on("requestfailed", lambda r: found.append(f"could not load {r.url}"))
    try:
        page.goto(path.as_uri(), wait_until="load")
        page.evaluate("() => document.fonts.ready.then(() => true)")
        found += [f"is wider than the page: {element}" for element in page.evaluate(_OVERFLOWING)]
        found += [f"is not rendered: {element}" for element in page.evaluate(_UNRENDERED)]
    finally:
        page.close()
    return [f"{path.name} at {width}, {scheme}: {sentence}" for sentence in found]


def _outside(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:", "about:"))
