"""Pictures of the page that `o2td evaluate --out` writes: docs/images/report.png and report-dark.png.

`python -m docs._tools.screens` makes them anew; it needs a Chromium. The log is that of the guide.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

from docs._tools.drawn import IMAGES
from docs._tools.measure import ROOT
from docs._tools.outputs import answer

WIDTH, HEIGHT = 1000, 1180
SCHEMES = {"light": "report.png", "dark": "report-dark.png"}


def main() -> None:
    """Run the guide's blocks up to its answer, and photograph the answer's page."""
    import re

    from playwright.sync_api import sync_playwright

    text = (ROOT / "docs" / "guides" / "logs.md").read_text("utf-8")
    code = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)[0]
    command = re.search(r"^\$ (o2td evaluate .*--out answer)$", text, re.M)
    if command is None:
        raise SystemExit("docs/guides/logs.md has no command that writes the folder answer")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(compile(code, "page", "exec"), {"__name__": "page"})  # noqa: S102
        answer(command[1])
        page = (Path(folder) / "answer" / "report.html").as_uri()
        with sync_playwright() as engine:
            flags = ["--no-sandbox", "--disable-gpu"]
            browser = engine.chromium.launch(executable_path=program, args=flags)
            for scheme, name in SCHEMES.items():
                size = {"width": WIDTH, "height": HEIGHT}
                shown = browser.new_page(viewport=size, color_scheme=scheme)
                shown.goto(page)
                shown.screenshot(path=str(IMAGES / name))
                print(IMAGES / name)
            browser.close()


if __name__ == "__main__":
    main()
