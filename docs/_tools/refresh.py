"""Update what the repository's pages measure: numbers, tables, pictures, outputs of commands.

`python -m docs._tools.refresh`, which `make docs` runs first, updates every page in place;
`python -m docs._tools.refresh PAGE …` updates only these pages, without measuring again.
A page is any Markdown file in docs/ or in the root; a method, a public module or a chapter needs no
list of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from docs._tools import drawn, kept, outputs, pages, pictures
from docs._tools.blocks import blocks
from docs._tools.measure import ROOT
from docs._tools.values import fill

PLAY = ROOT / "docs" / "play.html"


def sources() -> list[Path]:
    """Every Markdown file that a visitor to the repository may open."""
    return sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))


def stale(commands: bool = True, pages: Iterable[Path] | None = None) -> Iterator[tuple[Path, str]]:
    """Pages, and pictures that their code draws, that are out of date, with what they should be."""
    data = kept.numbers()
    known = blocks(data)
    for path in sources() if pages is None else pages:
        text = path.read_text("utf-8")
        try:
            new = fill(text, data, known)
        except KeyError as error:
            raise SystemExit(f"{path.relative_to(ROOT)}: {error.args[0]}") from None
        made: dict[str, str] = {}
        if commands:
            new, made = outputs.filled(new)
        if new != text:
            yield path, new
        for name, picture in made.items():
            image = drawn.IMAGES / name
            if not image.exists() or not drawn.alike(image.read_text("utf-8"), picture):
                yield image, picture


def play() -> str:
    """The interactive page, with problems on which there is something to see."""
    from o2td import domains, interactive
    from o2td.paper.studies.geometry import diverging_cycle, three_states

    problems = [three_states(), diverging_cycle(), domains.random_walk(form="dependent")]
    problems += [domains.collision(seed=0), domains.boyan_chain(), domains.baird()]
    problems += [domains.garnet(states=12, features=4, seed=1)]
    return interactive.page(problems, back="book/oblique-projection.html")


def main(only: list[str]) -> None:
    """Measure, draw and write; given names of pages, only these, from the stored numbers."""
    chosen = [Path(name).resolve() for name in only] or None
    if chosen is None:
        for change in kept.refresh()[:20]:
            print("measured:", change)
        for path in pages.missing():
            print("new page:", path.relative_to(ROOT))
        for path in pictures.refresh(kept.numbers()):
            print("drawn:", path.relative_to(ROOT))
        PLAY.write_text(play(), encoding="utf-8")
    for path, text in stale(pages=chosen):
        path.write_text(text, encoding="utf-8")
        print("written:", path.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
