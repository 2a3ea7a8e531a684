"""Every code block of the documentation and the read-me runs, and prints what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs._tools import outputs, screens

from . import blocks, shell

PAGES = sorted(
    path
    for path in (
        *blocks.ROOT.glob("*.md"),
        *(blocks.ROOT / "docs").rglob("*.md"),
        *(blocks.ROOT / "examples").glob("*.md"),
        *(blocks.ROOT / "benchmarks").glob("*.md"),
    )
    if any(blocks.blocks(path))
)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(blocks.ROOT)))
def test_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if any(block.language == "sh" for block in blocks.blocks(path)):
        shell.copy(tmp_path)
    with outputs.registered():
        blocks.run(path)
    if path == screens.GUIDE:
        assert screens.stale(screens.PAGE.read_text("utf-8")) is None


def test_a_page_that_says_something_else_than_its_picture_is_noticed() -> None:
    kept = screens.KEPT.read_text("utf-8")
    assert len(kept.split()) > 100
    assert screens.stale(f"<p>{kept}</p>") is None
    assert screens.stale(f"<p>{kept.replace('policy', 'plan')}</p>")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(blocks.ROOT)))
def test_no_block_is_missed(path: Path) -> None:
    """Fences start at the first letter of a line; others would be shown and not be run."""
    lines = path.read_text("utf-8").split("\n")
    fences = [line for line in lines if line.lstrip().startswith(("```", "~~~"))]
    assert len(fences) == 2 * len(list(blocks.blocks(path)))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(blocks.ROOT)))
def test_lines_fit_on_the_page(path: Path) -> None:
    """90 letters are what a laptop shows beside the columns of links."""
    lines = [line for block in blocks.blocks(path) for line in block.text.split("\n")]
    assert [line for line in lines if len(line) > 90] == []


@pytest.mark.parametrize(
    "text",
    [
        "```pycon\n>>> 1 + 1\n3\n```\n",
        "```python\nassert False\n```\n",
        "```console\n$ o2td --version\nnothing of the kind\n```\n",
        "```console\n$ o2td nosuchcommand\n```\n",
        "```sh\nmake nosuchtarget\n```\n",
        "```sh\npip install '.[nosuchextra]'\n```\n",
        "```sh\nnosuchprogram\ntrue\n```\n",
        "```text\n$ o2td --version\n```\n",
        "```text\nfrom o2td import TD\n```\n",
        '```toml\nname = "x"\nnosuchkey = 1\n```\n',
        "```fortran\nend\n```\n",
    ],
)
def test_a_wrong_block_is_noticed(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(blocks, "ROOT", tmp_path)
    with pytest.raises((AssertionError, ValueError, KeyError, SystemExit)):
        blocks.run(page)


def test_outputs_are_what_commands_print() -> None:
    """Commands between marks are run, long outputs are cut, failures stop the build."""
    from docs._tools import outputs

    page = (
        "<!--= output -->\n```console\n$ o2td --version\nsomething old\n```\n<!--/-->\n"
        "<!--= output | 2 -->\n```console\n$ o2td analyze boyan_chain --trace 0\n```\n<!--/-->\n"
        "```python\nraise AssertionError('nothing after the last output is run')\n```\n"
    )
    made = outputs.filled(page)[0]
    assert "something old" not in made
    assert "$ o2td --version\no2td " in made
    assert made.count("boyan_chain: 14 states") == 1
    assert "amplification\n...\n```" in made
    assert outputs.filled(made) == (made, {})
    with pytest.raises(SystemExit, match="ended with 2"):
        outputs.filled("<!--= output -->\n```console\n$ o2td nosuchcommand\n```\n<!--/-->\n")
