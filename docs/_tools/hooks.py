"""MkDocs' hooks: measured numbers and generated pages in, formulas to MathML, fonts beside them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[1]))

from _tools import board, claims, mathml, outputs, pages, pictures
from _tools.blocks import blocks, record
from _tools.measure import numbers
from _tools.values import fill

_FONT = "STIXGeneral.ttf"  # letters and signs of formulas; it comes with matplotlib
_made: dict[str, Any] = {}


def on_config(config: Any) -> Any:
    """Measure (or take from the cache), and fill in the generated parts of the navigation."""
    data = {
        **numbers(),
        "claims": claims.by_id(),
        "coverage": record(),
        "leaderboard": board.kept(),
    }
    figures = pictures.pictures(data)
    generated = pages.generated(data, set(figures))
    _made.update(data=data, figures=figures, pages=generated, blocks=blocks(data))
    sections = pages.nav(generated)
    for entry in config["nav"]:
        for title, items in sections.items():
            if isinstance(entry, dict) and title in entry:
                entry[title] = [*items, *(entry[title] or [])]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add generated pages, figures and the font of the formulas."""
    for path, text in _made["pages"].items():
        files.append(File.generated(config, path, content=text))
    for name, path in _made["figures"].items():
        files.append(File.generated(config, f"images/{name}.svg", abs_src_path=str(path)))
    import matplotlib as mpl

    font = Path(mpl.get_data_path()) / "fonts" / "ttf" / _FONT
    files.append(File.generated(config, f"assets/{_FONT}", abs_src_path=str(font)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace every `{{ name }}` and `{{ output }}`."""
    try:
        return fill(outputs.filled(markdown), _made["data"], _made["blocks"])
    except KeyError as error:
        raise SystemExit(f"{page.file.src_uri}: {error}") from None


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Write formulas as MathML, and no dash before a description that is not there."""
    html = re.sub(r'–\s*<div class="doc-md-description">\s*</div>', "", html)
    try:
        return mathml.render(html)
    except ValueError as error:
        raise SystemExit(f"{page.file.src_uri}: {error}") from None
