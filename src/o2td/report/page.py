"""One self-contained page: sections of paragraphs, tables, figures and notes, as plain HTML.

Nothing on it comes from the network: styles are inline, pictures are data, there is no script, and
a content policy forbids everything else. All text is escaped, whatever its source; a block never
takes HTML.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from string import Template

__all__ = [
    "Badge",
    "Block",
    "Callout",
    "Details",
    "Heading",
    "Items",
    "Page",
    "Picture",
    "Section",
    "SideBySide",
    "Table",
    "Text",
]


class Block:
    """A piece of a page."""

    def html(self) -> str:
        """The piece as HTML, everything in it escaped."""
        raise NotImplementedError


@dataclass(frozen=True)
class Badge(Block):
    """A few highlighted words: `tone` is good, bad, mixed or plain."""

    text: str
    tone: str = "plain"

    def html(self) -> str:
        """A coloured span."""
        return f'<span class="badge {_tone(self.tone)}">{_text(self.text)}</span>'


@dataclass(frozen=True)
class Text(Block):
    """A paragraph; parts in backticks are set as code."""

    text: str

    def html(self) -> str:
        """A paragraph."""
        return f"<p>{_text(self.text)}</p>"


@dataclass(frozen=True)
class Heading(Block):
    """A heading inside a section."""

    text: str

    def html(self) -> str:
        """A heading of the third level."""
        return f"<h3>{_text(self.text)}</h3>"


@dataclass(frozen=True)
class Items(Block):
    """A list of sentences."""

    items: Sequence[str]

    def html(self) -> str:
        """An unordered list."""
        return "<ul>" + "".join(f"<li>{_text(item)}</li>" for item in self.items) + "</ul>"


@dataclass(frozen=True)
class Callout(Block):
    """A boxed sentence that must not be missed: `tone` is good, bad, mixed or plain."""

    text: str
    tone: str = "plain"

    def html(self) -> str:
        """An aside."""
        return f'<aside class="callout {_tone(self.tone)}"><p>{_text(self.text)}</p></aside>'


Cell = str | Badge


@dataclass(frozen=True)
class Table(Block):
    """A table; `numbers` names the columns that are set to the right.

    On a narrow screen a table with `stack` turns every row into a card, others scroll sideways
    inside their own box.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    numbers: Iterable[str] = ()
    stack: bool = False
    anchor: str = ""

    def html(self) -> str:
        """A table in a box of its own."""
        right = {k for k, name in enumerate(self.columns) if name in set(self.numbers)}
        head = "".join(
            f'<th scope="col"{_classes(number=k in right)}>{_text(name)}</th>'
            for k, name in enumerate(self.columns)
        )
        body = "".join(f"<tr>{self._row(row, right)}</tr>" for row in self.rows)
        caption = f"<caption>{_text(self.caption)}</caption>" if self.caption else ""
        anchor = f' id="{_attribute(self.anchor)}"' if self.anchor else ""
        kind = "stack" if self.stack else "scroll"
        return (
            f'<div class="table {kind}"{anchor} tabindex="0" role="region"'
            f' aria-label="{_attribute(self.caption or "table")}">'
            f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _row(self, row: Sequence[Cell], right: set[int]) -> str:
        cells = []
        for k, cell in enumerate(row):
            inside = cell.html() if isinstance(cell, Badge) else _text(cell)
            label = _attribute(self.columns[k])
            kind = _classes(number=k in right, none=self.stack and inside == "–")
            cells.append(f'<td data-label="{label}"{kind}>{inside}</td>')
        return "".join(cells)


@dataclass(frozen=True)
class Picture(Block):
    """An SVG or PNG image with its description, inside the page.

    `files` are names of files next to the page with the same picture and its numbers.
    """

    data: bytes
    alt: str
    caption: str = ""
    files: Sequence[str] = ()
    width: str = ""

    def html(self) -> str:
        """A figure."""
        kind = "image/png" if self.data.startswith(b"\x89PNG") else "image/svg+xml"
        source = f"data:{kind};base64,{base64.b64encode(self.data).decode()}"
        links = " · ".join(
            f'<a href="{_attribute(name)}">{_text(name.rpartition(".")[2].upper())}</a>'
            for name in self.files
        )
        note = " ".join(part for part in (_text(self.caption), links) if part)
        narrow = f' class="{_attribute(self.width)}"' if self.width else ""
        return (
            f'<figure{narrow}><img src="{source}" alt="{_attribute(self.alt)}">'
            + (f"<figcaption>{note}</figcaption>" if note else "")
            + "</figure>"
        )


@dataclass(frozen=True)
class SideBySide(Block):
    """Blocks side by side if there is room, else one below the other."""

    blocks: Sequence[Block]

    def html(self) -> str:
        """A grid."""
        inside = "".join(f"<div>{block.html()}</div>" for block in self.blocks)
        return f'<div class="columns">{inside}</div>'


@dataclass(frozen=True)
class Details(Block):
    """Blocks folded under a heading; open in print."""

    title: str
    blocks: Sequence[Block]

    def html(self) -> str:
        """A details element."""
        inside = "".join(block.html() for block in self.blocks)
        return f"<details><summary>{_text(self.title)}</summary>{inside}</details>"


@dataclass
class Section:
    """A heading with blocks below it; `anchor` is what links point to.

    Parameters
    ----------
    anchor : str
        What links point to.
    title : str
        The heading.
    blocks : list
        Texts, tables and figures.
    level : int
        Of the heading, 1 being the page's own.
    """

    anchor: str
    title: str
    blocks: list[Block] = field(default_factory=list)
    level: int = 2

    def add(self, *blocks: Block) -> Section:
        """Append blocks."""
        self.blocks.extend(blocks)
        return self

    def html(self) -> str:
        """A section element."""
        inside = "".join(block.html() for block in self.blocks)
        heading = f"h{self.level}"
        return (
            f'<section id="{_attribute(self.anchor)}"><{heading}>{_text(self.title)}</{heading}>'
            f"{inside}</section>"
        )


@dataclass
class Page:
    """A page: title, a lead paragraph, sections, and a last line.

    Parameters
    ----------
    title : str
        The heading.
    lead : str
        The paragraph under it.
    sections : list of Section
        The rest, in order.
    footer : str
        The last line.

    Examples
    --------
    >>> page = Page("Result", "All is <well>.", [Section("one", "One").add(Text("Yes."))])
    >>> "All is &lt;well&gt;." in page.html()
    True
    """

    title: str
    lead: str = ""
    sections: list[Section] = field(default_factory=list)
    footer: str = ""

    def html(self) -> str:
        """The whole page."""
        here = files("o2td.report")
        links = "".join(
            f'<li><a href="#{_attribute(section.anchor)}">{_text(section.title)}</a></li>'
            for section in self.sections
            if section.level == 2
        )
        return Template((here / "page.html").read_text(encoding="utf-8")).substitute(
            title=_text(self.title),
            lead=_text(self.lead),
            style=(here / "page.css").read_text(encoding="utf-8"),
            contents=links,
            body="\n".join(section.html() for section in self.sections),
            footer=_text(self.footer),
        )


def _text(text: str) -> str:
    """Escaped text, in which a part between backticks is code."""
    parts = html.escape(str(text), quote=False).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts)
    return "".join(f"<code>{p}</code>" if k % 2 else p for k, p in enumerate(parts))


def _attribute(text: str) -> str:
    return html.escape(str(text), quote=True)


def _tone(tone: str) -> str:
    return tone if tone in ("good", "bad", "mixed") else "plain"


def _classes(**given: bool) -> str:
    """The class attribute with the names that hold; nothing if none does."""
    held = " ".join(name for name, yes in given.items() if yes)
    return f' class="{held}"' if held else ""
