"""MkDocs hooks: strip markers, add docstrings, convert formulas to MathML, add tags for sharing."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[2]))

from docs._tools import mathml, pages, values

_FONT = "STIXGeneral.ttf"  # for formulas; it comes with matplotlib
_PICTURE = "images/where-methods-land.png"


def on_config(config: Any) -> Any:
    """List every page in the navigation, and set the version."""
    from o2td import __version__

    config["nav"] = pages.nav(config["nav"])
    config["copyright"] = f"o2td {__version__}, MIT license"
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the root's pages and the font of the formulas."""
    for path, text in pages.of_the_root().items():
        files.append(File.generated(config, path, content=text))
    import matplotlib as mpl

    font = Path(mpl.get_data_path()) / "fonts" / "ttf" / _FONT
    files.append(File.generated(config, f"assets/{_FONT}", abs_src_path=str(font)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Strip the markers, redirect links that leave docs/, and add what only the site has."""
    path = page.file.src_uri
    text = pages.inward(values.unmarked(markdown), path, config["repo_url"] or "")
    return text.rstrip() + "\n" + pages.only_in_the_site(path)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Write formulas as MathML, and drop the dash before a missing description."""
    content = re.sub(r'–\s*<div class="doc-md-description">\s*</div>', "", content)
    try:
        return mathml.render(content)
    except ValueError as error:
        raise SystemExit(f"{page.file.src_uri}: {error}") from None


def on_post_page(output: str, page: Any, config: Any, **_: Any) -> str:
    """Add a description and a picture for those who share a link to the page."""
    about = description(page.content or "") or config["site_description"]
    output = re.sub(
        r'<meta name="description" content="[^"]*">',
        lambda _: f'<meta name="description" content="{html.escape(about)}">',
        output,
        count=1,
    )
    up = "../" * page.file.dest_uri.count("/")
    picture = (config["site_url"].rstrip("/") + "/" if config["site_url"] else up) + _PICTURE
    tags = {
        "og:type": "article",
        "og:title": f"{page.title} · {config['site_name']}",
        "og:description": about,
        "og:image": picture,
    }
    told = "".join(
        f'<meta property="{name}" content="{html.escape(str(text))}">'
        for name, text in tags.items()
    )
    told += '<meta name="twitter:card" content="summary_large_image">'
    return output.replace("</head>", f"{told}</head>", 1)


def description(content: str) -> str:
    """The first sentence or two of a page, as plain text.

    >>> description("<h1>Title</h1><p>One <em>sentence</em>. Two.</p>")
    'One sentence. Two.'
    """
    found = re.search(r"<p>(.*?)</p>", content, re.S)
    plain = re.sub(r"<math.*?</math>|<[^>]+>", "", found[1], flags=re.S) if found else ""
    words = " ".join(html.unescape(plain).split())
    return words if len(words) <= 200 else words[:200].rsplit(" ", 1)[0] + " …"


def on_post_template(output: str, template_name: str, config: Any, **_: Any) -> str:
    """The 404 page, whose links must work from any folder of any host.

    A server shows it for addresses of any depth, so a base makes its links relative to the root:
    the site's address, or else the folder of the page itself.
    """
    if template_name != "404.html":
        return output
    relative = re.sub(r'(href|src|action)="/(?!/)', r'\1="', output)
    relative = re.sub(r'"(base|search)": ?"/', r'"\1":"./', relative)  # the theme's settings
    base = html.escape(config["site_url"] or "./")
    return relative.replace("<head>", f'<head><base href="{base}">', 1)
